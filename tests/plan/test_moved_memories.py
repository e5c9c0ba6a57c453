"""Blocks in flight between memories: the checker with deliberate faults, and generated programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from fuzzing.wandering import wandering_board
from test_layout import WORK
from test_moved_layout import FREE, two_rows

from mcudeploy.boards.board import Board
from mcudeploy.checker.judge import PlanFaultError, check
from mcudeploy.ir.engine import CPU
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Entry, Layout, Plan, Residence, Schedule, Transfer, Wait
from mcudeploy.planner.tape.tape import Tape
from mcudeploy.tiling.locations import Locations
from tests.residing import inserted, offsets_of, with_block, with_life

BOARD = wandering_board(
    ("sram", "psram", "far"), ("dma0", ("sram", "psram")), ("dma1", ("sram", "psram", "far"))
)
A = "a", 1
"""Written by step 1, read by steps 2, 4, 8 and 10: with both other blocks of `a` by 8, alone by 10."""
OUT, BACK = 0, 1
"""The transfers of `flown`."""
GONE, HERE = Interval(5, 9), Interval(7, 11)
"""The steps at which `flown` has the block in psram, and in sram again."""


def flown() -> Plan:
    """`two_rows` with block A in flight to psram in step 5, and back in step 7."""
    plan = two_rows()
    layout = with_life(
        replace(plan.layout, arenas=dict.fromkeys(("sram", "psram", "far"), 4096)), A, 0, Interval(1, 6)
    )
    layout, away = inserted(layout, Transfer("dma0", *A, 0, 0, 6), Residence(GONE, "psram", 64))
    layout, _ = inserted(layout, Transfer("dma0", *A, away, 0, 8), Residence(HERE, "sram", FREE))
    return replace(plan, layout=layout)


def changed(layout: Layout, number: int, **changes: int | str) -> Layout:
    """The layout with another transfer."""
    transfers = list(layout.transfers)
    transfers[number] = replace(transfers[number], **changes)  # type: ignore[arg-type]
    return replace(layout, transfers=tuple(transfers))


def lying_at(layout: Layout, block_id: tuple[str, int], at: int, **changes: int | str) -> Layout:
    """The layout with another place of a residence."""
    block = layout.blocks[block_id[0]][block_id[1]]
    place = replace(block[at], **changes)  # type: ignore[arg-type]
    return with_block(layout, block_id, (*block[:at], place, *block[at + 1 :]))


def judge(layout: Layout, board: Board = BOARD) -> None:
    check(replace(flown(), layout=layout), WORK, board)


def test_a_block_in_flight_passes() -> None:
    plan = flown()
    check(plan, WORK, BOARD)
    times = [0]
    for entry in plan.tape:
        times.append(times[-1] + (not isinstance(entry, Transfer | Wait)))
    moves = [
        (time, each)
        for time, each in zip(times, plan.tape, strict=False)
        if isinstance(each, Transfer | Wait)
    ]
    out, back = plan.layout.transfers
    assert moves == [(5, out), (6, Wait("dma0", OUT)), (7, back), (8, Wait("dma0", BACK))]


def comes_too_late(layout: Layout) -> Layout:
    """Step 8 reads the block with others, and it arrives by step 9."""
    return changed(layout, BACK, end=9)


def begins_too_late(layout: Layout) -> Layout:
    return changed(with_life(layout, A, 2, Interval(9, 11)), BACK, end=9)


def leaves_before_it_has_gone(layout: Layout) -> Layout:
    return with_life(layout, A, 0, Interval(1, 5))


def leaves_while_it_comes_back(layout: Layout) -> Layout:
    return with_life(layout, A, 1, Interval(5, 7))


def sets_out_before_it_has_come(layout: Layout) -> Layout:
    """Another engine takes it from psram while it is still on its way there."""
    layout = with_life(changed(layout, OUT, end=8), A, 0, Interval(1, 8))
    layout = with_life(lying_at(layout, A, 2, memory="far"), A, 2, Interval(7, 11))
    return changed(layout, BACK, engine="dma1")


def target_taken_by_the_core(layout: Layout) -> Layout:
    place = Residence(Interval(5, 14), "psram", 64 + 32)
    return inserted(layout, Transfer(CPU, "a", 2, 0, 0, 5), place)[0]


def target_taken_by_an_engine(layout: Layout) -> Layout:
    place = Residence(Interval(5, 14), "psram", 64 - 32)
    return inserted(layout, Transfer("dma1", "a", 2, 0, 0, 6), place)[0]


def target_taken_by_a_step(layout: Layout) -> Layout:
    """Step 7 writes block 3 of a at A's target."""
    return lying_at(layout, ("a", 3), 0, offset=FREE + 60)


