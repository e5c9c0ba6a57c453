"""LiteRT beside the outputs of every `.tflite` file, which sees what our own translation cannot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from flat_cases import network
from flat_files import NONE, FlatFile
from programs import HOST, QUICK

from mcudeploy.cli.main import cli
from mcudeploy.common.errors import OutputsDifferError
from mcudeploy.frontend import parsing
from mcudeploy.frontend.tflite import elementwise
from mcudeploy.verify import litert
from tests import reports

Report = reports.Report


@pytest.fixture(params=["int8", "float32"])
def product(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    f = FlatFile()
    x, y, z = (f.add(1, 40) for _ in range(3))
    if request.param == "int8":
        x, y = f.int8(1, 40, scale=0.1, zero=-20), f.int8(1, 40, scale=0.08, zero=30)
        z = f.int8(1, 40, scale=0.7, zero=-10)
    f.operator("MUL", [x, y], z, FusedActivationFunction=NONE)
    return f.save(tmp_path, [x, y], [z])


def test_litert_has_the_outputs_of_a_network(tmp_path: Path) -> None:
    f = FlatFile()
    report = _run(f.save(tmp_path, *network(f)))
    assert report["verified"], report["reason"]
    assert report["litert"]["runs"] == 1 and report["litert"]["share_of_range"] < 0.05
    assert report["litert"]["not_run"] is None


def test_a_wrong_translation_is_seen(product: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _run(product)["verified"]
    monkeypatch.setitem(elementwise._BINARY, "MUL", "Sub")
    parsing._translation.cache_clear()
    report = _run(product)
    assert not report["verified"]
    assert "differs from LiteRT's reference kernels by" in report["reason"]
    command = ["build", str(product), "--board", "stm32f405", "-o", str(tmp_path / "lib"), "--library-only"]
    result = CliRunner().invoke(cli, [*command, "--time-limit", "0.3"])
    assert result.exit_code == OutputsDifferError.exit_code and not (tmp_path / "lib").exists()


def test_a_step_of_a_float_output_is_a_rounding(tmp_path: Path) -> None:
    """LiteRT rounds 0.3 steps to 0, and so has an output without a range."""
    pytest.importorskip("ai_edge_litert.interpreter")
    f = FlatFile()
    x, y, z = f.int8(1, 1, scale=0.3, zero=0), f.int8(1, 1, scale=1.0, zero=0), f.add(1, 1)
    w = f.constant(np.array([[1]]), np.int8, scale=[1.0], zero_point=[0])
    f.operator("FULLY_CONNECTED", [x, w, -1], y)
    f.operator("DEQUANTIZE", [y], z)
    np.save(tmp_path / "x.npy", np.ones((1, 1), np.int8))
    report = reports.run_model(
        f.save(tmp_path, [x], [z]), HOST, QUICK, inputs=[tmp_path / "x.npy"], expected=[]
    )
    assert report["litert"]["share_of_range"] == 1
    assert report["verified"], report["reason"]


def test_a_shape_that_the_file_leaves_open(tmp_path: Path) -> None:
    f = FlatFile()
    x, y = (f.add(1, 1, name=name, signature=(1, -1)) for name in ("x", "y"))
    f.operator("ABS", [x], y)
    options = replace(QUICK, shapes=(("x", (1, 7)),))
    report = reports.run_model(f.save(tmp_path, [x], [y]), HOST, options, inputs=[], expected=[])
    assert report["verified"] and report["litert"]["runs"] == 1


def test_a_program_without_a_second_judge_says_so(product: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(litert, "find_spec", lambda _: None)
    report = _run(product)
    assert report["verified"] and report["litert"]["runs"] == 0
    assert report["litert"]["not_run"] == "pip install ai-edge-litert"
    result = CliRunner().invoke(cli, ["run", str(product), "--board", "host", "--time-limit", "0.3"])
    assert "not compared with LiteRT: pip install ai-edge-litert" in result.stdout


def _run(path: Path) -> Report:
    pytest.importorskip("ai_edge_litert.interpreter")
    return reports.run_model(path, HOST, QUICK, inputs=[], expected=[])
