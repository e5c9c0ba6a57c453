"""Moves of blocks: where each lies as the tape goes on, and the judge with faults put in on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from graphs import residual
from test_layout import BOARD, WORK, make_plan

from mcudeploy.board import Unit, load_board
from mcudeploy.graph import Graph, Operator
from mcudeploy.interval import Interval
from mcudeploy.layout.check import PlanFaultError, check
from mcudeploy.ops.view import Reshape
from mcudeploy.plan import Function, Move, Placement, Plan, Schedule
from mcudeploy.simulator.blocks import TiledGraph, whole
from mcudeploy.simulator.flow import Flow
from mcudeploy.simulator.whereabouts import Whereabouts
from tests.moves import with_moves

FREE = 2048
"""Bytes from here on are free in the arena of `two_rows`."""


def two_rows() -> Plan:
    """Blocks of two rows, 64 bytes each, in an arena with room above them, where the image lies, too."""
    plan = make_plan(TiledGraph(Flow.of(residual()), dict.fromkeys(WORK, 2)))
    assert plan.layout.arena_bytes <= FREE
    image = Placement("sram", 1, tuple(range(3584, 3584 + 256, 32)))
    tensors = {**plan.layout.tensors, "image": image}
    return replace(plan, layout=replace(plan.layout, tensors=tensors, arenas={"sram": 4096}))


def moving(plan: Plan, *moves: Move) -> Plan:
    return replace(plan, layout=replace(plan.layout, moves=moves))


def made(plan: Plan, tensor: str, block: int) -> int:
    """The step that makes a block."""
    steps = plan.schedule.steps
    return next(
        time
        for time, step in enumerate(steps)
        if (plan.graph.operators[step.operator].output, step.block) == (tensor, block)
    )


@pytest.mark.parametrize("block_rows", [1, 2, 3, 8])
@pytest.mark.parametrize("seed", range(5))
def test_sound_moves_pass(block_rows: int, seed: int) -> None:
    plan = with_moves(make_plan(TiledGraph(Flow.of(residual()), dict.fromkeys(WORK, block_rows))), seed)
    assert plan.layout.moves
    check(plan, WORK, BOARD)


def test_a_block_may_move_over_itself_and_back() -> None:
    plan = two_rows()
    time, home = made(plan, "a", 0) + 1, plan.layout.tensors["a"].offsets[0]
    ways = (FREE, FREE + 4, FREE, FREE + 60, home)
    check(moving(plan, *(Move(time, "a", 0, to) for to in ways)), WORK, BOARD)


def test_the_tape_has_moves_before_their_steps() -> None:
    plan = two_rows()
    moves = Move(1, "a", 0, FREE), Move(1, "a", 0, FREE + 64), Move(3, "a", 0, FREE)
    first, second, third, *rest = plan.schedule.steps
    expected = (first, *moves[:2], second, third, moves[2], *rest)
    assert moving(plan, *moves).tape == expected
    assert plan.tape == plan.schedule.steps


def test_blocks_lie_where_they_were_moved_to_last() -> None:
    plan = moving(
        two_rows(), Move(2, "a", 0, 2048), Move(2, "b", 1, 3000), Move(5, "a", 0, 3072), Move(5, "a", 1, 8)
    )
    where, births = Whereabouts(plan.layout), plan.layout.tensors["a"].offsets
    assert [where.offset(("a", 0), time) for time in (0, 1, 2, 4, 5, 99)] == [births[0]] * 2 + [2048] * 2 + [
        3072
    ] * 2
    assert where.offset(("a", 2), 9) == births[2] and where.moves("c") == 0
    assert [where.version("a", time) for time in (1, 2, 4, 5)] == [0, 1, 1, 3]
    assert where.offsets("a", 1) == (2048, *births[1:]) and where.offsets("a", 3) == (3072, 8, *births[2:])
    assert [where.unmoved(("a", 0), version) for version in (0, 1, 3)] == [
        Interval(0, 1), Interval(1, 2), Interval(2, 4)
    ]  # fmt: skip
    assert where.unmoved(("a", 1), 0) == Interval(0, 3) and where.unmoved(("a", 2), 3) == Interval(0, 4)
    assert where.pieces(("a", 0), Interval(1, 5)) == [(Interval(1, 2), births[0]), (Interval(2, 5), 2048)]
    assert where.pieces(("a", 0), Interval(2, 6)) == [(Interval(2, 5), 2048), (Interval(5, 6), 3072)]
    assert where.ways() == [
        (births[0], 2048), (plan.layout.tensors["b"].offsets[1], 3000), (2048, 3072), (births[1], 8)
    ]  # fmt: skip


def before_it_is_made(plan: Plan) -> Plan:
    return moving(plan, Move(made(plan, "a", 2), "a", 2, FREE))


def after_it_is_overwritten(plan: Plan) -> Plan:
    return moving(plan, Move(len(plan.schedule.steps) - 1, "b", 0, FREE))


def of_a_block_that_is_not(plan: Plan) -> Plan:
    return moving(plan, Move(4, "a", 9, FREE))


def to_where_it_is(plan: Plan) -> Plan:
    return moving(plan, Move(4, "a", 0, FREE), Move(4, "a", 0, FREE))


def of_a_negative_block(plan: Plan) -> Plan:
    return moving(plan, Move(4, "a", -1, FREE))


def of_a_tensor_that_is_not(plan: Plan) -> Plan:
    return moving(plan, Move(4, "x", 0, FREE))


def of_an_output(plan: Plan) -> Plan:
    return moving(plan, Move(15, "sum", 0, FREE))


def of_an_input_in_rows(plan: Plan) -> Plan:
    return moving(plan, Move(0, "image", 0, FREE))


def out_of_order(plan: Plan) -> Plan:
    return moving(plan, Move(5, "a", 0, FREE), Move(4, "a", 0, FREE + 64))


def before_no_step(plan: Plan) -> Plan:
    return moving(plan, Move(len(plan.schedule.steps), "a", 0, FREE))


def before_the_start(plan: Plan) -> Plan:
    return moving(plan, Move(-1, "a", 0, FREE))


def out_of_the_arena(plan: Plan) -> Plan:
    return moving(plan, Move(4, "a", 0, 4096 - 60))


def below_the_arena(plan: Plan) -> Plan:
    return moving(plan, Move(4, "a", 0, -64))


def off_the_alignment(plan: Plan) -> Plan:
    return moving(plan, Move(4, "a", 0, FREE + 2))


def over_a_block_that_is_read(plan: Plan) -> Plan:
    return moving(plan, Move(made(plan, "a", 1) + 1, "a", 0, plan.layout.tensors["a"].offsets[1]))


def over_another_that_moved(plan: Plan) -> Plan:
    time = made(plan, "a", 1) + 1
    return moving(plan, Move(time, "a", 0, FREE), Move(time, "a", 1, FREE + 32))


def under_a_block_that_is_born(plan: Plan) -> Plan:
    time = made(plan, "a", 3)
    return moving(plan, Move(time, "a", 1, plan.layout.tensors["a"].offsets[3]))


FAULTS = [
    (before_it_is_made, "block 2 of a .* which is not there"),
    (after_it_is_overwritten, "block 0 of b .* which is not there"),
    (of_a_block_that_is_not, "a has no block 9"),
    (to_where_it_is, "lies there already"),
    (of_a_negative_block, "a has no block -1"),
    (of_a_tensor_that_is_not, "no tensor of this name"),
    (of_an_output, "a graph output"),
    (of_an_input_in_rows, "a graph input in blocks"),
    (out_of_order, "out of order"),
    (before_no_step, "not before a step"),
    (before_the_start, "not before a step"),
    (out_of_the_arena, "leaves its arena"),
    (below_the_arena, "leaves its arena"),
    (off_the_alignment, "not aligned"),
    (over_a_block_that_is_read, "block 1 of a, which is overwritten"),
    (over_another_that_moved, "block 0 of a, which is overwritten"),
    (under_a_block_that_is_born, "block 1 of a, which is overwritten"),
]


@pytest.mark.parametrize(("fault", "message"), FAULTS)
def test_faults_are_found(fault: Callable[[Plan], Plan], message: str) -> None:
    with pytest.raises(PlanFaultError, match=message):
        check(fault(two_rows()), WORK, load_board("mps2-an386"))


def test_what_is_born_where_a_block_was_moved_is_found() -> None:
    plan = two_rows()
    b = plan.layout.tensors["b"]
    tensors = {**plan.layout.tensors, "b": replace(b, offsets=(FREE, *b.offsets[1:]))}
    plan = replace(plan, layout=replace(plan.layout, tensors=tensors))
    check(plan, WORK, BOARD)
    with pytest.raises(PlanFaultError, match=r"overlaps input a"):
        check(moving(plan, Move(made(plan, "b", 0), "a", 0, FREE)), WORK, BOARD)


def test_a_block_that_is_made_again_is_made_where_it_lies() -> None:
    plan = two_rows()
    first, *rest = plan.schedule.steps
    again = replace(plan, schedule=Schedule((first, first, *rest), "feasible"))
    time = made(again, "b", 0)
    moves = Move(1, "a", 0, FREE), Move(time, "a", 0, FREE + 64)
    check(moving(again, *moves), WORK, BOARD)
    elsewhere = moving(again, *moves, Move(time, "a", 1, FREE))  # where the other was made
    check(elsewhere, WORK, BOARD)
    with pytest.raises(PlanFaultError, match="block 1 of a, which is overwritten"):
        check(moving(again, *elsewhere.layout.moves, Move(time, "a", 0, FREE)), WORK, BOARD)


@pytest.mark.parametrize(
    ("core", "npu", "message"),
    [
        (Unit(name="core"), Unit(name="npu"), ""),
        (Unit(name="core", memories=("psram",)), Unit(name="npu"), "does not reach"),
        (Unit(name="core"), Unit(name="npu", cached=("sram",)), "a cache may hold it"),
    ],
)
def test_the_first_unit_moves_what_it_reaches_and_no_cache_holds(core: Unit, npu: Unit, message: str) -> None:
    board = load_board("mps2-an386").model_copy(update={"units": (core, npu)})
    plan = replace(two_rows(), functions=(Function("npu", ("conv_b",)),))
    one = moving(plan, Move(made(plan, "a", 1) + 1, "a", 0, FREE))
    if not message:
        check(one, WORK, board)
        return
    with pytest.raises(PlanFaultError, match=message):
        check(one, WORK, board)


def viewed() -> Graph:
    """As `residual`, but its convolutions read a through a view of another shape."""
    graph = residual()
    return Graph(
        graph.name,
        {**graph.tensors, "flat": replace(graph.tensors["a"], name="flat", shape=(8, 8, 4))},
        (
            graph.operators[0],
            Operator("flatten", Reshape((8, 8, 4)), ("a",), "flat"),
            replace(graph.operators[1], inputs=("flat",)),
            *graph.operators[2:],
        ),
        graph.inputs,
        graph.outputs,
    )


def test_views_go_with_what_they_look_at() -> None:
    plan = make_plan(whole(viewed()))
    plan = replace(plan, layout=replace(plan.layout, arenas={"sram": 4096}))
    check(moving(plan, Move(1, "a", 0, FREE), Move(2, "a", 0, FREE + 8)), WORK, BOARD)
    with pytest.raises(PlanFaultError, match="no tensor of this name owns memory"):
        check(moving(plan, Move(1, "flat", 0, FREE)), WORK, BOARD)