def source_taken_by_a_step(layout: Layout) -> Layout:
    """Step 5 writes block 0 of c over it."""
    return lying_at(layout, ("c", 0), 0, offset=offsets_of(flown(), "a")[1])


def source_taken_by_the_core(layout: Layout) -> Layout:
    """Block 1 of b moves over it before step 5."""
    place = Residence(Interval(5, 13), "sram", offsets_of(flown(), "a")[1])
    return inserted(with_life(layout, ("b", 1), 0, Interval(4, 5)), Transfer(CPU, "b", 1, 0, 0, 5), place)[0]


def over_itself(layout: Layout) -> Layout:
    place = Residence(Interval(9, 11), "sram", FREE + 32)
    layout = with_life(layout, A, 2, Interval(7, 9))
    return inserted(with_arena(layout), Transfer("dma1", *A, 2, 0, 9), place)[0]


def with_arena(layout: Layout) -> Layout:
    return replace(layout, arenas={**layout.arenas, "sram": 8192})


def in_two_memories(layout: Layout) -> Layout:
    """Step 8 also reads block 3, which is written to psram."""
    return lying_at(layout, ("a", 3), 0, memory="psram", offset=512)


def by_an_engine_of_other_memories(layout: Layout) -> Layout:
    return changed(lying_at(layout, A, 1, memory="far"), BACK, engine="dma1")


def by_the_core_over_steps(layout: Layout) -> Layout:
    return changed(layout, OUT, engine=CPU)


def to_a_memory_without_an_arena(layout: Layout) -> Layout:
    return replace(layout, arenas=dict.fromkeys(("sram", "far"), 4096))


def off_the_alignment(layout: Layout) -> Layout:
    return lying_at(layout, A, 1, offset=66)


def twice_in_one_memory(layout: Layout) -> Layout:
    return with_life(layout, A, 2, Interval(5, 11))


FAULTS = [
    (comes_too_late, r"step 8 \(conv_b, block 2\) needs blocks 1 to 3 of a in one memory"),
    (begins_too_late, r"step 8 \(conv_b, block 2\) needs blocks 1 to 3 of a in one memory"),
    (leaves_before_it_has_gone, r"from step 5 to 6: the residence before is that of \[1, 5\)"),
    (leaves_while_it_comes_back, r"from step 7 to 8: the residence before is that of \[5, 7\)"),
    (sets_out_before_it_has_come, "residence 1 to 2 before step 7: its source does not contain the block"),
    (target_taken_by_the_core, "block 1 of a from its residence 0 to 1: its target is overwritten in flight"),
    (
        target_taken_by_an_engine,
        "block 1 of a from its residence 0 to 1: its target is overwritten in flight",
    ),
    (target_taken_by_a_step, "block 1 of a from its residence 1 to 2: its target is overwritten in flight"),
    (source_taken_by_a_step, "block 1 of a .* before step 6: its source does not contain the block"),
    (source_taken_by_the_core, "block 1 of a .* before step 6: its source does not contain the block"),
    (over_itself, "block 1 of a from its residence 2 to 3 before step 9: the places overlap"),
    (in_two_memories, "needs blocks 1 to 3 of a in one memory"),
    (by_an_engine_of_other_memories, "residence 0 to 1: dma0 does not join sram and far"),
    (by_the_core_over_steps, "the CPU does not transfer while it runs steps"),
    (to_a_memory_without_an_arena, "block 1 of a lies in psram, where the plan has no arena"),
    (off_the_alignment, "block 1 of a at 66 is not aligned to 4"),
    (twice_in_one_memory, "block 1 of a resides at"),
]


@pytest.mark.parametrize(("fault", "message"), FAULTS)
def test_faults_in_flight_are_found(fault: Callable[[Layout], Layout], message: str) -> None:
    with pytest.raises(PlanFaultError, match=message):
        judge(fault(flown().layout))


def test_an_engine_that_the_board_lacks_is_found() -> None:
    with pytest.raises(PlanFaultError, match="there is no engine 'dma0'"):
        judge(flown().layout, wandering_board(("sram", "psram", "far"), ("dma1", ("sram", "psram"))))


def without(entry: Wait) -> list[Entry]:
    return []


def for_one_less(entry: Wait) -> list[Entry]:
    return [replace(entry, transfer=entry.transfer - 1)]


def for_another_engine(entry: Wait) -> list[Entry]:
    return [replace(entry, engine="dma1")]


