"""The method with the device in the loop: a passive iteration, a plan by measured times, feedback."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from models import skipping

from mcudeploy.boards.catalogue import load_board
from mcudeploy.checker.judge import check
from mcudeploy.commands import commands as api
from mcudeploy.common.effort import Effort
from mcudeploy.costs.tiles import CopyCost
from mcudeploy.device.target import Target
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.iterating import step_times, waited
from mcudeploy.ir.plan import Plan, Wait
from mcudeploy.ir.trace import Residency
from mcudeploy.planner.offload.iterations import Iterations
from mcudeploy.planner.place.arena import Budget
from mcudeploy.planner.place.solve import estimate
from mcudeploy.planner.plan_options import Options
from mcudeploy.tiling.blocks import TiledGraph
from tests import reports

BOARD = load_board("mps2-an505")
LIMITS = (("sram", 33 * 1024),)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return skipping(tmp_path_factory.mktemp("skip") / "skip.onnx")


@pytest.fixture(scope="module")
def deployment(model: Path) -> Deployment:
    return api.plan_model(model, BOARD, Options(split=False, memory_limits=LIMITS))


@pytest.fixture(scope="module")
def stage(deployment: Deployment) -> Iterations:
    tiled = TiledGraph.of(deployment.plan)
    iterations = Iterations.of_plan(
        tiled, deployment.plan, deployment.model.work, BOARD.limited(dict(LIMITS)), budget()
    )
    assert iterations is not None
    return iterations


def budget() -> Budget:
    return Budget(CopyCost(21, 50, 0.5), Effort.of(2))


def passive(deployment: Deployment, stage: Iterations) -> tuple[Plan, Residency]:
    placed = stage.passive(budget())
    assert placed is not None
    residency, layout = placed
    predicted = estimate(stage.draft.tiled, deployment.plan.schedule.steps, deployment.model.work, layout)
    return replace(deployment.plan, layout=layout, estimate=predicted), residency


def test_the_passive_iteration_evicts_on_demand(deployment: Deployment, stage: Iterations) -> None:
    plan, residency = passive(deployment, stage)
    check(plan, deployment.model.work, BOARD)
    assert plan.layout.arenas["sram"] <= 33 * 1024
    ways = {tuple(each.memory for each in plan.layout.way(it)) for it in plan.layout.transfers}
    assert {("sram", "psram"), ("psram", "sram")} <= ways
    loads = [one for one in residency.transfers if one.direction == "in"]
    assert loads and all(one.start == one.end for one in loads)


def test_times_of_steps_are_those_of_the_tape_without_transfers(
    deployment: Deployment, stage: Iterations
) -> None:
    plan, _ = passive(deployment, stage)
    entries = [number + 1 for number in range(len(plan.tape))]
    assert len(step_times(plan, entries)) == len(plan.schedule.steps) < len(entries)
    assert sum(step_times(plan, entries)) < sum(entries)


def test_a_device_reports_its_waits(deployment: Deployment, stage: Iterations) -> None:
    """Of a wait count the cycles above those of the shortest wait."""
    plan, residency = passive(deployment, stage)
    coming = [plan.layout.way(it)[1].memory == "sram" for it in plan.layout.transfers]
    entries = [80 + 5000 * coming[entry.transfer] if isinstance(entry, Wait) else 100 for entry in plan.tape]
    seen = waited(plan, stage, residency, entries)
    assert len(seen.waits) == sum(coming) > 0
    for wait in seen.waits:
        transfer = residency.transfers[wait.transfer]
        assert (transfer.direction, transfer.end, wait.cycles) == ("in", wait.step, 5000)
    assert seen.starts[-1] == sum(entries) and len(seen.starts) == len(plan.schedule.steps) + 1
    idle = [80 if isinstance(entry, Wait) else 100 for entry in plan.tape]
    assert waited(plan, stage, residency, idle).waits == ()


@pytest.mark.usefixtures("small_bench")
def test_tune_runs_it_until_nobody_waits(model: Path) -> None:
    options = Options(split=False, memory_limits=LIMITS, time_limit=0.5)
    tuned, report = reports.tune_model(model, [Target(BOARD, emulate=True)], options)
    kinds = [one["kind"] for one in report["iterations"]]
    waits = [one["waits"] for one in report["iterations"]]
    assert kinds[:2] == ["passive", "planned"] and waits[0] > 0 == waits[-1]
    assert report["iterations"][0]["stall_percent"] > 1 > report["transfers"]["percent"]
    assert tuned.plan.estimate.ticks > 0 and report["plans_run"] == 1 + len(kinds)


@pytest.mark.usefixtures("small_bench")
def test_tune_has_no_iterations_where_nothing_leaves(model: Path) -> None:
    target = Target(BOARD, emulate=True)
    _, report = reports.tune_model(model, [target], Options(split=False, time_limit=0.5))
    assert report["iterations"] == [] and report["transfers"]["count"] == 0
