"""Placement of small random problems, against brute force and the judge."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcudeploy.interval import Interval
from mcudeploy.layout import canonical, exact
from mcudeploy.layout.greedy import Units, brief_at_the_top, fixed_orders, used_bytes
from mcudeploy.layout.judge import PlacementFaultError, judge
from mcudeploy.layout.place import place
from mcudeploy.layout.problem import Outcome, Overlap, Problem, lower_bound
from mcudeploy.layout.within import Within
from tests.layout.some_rectangles import (
    QUICK,
    brute_force,
    by_permutations,
    problems,
    puzzle,
    rectangle,
    rectangles,
)


@QUICK
@given(problems(most=3))
def test_constraint_solver_agrees_with_brute_force(problem: Problem) -> None:
    units = Units.of(problem)
    greedy = fixed_orders(units, 0)
    found, bound = exact.least_arena(units, greedy, bound=lower_bound(problem), effort=20, brake=60, seed=0)
    assert found is not None
    judge(problem, found)
    assert used_bytes(problem, found) == bound == brute_force(problem)


def test_scratch_hangs_from_the_top_below_what_lives_of_a_stack() -> None:
    image = rectangle(4, (0, 1)), rectangle(4, (0, 3))
    items = (*image, rectangle(3, (0, 1)), rectangle(3, (1, 2)), rectangle(2, (1, 3)), rectangle(5, (4, 5)))
    problem = Problem(items, stacks=((0, 1),))
    assert brief_at_the_top(problem, 20) == {0: 12, 1: 16, 2: 9, 3: 13, 5: 15}


@QUICK
@given(st.lists(rectangles(4), min_size=1, max_size=6).map(lambda items: Problem(tuple(items))))
def test_aligned_rectangles_are_placed_as_low_as_by_all_orders(problem: Problem) -> None:
    placed = place(problem, 5.0, grain=4)
    judge(problem, placed.offsets)
    assert placed.used_bytes[""] == -(-by_permutations(problem) // 4) * 4
    assert placed.lower_bound_bytes[""] == placed.used_bytes[""]


def test_what_lies_in_the_padding_of_others_does_not_raise_the_bound() -> None:
    small = [rectangle(1, (0, 1), alignment=2) for _ in range(3)]
    items = (rectangle(1, (1, 2), alignment=2), *small, rectangle(2, (0, 1), alignment=2))
    problem = Problem(items, stacks=((0, 1),), fixed={4: 0})
    judge(problem, (2, 3, 2, 4, 0))
    assert lower_bound(problem) == 5


def test_alignments_that_do_not_divide_one_another_need_no_padding() -> None:
    problem = Problem(
        (
            rectangle(1, (0, 1), alignment=2),
            rectangle(1, (0, 1), alignment=3),
            rectangle(1, (0, 1), alignment=2),
        )
    )
    judge(problem, (0, 3, 2))
    assert lower_bound(problem) == 3


@settings(max_examples=200, deadline=None)
@given(problems(most=9), st.sampled_from([1, 8]))
def test_greedy_is_sound_and_never_below_the_bound(problem: Problem, grain: int) -> None:
    placed = place(problem, 0.0, grain=grain)
    judge(problem, placed.offsets)
    assert used_bytes(problem, placed.offsets) >= lower_bound(problem)
    assert placed.used_bytes[""] >= placed.lower_bound_bytes[""]


@QUICK
@given(problems(most=5), problems(most=5))
def test_memories_are_placed_apart(one: Problem, two: Problem) -> None:
    here = tuple(replace(item, memory="sram") for item in one.rectangles)
    there = tuple(replace(item, memory="ccm") for item in two.rectangles)
    placed = place(Problem((*here, *there)), 0.0)
    assert placed.offsets[: len(here)] == place(Problem(one.rectangles), 0.0).offsets
    assert placed.used_bytes["ccm"] == place(Problem(two.rectangles), 0.0).used_bytes[""]


def test_what_lives_twice_leaves_room_in_between() -> None:
    problem = Problem((rectangle(8, (0, 2), (6, 8)), rectangle(8, (2, 6)), rectangle(4, (0, 8))))
    placed = place(problem, 1.0)
    judge(problem, placed.offsets)
    assert (placed.used_bytes[""], placed.status) == (12, "optimal")


def test_what_never_lives_is_in_nobodys_way_but_inside() -> None:
    problem = Problem((rectangle(8, (0, 2)), rectangle(20), rectangle(8, (1, 2))))
    placed = place(problem, 1.0)
    judge(problem, placed.offsets)
    assert (placed.offsets[1], placed.used_bytes[""], placed.status) == (0, 20, "optimal")


def test_a_stack_that_dies_from_its_top_has_a_free_base() -> None:
    rows = tuple(rectangle(4, (0, step + 1)) for step in range(4))
    made = tuple(rectangle(4, (step, 6)) for step in range(4))
    problem = Problem((*rows, *made), stacks=((0, 1, 2, 3),))
    placed = place(problem, 2.0)
    judge(problem, placed.offsets)
    assert (placed.used_bytes[""], placed.status) == (20, "optimal")


def test_a_stack_need_not_hang_from_the_top_of_a_capacity() -> None:
    spans = ((2, 0, 3), (4, 5, 6), (1, 2, 5), (4, 4, 5), (1, 4, 6))
    items = tuple(rectangle(size, (lo, hi)) for size, lo, hi in spans)
    problem = Problem(items, {"": 6}, stacks=((0, 1),))
    placed = place(problem, 2.0)
    judge(problem, placed.offsets)
    assert (placed.used_bytes[""], placed.status) == (6, "optimal")


def at_other_times(problem: Problem, factor: int, shift: int = 0) -> Problem:
    """The problem with all steps multiplied and shifted."""

    def moved(steps: Interval) -> Interval:
        return Interval(steps.lo * factor + shift, steps.hi * factor + shift)

    return replace(
        problem,
        rectangles=tuple(replace(item, lives=tuple(map(moved, item.lives))) for item in problem.rectangles),
        overlaps=tuple(replace(one, steps=moved(one.steps)) for one in problem.overlaps),
    )


@settings(max_examples=30, deadline=None)
@given(problems(most=5))
def test_long_steps_change_nothing(problem: Problem) -> None:
    rare = at_other_times(problem, 20_000)
    placed = place(rare, 0.3)
    judge(rare, placed.offsets)
    assert placed.status == "optimal"
    assert placed.used_bytes == place(problem, 0.3).used_bytes


@pytest.mark.parametrize(("factor", "seed"), [(1 << 34, 0), (1, 1 << 64)])
def test_large_times_and_seeds_are_only_numbers(factor: int, seed: int) -> None:
    problem = at_other_times(replace(puzzle(24, 5), capacities={}), factor)
    placed = place(problem, 4.0, seed=seed)
    assert (placed.used_bytes[""], placed.status) == (400, "optimal")


@settings(max_examples=30, deadline=None)
@given(problems(most=3), problems(most=3), st.integers(4, 12))
def test_to_keep_the_capacity_may_be_enough(one: Problem, two: Problem, capacity: int) -> None:
    one, two = (
        Problem(tuple(replace(item, alignment=1) for item in problem.rectangles), stacks=problem.stacks)
        for problem in (one, two)
    )
    both = (*one.rectangles, *at_other_times(two, 1, 20).rectangles)
    shift = len(one.rectangles)
    stacks = (*one.stacks, *(tuple(index + shift for index in stack) for stack in two.stacks))
    problem, least = Problem(both, {"": capacity}, stacks), max(brute_force(one), brute_force(two))
    placed = place(problem, 5.0, fitting=True)
    judge(replace(problem, capacities={}), placed.offsets)
    assert placed.lower_bound_bytes[""] <= least <= placed.used_bytes[""]
    assert (placed.used_bytes[""] <= capacity) == (least <= capacity)
    assert place(problem, 5.0).used_bytes[""] == least


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What searches other than the canonical one are for, in bytes; each must have time enough."""
    found = []

    def fit(search: Within, start: tuple[int, ...], limit: int, seconds: float) -> Outcome:
        assert search.deadline > time.process_time() + 2 * search.left
        found.append(limit)
        return original(search, start, limit, seconds)

    original = Within.fit
    monkeypatch.setattr(Within, "fit", fit)
    return found


