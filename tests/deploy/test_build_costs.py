"""Costs of a model in the report of build, in the header and in the README."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from models import quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli import result_tables as tables
from mcudeploy.cli.output import LoggedProgress, terminal
from mcudeploy.commands import build as building
from mcudeploy.common.errors import BuildError, FitError
from mcudeploy.execution.deployment import Deployment
from mcudeploy.planner.fit import estimated_latency
from mcudeploy.planner.plan_options import Options
from tests import reports

BOARD = load_board("stm32f405")
QUICK = Options(name="tiny", split=False, time_limit=0.5)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quantised_convolutions(tmp_path_factory.mktemp("costs") / "small.onnx")


def shown(report: dict, capsys: pytest.CaptureFixture[str]) -> str:
    tables.build(terminal(stderr=False), report)
    return capsys.readouterr().out


def test_a_library_for_a_build_system_states_its_costs(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "mcudeploy")  # without -v, whatever an earlier test has set
    progress = LoggedProgress(terminal(stderr=True))
    report = reports.build_models([model], BOARD, QUICK, tmp_path, kind="cmake", progress=progress)
    assert capsys.readouterr().err.splitlines().count("planning small.onnx") == 1
    stack = report["library_stack_bound_bytes"]
    assert 0 < stack < report["stack_bound_bytes"] and report["stack_unknown"] is None
    assert f"#define TINY_STACK_BYTES {stack}u\n" in (tmp_path / "include" / "tiny.h").read_text()
    assert f"| {stack} B | {report['steps']} |\n" in (tmp_path / "README.md").read_text()
    assert not list(tmp_path.rglob("*.elf"))
    text = shown(report, capsys)
    for word in ("arena", "flash", "code", "stack", "latency", ") takes the longest", f"at most {stack:,} B"):
        assert word in text, word
    assert "tiny.h" not in text and f"wrote {len(report['files'])} files" in text


def test_the_longest_step_is_the_largest_part_of_the_latency(model: Path, tmp_path: Path) -> None:
    report = reports.build_models([model], BOARD, QUICK, tmp_path, library_only=True)
    longest = report["longest_step"]
    deployment = building.plan_model(model, BOARD, QUICK)
    latency = estimated_latency(deployment.plan, deployment.model, BOARD)
    assert latency is not None and longest["time"]["unit"] == latency.unit
    assert latency.ticks / report["steps"] <= longest["time"]["value"] < latency.ticks
    assert longest["operator"] in {operator.name for operator in deployment.plan.graph.operators}


def test_firmware_keeps_to_the_flash_limit(model: Path, tmp_path: Path) -> None:
    """A plan that fits can still need too much with its code."""
    with pytest.raises(FitError, match=r"the firmware needs .* of them code; the limit is 9,000"):
        reports.build_models([model], BOARD, replace(QUICK, flash_limit=9000), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(FitError, match=r"weights need .* the limit is 500"):
        reports.build_models([model], BOARD, replace(QUICK, flash_limit=500), tmp_path / "out")
    report = reports.build_models([model], BOARD, replace(QUICK, flash_limit=60_000), tmp_path / "out")
    assert report["flash_bytes"] <= 60_000


def test_without_a_compiler_the_stack_is_said_to_be_unknown(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    build = Deployment.build

    def missing(deployment: Deployment, target: building.Target, **how: bool) -> object:
        if target.board.is_host:
            return build(deployment, target, **how)
        raise BuildError("arm-none-eabi-gcc is not installed\nmore")

    monkeypatch.setattr(Deployment, "build", missing)
    report = reports.build_models([model], BOARD, QUICK, tmp_path, library_only=True)
    assert report["stack_unknown"] == "arm-none-eabi-gcc is not installed"
    assert "not known: arm-none-eabi-gcc is not installed" in shown(report, capsys)
    assert "STACK_BYTES" not in (tmp_path / "include" / "tiny.h").read_text()
    assert "| not known |" in (tmp_path / "README.md").read_text()
