"""`--objective cycles`: kernels, cuts and limits by the cycle model of a core."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from models import quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import ConfigError, UsageError
from mcudeploy.costs.estimate import load_costs, per_instruction
from mcudeploy.device.target import Target
from mcudeploy.execution.cycles.profile import CORES
from mcudeploy.ir.clock import MODEL_UNIT
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json
from tests import reports

CYCLES = Options(objective="cycles", time_limit=0.5)


@pytest.mark.parametrize("core", CORES)
def test_every_modelled_core_has_cycles_beside_its_instructions(core: str) -> None:
    instructions, cycles = load_costs(core), load_costs(core, "cycles")
    assert cycles.core == core and cycles.unit == "cycles"
    assert instructions.kernels.keys() == cycles.kernels.keys()
    for variant, loops in instructions.kernels.items():
        assert cycles.kernels[variant].keys() == loops.keys()


@pytest.mark.parametrize("core", ["cortex-m0", "cortex-m3", "rv32imafc", "native"])
def test_a_core_without_a_model_is_named_with_those_that_have_one(core: str) -> None:
    with pytest.raises(ConfigError, match=rf"no cycle model of {core}; .*cortex-m4.*cortex-m55"):
        load_costs(core, "cycles")


def test_plans_are_estimated_in_cycles(tmp_path: Path) -> None:
    model = quantised_convolutions(tmp_path / "small.onnx")
    board = load_board("stm32f405")
    by_unit = [api.plan_model(model, board, Options(objective=unit)) for unit in ("instructions", "cycles")]
    instructions, cycles = (deployment.plan.estimate.ticks for deployment in by_unit)
    assert 1.1 < cycles / instructions < 1.9
    assert json.loads(json.dumps(as_json(by_unit[1])))["estimates"]["unit"] == "cycles"


@pytest.mark.parametrize(
    ("board", "cores", "unit"),
    [
        ("stm32f405", None, "cycles"),
        ("mps3-an547", 1, "cycles"),
        ("mps2-an521", 2, "instructions"),
        ("microbit", None, "instructions"),
        ("riscv32-virt", None, "instructions"),
        ("host", None, "instructions"),
    ],
)
def test_cycles_are_the_default_if_one_core_has_a_model(
    tmp_path: Path, board: str, cores: int | None, unit: str
) -> None:
    model = quantised_convolutions(tmp_path / "small.onnx")
    deployment = api.plan_model(model, load_board(board), Options(split=False, cores=cores))
    assert deployment.planned.objective == unit


def test_traffic_is_counted_for_a_plan_by_instructions(tmp_path: Path) -> None:
    model = quantised_convolutions(tmp_path / "small.onnx")
    target = Target(load_board("mps2-an386"), emulate=True)
    report = reports.measure_model(model, target, Options(split=False), timing="traffic")
    assert report["estimates"]["unit"] == "instructions"


def test_tuning_keeps_the_limit_in_modelled_cycles(tmp_path: Path) -> None:
    model = quantised_convolutions(tmp_path / "small.onnx")
    target = Target(load_board("mps2-an386"), emulate=True)
    deployment, report = reports.tune_model(model, [target], CYCLES)
    assert report["latency"]["unit"] == report["unsplit_latency"]["unit"] == MODEL_UNIT
    assert report["overhead_percent"] <= CYCLES.overhead_limit
    # what was measured in cycles is found again, and only where cycles are the objective
    assert deployment.measured(True) is not None
    counted = api.plan_model(model, target.board, Options(time_limit=0.5, objective="instructions"))
    measured = counted.measured(True)
    assert measured is None or measured.unit == "instructions"


def test_a_run_reports_cycles_and_the_overhead_in_them(tmp_path: Path) -> None:
    model = quantised_convolutions(tmp_path / "small.onnx")
    target = Target(load_board("mps2-an386"), emulate=True)
    report = reports.run_model(model, target, CYCLES, inputs=[], expected=[])
    assert report["verified"] and report["latency"]["unit"] == MODEL_UNIT
    assert report["cycles_model"]["cycles"] == pytest.approx(report["latency"]["value"], abs=1)
    assert report["overhead_percent"] is not None


def test_estimated_cycles_are_those_of_the_model(tmp_path: Path) -> None:
    model = quantised_convolutions(tmp_path / "small.onnx")
    target = Target(load_board("mps2-an386"), emulate=True)
    options = Options(objective="cycles", split=False)
    deployment = api.plan_model(model, target.board, options)
    measured = reports.measure_model(model, target, options)
    assert deployment.plan.estimate.ticks == pytest.approx(measured["latency"]["value"], rel=0.1)


def test_several_cores_are_refused(tmp_path: Path) -> None:
    model = quantised_convolutions(tmp_path / "small.onnx")
    with pytest.raises(UsageError, match=r"--objective cycles.*--parallel 1"):
        api.plan_model(model, load_board("mps2-an521"), Options(objective="cycles", cores=2))


def test_instructions_need_no_pace() -> None:
    pace = per_instruction(load_board("riscv32-virt"), "instructions")
    assert callable(pace)
