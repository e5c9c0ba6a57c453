"""Plans for several units end to end: searched, stored, loaded, run on the host, compared with
ONNX Runtime.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from drawn import board

from mcudeploy.boards.board import Unit
from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.render import render_model
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import ConfigError
from mcudeploy.device.target import Target
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json
from tests import reports
from tests.networks.small import residual_network


def _cached(memory: str) -> tuple[Unit, Unit]:
    npu = Unit(name="npu", kind="accelerator", alignment=16, prefers=("Conv2d",), cached=(memory,))
    return Unit(name="core", cached=(memory,)), npu


TWO = board(*_cached("ram"))
ASSIGN = ("auto", "core=conv_1")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return residual_network(tmp_path_factory.mktemp("units") / "residual.onnx")


@pytest.mark.parametrize("split", [False, True])
def test_outputs_are_those_of_the_reference(model: Path, split: bool) -> None:
    options = Options(split=split, time_limit=0.5, assign=ASSIGN, stream_input=split)
    report = reports.run_model(model, Target(TWO), options, inputs=[], expected=[])
    assert report["verified"]
    kinds = {name.split("_")[0] for name in report["operator_checks"]}
    assert {"clean", "invalidate"} <= kinds
    assert bool(report["splits"]) == split
    unit_of = {name: it["unit"] for it in report["sharing"]["functions"] for name in it["operators"]}
    units = [{unit_of[name] for name in it["operators"]} for it in report["splits"]]
    assert (units == []) or any(len(each) == 2 for each in units)


def test_copies_where_no_memory_is_in_common(model: Path) -> None:
    """To npu go image, b and the flat sum; back go a (for two readers), c and the scores."""
    apart = board(
        Unit(name="core"), Unit(name="npu", prefers=("Conv2d",), memories=("own",)), memories=("ram", "own")
    )
    lone = board(
        Unit(name="core", memories=("ram",)),
        Unit(name="npu", prefers=("Conv2d",), memories=("own",)),
        Unit(name="mover"),
        memories=("ram", "own"),
    )
    options = Options(split=False, assign=ASSIGN)
    assert as_json(api.plan_model(model, apart, options))["sharing"]["copies"] == 0
    report = reports.run_model(model, Target(lone), options, inputs=[], expected=[])
    assert report["verified"] and report["sharing"]["copies"] == 6
    assert sum(it["kernel"] == "copy" for it in report["operators"]) == 6


def test_maintenance_by_lines_on_a_cortex_m7(model: Path) -> None:
    """The emulator has no caches: this shows that the registers exist, and that nothing else is disturbed."""
    an500 = load_board("mps2-an500")
    caches = {"units": _cached("sram"), "hal": (*an500.hal, "cortexm/cache.c"), "unit_hal": ("one_unit.c",)}
    options = Options(split=False, assign=ASSIGN)
    report = reports.run_model(
        model, Target(an500.model_copy(update=caches)), options, inputs=[], expected=[]
    )
    assert report["verified"]
    assert {"clean", "invalidate"} <= {it["kernel"] for it in report["operators"]}


def test_a_plan_file_keeps_the_functions(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    deployment = api.plan_model(model, TWO, Options(time_limit=0.5, assign=ASSIGN))
    api.save_plan(deployment, file)
    again = api.plan_model(model, TWO, Options(plan_file=file))
    assert again.plan.functions == deployment.plan.functions
    assert len({function.unit for function in again.plan.functions}) == 2
    with pytest.raises(ConfigError, match="other functions"):
        api.plan_model(model, TWO, Options(plan_file=file, assign=("npu=*",)))
    content = json.loads(file.read_text())
    content["functions"][0]["unit"] = "npu" if content["functions"][0]["unit"] == "core" else "core"
    file.write_text(json.dumps(content))
    with pytest.raises(ConfigError):
        api.plan_model(model, TWO, Options(plan_file=file))


def test_the_same_rules_beside_a_plan_file(model: Path, tmp_path: Path) -> None:
    options = Options(split=False, assign=("npu=*",))
    deployment = api.plan_model(model, TWO, options)
    api.save_plan(deployment, tmp_path / "plan.json")
    again = api.plan_model(model, TWO, replace(options, plan_file=tmp_path / "plan.json"))
    assert again.plan.functions == deployment.plan.functions


def test_a_plan_for_units_of_another_board_says_so(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    api.save_plan(api.plan_model(model, TWO, Options(split=False, assign=ASSIGN)), file)
    other = load_board("stm32f405")
    with pytest.raises(ConfigError, match=f"is a plan for {TWO.name}, not for stm32f405"):
        api.plan_model(model, other, Options(plan_file=file))
    poorer = board(Unit(name="core"))  # the same board by name
    with pytest.raises(ConfigError, match="has no compute unit 'npu'; it has core"):
        api.plan_model(model, poorer, Options(plan_file=file))


def test_rules_for_the_first_unit_alone_change_nothing(model: Path) -> None:
    plain = api.plan_model(model, TWO, Options(time_limit=0.5, split=False)).plan
    same = api.plan_model(model, TWO, Options(time_limit=0.5, split=False, assign=("core=*",))).plan
    assert (same.functions, same.schedule, same.layout) == ((), plain.schedule, plain.layout)


def test_an_operator_of_another_core_with_several_records_has_a_name_for_each(model: Path) -> None:
    """Blocks that move give an operator a further record."""
    deployment = api.plan_model(model, load_board("mps2-an521"), Options(split=False, assign=("auto",)))
    records = [it for it in deployment.program.operators if it.unit]
    further = [replace(it, number=number) for number, it in enumerate(records, 90)]
    program = replace(deployment.program, operators=[*deployment.program.operators, *further])
    source = render_model(program, deployment.plan, deployment.source)[f"{program.prefix}.c"]
    names = re.findall(r"static const mcud_(?:op|on_unit_params) (\w+)", source)
    assert len(names) == len(set(names)) >= 4 * len(records) > 0
    assert set(re.findall(r"\{&(op\w+), \.unit", source)) <= set(names)
