"""`--timing cycles-model` on a small model, and the targets that it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from models import quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import ConfigError
from mcudeploy.device.target import Target
from mcudeploy.execution.cycles.profile import core_of
from mcudeploy.ir.clock import MODEL_UNIT
from mcudeploy.planner.plan_options import Options
from tests import reports


@pytest.mark.parametrize(
    ("board", "stream", "per_instruction"),
    [
        ("mps2-an386", True, (1.05, 2)),
        ("mps2-an500", False, (0.5, 1.1)),
        ("mps3-an547", False, (1, 2.2)),
    ],
)
def test_cycles_stand_beside_the_counted_instructions(
    tmp_path: Path,
    board: str,
    stream: bool,
    per_instruction: tuple[float, float],
    small_bench: None,
) -> None:
    model = quantised_convolutions(tmp_path / "small.onnx")
    target = Target(load_board(board), emulate=True)
    options = Options(stream_input=stream, objective="instructions")
    measured = reports.measure_model(model, target, options)
    report = reports.measure_model(model, target, options, timing="cycles-model")
    cycles = report["cycles_model"]
    waits = report["stalls"]["cycles"]
    assert report["latency"]["value"] == pytest.approx(cycles["cycles"] + waits, abs=1)
    assert (report["latency"]["unit"], report["latency"]["milliseconds_by"]) == (MODEL_UNIT, "cycle model")
    assert cycles["least"] <= cycles["cycles"] <= cycles["most"]
    low, high = per_instruction
    assert low < cycles["cycles"] / cycles["instructions"] < high
    # The board's counter sees the call of a step too: the same two instructions for every step. Ticks of the
    # emulated timer are a third of an instruction or less.
    for before, after in zip(measured["operators"], report["operators"], strict=True):
        apart = (before["ticks"] - after["instructions"]) / before["steps"]
        assert apart == pytest.approx(2, abs=0.5)
    assert sum(it["instructions"] for it in report["operators"]) == cycles["instructions"]
    assert sum(it["share"] for it in report["operators"]) == pytest.approx(1)
    for table in ("histogram", "functions"):
        assert sum(it["instructions"] for it in cycles[table].values()) == cycles["instructions"]
        assert sum(it["cycles"] for it in cycles[table].values()) == pytest.approx(cycles["cycles"], abs=20)
    assert (
        any(name.startswith("mcud_conv2d_s8_1x1") for name in cycles["functions"])
        and "?" not in cycles["functions"]
    )
    assert cycles["left_out"] and re.search("ARM DDI|Arm", cycles["source"])
    assert report["overhead_percent"] is None


def test_a_core_without_a_model_has_the_cycles_of_its_stand_in(tmp_path: Path, small_bench: None) -> None:
    m85 = load_board("ra8p1")
    board = load_board("mps3-an547").model_copy(update={"core": m85.core, "cpu_flags": m85.cpu_flags})
    model, options = quantised_convolutions(tmp_path / "small.onnx"), Options(objective="instructions")
    report = reports.measure_model(model, Target(board, emulate=True), options, timing="cycles-model")
    assert report["cycles_model"]["core"] == "cortex-m55"


@pytest.mark.parametrize(
    ("name", "emulate", "message"),
    [
        ("host", False, "is this computer"),
        ("stm32f405", False, "on hardware.*add --emulate"),
        ("microbit", True, "has a cortex-m0"),
        ("riscv32-virt", False, "has a "),
    ],
)
def test_targets_without_a_model_are_refused(name: str, emulate: bool, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        core_of(Target(load_board(name), emulate=emulate))
