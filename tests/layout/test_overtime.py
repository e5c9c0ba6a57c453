"""Offloading from a fast memory that is too small: sound layouts for each placement of inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from fuzzing.plans import HOST
from fuzzing.trips import graph_model
from fuzzing.wandering import BOARDS
from graphs import conv, graph_io, residual, tensor

from mcudeploy.boards.board import Board
from mcudeploy.checker.judge import check
from mcudeploy.common.effort import Effort
from mcudeploy.costs.tiles import CopyCost
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.plan import Plan, Schedule
from mcudeploy.ops.scalar.elementwise import Binary, Lut
from mcudeploy.planner.offload.access_trace import draft_of
from mcudeploy.planner.offload.memory_pair import MemoryPair
from mcudeploy.planner.offload.room import over_time
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.planner.place.arena import Budget
from mcudeploy.planner.search.placing import placed
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow

SHAPE = (8, 8, 4)


def layouts(graph: Graph, rows: int, room: int, board: Board) -> list[Plan]:
    """The plans in blocks of `rows` rows, for a fast memory of some bytes; the checker accepts each."""
    model = graph_model(graph.name, graph)
    tiled = TiledGraph(Dataflow.of(graph), dict.fromkeys((it.name for it in graph.operators), rows))
    small = board.limited({"ram": room})
    plan = placed(model, HOST, tiled, reverse_post_order(tiled))
    budget = Budget(CopyCost(30.0, 60.0, 0.4), Effort(200_000))
    cycles = [500.0] * len(plan.schedule.steps)
    plans = []
    pair = MemoryPair.serving(plan, small)
    assert pair is not None
    for numbers, layout in over_time(draft_of(tiled, plan, model.work, small), pair, budget, cycles):
        schedule = Schedule(tuple(plan.schedule.steps[at] for at in numbers), "feasible")
        plans.append(replace(plan, board=small.name, schedule=schedule, layout=layout))
        check(plans[-1], model.work, small)
    return plans


def taken_over() -> Graph:
    """As `residual`, but a is computed elementwise and takes over the image in place."""
    graph = residual()
    table = np.random.default_rng(2).permutation(np.arange(-128, 128)).astype(np.int8)
    first = Operator("lut", Lut(), ("image",), "a", {"table": table})
    return Graph(graph.name, graph.tensors, (first, *graph.operators[1:]), graph.inputs, graph.outputs)


def given_back() -> Graph:
    """As `residual`; the image is an output as well."""
    graph = residual()
    outputs = (graph_io("image", SHAPE), *graph.outputs)
    return Graph(graph.name, graph.tensors, graph.operators, graph.inputs, outputs)


def off_the_alignment() -> Graph:
    """Rows of 21 bytes: image -> a -> b, and b + image."""
    shape = (8, 7, 3)
    return Graph(
        name="odd",
        tensors={name: tensor(name, shape) for name in ("image", "a", "b", "sum")},
        operators=(
            conv("conv_a", "image", "a", (3, 3)),
            conv("conv_b", "a", "b", (3, 3)),
            Operator("add", Binary("add"), ("b", "image"), "sum"),
        ),
        inputs=(graph_io("image", shape),),
        outputs=(graph_io("sum", shape),),
    )


@pytest.mark.parametrize("board", [BOARDS[0], BOARDS[3]], ids=["by an engine", "by the core"])
@pytest.mark.parametrize("rows", [8, 2])
@pytest.mark.parametrize("graph", [residual, taken_over, given_back, off_the_alignment])
def test_layouts_pass_the_judge(
    graph: Callable[[], Graph], rows: int, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcudeploy.planner.offload.room._HOPELESS", inf)  # slow placements are judged as well
    plans = [plan for room in range(320, 1024, 64) for plan in layouts(graph(), rows, room, board)]
    transfers = [plan.layout.way(each) for plan in plans for each in plan.layout.transfers]
    assert any(old.memory != new.memory for old, new in transfers)


def test_rows_off_the_alignment_stay_where_they_are() -> None:
    plans = [
        plan for room in range(128, 640, 32) for plan in layouts(off_the_alignment(), 2, room, BOARDS[0])
    ]
    homes = {plan.layout.blocks["image"][0][0].memory for plan in plans}
    assert homes == {"ram", "bulk"}
    assert not any(each.tensor == "image" for plan in plans for each in plan.layout.transfers)
