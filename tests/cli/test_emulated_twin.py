"""`--emulate` on a board that has no emulator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from models import quantised_convolutions

from mcudeploy.cli.main import cli


@pytest.mark.parametrize(("board", "emulated"), [("pico", "mps2-an385"), ("esp32c3", "riscv32-virt")])
def test_its_code_runs_on_the_emulated_board_of_its_core(board: str, emulated: str, tmp_path: Path) -> None:
    model = quantised_convolutions(tmp_path / "small.onnx")
    line = f"run {model} --board {board} --emulate --no-split --json"
    result = CliRunner().invoke(cli, line.split())
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["verified"]
    assert f"its code runs on {emulated}, which has other memories" in result.stderr


def test_a_core_that_no_emulator_has_is_refused(tmp_path: Path) -> None:
    model = quantised_convolutions(tmp_path / "small.onnx")
    result = CliRunner().invoke(cli, f"run {model} --board esp32s3 --emulate".split())
    assert result.exit_code == 2 and "esp32s3" in result.stderr
