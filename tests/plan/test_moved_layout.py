"""Blocks that move: their places as the tape advances, and the checker with deliberate faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from graphs import residual
from test_layout import BOARD, WORK, make_plan

from mcudeploy.boards.board import Unit
from mcudeploy.boards.catalogue import load_board
from mcudeploy.checker.judge import PlanFaultError, check
from mcudeploy.ir.engine import CPU
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Function, Plan, Residence, Run, Transfer
from mcudeploy.ops.move.view import Reshape
from mcudeploy.tiling.blocks import TiledGraph, whole
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.tiling.locations import BlockTable, Locations
from tests.moves import with_moves
from tests.residing import Move, lying, moving, offsets_of

FREE = 2048
"""Bytes from here on are free in the arena of `two_rows`."""


def two_rows() -> Plan:
    """Blocks of two rows, 64 bytes each, in an arena with room above them and with the image."""
    plan = make_plan(TiledGraph(Dataflow.of(residual()), dict.fromkeys(WORK, 2)))
    assert plan.layout.arena_bytes <= FREE
    return lying(plan, {"image": tuple(range(3584, 3584 + 256, 32))}, sram=4096)


def producer(plan: Plan, tensor: str, block: int) -> int:
    """The step that writes a block."""
    steps = plan.schedule.steps
    return next(
        time
        for time, step in enumerate(steps)
        if (plan.graph.operators[step.operator].output, step.block) == (tensor, block)
    )


@pytest.mark.parametrize("block_rows", [1, 2, 3, 8])
@pytest.mark.parametrize("seed", range(5))
def test_sound_moves_pass(block_rows: int, seed: int) -> None:
    plan = with_moves(make_plan(TiledGraph(Dataflow.of(residual()), dict.fromkeys(WORK, block_rows))), seed)
    assert plan.layout.transfers
    check(plan, WORK, BOARD)


def test_a_block_may_move_over_itself_and_back() -> None:
    plan = two_rows()
    time, home = producer(plan, "a", 0) + 1, offsets_of(plan, "a")[0]
    ways = (FREE, FREE + 4, FREE, FREE + 60, home)
    check(moving(plan, *(Move(time, "a", 0, to) for to in ways)), WORK, BOARD)


def test_the_tape_has_transfers_before_the_steps_that_residences_begin_with() -> None:
    plan = two_rows()
    moved = moving(plan, Move(1, "a", 0, FREE), Move(1, "a", 0, FREE + 64), Move(3, "a", 0, FREE))
    home, *later = moved.layout.blocks["a"][0]
    assert [(each.life.lo, each.offset) for each in later] == [(1, FREE), (1, FREE + 64), (3, FREE)]
    to = [Transfer(CPU, "a", 0, at - 1, at, time) for at, time in ((1, 1), (2, 1), (3, 3))]
    assert moved.layout.way(to[0]) == (home, later[0]) and moved.layout.way(to[2]) == tuple(later[1:])
    first, second, third, *rest = plan.tape
    assert moved.tape == (first, *to[:2], second, third, to[2], *rest)
    assert [moved.name_of(entry) for entry in moved.tape[:3]] == ["conv_a", "moves", "moves"]
    assert plan.tape == tuple(Run(None, step.operator, step.block) for step in plan.schedule.steps)


def test_the_tape_says_which_unit_runs_a_step() -> None:
    plan = replace(two_rows(), functions=(Function("npu", ("conv_b",)),))
    for entry in plan.tape:
        assert isinstance(entry, Run)
        name = plan.graph.operators[entry.operator].name
        assert entry.unit == ("npu" if name == "conv_b" else None)


def test_blocks_lie_where_they_were_moved_to_last() -> None:
    plan = moving(
        two_rows(), Move(2, "a", 0, 2048), Move(5, "b", 1, 3000), Move(5, "a", 0, 3072), Move(5, "a", 1, 8)
    )
    where, births = Locations(plan.layout.blocks), offsets_of(plan, "a")
    a, c = BlockTable("a", "sram"), BlockTable("c", "sram")
    assert [where.offset(a, 0, time) for time in (-1, 0, 1, 2, 4, 5, 99)] == [
        *[births[0]] * 3, 2048, 2048, 3072, 3072
    ]  # fmt: skip
    assert where.offset(a, 2, 9) == births[2] and where.changes(c) == 0
    assert [where.version(a, time) for time in (1, 2, 4, 5)] == [0, 1, 1, 3]
    assert where.offsets(a, 1) == (2048, *births[1:]) and where.offsets(a, 3) == (3072, 8, *births[2:])
    assert [where.unmoved(a, 0, version) for version in (0, 1, 3)] == [
        Interval(0, 1), Interval(1, 2), Interval(2, 4)
    ]  # fmt: skip
    assert where.unmoved(a, 1, 0) == Interval(0, 3) and where.unmoved(a, 2, 3) == Interval(0, 4)


def test_a_recomputed_block_elsewhere_is_another_version() -> None:
    def at(lo: int, hi: int, offset: int) -> Residence:
        return Residence(Interval(lo, hi), "sram", offset)

    where = Locations({"a": ((at(0, 3, 0), at(5, 6, 0), at(8, 9, 64)), (), (at(2, 7, 32),))})
    a = BlockTable("a", "sram")
    assert where.changes(a) == 1  # rematerialised in the same place: no change
    assert [where.offset(a, 0, time) for time in (2, 4, 5, 7, 8)] == [0, 0, 0, 0, 64]
    assert [where.version(a, time) for time in (7, 8)] == [0, 1]
    assert (where.offsets(a, 0), where.offsets(a, 1)) == ((0, 0, 32), (64, 0, 32))


def transferring(plan: Plan, *transfers: Transfer) -> Plan:
    return replace(plan, layout=replace(plan.layout, transfers=transfers))


def before_it_is_written(plan: Plan) -> Plan:
    return moving(plan, Move(producer(plan, "a", 2), "a", 2, FREE))


def after_it_is_overwritten(plan: Plan) -> Plan:
    return moving(plan, Move(len(plan.schedule.steps) - 1, "b", 0, FREE))


def of_a_missing_block(plan: Plan) -> Plan:
    return transferring(plan, Transfer(CPU, "a", 9, 0, 1, 1))


def to_where_it_is(plan: Plan) -> Plan:
    return moving(plan, Move(4, "a", 0, FREE), Move(4, "a", 0, FREE))


def of_a_negative_block(plan: Plan) -> Plan:
    return transferring(plan, Transfer(CPU, "a", -1, 0, 1, 1))


def of_a_missing_tensor(plan: Plan) -> Plan:
    return transferring(plan, Transfer(CPU, "x", 0, 0, 1, 1))


def of_an_output(plan: Plan) -> Plan:
    return moving(plan, Move(15, "sum", 0, FREE))


def of_a_recomputed_output(plan: Plan) -> Plan:
    """Its last rows are written to another place than their first residence, where they are looked up."""
    moved = moving(plan, Move(len(plan.schedule.steps) - 1, "sum", 0, FREE))
    return transferring(moved)


def of_an_input_in_rows(plan: Plan) -> Plan:
    return moving(plan, Move(0, "image", 0, FREE))


def out_of_order(plan: Plan) -> Plan:
    moved = moving(plan, Move(4, "a", 0, FREE), Move(5, "a", 0, FREE + 64))
    return transferring(moved, *reversed(moved.layout.transfers))


def of_a_missing_residence(plan: Plan) -> Plan:
    return transferring(plan, Transfer(CPU, "a", 0, 0, 1, 1))


def of_the_first_residence(plan: Plan) -> Plan:
    return transferring(plan, Transfer(CPU, "a", 0, 0, 0, 1))


def by_a_missing_engine(plan: Plan) -> Plan:
    return transferring(moving(plan, Move(4, "a", 0, FREE)), Transfer("dma", "a", 0, 0, 1, 4))


def twice(plan: Plan) -> Plan:
    moved = moving(plan, Move(4, "a", 0, FREE))
    return transferring(moved, *moved.layout.transfers * 2)


def without_a_transfer(plan: Plan) -> Plan:
    return transferring(moving(plan, Move(producer(plan, "a", 0) + 1, "a", 0, FREE)))


def over_a_gap(plan: Plan) -> Plan:
    """The block arrives in a step after it has left."""
    moved = moving(plan, Move(2, "a", 0, FREE), Move(3, "a", 0, FREE))
    (first, _, last), *others = moved.layout.blocks["a"]
    blocks = {**moved.layout.blocks, "a": ((first, last), *others)}
    return transferring(
        replace(moved, layout=replace(moved.layout, blocks=blocks)), Transfer(CPU, "a", 0, 0, 1, 3)
    )


def away_and_back(plan: Plan, engine: str, *, lasts: int = 0) -> Plan:
    """Block 0 of `a`, last needed by step 3, is in psram from step 2 to 3; transfers take `lasts` steps."""
    ((home,), *others) = plan.layout.blocks["a"]
    out, back = 2, 3
    stays = (
        replace(home, life=Interval(home.life.lo, out)),
        Residence(Interval(out - lasts, back + 1), "psram", 64),
        Residence(Interval(back - lasts, home.life.hi), home.memory, FREE),
    )
    transfers = Transfer(engine, "a", 0, 0, 1, out), Transfer(engine, "a", 0, 1, 2, back)
    layout = replace(
        plan.layout,
        blocks={**plan.layout.blocks, "a": (stays, *others)},
        arenas={"sram": 4096, "psram": 4096},
        transfers=transfers,
    )
    return replace(plan, layout=layout)


@pytest.mark.parametrize(("engine", "lasts"), [("cpu", 0), ("dma0", 0), ("dma0", 1)])
def test_blocks_go_to_another_memory_and_back(engine: str, lasts: int) -> None:
    plan = make_plan(whole(residual()))
    check(away_and_back(plan, engine, lasts=lasts), WORK, load_board("mps2-an505"))


def before_no_step(plan: Plan) -> Plan:
    return moving(plan, Move(len(plan.schedule.steps), "a", 0, FREE))


def before_the_start(plan: Plan) -> Plan:
    ((home, *_), *others) = plan.layout.blocks["a"]
    early = (replace(home, life=Interval(-1, 0)), home)
    return replace(plan, layout=replace(plan.layout, blocks={**plan.layout.blocks, "a": (early, *others)}))


def out_of_the_arena(plan: Plan) -> Plan:
    return moving(plan, Move(4, "a", 0, 4096 - 60))


def below_the_arena(plan: Plan) -> Plan:
    return moving(plan, Move(4, "a", 0, -64))


def off_the_alignment(plan: Plan) -> Plan:
    return moving(plan, Move(4, "a", 0, FREE + 2))


def over_a_block_that_is_read(plan: Plan) -> Plan:
    return moving(plan, Move(producer(plan, "a", 1) + 1, "a", 0, offsets_of(plan, "a")[1]))


def over_another_that_moved(plan: Plan) -> Plan:
    time = producer(plan, "a", 1) + 1
    return moving(plan, Move(time, "a", 0, FREE), Move(time, "a", 1, FREE + 32))


def under_a_block_that_is_born(plan: Plan) -> Plan:
    time = producer(plan, "a", 3)
    return moving(plan, Move(time, "a", 1, offsets_of(plan, "a")[3]))


FAULTS = [
    (before_it_is_written, "block 2 of a .*: its source does not contain the block"),
    (after_it_is_overwritten, "block 0 of b .*: its source does not contain the block"),
    (of_a_missing_block, "a has no block 9"),
    (to_where_it_is, "both have the same offset"),
    (of_a_negative_block, "a has no block -1"),
    (of_a_missing_tensor, "no tensor of this name"),
    (of_an_output, "sum, a graph output, lies elsewhere later"),
    (of_a_recomputed_output, "sum, a graph output, lies elsewhere later"),
    (of_an_input_in_rows, "a graph input in blocks"),
    (out_of_order, "out of order"),
    (before_no_step, "not before a step"),
    (before_the_start, r"block 0 of a resides at \[-1"),
    (of_a_missing_residence, "expected residences below 1, and a target above 0"),
    (of_the_first_residence, "expected residences below 1, and a target above 0"),
    (by_a_missing_engine, "no engine 'dma'"),
    (twice, "before step 4: its source does not contain the block"),
    (without_a_transfer, "needs block 0 of a, which is not written yet"),
    (over_a_gap, r"from step 3 to 3: the residence before is that of \[\d, 2\)"),
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
    plan = lying(plan, {"b": (FREE, *offsets_of(plan, "b")[1:])})
    check(plan, WORK, BOARD)
    with pytest.raises(PlanFaultError, match=r"overlaps input a"):
        check(moving(plan, Move(producer(plan, "b", 0), "a", 0, FREE)), WORK, BOARD)


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
    one = moving(plan, Move(producer(plan, "a", 1) + 1, "a", 0, FREE))
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
        check(transferring(plan, Transfer(CPU, "flat", 0, 0, 1, 1)), WORK, BOARD)
