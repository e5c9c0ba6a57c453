"""Commands start without what they do not use: libraries that take a second to import."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from models import fully_connected, quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.costs.database import Database, TileKey
from mcudeploy.costs.tiles import nothing_known
from mcudeploy.device.known import known_times
from mcudeploy.ir.plan import Measurement
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json

BOARD = load_board("stm32f405")
_SLOW = ("ortools", "pandas", "onnxruntime", "serial", "mcudeploy.codegen", "mcudeploy.toolchain")
_SCRIPT = """
import sys
from mcudeploy.cli.main import cli
try:
    cli.main(sys.argv[2:])
except SystemExit as end:
    print([name for name in sys.argv[1].split() if name in sys.modules], end.code, file=sys.stderr)
"""


def loaded(names: tuple[str, ...], *arguments: str) -> str:
    """Return those of the modules `names` that a command imports, and its exit code, as text."""
    command = [sys.executable, "-c", _SCRIPT, " ".join(names), *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return run.stderr.splitlines()[-1]


def test_check_loads_the_reference_alone_and_boards_nothing(tmp_path: Path) -> None:
    model = quantised_convolutions(tmp_path / "net.onnx")
    search = ("numba", "mcudeploy.planner.search.splitting", "mcudeploy.device")
    assert loaded((*_SLOW, *search), "check", str(model)) == "['onnxruntime'] 0"
    assert loaded((*_SLOW, "numba", "onnx", "numpy"), "boards") == "[] 0"


def test_a_command_is_imported_alone() -> None:
    others = ("mcudeploy.cli.build_command", "mcudeploy.extensions.training")
    assert loaded(others, "boards") == "[] 0"
    assert loaded(others, "check", "--help") == "[] 0"


def test_a_script_sees_what_a_command_loads(tmp_path: Path) -> None:
    model = quantised_convolutions(tmp_path / "net.onnx")
    assert loaded(("onnx", "ortools"), "check", str(model)) == "['onnx'] 0"


def test_measured_times_are_looked_up_without_a_firmware_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path / "cache"))
    model = fully_connected(tmp_path / "net.onnx", (8, 6, 4), quantised=False)

    def assemble(*_: object, **__: object) -> None:
        raise AssertionError("a firmware project was assembled")

    monkeypatch.setattr("mcudeploy.toolchain.firmware_build.assemble", assemble)
    deployment = api.plan_model(model, BOARD, Options(time_limit=0.5))
    assert as_json(deployment)["latency"] is None
    with Database() as database:
        database.add_tiles({TileKey("microbit", "0", "conv", "", ""): 1})
        assert known_times(BOARD) and not database.has_tiles(BOARD.name)
        key = deployment.run_key(0)
        database.add_run(replace(key, plan=""), Measurement(1, "cycles", (), 0))
        assert deployment.measured() is None
        database.add_run(key, Measurement(1, "cycles", (), 0))
        database.add_tiles({TileKey(BOARD.name, "0", "conv", "", ""): 1})
    assert known_times(BOARD) is nothing_known
    with pytest.raises(AssertionError, match="assembled"):
        deployment.measured()
