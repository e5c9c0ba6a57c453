"""The checker of core tapes, on tapes with deliberate faults of every kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from fuzzing.plans import HOST, JudgedPlan
from fuzzing.together import awaits_of, shared_out, without
from fuzzing.trips import Trip, models, stored_again

from mcudeploy.checker.judge import PlanFaultError, check
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Lane, Plan, Run, Sync, WorkSlice

Entries = list[WorkSlice | Sync]
Change = Callable[[Entries, Entries], object]


@pytest.fixture(scope="module")
def blocks() -> JudgedPlan:
    """Residual in steps of some rows, with slices of columns."""
    judged = shared_out(models(2)[0], "cut", 3, 2)
    assert any(it.columns for lane in judged.plan.lanes for it in lane if isinstance(it, WorkSlice))
    return judged


@pytest.fixture(scope="module")
def whole() -> JudgedPlan:
    """Residual in four steps, each in two halves."""
    return shared_out(models(2)[0], "unsplit", 0, 2)


def with_lanes(plan: Plan, *lanes: Entries) -> Plan:
    return replace(plan, lanes=tuple(map(tuple, lanes)))


def changed(plan: Plan, change: Change) -> Plan:
    """The plan with changed tapes of its two cores."""
    first, second = map(list, plan.lanes)
    change(first, second)
    return with_lanes(plan, first, second)


def refused(judged: JudgedPlan, plan: Plan) -> str:
    with pytest.raises(PlanFaultError) as caught:
        check(plan, judged.model.work, judged.board)
    return str(caught.value)


def last_part(lane: Entries) -> int:
    return max(at for at, it in enumerate(lane) if isinstance(it, WorkSlice))


def columns_at(lane: Entries) -> int:
    """The first slice of columns."""
    return next(at for at, it in enumerate(lane) if isinstance(it, WorkSlice) and it.columns is not None)


def other_columns(lo: int, hi: int) -> Change:
    def change(first: Entries, _: Entries) -> None:
        at = columns_at(first)
        first[at] = replace(first[at], columns=Interval(lo, hi))

    return change


def other_rows(lo: int, hi: int) -> Change:
    def change(first: Entries, _: Entries) -> None:
        first[last_part(first)] = replace(first[last_part(first)], rows=Interval(lo, hi))

    return change


def swapped(lane: Entries) -> None:
    """Two slices of different steps are swapped."""
    one, other = (at for at, it in enumerate(lane) if isinstance(it, WorkSlice) and it.entry in (0, 3))
    lane[one], lane[other] = lane[other], lane[one]


CHANGES: dict[str, tuple[Change, str]] = {
    "a part dropped": (lambda a, _: a.pop(last_part(a)), "is not written whole exactly once"),
    "a part doubled": (lambda a, _: a.append(a[last_part(a)]), "is not written whole exactly once"),
    "a part of both cores": (lambda a, b: b.append(a[last_part(a)]), "is not written whole exactly once"),
    "all parts of a step dropped": (
        lambda a, b: [lane.pop(last_part(lane)) for lane in (a, b)],
        "differ in their entries",
    ),
    "an entry too much": (
        lambda a, _: a.append(WorkSlice(9, Interval(0, 1))),
        "differ in their entries",
    ),
    "out of order": (lambda a, _: swapped(a), r"goes from entry 3 back to"),
    "too many rows": (other_rows(0, 9), "writes rows"),
    "rows of the other core": (other_rows(4, 8), "is not written whole exactly once"),
    "no rows": (other_rows(2, 2), "writes rows"),
    "a wait for a later part": (lambda a, _: a.insert(1, Sync(1, 1, 4)), "which does not come earlier"),
    "a wait for a part of the same step": (
        lambda a, _: a.insert(1, Sync(1, 1, 2)),
        "which does not come earlier",
    ),
    "a wait for no part": (lambda a, _: a.insert(1, Sync(1, 1, 0)), "which does not come earlier"),
    "a wait for more parts than there are": (
        lambda a, _: a.insert(1, Sync(1, 1, 99)),
        "which does not come earlier",
    ),
    "a wait for itself": (lambda a, _: a.insert(1, Sync(1, 0, 1)), "waits for core 0"),
    "a wait for a core that is not there": (lambda a, _: a.insert(1, Sync(1, 2, 1)), "waits for core 2"),
    "a wait for a core before the first": (lambda a, _: a.insert(1, Sync(1, -1, 1)), "waits for core -1"),
}


@pytest.mark.parametrize(("change", "words"), CHANGES.values(), ids=CHANGES.keys())
def test_faulty_lanes_are_refused(whole: JudgedPlan, change: Change, words: str) -> None:
    check(whole.plan, whole.model.work, HOST)
    assert words in refused(whole, changed(whole.plan, change))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (other_columns(0, 9), "columns"),
        (other_columns(0, 8), "is not written whole exactly once"),
        (other_columns(0, 1), "is not written whole exactly once"),
        (other_columns(0, 0), "columns"),
        (other_columns(8, 8), "columns"),
    ],
    ids=["beyond the row", "of the other core", "too few", "none", "none, beyond the row"],
)
def test_columns_that_are_not_there_are_refused(blocks: JudgedPlan, change: Change, words: str) -> None:
    check(blocks.plan, blocks.model.work, HOST)
    assert words in refused(blocks, changed(blocks.plan, change))


def test_no_columns_are_not_taken_for_all(whole: JudgedPlan) -> None:
    """Whole rows with an empty range of columns would not be computed."""

    def none(first: Entries, _: Entries) -> None:
        old = first.pop(last_part(first))
        rows = range(old.rows.lo, old.rows.hi)
        first += [WorkSlice(old.entry, Interval(row, row + 1), Interval(8, 8)) for row in rows]

    assert "columns" in refused(whole, changed(whole.plan, none))


def test_columns_of_several_rows_are_refused(whole: JudgedPlan) -> None:
    def several(first: Entries, _: Entries) -> None:
        old = first.pop(last_part(first))
        first += [replace(old, columns=Interval(0, 4)), replace(old, columns=Interval(4, 8))]

    assert "writes rows" in refused(whole, changed(whole.plan, several))


def test_a_part_that_another_core_does_without_waits_is_refused(whole: JudgedPlan) -> None:
    def moved(first: Entries, second: Entries) -> None:
        at = next(at for at, it in enumerate(first) if isinstance(it, WorkSlice) and it.entry == 1)
        part = first.pop(at)
        second.insert(next(at for at, it in enumerate(second) if it.entry == 2), part)

    assert "has waited for part" in refused(whole, changed(whole.plan, moved))


def test_lanes_that_change_places_are_as_good(whole: JudgedPlan) -> None:
    """Cores are interchangeable if there are no streamed inputs, transfers or waits for engines."""
    first, second = (
        [replace(it, core=1 - it.core) if isinstance(it, Sync) else it for it in lane]
        for lane in whole.plan.lanes
    )
    check(with_lanes(whole.plan, second, first), whole.model.work, HOST)


def test_a_core_may_have_nothing_to_do(whole: JudgedPlan) -> None:
    every = [part for pair in zip(*map(parts_of, whole.plan.lanes), strict=True) for part in pair]
    check(with_lanes(whole.plan, every, []), whole.model.work, HOST)
    check(with_lanes(whole.plan, [], every), whole.model.work, HOST)


def parts_of(lane: Lane) -> list[WorkSlice]:
    return [it for it in lane if isinstance(it, WorkSlice)]


def test_a_feed_beside_the_first_core_is_refused() -> None:
    judged = shared_out(models(2)[0], "streamed", 0, 2)
    feed = next(
        number
        for number, entry in enumerate(judged.plan.tape)
        if isinstance(entry, Run) and not judged.plan.graph.operators[entry.operator].inputs
    )
    first, second = map(list, judged.plan.lanes)
    at = next(
        at for at, it in enumerate(first) if it == WorkSlice(feed, it.rows) and isinstance(it, WorkSlice)
    )
    second.insert(0, first.pop(at))
    assert "is fed by the application" in refused(
        judged, with_lanes(judged.plan, first, sorted(second, key=by_entry))
    )


def by_entry(entry: WorkSlice | Sync) -> int:
    return entry.entry


def test_an_accumulation_by_two_cores_is_refused() -> None:
    judged = shared_out(models(2)[1], "cut", 3, 2)
    numbers = [
        number
        for number, entry in enumerate(judged.plan.tape)
        if isinstance(entry, Run) and judged.plan.graph.operators[entry.operator].op.accumulates
    ]
    for core, lane in enumerate(judged.plan.lanes):
        for at, part in enumerate(lane):
            if isinstance(part, WorkSlice) and part.entry in numbers and len(part.rows) > 1:
                rows = part.rows
                lanes = [list(each) for each in judged.plan.lanes]
                lanes[core][at] = replace(part, rows=Interval(rows.lo, rows.lo + 1))
                lanes[core].insert(at + 1, replace(part, rows=Interval(rows.lo + 1, rows.hi)))
                assert "accumulates: one core does it" in refused(judged, with_lanes(judged.plan, *lanes))
                return
    pytest.fail("no step accumulates several rows")


def test_a_transfer_beside_the_first_core_is_refused() -> None:
    judged = shared_out(models(2)[0], "moved", 3, 2)
    number = next(at for at, entry in enumerate(judged.plan.tape) if not isinstance(entry, Run))
    first, second = map(list, judged.plan.lanes)
    part = next(it for it in first if isinstance(it, WorkSlice) and it.entry == number)
    first.remove(part)
    plan = with_lanes(judged.plan, first, sorted([*second, part], key=by_entry))
    assert f"entry {number} is not done by core 0" in refused(judged, plan)


def test_a_wait_less_is_refused(blocks: JudgedPlan) -> None:
    for core, at in awaits_of(blocks.plan):
        assert "has waited for part" in refused(blocks, without(blocks.plan, core, at))


@pytest.mark.parametrize("way", ["unsplit", "cut", "streamed", "wandering"])
@pytest.mark.parametrize("cores", [2, 4])
def test_lanes_come_back_from_a_file(way: str, cores: int) -> None:
    judged = shared_out(models(2)[0], way, 5, cores)
    again = stored_again(Trip(way, judged, judged))
    assert again.lanes == judged.plan.lanes
    check(again, judged.model.work, judged.board)
