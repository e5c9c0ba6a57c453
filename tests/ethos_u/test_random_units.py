"""Random graphs whose operators run on the unit wherever they can: verified on this computer by the model."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from fuzzing.flat import draw_flat
from fuzzing.generate import draw

from mcudeploy.boards.catalogue import load_board
from mcudeploy.boards.facts import Npu
from mcudeploy.device.target import Target
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.planner.model import model as planned_model
from mcudeploy.planner.plan_options import Options
from tests import reports
from tests.weekly import sample

pytest.importorskip("ethosu", reason="Vela is not installed: pip install mcudeploy[ethosu]")

HOST = load_board("host").model_copy(update={"core": "cortex-m55", "npu": Npu(kind="ethos-u55", macs=128)})
"""This computer with the functional model; times are those of a Cortex-M55."""
SEEDS = sample([324, 333, 304, 305, 330, 337, 301, 303], 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_graphs_on_the_unit_are_verified(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even seeds are ONNX files, odd ones .tflite files."""
    every = planned_model._variants

    def by_unit(*of: object) -> tuple[KernelCall, ...]:
        calls = every(*of)  # type: ignore[arg-type]
        return tuple(call for call in calls if call.isa.unit) or calls

    monkeypatch.setattr(planned_model, "_variants", by_unit)
    path = tmp_path / ("graph.tflite" if seed % 2 else "graph.onnx")
    if seed % 2:
        path.write_bytes(draw_flat(seed).content)
    else:
        onnx.save(draw(seed).model, path)
    options = Options(time_limit=0.3, max_overhead=100.0)
    report = reports.run_model(path, Target(HOST), options, inputs=[], expected=[])
    assert report["verified"]
    assert any(it["kernel"].endswith("_npu") for it in report["operators"])
