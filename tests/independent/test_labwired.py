"""Firmware on labwired's models of chips: the start of each, and a whole run where its core can do it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.device.session import connect
from tests.chips.programs import built, deployed
from tests.independent.tools import labwired
from tests.independent.upload import ask
from tests.networks.small import small_model

STARTS_S = 60.0
"""Seconds of this computer for the first answer; the chips compute some million cycles in one of them."""
DEBUG = """
  - id: "dwt"
    type: "stub"
    base_address: 0xE0001000
    size: "4KB"
  - id: "core_debug"
    type: "stub"
    base_address: 0xE000EDF0
    size: "16B"
"""
"""Registers of the core that labwired's files of some chips lack, as memory: cycles are not counted."""


@dataclass(frozen=True)
class Model:
    """labwired's name of a chip and of the UART to the host, and what its file lacks."""

    chip: str
    uart: str = ""
    fragment: str = ""


MODELS = {
    "stm32f405": Model("stm32f405", "uart1"),
    "stm32f407-disco": Model("stm32f407", "uart2"),
    "stm32f411": Model("stm32f411ceu6", "usart2"),
    "stm32g071": Model("stm32g071", "usart2"),
    "stm32l476": Model("stm32l476", "uart2"),
    "stm32h743": Model("stm32h735", "usart3"),
    "nrf52840": Model("nrf52840", fragment=DEBUG),
    "rp2040": Model("rp2040", "uart0"),
    "rp2350": Model("rp2350", fragment=DEBUG),
}
"""The chips with firmware whose start labwired models. It has no H743, but its sibling H735."""


@pytest.mark.parametrize("name", MODELS)
def test_the_measurer_starts_with_the_clock_of_its_pll(name: str, tmp_path: Path) -> None:
    """A chip whose oscillator or PLL does not start reports a lower clock than its board file."""
    deployment, _ = deployed(name, small_model(tmp_path / "small.onnx"))
    firmware = built(deployment, tmp_path)
    model = MODELS[name]
    with labwired(model.chip, model.uart, model.fragment) as emulated:
        assert ask(emulated.loader, firmware.elf.read_bytes()) == "started"
        line = connect(emulated.url, baud=115200, board=name, firmware_hash=firmware.hash, timeout_s=STARTS_S)
        with line as session:
            assert (session.info.board, session.info.clock_hz) == (name, load_board(name).clock_hz)


@pytest.mark.parametrize("name", ["rp2040", "stm32g071"])
def test_a_network_runs_and_is_verified(name: str, tmp_path: Path) -> None:
    model = small_model(tmp_path / "small.onnx")
    with labwired(MODELS[name].chip, MODELS[name].uart) as emulated:
        board = emulated.board_file(name, tmp_path, patience=12)
        line = f"run {model} --board {board} --port {emulated.url} --trust-board --no-split --json"
        result = CliRunner().invoke(cli, line)
        status = emulated.status()
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["verified"], report["reason"]
    cycles = status["cycles"]
    assert isinstance(cycles, int) and report["macs"] < report["latency"]["value"] < cycles
