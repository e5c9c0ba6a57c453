"""The main job end to end on a small model: plan, build, run on a board under emulation, verify."""

from __future__ import annotations

import json
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models import quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.commands import tune as tuning
from mcudeploy.common.errors import (
    ConfigError,
    DeployError,
    ProtocolError,
    UsageError,
)
from mcudeploy.common.files import is_ours
from mcudeploy.common.progress import SILENT
from mcudeploy.device.requests import Request
from mcudeploy.device.session import Session
from mcudeploy.device.target import Target, open_device
from mcudeploy.execution import running
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import Planned, find_plans
from mcudeploy.report import as_json, objects
from mcudeploy.toolchain.emulator import Emulator
from mcudeploy.toolchain.stack import StackBound
from mcudeploy.verify import verdict as verdict_module
from mcudeploy.verify.difference import difference
from mcudeploy.verify.samples import load_samples
from mcudeploy.verify.verdict import judge
from tests import reports
from tests.weekly import sample

HOST = Target(load_board("host"))


@pytest.mark.parametrize("board", ["host", "stm32f405", "microbit"])
def test_run_verifies_and_reports(model: Path, board: str) -> None:
    report = reports.run_model(
        model, Target(load_board(board), emulate=True), Options(max_overhead=300), inputs=[], expected=[]
    )
    assert report["verified"] and report["reason"] is None
    assert report["elements"] == 4 * 12 * 12
    # 12 x 12 x 8 between the convolutions, and the input or the output beside it; scratch below 200 bytes.
    assert 12 * 12 * (8 + 4) <= report["unsplit_arena_bytes"] < 12 * 12 * (8 + 4) + 200
    # Cut along rows, the 8 channels between the convolutions never exist whole.
    assert 12 * 12 * 4 < report["arena_bytes"] < 12 * 12 * 8 + 200
    assert report["splits"] and report["steps"] > 2
    assert report["macs"] == 12 * 12 * (3 * 9 * 8 + 8 * 4)
    first, second = (operator["kernel"] for operator in report["operators"])
    assert first.startswith("conv2d_s8") and second.startswith("conv2d_s8_1x1")
    assert sum(operator["share"] for operator in report["operators"]) == pytest.approx(1)
    units = {"host": "us", "stm32f405": "cycles (model)", "microbit": "instructions"}
    assert report["latency"]["unit"] == units[board]
    assert report["total_ram_bytes"] == report["static_ram_bytes"] + report["stack_bytes"]
    assert report["static_ram_bytes"] >= report["arena_bytes"]
    bound = report["stack_bound_bytes"]
    assert (bound is None) == (board == "host")
    assert bound is None or report["stack_bytes"] <= bound <= report["stack_bytes"] + 64


@pytest.mark.usefixtures("small_bench")
def test_a_stack_deeper_than_its_bound_is_a_defect(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "stack_bound", lambda _: StackBound(100, 80, 100))
    with pytest.raises(DeployError, match=r"\d+ B of stack, more than the bound of 100 B.*defect"):
        reports.measure_model(model, Target(load_board("microbit"), emulate=True), Options(split=False))


@pytest.mark.usefixtures("small_bench")
def test_instruction_counts_repeat_exactly(model: Path) -> None:
    target = Target(load_board("stm32f405"), emulate=True)
    first, second = (reports.measure_model(model, target, Options()) for _ in range(2))
    assert first["latency"] == second["latency"] and first["operators"] == second["operators"]


def test_wrong_weights_are_not_verified(model: Path) -> None:
    deployment = api.plan_model(model, HOST.board, Options())
    constants = deployment.program.constants
    spoiled = [replace(c, lines=[line.replace("1", "2") for line in c.lines]) for c in constants]
    vars(deployment)["program"] = replace(deployment.program, constants=spoiled)
    samples = load_samples(deployment.model.graph, [], [], 0)
    with open_device(HOST, deployment.build(HOST)) as machine:
        verdict = judge(machine, deployment.plan, model, samples, SILENT)
    assert verdict.reasons and verdict.reasons[0].startswith("conv_0 (Conv2d)")


