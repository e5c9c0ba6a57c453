"""The checker on plans with rematerialised blocks: two residences with a gap."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_layout import BOARD, WORK
from test_moved_layout import FREE, two_rows

from mcudeploy.checker.judge import PlanFaultError, check
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Plan, Schedule
from mcudeploy.tiling.blocks import TiledGraph
from tests.one_memory import lay_out
from tests.residing import Move, lying, moving, repeating


@pytest.fixture
def again() -> Plan:
    """`two_rows` with a step that rematerialises block 0 of a before its last read."""
    plan = two_rows()
    tiled = TiledGraph.of(plan)
    schedule = repeating(tiled, plan.schedule, ("a", 0))
    layout, estimate = lay_out(tiled, schedule, WORK, "sram", 4)
    recomputed = replace(plan, schedule=schedule, layout=layout, estimate=estimate)
    image = {"image": tuple(range(3584, 3584 + 256, 32))}
    return lying(recomputed, image, sram=4096)


def test_a_recomputed_block_has_two_residences(again: Plan) -> None:
    one, other = again.layout.blocks["a"][0]
    assert (one.life.hi < other.life.lo, one.offset) == (True, other.offset)  # if nothing moves
    check(again, WORK, BOARD)
    elsewhere = replace(other, offset=FREE)
    for wrong, message in [
        ((one, elsewhere), ""),
        ((one,), f"block 0 of a, which resides nowhere at step {other.life.hi - 1}|resides nowhere at step"),
        (
            (one, replace(elsewhere, life=Interval(other.life.lo + 1, other.life.hi))),
            "resides nowhere at step",
        ),
        ((elsewhere, one), "block 0 of a resides at"),
    ]:
        blocks = {**again.layout.blocks, "a": (wrong, *again.layout.blocks["a"][1:])}
        plan = replace(again, layout=replace(again.layout, blocks=blocks))
        if message:
            with pytest.raises(PlanFaultError, match=message):
                check(plan, WORK, BOARD)
        else:
            check(plan, WORK, BOARD)


def test_bytes_of_the_life_before_are_nobodys(again: Plan) -> None:
    """The block is not rematerialised, but its bytes are still there: that is luck, no plan."""
    one, other = again.layout.blocks["a"][0]
    step = again.schedule.steps[other.life.lo]
    kept = replace(again, schedule=Schedule(
        tuple(each for at, each in enumerate(again.schedule.steps) if at != other.life.lo), "feasible"
    ))  # fmt: skip
    assert step == again.schedule.steps[0]
    shorter = {
        name: tuple(
            tuple(
                replace(it, life=Interval(*(at - (at > other.life.lo) for at in (it.life.lo, it.life.hi))))
                for it in block
            )
            for block in blocks
        )
        for name, blocks in lying(
            again, {"a": (FREE, FREE + 64, FREE + 128, FREE + 192)}
        ).layout.blocks.items()
    }
    assert one.life.hi < other.life.lo
    with pytest.raises(PlanFaultError, match="block 0 of a, which is not written yet"):
        check(replace(kept, layout=replace(kept.layout, blocks=shorter)), WORK, BOARD)


def test_a_block_moves_in_each_of_its_lives(again: Plan) -> None:
    one, other = again.layout.blocks["a"][0]
    moves = Move(one.life.lo + 1, "a", 0, FREE), Move(other.life.lo + 1, "a", 0, FREE + 64)
    moved = moving(again, *moves)
    assert len(moved.layout.blocks["a"][0]) == 4
    assert [transfer.to for transfer in moved.layout.transfers] == [1, 3]
    check(moved, WORK, BOARD)
    with pytest.raises(PlanFaultError, match="its source does not contain the block"):
        check(moving(again, Move(other.life.lo, "a", 0, FREE)), WORK, BOARD)
