"""Dense layers whose step loads its constants in pieces, each while it computes with the one before."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mcudeploy.checker.judge import PlanFaultError, check
from mcudeploy.common.errors import ConfigError
from mcudeploy.ir.engine import FLASH
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import LoadedConstants, Plan
from mcudeploy.planner.files.planfile import save_plan
from mcudeploy.planner.files.stored_plan import stored_plan
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.planner import Planned, find_plans
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.report.moving import transfers
from tests.deploy.test_loaded_constants import UNSPLIT, outputs, slow_flash
from tests.networks.onnx_files import QuantizedModel, build, node, save
from tests.networks.packed import packed

BOARD = slow_flash()
SIZES = 96, 1030, 64
"""Elements of the vectors: no piece of some channels divides 1030."""
LIMITED = replace(UNSPLIT, ram_limit=40_000, optimize="size")


def network(kind: str, folder: Path) -> Path:
    """Two dense layers of floats by weights of 4 bits or of floats, or of int8."""
    q = QuantizedModel(5)
    x = "x" if kind != "int8" else q.quantize("x", 0.03, 3)
    for number, (inputs, outs) in enumerate(pairwise(SIZES)):
        if kind == "int8":
            w = q.weights(f"w{number}", (outs, inputs), scale=0.002)
            q.nodes.append(node("Gemm", f"{x} {w}", f"y{number}", transB=1))
            x = q.quantize(f"y{number}", 0.04, -2)
        else:
            q.constants[f"w{number}"] = (q.random.standard_normal((inputs, outs)) / 9).astype(np.float32)
            q.nodes.append(node("MatMul", f"{x} w{number}", f"y{number}"))
            x = f"y{number}"
    q.nodes[-1].output[0] = "out"
    ends = {name: (np.float32, (1, size)) for name, size in (("x", SIZES[0]), ("out", SIZES[-1]))}
    model = build(q.nodes, {"x": ends["x"]}, {"out": ends["out"]}, q.constants)
    return save(packed(model) if kind == "int4" else model, folder, kind)


@pytest.fixture(scope="module", params=["int4", "float32", "int8"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load_model(network(request.param, tmp_path_factory.mktemp("net")), isa=BOARD.isa)


@pytest.fixture(scope="module")
def planned(model: Model) -> Planned:
    return find_plans(model, BOARD, LIMITED)


@pytest.fixture(scope="module")
def plan(planned: Planned) -> Plan:
    (plan,) = planned.candidates
    return plan


def in_pieces(plan: Plan) -> dict[str, LoadedConstants]:
    """The constants of a plan that come in pieces."""
    return {name: it for name, it in plan.layout.constants.items() if it.pieces is not None}


def test_a_matrix_larger_than_the_arena_comes_in_pieces(planned: Planned, plan: Plan) -> None:
    streamed = in_pieces(plan)
    totals = [it.pieces.total_bytes for it in streamed.values() if it.pieces]
    assert max(totals) > plan.layout.arena_bytes > planned.baseline.layout.arena_bytes
    assert all(2 * it.size_bytes < total for it, total in zip(streamed.values(), totals, strict=True))
    assert plan.estimate.latency_ticks < 0.95 * planned.baseline.estimate.latency_ticks


def test_the_driver_and_a_late_engine_compute_the_same_bits(
    model: Model, planned: Planned, plan: Plan
) -> None:
    expected = outputs(model, planned.baseline)
    assert outputs(model, plan) == expected
    assert outputs(model, plan, "half") == expected
    assert outputs(model, plan, "wait") == expected


def test_the_report_has_all_bytes_and_the_waits_for_them(model: Model, planned: Planned, plan: Plan) -> None:
    """The core waits at least for the bytes that do not come while it computes."""
    report = transfers(PlanView(plan, model.with_kernels(plan.kernels).calls), None)
    constants = plan.layout.constants.values()
    loaded = sum(it.pieces.total_bytes if it.pieces else it.size_bytes for it in constants)
    assert report["bytes"] == report["ways"][f"{FLASH} to sram"]["bytes"] == loaded
    least = loaded / 0.25 - plan.estimate.ticks
    flash = planned.baseline.estimate.ticks - plan.estimate.ticks
    assert max(0, least) <= plan.estimate.stalls.waits < flash


def _changed(plan: Plan, **changes: Any) -> Plan:
    name, last = list(in_pieces(plan).items())[-1]
    constants = {**plan.layout.constants, name: replace(last, **changes)}
    return replace(plan, layout=replace(plan.layout, constants=constants))


def _placed(plan: Plan, **changes: Any) -> Plan:
    return _changed(plan, place=replace(list(in_pieces(plan).values())[-1].place, **changes))


def _cut(plan: Plan, **changes: Any) -> Plan:
    pieces = list(in_pieces(plan).values())[-1].pieces
    assert pieces is not None
    return _changed(plan, pieces=replace(pieces, **changes))


def _over_its_input(plan: Plan) -> Plan:
    name = list(in_pieces(plan))[-1]
    source = next(it for it in plan.graph.operators if it.name == name).inputs[0]
    return _placed(plan, offset=plan.layout.blocks[source][0][0].offset)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (_over_its_input, "overlaps"),
        (lambda plan: _placed(plan, life=Interval(0, 0)), "reside nowhere|no step|empty"),
        (lambda plan: _placed(plan, offset=1 << 20), "leaves its arena"),
        (lambda plan: _placed(plan, offset=2), "not aligned"),
        (lambda plan: _placed(plan, memory="psram"), "no arena|does not join"),
        (lambda plan: _cut(plan, engine="cpu"), "does not join"),
        (lambda plan: _cut(plan, count=1), "not a vector"),
        (lambda plan: _cut(plan, channels=4096), "not a vector"),
        (lambda plan: _changed(plan, pieces=None), "0 transfers, not one"),
    ],
)
def test_the_checker_refuses(change: Callable[[Plan], Plan], fault: str, model: Model, plan: Plan) -> None:
    work = model.with_kernels(plan.kernels).work
    check(plan, work, BOARD)
    with pytest.raises(PlanFaultError, match=fault):
        check(change(plan), work, BOARD)


def test_plan_files_keep_pieces(model: Model, plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    save_plan(plan, model.sha256, path)
    again = stored_plan(model, BOARD, path, ()).plan
    assert again.layout.constants == plan.layout.constants
    content = json.loads(path.read_text("utf-8"))
    content["pieces"][next(iter(content["pieces"]))][4] -= 4
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(ConfigError, match="loads other constants"):
        stored_plan(model, BOARD, path, ())