def test_the_capacity_is_aimed_at_first(limits: list[int]) -> None:
    items = [replace(item, alignment=1 + number % 2) for number, item in enumerate(puzzle(60, 3).rectangles)]
    capacity = 420
    problem = Problem(tuple(items), {"": capacity})
    assert lower_bound(problem) < capacity < place(problem, 0.0).used_bytes[""]
    place(problem, 1.0)
    assert limits[0] == capacity
    assert min(limits) < capacity
    limits.clear()
    assert place(problem, 1.0, fitting=True).used_bytes[""] <= capacity
    assert limits == [capacity]


def test_a_part_is_not_searched_for_less_than_another_has(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[Problem] = []
    of = Within.of
    monkeypatch.setattr(Within, "of", lambda units, *of_it: parts.append(units.problem) or of(units, *of_it))
    three = (
        rectangle(4, (0, 1), alignment=3),
        rectangle(4, (0, 2), alignment=3),
        rectangle(3, (1, 2), alignment=2),
    )
    again = at_other_times(Problem(three), 1, 5).rectangles
    placed = place(Problem((*three, *again)), 1.0)
    assert (placed.used_bytes[""], placed.status) == (10, "optimal")
    assert len(parts) == 1


TWO = Problem((rectangle(8, (0, 4)), rectangle(8, (3, 6)), rectangle(4, (0, 6), alignment=4)), {"": 32})


@pytest.mark.parametrize(
    ("change", "offsets", "message"),
    [
        ({}, (0, 4, 16), "share bytes at step 3"),
        ({"overlaps": (Overlap(0, 1, Interval(2, 3)),)}, (0, 0, 16), "share bytes at step 3"),
        ({}, (0, 8, 18), "not aligned to 4"),
        ({}, (0, 28, 16), "leaves its 32 bytes"),
        ({}, (-1, 8, 16), "leaves its 32 bytes"),
        ({}, (0, 8), "2 offsets for 3"),
        ({"fixed": {0: 8}}, (0, 8, 16), "fixed at 8"),
        ({"stacks": ((0, 1),)}, (0, 12, 20), "apart from 0"),
    ],
)
def test_the_judge_finds_faults(change: dict[str, object], offsets: tuple[int, ...], message: str) -> None:
    judge(TWO, (0, 8, 16))
    with pytest.raises(PlacementFaultError, match=message):
        judge(replace(TWO, **change), offsets)


def test_an_allowed_overlap_is_used() -> None:
    problem = replace(TWO, overlaps=(Overlap(1, 0, Interval(3, 4)),))
    placed = place(problem, 1.0)
    judge(problem, placed.offsets)
    assert (placed.used_bytes[""], placed.status) == (12, "optimal")


def test_impossible_problems_are_refused() -> None:
    with pytest.raises(ValueError, match="two stacks"):
        replace(TWO, stacks=((0, 1), (1, 2)))
    with pytest.raises(ValueError, match="a stack is empty"):
        replace(TWO, stacks=((0, 1), ()))
    with pytest.raises(ValueError, match="below 0"):
        replace(TWO, fixed={0: -8})
    with pytest.raises(ValueError, match="empty"):
        rectangle(4, (2, 2))
    with pytest.raises(ValueError, match="ascending"):
        rectangle(4, (2, 4), (3, 5))


@pytest.mark.parametrize("capacities", [{}, {"": 400}])
def test_an_interrupt_keeps_what_was_found(
    capacities: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = replace(puzzle(60, 5), capacities=capacities)
    best = place(problem, 5.0)
    assert place(problem, 0.0).used_bytes[""] > best.used_bytes[""]
    answers = iter([Outcome(None), Outcome(best.offsets)])

    def search(*_: object, **__: object) -> Outcome:
        for answer in answers:
            return answer
        raise KeyboardInterrupt

    monkeypatch.setattr(Within, "fit", search)
    monkeypatch.setattr(canonical, "pack", search)
    monkeypatch.setattr("mcudeploy.layout.place.lower_bound", lambda _: 1)  # so that there is more to search
    monkeypatch.setattr(Within, "bound", lambda *_: 1)
    assert place(problem, 5.0, interruptible=True).used_bytes == best.used_bytes == {"": 400}
    with pytest.raises(KeyboardInterrupt):
        place(problem, 5.0)