def test_resolved_ties_are_counted_apart_from_plain_outputs(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An output that does not stand is judged by the run with the reference's choice at ties."""
    deployment = api.plan_model(model, HOST.board, Options())
    samples = load_samples(deployment.model.graph, [], [], 0)
    io = deployment.plan.graph.outputs[0]

    def spoiled(machine: Any, storage: Any) -> dict[str, Any]:
        value = storage.get_tensor(machine, io.tensor).copy()
        value.flat[7] ^= 0 if resolved else 64
        return {io.tensor: value}

    def resolve(machine: Any, storage: Any, *values: Any) -> int:
        resolved.append(True)
        return real(machine, storage, *values)

    resolved: list[bool] = []
    real = verdict_module.run_with_ties_as_reference
    monkeypatch.setattr(verdict_module, "_outputs", spoiled)
    monkeypatch.setattr(verdict_module, "run_with_ties_as_reference", resolve)
    with open_device(HOST, deployment.build(HOST)) as machine:
        verdict = judge(machine, deployment.plan, model, samples, SILENT)
    assert not verdict.reasons
    report = objects.verdict(verdict)
    assert (report["mismatches"], report["max_abs_error"]) == (1, 64)
    assert (report["mismatches_resolved"], report["max_abs_error_resolved"]) == (0, 0)
    assert report["tolerance"] == {"lsb": 4, "share_of_range": None, "least": None}


def test_a_device_that_computes_otherwise_is_not_verified(model: Path) -> None:
    deployment = api.plan_model(model, HOST.board, Options())
    samples = load_samples(deployment.model.graph, [], [], 0)
    with open_device(HOST, deployment.build(HOST)) as machine:
        verdict = judge(machine, deployment.plan, model, samples, SILENT)
    assert not verdict.reasons
    outputs = {name: value.copy() for name, value in verdict.host[0].items()}
    assert not verdict.with_device([outputs]).reasons
    next(iter(outputs.values())).flat[7] ^= 1
    assert "differs from the host build in 1 of 576" in verdict.with_device([outputs]).reasons[0]


def test_expected_outputs_decide(model: Path, tmp_path: Path) -> None:
    image = np.zeros((1, 3, 12, 12), np.int8)
    np.save(tmp_path / "in.npy", image)
    np.save(tmp_path / "out.npy", np.full((1, 4, 12, 12), 99, np.int8))
    files = {"inputs": [tmp_path / "in.npy"], "expected": [tmp_path / "out.npy"]}
    report = reports.run_model(model, HOST, Options(), **files)
    assert not report["verified"] and "expected 99" in report["reason"]
    np.save(tmp_path / "in.npy", image[:, :2])
    with pytest.raises(UsageError, match=r"\[1, 2, 12, 12\]"):
        reports.run_model(model, HOST, Options(), **files)


def test_plan_files_come_back(model: Path, tmp_path: Path) -> None:
    deployment = api.plan_model(model, HOST.board, Options(split=False))
    stored = tmp_path / "plan.json"
    api.save_plan(deployment, stored)
    assert is_ours(stored)
    again = api.plan_model(model, HOST.board, Options(plan_file=stored))
    assert (
        again.plan.layout == deployment.plan.layout
        and again.plan.schedule.steps == deployment.plan.schedule.steps
    )
    other = quantised_convolutions(tmp_path / "other.onnx", seed=2)
    with pytest.raises(ConfigError, match="another model"):
        api.plan_model(other, HOST.board, Options(plan_file=stored))
    with pytest.raises(ConfigError, match="not for stm32f405"):
        api.plan_model(model, load_board("stm32f405"), Options(plan_file=stored))
    content = json.loads(stored.read_text())
    for residence in (each for blocks in content["blocks"].values() for block in blocks for each in block):
        residence[3] = residence[3] or 8
    stored.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=r"is not a plan of this model: .*(overlap|overwritten|leaves)"):
        api.plan_model(model, HOST.board, Options(plan_file=stored))
    stored.write_text("[]")
    with pytest.raises(ConfigError, match="not a plan"):
        api.plan_model(model, HOST.board, Options(plan_file=stored))


