"""The latency limit as measured: the overhead reported, and the plan taken if the best misses the limit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from models import quantised_convolutions

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.commands import tune as tuning
from mcudeploy.common.errors import LatencyError
from mcudeploy.common.progress import SILENT
from mcudeploy.device.fleet import Fleet
from mcudeploy.device.target import Target
from mcudeploy.execution import running
from mcudeploy.execution.running import DeviceRun, Observation, run_within_limit
from mcudeploy.ir.plan import Measurement, OperatorTime
from mcudeploy.planner import planner
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json
from tests import reports

BOARD = load_board("stm32f405")
OPTIONS = Options(time_limit=0.5, max_overhead=50, objective="instructions")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("mcudeploy.costs.database.cache_dir", lambda: tmp_path / "cache")
    return quantised_convolutions(tmp_path / "small.onnx")


class Device:
    """Stands for a board: `ticks` is the time of a plan by its arena, `ran` lists the arenas that ran."""

    def __init__(self, ticks: Mapping[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
        self._ticks, self.ran = ticks, list[int]()
        monkeypatch.setattr(running, "run_on", self._run_on)

    def _run_on(self, deployment: Any, *_: object) -> Any:
        arena = deployment.plan.layout.arena_bytes
        self.ran.append(arena)
        observed = Observation(Measurement(self._ticks[arena], "instructions"), [{}], None)
        running.store_measurement(
            deployment, SimpleNamespace(hash=int(deployment._run_keys([True])[0].firmware, 16)), observed
        )  # type: ignore[arg-type]
        return SimpleNamespace(), observed


def with_several_plans(model: Path, board: Board = BOARD) -> api.Deployment:
    """Two split plans, and the unsplit one."""
    deployment = api._planned(model, board, OPTIONS, SILENT)
    least = deployment.planned.candidates[0]
    second = replace(least, layout=replace(least.layout, arenas={"sram": least.layout.arena_bytes + 8}))
    return replace(deployment, planned=replace(deployment.planned, candidates=(least, second)))


def arenas(deployment: api.Deployment) -> list[int]:
    return [plan.layout.arena_bytes for plan in deployment.planned.choices]


def run(deployment: api.Deployment, limit: float) -> DeviceRun:
    return run_within_limit(deployment, Target(BOARD, emulate=True), [], limit, SILENT)


@pytest.mark.parametrize(("times", "taken"), [((1040, 1030), 0), ((1900, 1030), 1), ((1900, 1060), 2)])
def test_the_first_plan_that_keeps_the_limit_is_taken(
    times: tuple[int, int],
    taken: int,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    deployment = with_several_plans(model)
    sizes = arenas(deployment)
    device = Device(dict(zip(sizes, (*times, 1000), strict=True)), monkeypatch)
    ran = run(deployment, 5.0)
    assert ran.deployment.plan is deployment.planned.choices[taken]
    assert ran.unsplit == Measurement(1000, "instructions")
    assert device.ran == [sizes[2], *sizes[: taken + 1]]
    for size, ticks in zip(sizes[:taken], times, strict=False):
        assert f"an arena of {size:,} B takes {ticks / 10 - 100:.2f} % longer" in caplog.text
    following = ["Trying plan 2 of 3\n", "Trying plan 3 of 3, the unsplit one\n"]
    for number, sentence in enumerate(following, 1):
        misses = f"as counted; the limit is 5 % (--max-overhead). {sentence}"
        assert (misses in caplog.text) == (number <= taken)
    device.ran.clear()
    again = run(deployment, 5.0)  # the unsplit plan, and those that are too slow, are known
    assert again.deployment.plan is ran.deployment.plan and device.ran == [sizes[taken]]
    # `plan` and `build` take the same
    assert running.known_within_limit(deployment, 5.0).plan is ran.deployment.plan
    assert running.known_within_limit(deployment, 95.0).plan is deployment.plan


@pytest.mark.parametrize(("seconds", "numbers"), [(0.1, "04"), (10, "04"), (15, "014"), (60, "01234")])
def test_a_short_time_limit_leaves_fewer_plans_to_try(seconds: float, numbers: str, model: Path) -> None:
    plan = api._planned(model, BOARD, OPTIONS, SILENT).plan
    plans = tuple(replace(plan, layout=replace(plan.layout, arenas={"sram": size})) for size in range(5))
    tried = planner._few_enough(plans, seconds)
    assert "".join(str(one.layout.arena_bytes) for one in tried) == numbers


def test_a_second_search_where_all_plans_take_longer_than_estimated(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = with_several_plans(model)
    estimates = [
        plan.estimate.ticks / deployment.planned.baseline.estimate.ticks
        for plan in deployment.planned.choices
    ]
    ticks = [round(100_000 * each) for each in estimates]
    slower = [round(1.02 * ticks[0]), round(1.01 * ticks[1]), ticks[2]]
    Device(dict(zip(arenas(deployment), slower, strict=True)), monkeypatch)
    limit = ticks[1] / 1000 - 100 + 0.5  # kept by the estimates of both
    ran = run(deployment, limit)
    assert ran.deployment.plan is deployment.planned.baseline
    lower = ran.deployment.tighter_limit(limit)
    assert lower == pytest.approx(100 * ((1 + limit / 100) / 1.02 - 1), abs=0.01)
    again = api._planned_again(ran.deployment, replace(OPTIONS, max_overhead=limit), SILENT)
    assert again is not None
    assert all(
        plan.estimate.ticks <= (1 + lower / 100) * again.planned.baseline.estimate.ticks
        for plan in again.planned.candidates
    )
    assert deployment.tighter_limit(limit) is None  # a cut plan was taken
    stopped = replace(ran.deployment, planned=replace(ran.deployment.planned, interrupted=True))
    assert stopped.tighter_limit(limit) is None  # Ctrl-C ended the first search
    assert api._planned_again(deployment, OPTIONS, SILENT) is None


def test_a_second_search_where_the_plan_taken_is_far_from_one_that_missed(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = with_several_plans(model)
    least, second = deployment.planned.candidates
    smallest, unsplit = arenas(deployment)[0], arenas(deployment)[-1]
    second = replace(second, layout=replace(second.layout, arenas={"sram": unsplit - 8}))
    deployment = replace(deployment, planned=replace(deployment.planned, candidates=(least, second)))
    ticks = round(100_000 * least.estimate.ticks / deployment.planned.baseline.estimate.ticks)
    limit = ticks / 1000 - 100 + 0.5  # kept by the estimate of the least
    times = {smallest: round(1.01 * ticks), unsplit - 8: 100_001, unsplit: 100_000}
    Device(defaultdict(lambda: 2 * ticks, times), monkeypatch)
    ran = run(deployment, limit)
    assert ran.deployment.plan is second
    again = api._planned_again(ran.deployment, replace(OPTIONS, max_overhead=limit), SILENT)
    assert again is not None
    *smaller, last = again.planned.candidates
    assert smaller and last is second
    assert all(smallest < plan.layout.arena_bytes < unsplit - 8 for plan in smaller)
    assert run(again, limit).deployment.plan is second  # the others miss the limit, too
    nearer = replace(second, layout=replace(second.layout, arenas={"sram": smallest + 8}))
    near = replace(deployment, planned=replace(deployment.planned, candidates=(least, nearer)))
    assert near.with_plan(nearer).tighter_limit(limit) is None  # it costs little


def test_a_stored_plan_is_taken_as_it_is_with_a_warning(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "plan.json"
    api.save_plan(api._planned(model, BOARD, OPTIONS, SILENT), path)
    deployment = api._planned(model, BOARD, Options(plan_file=path, objective="instructions"), SILENT)
    sizes = [deployment.plan.layout.arena_bytes, deployment.planned.baseline.layout.arena_bytes]
    Device(dict(zip(sizes, (1060, 1000), strict=True)), monkeypatch)
    assert run(deployment, 5.0).deployment.plan is deployment.plan
    assert "6.00 % longer than the unsplit plan, as counted" in caplog.text
    assert "There is no other plan" in caplog.text


def test_nothing_is_compared_with_an_unsplit_plan_that_does_not_fit(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = with_several_plans(model)
    (least, _), unsplit = deployment.planned.candidates, deployment.planned.baseline
    large = replace(unsplit, layout=replace(unsplit.layout, arenas={"sram": 1 << 20}))
    deployment = replace(
        deployment, planned=replace(deployment.planned, baseline=large, offers_baseline=False)
    )
    device = Device({least.layout.arena_bytes: 5000}, monkeypatch)
    ran = run(deployment, 5.0)
    assert ran.deployment.plan is least and ran.unsplit is None and len(device.ran) == 1


def test_on_a_host_there_is_no_limit_and_the_overhead_is_an_estimate(model: Path) -> None:
    report = reports.measure_model(model, Target(load_board("host")), OPTIONS)
    assert report["splits"] and report["unsplit_latency"] is None
    assert 0 < report["overhead_percent"] < 50 and report["overhead_source"] == "estimated"


def test_a_plan_says_what_is_estimated_and_then_what_was_measured(model: Path) -> None:
    def planned() -> dict[str, Any]:
        return as_json(api.plan_model(model, BOARD, OPTIONS))

    report = planned()
    assert report["latency"] is report["unsplit_latency"] is None
    assert 0 < report["overhead_percent"] < 50 and report["overhead_source"] == "estimated"
    measured = reports.run_model(model, Target(BOARD, emulate=True), OPTIONS, inputs=[], expected=[])
    assert measured["verified"] and measured["overhead_source"] == "counted"
    keys = ("latency", "unsplit_latency", "overhead_percent", "overhead_source", "arena_bytes")
    report = planned()
    assert [report[key] for key in keys] == [measured[key] for key in keys]
    ticks = [report[key]["value"] for key in keys[:2]]
    assert report["overhead_percent"] == pytest.approx(100 * (ticks[0] / ticks[1] - 1))


def observed_by(ticks: Mapping[bool, int]) -> Any:
    """Stands for devices: latencies of split plans (True) and of the unsplit one."""

    def run_all(batch: Any, *_: object) -> list[Observation]:
        times = (OperatorTime("conv_0", 1, 1),)
        return [
            Observation(Measurement(ticks[bool(deployment.plan.splits)], "instructions", times), [{}], None)
            for deployment in batch
        ]

    return run_all


@pytest.mark.parametrize("fits", [True, False])
def test_tune_without_a_plan_that_keeps_the_limit(
    fits: bool, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = with_several_plans(model)
    monkeypatch.setattr(tuning, "_run_all", observed_by({True: 1100, False: 1000}))
    monkeypatch.setattr(tuning, "_require_same", lambda *_: None)
    planned = replace(deployment.planned, offers_baseline=fits)
    targets = Fleet((Target(BOARD, emulate=True),))
    if fits:
        assert (
            tuning._choose(planned, targets, Options(), SILENT).deployment.plan is deployment.planned.baseline
        )
        return
    with pytest.raises(LatencyError, match=r"within --ram-limit takes \+10\.00 %"):
        tuning._choose(planned, targets, Options(), SILENT)
