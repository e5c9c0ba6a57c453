"""Whole runs on rp2040js, an independent model of the RP2040's clocks, UART, interrupts and cycles."""

from __future__ import annotations

import json
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from tests.independent.tools import Emulated, rp2040js
from tests.independent.upload import ask

VWW = Path(__file__).parents[2] / "examples/vww/model.onnx"
UNMODELLED = {"SSI 0x10"}
"""Registers that rp2040js lacks and the second stage writes: the slave select of the flash controller."""


def ran(model: Path, board_name: str, emulated: Emulated, folder: Path) -> dict[str, Any]:
    """Return the report of a run on the emulated board."""
    board = emulated.board_file(board_name, folder, patience=4)
    line = f"run {model} --board {board} --port {emulated.url} --trust-board --no-split --json"
    result = CliRunner().invoke(cli, line)
    assert result.exit_code == 0, result.output
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def wake_word() -> Path:
    """Return a model of the package pymicro-wakeword."""
    package = find_spec("pymicro_wakeword")
    if package is None or package.origin is None:
        pytest.skip("pymicro-wakeword is not installed")
    return Path(package.origin).parent / "models/okay_nabu.tflite"


@pytest.mark.parametrize("name", ["vww", "wake word"])
def test_a_network_runs_and_is_verified(name: str, tmp_path: Path) -> None:
    model = VWW if name == "vww" else wake_word()
    with rp2040js() as emulated:
        report = ran(model, "rp2040", emulated, tmp_path)
        status = emulated.status()
    assert report["verified"], report["reason"]
    assert all(it["within_tolerance"] for it in report["operator_checks"].values())
    assert (status["clkSys"], status["clkPeri"]) == (load_board("rp2040").clock_hz,) * 2
    assert status["baudRate"] == pytest.approx(115200, rel=0.01)
    assert (status["fault"], set(status["unmodelled"])) == ("", UNMODELLED)
    assert report["latency"]["unit"] == "cycles"
    assert report["macs"] < report["latency"]["value"] < status["cycles"]


@pytest.mark.parametrize("name", ["vww", "wake word"])
def test_a_network_runs_over_usb_and_a_touch_ends_in_the_boot_loader(name: str, tmp_path: Path) -> None:
    """rp2040js's own host enumerates the device and opens the port."""
    model = VWW if name == "vww" else wake_word()
    with rp2040js("usb") as emulated:
        report = ran(model, "rp2040-usb", emulated, tmp_path)
        before = emulated.status()
        assert ask(emulated.loader, b"1200") == "touched"
        status = settled(emulated)
    assert report["verified"], report["reason"]
    assert all(it["within_tolerance"] for it in report["operator_checks"].values())
    assert (before["restarted"], status["restarted"]) == (False, True)
    assert (status["fault"], set(status["unmodelled"])) == ("", UNMODELLED)
    assert report["macs"] < report["latency"]["value"] < status["cycles"]


def settled(emulated: Emulated, within_s: float = 10.0) -> dict[str, Any]:
    """Return the state of a chip that has restarted, or the last one within that time."""
    deadline = time.monotonic() + within_s
    while not (status := emulated.status())["restarted"] and time.monotonic() < deadline:
        time.sleep(0.05)
    return status


def test_the_boot_loader_refuses_what_the_boot_rom_would(tmp_path: Path) -> None:
    with rp2040js() as emulated:
        answer = ask(emulated.loader, bytes(512))
        assert answer == "block 0 has no magic numbers"
