"""Recomputed halos: less memory for more time, accepted by the checker."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from graphs import conv, graph_io, recurrent, residual, tensor
from test_search import calls_of

from mcudeploy.boards.catalogue import load_board
from mcudeploy.checker.judge import PlanFaultError, check
from mcudeploy.common.effort import Effort, endless
from mcudeploy.costs.estimate import estimated, load_costs
from mcudeploy.costs.tiles import Costs, by_calls
from mcudeploy.ir.graph import DType, Graph, Operator, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Plan, Schedule, Step
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.planner.model.forms import stream_inputs
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.planner.order.tiled import problem_of, steps_of
from mcudeploy.planner.search.best_first import Candidate
from mcudeploy.planner.search.recompute import Recomputed, recompute, repeatable
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.tiling.live import buffers, live_peak, lives, peak, work_bytes
from tests.one_memory import lay_out

BOARD = load_board("mps3-an547")


def funnel() -> Graph:
    """Rows of 32 bytes, of 256, of 64, and finally 512 bytes."""
    channels = (4, 32, 8, 64)
    names = ("image", "wide", "slim", "out")
    return Graph(
        "funnel",
        {name: tensor(name, (8, 8, count)) for name, count in zip(names, channels, strict=True)},
        tuple(conv(f"conv_{i}", names[i], names[i + 1], channels[i : i + 2]) for i in range(3)),
        (graph_io("image", (8, 8, 4)),),
        (graph_io("out", (8, 8, 64)),),
    )


def rows_one_by_one(graph: Graph) -> tuple[Candidate, Costs, dict[str, tuple[int, int]]]:
    tiled = TiledGraph(Dataflow.of(graph), {operator.name: 1 for operator in graph.operators})
    costs = Costs(tiled.flow, by_calls(estimated(load_costs("cortex-m4"))(graph, ()), calls_of(graph)))
    work = {
        **work_bytes(calls_of(graph)),
        graph.operators[-1].name: (2000, 0),
    }  # at the peak: its halos matter
    schedule = reverse_post_order(tiled)
    peak_bytes, peak_step = live_peak(tiled, schedule.steps, work)
    ticks = costs.ticks(tiled.step_rows)
    return Candidate((), tiled, schedule, peak_bytes, peak_step, ticks, peak_bytes), costs, work


def plan_of(candidate: Candidate, work: dict[str, tuple[int, int]]) -> Plan:
    tiled = candidate.tiled
    layout, estimate = lay_out(tiled, candidate.schedule, work, "sram", 8)
    rows, leads = tiled.block_rows, tiled.leads
    return Plan(tiled.graph, "host", rows, candidate.schedule, layout, estimate, leads=leads)


@pytest.mark.parametrize("graph", [funnel(), stream_inputs(funnel())])
def test_halos_are_dropped_where_time_allows(graph: Graph) -> None:
    base, costs, work = rows_one_by_one(graph)
    recomputed = recompute(Recomputed.of(base), costs, work, 4 * base.ticks, endless())
    candidate = recomputed.candidate
    assert recomputed.is_final and candidate.peak_bytes < base.peak_bytes
    assert base.ticks < candidate.ticks <= 4 * base.ticks
    assert set(candidate.schedule.steps) == set(base.schedule.steps)
    assert len(candidate.schedule.steps) > len(base.schedule.steps)
    check(plan_of(candidate, work), work, BOARD)


@pytest.mark.parametrize("graph", [funnel(), residual(), stream_inputs(residual())])
def test_no_time_no_recompute(graph: Graph) -> None:
    base, costs, work = rows_one_by_one(graph)
    assert recompute(Recomputed.of(base), costs, work, base.ticks, endless()).candidate is base


def test_it_stops_with_its_effort_and_continues_later() -> None:
    base, costs, work = rows_one_by_one(funnel())
    most_ticks = 4 * base.ticks
    whole = recompute(Recomputed.of(base), costs, work, most_ticks, endless())
    parts = [recompute(Recomputed.of(base), costs, work, most_ticks, Effort(0))]
    assert parts[0].candidate is base and not parts[0].is_final
    while not parts[-1].is_final:
        effort = Effort(100 * len(parts))
        parts.append(recompute(parts[-1], costs, work, most_ticks, effort))
    peaks = [part.candidate.peak_bytes for part in parts]
    assert peaks == sorted(peaks, reverse=True) and len(parts) > 2
    assert peaks[-1] == whole.candidate.peak_bytes


def test_a_block_lives_as_often_as_it_is_made() -> None:
    base, _, work = rows_one_by_one(funnel())
    tiled, steps = base.tiled, base.schedule.steps
    wide = tiled.first_block["wide"]
    life = Interval(lives(tiled, steps).first[wide], lives(tiled, steps).end[wide])
    again = (*steps[: life.hi + 2], Step(0, 0), *steps[life.hi + 2 :])
    assert lives(tiled, again).of(wide) == (life, Interval(life.hi + 2, life.hi + 3))
    held = [item.life for item in buffers(tiled, again, work) if ("wide", 0) in item.members]
    assert held == [life, Interval(life.hi + 2, life.hi + 3)]
    assert live_peak(tiled, again, work) == peak(buffers(tiled, again, work))


def test_a_repeated_step_must_find_what_it_reads() -> None:
    base, _, work = rows_one_by_one(funnel())
    plan = plan_of(base, work)
    late = replace(plan, schedule=Schedule((*base.schedule.steps, Step(1, 0)), "feasible"))
    with pytest.raises(PlanFaultError, match="resides nowhere at step 24"):
        check(late, work, BOARD)


def test_rows_are_fed_once_and_in_order() -> None:
    base, _, work = rows_one_by_one(stream_inputs(funnel()))
    steps = base.schedule.steps
    feeds = [at for at, step in enumerate(steps) if step.operator == 0]
    assert [steps[at].block for at in feeds] == list(range(len(feeds)))
    order = list(steps)
    order[feeds[0]], order[feeds[1]] = order[feeds[1]], order[feeds[0]]
    for wrong, message in (
        ((*steps, steps[0]), "same rows again"),
        (tuple(order), "earlier rows after later"),
    ):
        plan = plan_of(replace(base, schedule=Schedule(wrong, "feasible")), work)
        with pytest.raises(PlanFaultError, match=message):
            check(plan, work, BOARD)
    problem = problem_of(base.tiled, work)
    numbers = [number for number, step in enumerate(steps_of(base.tiled)) if step.operator == 0]
    assert all(first in problem.before[second] for first, second in pairwise(numbers))


def test_what_reads_a_state_is_not_repeated() -> None:
    cell = recurrent()
    weights = {"weights": np.ones((4, 1, 1, 4), np.float32), "bias": np.ones(4, np.float32)}
    graph = replace(
        cell,
        tensors={**cell.tensors, "z": Tensor("z", (1, 2, 4), DType.FLOAT32)},
        operators=(*cell.operators, Operator("dense", Conv2d(4, (1, 1)), ("y",), "z", weights)),
        outputs=(replace(cell.outputs[0], name="z", tensor="z"), *cell.outputs[1:]),
    )
    for kept, names in ((graph, []), (replace(graph, states=()), ["y"])):
        tiled = TiledGraph(Dataflow.of(kept), {operator.name: 1 for operator in kept.operators})
        assert repeatable(tiled) == names
