"""Random graphs whose operators run on the unit wherever they can: verified on this computer by the model."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from fuzzing.flat import draw_flat
from fuzzing.generate import draw
from units_on_host import HOST, prefer_unit

from mcudeploy.device.target import Target
from mcudeploy.planner.plan_options import Options
from tests import reports
from tests.weekly import sample

pytest.importorskip("ethosu", reason="Vela is not installed: pip install mcudeploy[ethosu]")

SEEDS = sample([324, 333, 2027, 304, 305, 330, 337, 301, 303, 2021], 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_graphs_on_the_unit_are_verified(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even seeds are ONNX files, odd ones .tflite files."""
    prefer_unit(monkeypatch)
    path = tmp_path / ("graph.tflite" if seed % 2 else "graph.onnx")
    if seed % 2:
        path.write_bytes(draw_flat(seed).content)
    else:
        onnx.save(draw(seed).model, path)
    options = Options(time_limit=0.3, max_overhead=100.0)
    report = reports.run_model(path, Target(HOST), options, inputs=[], expected=[])
    assert report["verified"]
    assert any(it["kernel"].endswith("_npu") for it in report["operators"])
