"""Plans over several memories: on random boards, against the independent checker; and by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import lcm

import pytest
from drawn import SHAPE, assigned, board, graph_io
from hypothesis import given, settings
from hypothesis import strategies as st

from mcudeploy.boards.board import Board, Unit
from mcudeploy.checker.judge import PlanFaultError, check
from mcudeploy.common.effort import Effort
from mcudeploy.common.errors import FitError, UsageError
from mcudeploy.costs.tiles import CopyCost
from mcudeploy.ir.graph import DType, Graph, Operator, Tensor
from mcudeploy.ir.plan import Function, Plan, memories_of
from mcudeploy.ops.scalar.unary import Unary
from mcudeploy.planner.cores.functions import Assignment, partition
from mcudeploy.planner.cores.routes import with_transfers
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.planner.place.arena import Budget
from mcudeploy.planner.place.solve import base_alignments
from mcudeploy.planner.tape.footprint import shortages
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow
from tests.one_memory import laid_out, lay_out


def budget() -> Budget:
    return Budget(CopyCost(30.0, 60.0, 0.4), Effort(400_000))


BYTES = 96  # of each tensor: 4 * 2 * 3 floats


def planned(
    graph: Graph,
    board: Board,
    functions: tuple[Function, ...],
    rows: int,
    *,
    moving: bool = True,
) -> Plan:
    flow = Dataflow.of(graph)
    if any(operator.op.is_view for operator in graph.operators):
        rows = max(flow.iteration_rows)  # a tensor that is read through a view is whole
    sizes = {
        it.name: min(rows, total) for it, total in zip(graph.operators, flow.iteration_rows, strict=True)
    }
    tiled = TiledGraph(flow, sizes)
    schedule = reverse_post_order(tiled)
    work = dict.fromkeys(sizes, (0, 0))
    layout, estimate = laid_out(tiled, schedule, work, board, functions, budget() if moving else None)
    return Plan(graph, board.name, sizes, schedule, layout, estimate, functions=functions)


def no_work(plan: Plan) -> dict[str, tuple[int, int]]:
    return dict.fromkeys(plan.block_rows, (0, 0))


@settings(max_examples=60, deadline=None)
@given(
    assigned(),
    st.lists(st.sampled_from([0, 50, 96, 200, 400, 4096]), min_size=3, max_size=3),
    st.lists(st.sampled_from([None, 1.0, 0.25]), min_size=3, max_size=3),
    st.sampled_from([1, 2, 4]),
    st.booleans(),
)
def test_alignment_reach_and_room_are_kept(
    drawn: tuple[Graph, Board, Assignment],
    rooms: list[int],
    rates: list[float | None],
    rows: int,
    moving: bool,
) -> None:
    graph, drawn_board, assignment = drawn
    drawn_board = drawn_board.model_copy(
        update={
            "memories": tuple(
                memory.model_copy(update={"read_rate": rate, "write_rate": rate, "alignment": alignment})
                for memory, rate, alignment in zip(drawn_board.memories, rates, (8, 4, 16), strict=False)
            )
        }
    ).limited(dict(zip((it.name for it in drawn_board.memories), rooms, strict=False)))
    try:
        graph, assignment = with_transfers(graph, drawn_board, assignment)
    except FitError:
        return  # no unit could copy
    plan = planned(graph, drawn_board, partition(graph, assignment), rows, moving=moving)
    fits = all(
        size <= drawn_board.room(drawn_board.memory(name)) for name, size in plan.layout.arenas.items()
    )
    missing = shortages(PlanView(plan, {}), drawn_board)
    assert fits == (not missing)
    if fits:
        check(plan, no_work(plan), drawn_board)
    else:
        with pytest.raises(PlanFaultError, match="room for"):
            check(plan, no_work(plan), drawn_board)
    bases = base_alignments(plan, drawn_board)
    unit_of = {name: drawn_board.unit(each.unit) for each in plan.functions for name in each.operators}
    for operator in graph.operators:
        unit = unit_of.get(operator.name, drawn_board.units[0])
        for name in (operator.output, *operator.inputs):
            (memory,) = memories_of(plan.layout.blocks[Dataflow.of(graph).roots[name]])
            alignment = lcm(unit.alignment, drawn_board.memory(memory).alignment)
            assert bases[memory] % alignment == 0
            assert memory in drawn_board.reach(unit)


def line(length: int) -> Graph:
    """t0 -> t1 -> ..., each of which may take over the previous one in place."""
    names = [f"t{at}" for at in range(length + 1)]
    return Graph(
        "line",
        {name: Tensor(name, SHAPE, DType.FLOAT32) for name in names},
        tuple(Operator(f"make_{b}", Unary("tanh"), (a,), b) for a, b in pairwise(names)),
        (graph_io(names[0], SHAPE),),
        (graph_io(names[-1], SHAPE),),
    )


def test_one_memory_with_room_gives_the_plan_for_that_memory() -> None:
    two = board(Unit(name="core"), memories=("one", "two"))
    plan = planned(line(4), two, (), 1)
    tiled = TiledGraph.of(plan)
    layout, estimate = lay_out(tiled, plan.schedule, no_work(plan), "one", 8)
    assert (plan.layout, plan.estimate) == (layout, estimate)


def test_units_that_reach_different_memories_do_not_share_a_buffer() -> None:
    """tanh may overwrite its input; t1 is in `left` for its producer, t2 in `right` for its reader."""
    pair = board(
        Unit(name="core"),
        Unit(name="a", memories=("left",)),
        Unit(name="b", memories=("right",)),
        memories=("left", "right"),
    )
    functions = (Function("a", ("make_t1",)), Function("core", ("make_t2",)), Function("b", ("make_t3",)))
    plan = planned(line(3), pair, functions, 4)
    check(plan, no_work(plan), pair)
    memories = {name: memories_of(residences)[0] for name, residences in plan.layout.blocks.items()}
    assert memories == {"t0": "left", "t1": "left", "t2": "right", "t3": "right"}
    assert plan.layout.arenas == {"left": BYTES, "right": BYTES}
    # t0 is read, t1 written and read, t2 written and read, t3 written.
    assert plan.estimate.traffic == {"left": 3 * BYTES, "right": 3 * BYTES}


def test_the_checker_finds_what_is_out_of_reach_or_off_a_units_alignment() -> None:
    pair = board(
        Unit(name="core", alignment=16), Unit(name="npu", memories=("own",)), memories=("ram", "own")
    )
    functions = (Function("npu", ("make_t2",)),)
    plan = planned(line(3), pair, functions, 4)
    check(plan, no_work(plan), pair)

    def moved(name: str, memory: str, offset: int) -> Plan:
        ((home,),) = plan.layout.blocks[name]
        blocks = {**plan.layout.blocks, name: ((replace(home, memory=memory, offset=offset),),)}
        return replace(plan, layout=replace(plan.layout, blocks=blocks, arenas={"ram": 512, "own": 512}))

    with pytest.raises(PlanFaultError, match="t1 lies in ram, which unit npu does not reach"):
        check(moved("t1", "ram", 0), no_work(plan), pair)
    with pytest.raises(PlanFaultError, match="t3 at 264 is not aligned to 16"):
        check(moved("t3", "own", 264), no_work(plan), pair)


def test_a_shortage_names_memories_bytes_and_step() -> None:
    small = board(Unit(name="core"), memories=("fast", "slow")).limited({"fast": 100, "slow": 90})
    graph = line(3)
    graph = replace(graph, outputs=(*graph.outputs, graph_io("t1", SHAPE)))  # t1 stays beside t2
    plan = planned(graph, small, (), 4)
    text = " ".join(shortages(PlanView(plan, {}), small))
    assert text == (
        "arena needs 96 bytes, slow of host has room for 90: 6 too many; the peak is at step 0 (make_t1). "
        "Of the other memories fast has 96 of 100."
    )


def test_a_memory_without_arenas_is_named_with_what_lets_one_in() -> None:
    small = board(Unit(name="core"), memories=("fast", "slow")).limited({"fast": 90, "slow": 0})
    plan = planned(line(3), board(Unit(name="core"), memories=("fast",)), (), 4)
    text = " ".join(shortages(PlanView(plan, {}), small))
    assert "too many" in text and "0 of 0" not in text
    assert "slow is left out: --memory slow=BYTES lets in an arena" in text


def test_a_limit_for_a_memory_that_is_not_names_those_that_are() -> None:
    with pytest.raises(UsageError, match="no memory 'ccm'; it has one, two"):
        board(Unit(name="core"), memories=("one", "two")).limited({"ccm": 0})