@pytest.mark.parametrize("change", [without, for_one_less, for_another_engine])
def test_waits_for_too_few_transfers_are_found(
    change: Callable[[Wait], list[Entry]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tape follows from the plan: only a modified program could have this one."""
    plan = flown()
    tape = [each for entry in plan.tape for each in (change(entry) if isinstance(entry, Wait) else [entry])]
    monkeypatch.setattr(Plan, "tape", tuple(tape))
    with pytest.raises(PlanFaultError, match="before step 7: its source does not contain the block"):
        check(plan, WORK, BOARD)


def again_at(time: int) -> Plan:
    """`flown` with an additional step before another one that rematerialises block A."""
    plan, steps = flown(), flown().schedule.steps

    def later(place: Residence) -> Residence:
        lo, hi = place.life.lo, place.life.hi
        return replace(place, life=Interval(lo + (lo >= time), hi + (hi > time)))

    layout = plan.layout
    blocks = {
        name: tuple(tuple(map(later, each)) for each in residences)
        for name, residences in layout.blocks.items()
    }
    scratch = {
        name: tuple(tuple(map(later, each)) for each in residences)
        for name, residences in layout.scratch.items()
    }
    always = Interval(0, len(steps))
    blocks["image"] = tuple((replace(place, life=always),) for (place,) in blocks["image"])
    free = Residence(Interval(time, time + 1), "sram", 3072)
    scratch["conv_a"] = (scratch["conv_a"][0], (*scratch["conv_a"][1], free), *scratch["conv_a"][2:])
    transfers = tuple(replace(each, end=each.end + (each.end >= time)) for each in layout.transfers)
    order = (*steps[:time], steps[1], *steps[time:])
    layout = replace(layout, blocks=blocks, scratch=scratch, transfers=transfers)
    return replace(plan, schedule=Schedule(order, "feasible"), layout=layout)


def test_a_block_is_recomputed_where_a_transfer_has_put_it() -> None:
    plan = again_at(9)  # the copy in psram has ended by then
    plan = replace(plan, layout=with_life(plan.layout, A, 1, Interval(5, 9)))
    check(plan, WORK, BOARD)
    assert Locations.of(plan.layout).destination(A, 9) == plan.layout.blocks["a"][1][2]
    assert Locations.of(plan.layout).destination(A, 1) == plan.layout.blocks["a"][1][0]


def test_a_copy_of_a_recomputed_block_is_of_no_use() -> None:
    """Step 10 would read the copy in sram: the block is rematerialised in psram, which has no transfer."""
    plan = again_at(9)
    stays = plan.layout.blocks["a"][1]
    away = replace(stays[1], life=Interval(9, 12), offset=512)
    layout = with_block(plan.layout, A, (stays[0], replace(stays[1], life=Interval(5, 9)), stays[2], away))
    with pytest.raises(PlanFaultError, match="needs block 1 of a, which is overwritten"):
        check(replace(plan, layout=layout), WORK, BOARD)


def test_a_source_that_is_recomputed_in_flight_is_found() -> None:
    plan = again_at(5)
    layout = with_life(changed(plan.layout, OUT, end=6), A, 0, Interval(1, 6))
    layout = with_life(layout, A, 1, Interval(5, 10))
    with pytest.raises(PlanFaultError, match="its source is recomputed in flight"):
        check(replace(plan, layout=layout), WORK, BOARD)


def test_a_source_ends_with_the_last_that_leaves_it() -> None:
    """Two engines take block A from one place simultaneously: the one that is waited for last marks it."""
    layout = flown().layout
    layout, _ = inserted(layout, Transfer("dma1", *A, 0, 0, 5), Residence(Interval(5, 8), "far", 0), turn=0.0)
    plan = replace(flown(), layout=layout)
    check(plan, WORK, BOARD)
    ends = {(each.engine, each.new.memory): each.ends for each in Tape(plan).moves}
    assert ends == {("dma0", "psram"): (True,), ("dma1", "far"): (False,), ("dma0", "sram"): (False,)}


def test_a_source_that_is_read_after_an_early_wait_does_not_end_with_it() -> None:
    """The wait for A before step 6 also ends another block's transfer, which began before."""
    layout = with_life(flown().layout, ("a", 2), 0, Interval(3, 9))
    out = Transfer("dma0", "a", 2, 0, 0, 9)
    layout, away = inserted(layout, out, Residence(Interval(5, 11), "psram", 512), turn=0.0)
    back = Transfer("dma0", "a", 2, away, 0, 11)
    layout, _ = inserted(layout, back, Residence(Interval(9, 14), "sram", 3072))
    plan = replace(flown(), layout=layout)
    check(plan, WORK, BOARD)
    (ends,) = [each.ends for each in Tape(plan).moves if each.new.memory == "psram"]
    assert [each.block for each in layout.transfers[:2]] == [2, 1] and ends == (False, True)


def test_a_step_that_reads_no_block_of_a_tensor_names_a_memory_in_which_it_resides() -> None:
    blocks = (Residence(Interval(0, 4), "psram"), Residence(Interval(2, 6), "far"))
    places = Locations({"a": (blocks,)}, memories=("sram", "psram", "far"))
    assert places.read("a", [], 3) == "psram" and places.read("a", [0], 5) == "far"
