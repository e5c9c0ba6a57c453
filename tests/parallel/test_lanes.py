"""The core tapes: sound, without redundant waits, and without deadlock."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
from fuzzing.plans import JudgedPlan
from fuzzing.together import WAYS, Figures, awaits_of, shared_out, without
from fuzzing.trips import graph_model, models
from graphs import graph_io

from mcudeploy.checker.owners import PlanFaultError, Shapes
from mcudeploy.checker.races import require_no_races
from mcudeploy.costs.timeline import critical_path
from mcudeploy.ir.graph import DType, Graph, Operator, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Run, Sync, Transfer, Wait, WorkSlice
from mcudeploy.ops.move.view import Reshape
from mcudeploy.ops.scalar.unary import Unary
from mcudeploy.planner.cores.lanes import on_cores

_GRAPHS = 8
_MOST_AWAITS = 40


@cache
def plans_of(way: str) -> tuple[JudgedPlan, ...]:
    """Plans for 2 to 4 cores that the checker accepts."""
    graphs = models(_GRAPHS)
    some = graphs if way != "split" else graphs[:3]
    return tuple(
        shared_out(model, way, seed, 2 + seed % 3, worth=(1, 400)[seed % 2])
        for seed, model in enumerate(some, len(way))
    )


@pytest.mark.parametrize("way", sorted(set(WAYS)))
def test_lanes_of_plans_pass_the_judge(way: str) -> None:
    judged = plans_of(way)
    plans = [it.plan for it in judged]
    figures = Figures.of(plans)
    assert figures.awaits > len(plans) and figures.parts > sum(len(it.tape) for it in plans)
    kinds = Counter(type(entry) for plan in plans for entry in plan.tape)
    if way in ("moved", "wandering"):
        assert kinds[Transfer]
    if way == "wandering":
        assert kinds[Wait]
    if way == "again":
        steps = [it.plan.schedule.steps for it in judged]
        assert any(len(set(each)) < len(each) for each in steps)


def test_some_parts_are_columns() -> None:
    figures = Figures.of([it.plan for way in ("unsplit", "cut") for it in plans_of(way)])
    assert figures.columns > 20


@pytest.mark.parametrize("way", sorted(set(WAYS)))
def test_no_wait_follows_from_others(way: str) -> None:
    """The checker rejects the plan if any one of them is missing."""
    tried, left = 0, []
    for judged in plans_of(way):
        awaits = awaits_of(judged.plan)
        for core, at in awaits if len(awaits) <= _MOST_AWAITS else ():
            fewer = without(judged.plan, core, at)
            tried += 1
            try:
                require_no_races(fewer, Shapes(fewer, judged.model.work))
            except PlanFaultError:
                continue
            left.append((judged.plan.graph.name, core, at, judged.plan.lanes[core][at]))
    assert tried > 10 and not left, f"{len(left)} of {tried} waits are too many: {left[:5]}"


@pytest.mark.parametrize("way", sorted(set(WAYS)))
def test_no_core_waits_for_ever(way: str) -> None:
    for judged in plans_of(way):
        lanes = judged.plan.lanes
        ticks = [[1.0] * sum(isinstance(it, WorkSlice) for it in lane) for lane in lanes]
        line = critical_path(lanes, ticks)
        assert max(map(len, ticks)) <= line.ticks <= sum(map(len, ticks))


def test_cores_wait_where_windows_reach_into_rows_of_another() -> None:
    """Three convolutions of 3 x 3, and a sum whose rows depend only on the same core."""
    plan = shared_out(models(2)[0], "unsplit", 0, 2).plan
    halves = [Interval(0, 4), Interval(4, 8)]
    names = [plan.graph.operators[entry.operator].name for entry in plan.tape if isinstance(entry, Run)]
    assert names == ["conv_a", "conv_b", "conv_c", "add"]
    for core, lane in enumerate(plan.lanes):
        parts = [entry for entry in lane if isinstance(entry, WorkSlice)]
        assert parts == [WorkSlice(entry, halves[core]) for entry in range(4)]
        awaited = [entry for entry in lane if isinstance(entry, Sync)]
        # c is written over the image; the sum over c.
        assert awaited[:2] == [Sync(1, 1 - core, 1), Sync(2, 1 - core, 2)]
        assert len(awaited) == 2 or awaited[2:] == [Sync(3, 1 - core, 3)]


def test_what_moves_is_done_by_the_first_core() -> None:
    for way in ("moved", "wandering"):
        for judged in plans_of(way):
            tape = judged.plan.tape
            moves = {number for number, entry in enumerate(tape) if not isinstance(entry, Run)}
            for core, lane in enumerate(judged.plan.lanes):
                mine = {entry.entry for entry in lane if isinstance(entry, WorkSlice)} & moves
                assert mine == (moves if core == 0 else set())


def test_steps_of_an_operator_that_is_not_shared_out_stay_on_a_core() -> None:
    count = 0
    for judged in plans_of("cut"):
        cores: dict[int, set[int]] = {}
        for core, lane in enumerate(judged.plan.lanes):
            for part in lane:
                entry = judged.plan.tape[part.entry]
                if isinstance(part, WorkSlice) and isinstance(entry, Run):
                    operator = judged.plan.graph.operators[entry.operator]
                    if operator.op.accumulates or not operator.inputs:
                        cores.setdefault(entry.operator, set()).add(core)
        assert all(len(each) == 1 for each in cores.values())
        feeds = [at for at, it in enumerate(judged.plan.graph.operators) if not it.inputs]
        assert all(cores[at] == {0} for at in feeds)
        count += len(cores)
    assert count > 3


def test_what_is_made_over_a_view_stays_on_a_core() -> None:
    """Every slice would read all of a view: memory that other slices may write."""
    shape, flat = (4, 8, 16), (8, 4, 16)
    names = {"image": shape, "a": shape, "view": flat, "made": flat}
    graph = Graph(
        name="view",
        tensors={name: Tensor(name, its_shape, DType.FLOAT32, None) for name, its_shape in names.items()},
        operators=(
            Operator("first", Unary("sigmoid"), ("image",), "a"),
            Operator("reshape", Reshape(flat), ("a",), "view"),
            Operator("second", Unary("sigmoid"), ("view",), "made"),
        ),
        inputs=(graph_io("image", shape),),
        outputs=(graph_io("made", flat),),
    )
    judged = shared_out(graph_model("view", graph), "unsplit", 0, 4)
    parts = Counter(part.entry for lane in judged.plan.lanes for part in lane if isinstance(part, WorkSlice))
    assert parts == {0: 4, 1: 1}


def test_one_core_has_no_lanes() -> None:
    judged = plans_of("unsplit")[0]
    plan = replace(judged.plan, lanes=())
    assert on_cores(plan, judged.model.calls, 1) is plan