@pytest.mark.usefixtures("small_bench")
@pytest.mark.parametrize("stream", sample([True, False], 1))
def test_tuned_plans_keep_the_limit_and_come_back_from_their_file(
    model: Path, tmp_path: Path, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target(load_board("stm32f405"), emulate=True)
    searches: list[Planned] = []
    starts: list[Plan | None] = []

    def search(*args: Any, start: Plan | None = None, **named: Any) -> Planned:
        searches.append(find_plans(*args, start=start, **named))
        starts.append(start)
        return searches[-1]

    for module in (api, tuning):
        monkeypatch.setattr(module, "find_plans", search)
    deployment, report = reports.tune_model(
        model, [target], Options(stream_input=stream, time_limit=20, fresh=True)
    )
    assert starts[:2] == [None, searches[0].choices[0]]  # it begins with what `plan` gives
    assert deployment.planned.choices[0].layout.arena_bytes <= searches[0].choices[0].layout.arena_bytes
    assert report["overhead_percent"] <= 5 and report["streamed"] is stream
    assert report["arena_bytes"] < report["unsplit_arena_bytes"]
    assert report["search"]["measured"] + report["search"]["cache_hits"] > 0
    assert abs(report["prediction_error_percent"]) < (2 if stream else 1)  # feeds are not estimated
    stored = tmp_path / "plan.json"
    api.save_plan(deployment, stored)
    again = reports.run_model(model, target, Options(plan_file=stored), inputs=[], expected=[])
    assert again["verified"] and again["arena_bytes"] == report["arena_bytes"]
    assert again["latency"]["value"] == report["latency"]["value"] and again["splits"] == report["splits"]


@pytest.mark.weekly
@pytest.mark.usefixtures("small_bench")
def test_two_measurers_find_what_one_finds(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target(load_board("stm32f405"), emulate=True)
    plans = []
    for count in (1, 2):
        monkeypatch.setattr("mcudeploy.costs.database.cache_dir", lambda count=count: tmp_path / str(count))
        deployment, report = reports.tune_model(model, [target] * count, Options(time_limit=20))
        assert report["measurers"] == count and report["search"]["measured"] > 10
        del report["measurers"], report["search"]["seconds"]
        plans.append((report, deployment.plan.layout, deployment.plan.schedule.steps))
    assert plans[0] == plans[1]


@pytest.mark.usefixtures("small_bench")
@pytest.mark.parametrize("last", [False, True])
def test_a_device_that_dies_ends_the_tune_only_if_it_is_the_last_and_leaves_no_emulator(
    last: bool,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One dies while tiles are timed, one while plans run; or all do."""
    monkeypatch.setattr("mcudeploy.costs.database.cache_dir", lambda: tmp_path)
    processes: list[subprocess.Popen[bytes]] = []
    start = Emulator._start

    def start_and_count(self: Emulator) -> None:
        start(self)
        processes.append(self._process)

    request = Session._request

    def request_or_die(self: Session, kind: Request, *args: object, **named: object) -> bytes:
        if kind in {Request.CALL, Request.RUN}:
            if last:
                for process in processes:
                    process.kill()
            elif len(processes) in {3, 5}:
                processes[-1].kill()
        return request(self, kind, *args, **named)

    monkeypatch.setattr(Emulator, "_start", start_and_count)
    monkeypatch.setattr(Session, "_request", request_or_die)
    target = Target(load_board("mps2-an386"))
    if last:
        with pytest.raises(ProtocolError, match="emulator"):
            reports.tune_model(model, [target] * 2, Options(time_limit=20))
        assert len(processes) == 2
    else:
        _, report = reports.tune_model(model, [target] * 3, Options(time_limit=20))
        assert report["overhead_percent"] <= 5 and report["search"]["measured"] > 10
        assert len(processes) >= 6
        assert len([it for it in caplog.records if "a board is out" in it.message]) == 2
    assert all(process.poll() is not None for process in processes)
    assert [thread for thread in threading.enumerate() if "ThreadPool" in thread.name] == []


def test_a_streamed_input_needs_less_and_gives_the_same(model: Path) -> None:
    whole = reports.run_model(model, HOST, Options(), inputs=[], expected=[])
    streamed = reports.run_model(model, HOST, Options(stream_input=True), inputs=[], expected=[])
    assert whole["verified"] and streamed["verified"]
    assert streamed["arena_bytes"] < whole["arena_bytes"]


def test_a_damaged_database_loses_no_run(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("mcudeploy.costs.database.cache_dir", lambda: tmp_path)
    (tmp_path / "measurements.sqlite").write_bytes(b"no database" * 1000)
    report = reports.run_model(model, HOST, Options(split=False), inputs=[], expected=[])
    assert report["verified"] and report["latency"]["unit"] == "us"
    assert "the measurement is not stored" in caplog.text and "Delete it" in caplog.text
    assert as_json(api.plan_model(model, HOST.board, Options(split=False)))["latency"] is None


@pytest.mark.parametrize(
    ("board", "costs_of", "unit"),
    [
        ("stm32f405", "cortex-m4", "cycles"),
        ("rp2040", "cortex-m0", "instructions"),
        ("esp32s3", "rv32imafc", "instructions"),
    ],
)
def test_reports_say_whose_costs_are_the_estimates(model: Path, board: str, costs_of: str, unit: str) -> None:
    target = load_board(board)
    report = as_json(api.plan_model(model, target, Options(split=False)))
    costs = {"costs_of": costs_of, "unit": unit, "calibrated": False}
    assert report["estimates"] == {"core": target.core, **costs}
    timed = find_plans(load_model(model), target, Options(split=False), lambda *_: lambda *_: 1.0)
    assert timed.costs_of is None


@pytest.mark.filterwarnings("error")
def test_infinities_are_compared_without_a_warning() -> None:
    computed = np.array([np.inf, -np.inf, np.inf, 1], np.float32)
    assert difference(computed, computed).mismatches == 0
    assert difference(computed, np.array([np.inf, np.inf, 0, 1], np.float32)).mismatches == 2


def test_an_open_batch_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = quantised_convolutions(tmp_path / "open.onnx")
    model = onnx.load(path)
    assert reports.check_model(path, None, Options())["notes"] == []
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    onnx.save(model, path)
    (note,) = reports.check_model(path, None, Options())["notes"]
    assert "dimension 0 (N) is open and taken as a batch of 1" in note
    api.plan_model(path, HOST.board, Options(split=False))
    assert [record.getMessage() for record in caplog.records] == [f"note: {note}"]
