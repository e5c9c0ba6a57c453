"""A search that goes on from a stored plan, is cut short, finds enough, or misses its limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from models import quantised_convolutions

import mcudeploy
from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import FitError, LatencyError
from mcudeploy.costs.estimate import estimated, load_costs
from mcudeploy.device.target import Target
from mcudeploy.ir.plan import Search
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from tests import reports
from tests.weekly import sample

HOST = load_board("host")
MODEL = Path(__file__).resolve().parents[2] / "examples" / "vww" / "model.onnx"
NO_TIME = 1e-9


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return quantised_convolutions(tmp_path / "small.onnx")


@pytest.fixture
def stored(model: Path, tmp_path: Path) -> Path:
    """The file of a plan that cuts the model."""
    path = tmp_path / "plan.json"
    deployment = api.plan_model(model, HOST, Options(time_limit=0.5, max_overhead=50))
    assert deployment.plan.splits
    api.save_plan(deployment, path)
    return path


def test_a_search_without_time_still_has_the_stored_plan(model: Path, stored: Path) -> None:
    options = Options(time_limit=NO_TIME, max_overhead=50)
    assert not api.plan_model(model, HOST, options).plan.splits
    known = api.plan_model(model, HOST, replace(options, plan_file=stored))
    resumed = api.plan_model(model, HOST, replace(options, plan_file=stored, resume=True))
    assert resumed.plan.layout.arena_bytes <= known.plan.layout.arena_bytes
    assert resumed.plan.splits == known.plan.splits
    assert resumed.plan.estimate.ticks > 0


def test_a_search_goes_on_from_the_cuts_of_the_stored_plan(tmp_path: Path) -> None:
    first = api.plan_model(MODEL, HOST, Options(time_limit=0.5, ram_limit=40_000))
    api.save_plan(first, tmp_path / "plan.json")
    options = Options(plan_file=tmp_path / "plan.json", resume=True, time_limit=0.5, max_overhead=10)
    again = api.plan_model(MODEL, HOST, options)
    arena = first.plan.layout.arena_bytes
    assert arena in {size for size, _ in again.planned.points}
    assert again.plan.layout.arena_bytes <= arena


def test_a_stored_plan_over_the_limit_is_not_taken(model: Path, stored: Path) -> None:
    options = Options(time_limit=NO_TIME, max_overhead=0, plan_file=stored, resume=True)
    assert not api.plan_model(model, HOST, options).plan.splits


def test_a_device_tries_the_plan_that_its_search_starts_from_even_if_tiles_say_that_it_is_slow(
    model: Path,
) -> None:
    board, options = load_board("mps2-an386"), Options(time_limit=NO_TIME, max_overhead=0)
    start = api.plan_model(model, board, Options(time_limit=0.5, max_overhead=50)).plan
    net, tiles = read_model(model, options, isa=board.isa), estimated(load_costs(board.core))
    assert find_plans(net, board, options, tiles, start=start).candidates[0].splits == start.splits
    assert not find_plans(net, board, options, start=start).candidates


def test_a_stored_plan_says_whether_the_input_is_streamed(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    options = Options(time_limit=0.5, max_overhead=50)
    api.save_plan(api.plan_model(model, HOST, replace(options, stream_input=True)), path)
    assert api.plan_model(model, HOST, replace(options, plan_file=path, resume=True)).plan.form.streamed


@pytest.mark.usefixtures("small_bench")
def test_tune_without_a_search_runs_the_stored_plan_and_keeps_the_limit(
    model: Path, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target(load_board("mps2-an386"))
    plan = api.plan_model(model, target.board, Options(time_limit=0.5, max_overhead=50))
    api.save_plan(plan, stored)
    options = Options(plan_file=stored, split=False, max_overhead=90, resume=True)
    _, report = reports.tune_model(model, [target], options)
    assert report["arena_bytes"] == plan.plan.layout.arena_bytes
    assert report["predicted_overhead_percent"] is report["prediction_error_percent"] is None
    assert report["overhead_percent"] > 0
    with pytest.raises(LatencyError, match=r"plan\.json takes \+[\d.]+ %.*the limit is 0 %"):
        reports.tune_model(model, [target], replace(options, max_overhead=0))


def test_of_plans_that_fit_the_fastest_is_taken() -> None:
    limit, options = 40_000, Options(time_limit=0.5)
    deployment = api.plan_model(MODEL, HOST, replace(options, ram_limit=limit))
    smallest = api.plan_model(MODEL, HOST, options)
    assert smallest.plan.layout.arena_bytes < deployment.plan.layout.arena_bytes <= limit
    assert deployment.plan.estimate.ticks < smallest.plan.estimate.ticks
    roomy = api.plan_model(MODEL, HOST, replace(options, ram_limit=1 << 20))
    assert not roomy.plan.splits and roomy.planned.search.candidates == 0
    narrow = Options(ram_limit=1 << 20, time_limit=0.5, memory_limits=((HOST.memories[0].name, limit),))
    assert api.plan_model(MODEL, HOST, narrow).plan.layout.arena_bytes <= limit
    with pytest.raises(FitError, match=r"arena needs [\d,]+ bytes, the limit is 1,024"):
        api.plan_model(MODEL, HOST, Options(ram_limit=1024, time_limit=0.5))


def test_a_gain_is_a_stage_and_newer_figures_an_update() -> None:
    seen: list[tuple[str, str]] = []

    class Told:
        def stage(self, name: str) -> None:
            seen.append(("stage", name))

        def update(self, name: str) -> None:
            seen.append(("update", name))

        def advance(self, done: int, total: int) -> None: ...

        def searched(self, seconds: float, arena_bytes: int, candidates: int) -> None: ...

    told = api.search_report(Told(), lambda search: replace(search, measured=3, cache_hits=4))
    for count, arena, overhead in ((1, 900, 0.7), (9, 900, 0.5), (10, 800, 0.5)):
        told(Search(1.0, count), arena, overhead)
    assert [kind for kind, _ in seen] == ["stage", "update", "stage"]
    known = "3 tiles timed, 4 known"
    assert seen[1][1] == f"searching: arena 900 B at +0.5 %, 9 candidates, 9 a second, {known}"


@pytest.mark.usefixtures("default_signals")
@pytest.mark.parametrize("command", sample(["plan", "tune"], 1))
def test_control_c_keeps_the_best_and_writes_it(command: str, tmp_path: Path) -> None:
    line = [sys.executable, "-m", "mcudeploy", command, str(MODEL), "--board", "host", "-o", "plan.json"]
    process = subprocess.Popen(
        [*line, "--time-limit", "300", "--max-overhead", "1000"],
        env=os.environ | {"PYTHONPATH": str(Path(mcudeploy.__file__).parents[1])},
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stderr is not None
    gains = 0
    for text in process.stderr:
        gains += text.startswith("searching")
        if gains == 3:
            break
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=120)[1]
    assert process.returncode == 0, rest
    assert time.monotonic() - started < 100
    stored = api.plan_model(MODEL, HOST, Options(plan_file=tmp_path / "plan.json"))
    assert stored.plan.splits or command == "tune"
