"""The scheduling problem of a cut graph, against the counts of `tiling/live.py`."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from graphs import conv, graph_io, residual, tensor
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import any_order

from mcudeploy.common.effort import endless
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ops.pool.pool import AveragePoolByRows
from mcudeploy.ops.scalar.elementwise import Binary
from mcudeploy.planner.model.forms import stream_inputs
from mcudeploy.planner.order.order_problem import InPlace
from mcudeploy.planner.order.published.refine import refine
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.planner.order.tiled import problem_of, schedule_of, steps_of
from mcudeploy.tiling.blocks import TiledGraph, whole
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.tiling.live import live_peak


def branches() -> Graph:
    """Four branches off one tensor, added in pairs; the widest of the sums and the end are outputs."""
    shape = (8, 8, 4)
    names = ("image", "stem", "a", "b", "c", "d", "ab", "cd", "sum")
    operators = [conv("stem", "image", "stem", (4, 4))]
    operators += [conv(f"conv_{name}", "stem", name, (4, 4)) for name in "abcd"]
    operators += [
        Operator("add_ab", Binary("add"), ("a", "b"), "ab"),
        Operator("add_cd", Binary("add"), ("c", "d"), "cd"),
        Operator("add", Binary("add"), ("ab", "cd"), "sum"),
    ]
    return Graph(
        "branches",
        {name: tensor(name, shape) for name in names},
        tuple(operators),
        (graph_io("image", shape),),
        (graph_io("cd", shape), graph_io("sum", shape)),
    )


def pooled() -> Graph:
    """Rows of a residual block feed a mean over all of them."""
    graph = stream_inputs(residual())
    tensors = {**graph.tensors, "sum": tensor("sum", (8, 8, 4)), "mean": tensor("mean", (1, 1, 4))}
    mean = Operator("mean", AveragePoolByRows(), ("sum",), "mean")
    return replace(
        graph,
        tensors=tensors,
        operators=(*graph.operators, mean),
        outputs=(graph_io("mean", (1, 1, 4)),),
    )


GRAPHS = [residual(), branches()]
GRAPHS += [replace(branches(), outputs=(graph_io("sum", (8, 8, 4)), graph_io("image", (8, 8, 4))))]
GRAPHS += [stream_inputs(branches()), pooled()]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_every_order_has_the_peak_that_live_counts(data: st.DataObject) -> None:
    graph = data.draw(st.sampled_from(GRAPHS))
    flow = Dataflow.of(graph)
    rows = {
        operator.name: data.draw(st.sampled_from([1, 3, 8, count]))
        for operator, count in zip(graph.operators, flow.iteration_rows, strict=True)
    }
    work = {
        operator.name: (data.draw(st.sampled_from([0, 40])), data.draw(st.sampled_from([0, 24])))
        for operator in graph.operators
    }
    tiled = TiledGraph(flow, rows)
    problem = problem_of(tiled, work)
    order = any_order(problem, Random(data.draw(st.integers(0, 1000))))
    assert problem.is_valid(order)
    schedule = schedule_of(steps_of(tiled), order, "feasible")
    peak = live_peak(tiled, schedule.steps, work)[0]
    assert problem.peak(order) == peak
    tuned = schedule_of(steps_of(tiled), refine(problem, order, endless()), "feasible")
    assert live_peak(tiled, tuned.steps, work)[0] <= peak
    renumbered = problem_of(tiled, work, steps=schedule.steps)
    assert renumbered.is_valid(range(len(order))) and renumbered.peak(range(len(order))) == peak
    without = problem_of(tiled, work, in_place=False)
    assert without.in_place == () and without.peak(order) >= problem.peak(order)


@pytest.mark.parametrize("rows", [1, 8])
def test_a_schedule_of_the_graph_is_an_order_of_the_problem(rows: int) -> None:
    flow = Dataflow.of(branches())
    tiled = TiledGraph(flow, {operator.name: rows for operator in flow.graph.operators})
    schedule = reverse_post_order(tiled)
    number = {step: place for place, step in enumerate(steps_of(tiled))}
    order = [number[step] for step in schedule.steps]
    assert problem_of(tiled, {}).is_valid(order)
    assert schedule_of(steps_of(tiled), order, schedule.status) == schedule


def test_in_place_chances_are_those_the_operators_allow() -> None:
    tiled = whole(residual())
    problem = problem_of(tiled, {})
    block = tiled.first_block
    # The sum may be written over either operand; the other readers decide over which.
    assert problem.in_place == (InPlace(3, block["c"], block["sum"]), InPlace(3, block["a"], block["sum"]))
    assert problem.loads(range(4)) == [512, 512, 768, 512]
    assert problem_of(tiled, {}, in_place=False).loads(range(4)) == [512, 512, 768, 768]


def test_rows_of_a_running_sum_come_one_after_the_other() -> None:
    flow = Dataflow.of(pooled())
    tiled = TiledGraph(flow, dict(zip((o.name for o in flow.graph.operators), [2] * 6, strict=True)))
    problem = problem_of(tiled, {"mean": (0, 16)})
    steps = range(tiled.first_step[-2], tiled.first_step[-1])
    assert len(steps) == 4
    assert all(step - 1 in problem.before[step] for step in steps[1:])
    (state,) = (buffer for buffer in problem.buffers if buffer.size_bytes == 16)
    assert state.touched_by == tuple(steps)
