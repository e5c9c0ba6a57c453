"""Firmware of ESP32-C3 and C6 on labwired, from its plain flash image; the image by Espressif's own tool."""

from __future__ import annotations

import ast
import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcudeploy.cli.main import cli
from mcudeploy.ir.interval import Interval
from mcudeploy.toolchain import flash_commands
from mcudeploy.toolchain.flash_tools import Attached
from tests.chips.programs import built, deployed
from tests.independent.tools import PYTHON, esp32, require
from tests.networks.small import small_model

CHIPS = ("esp32c3", "esp32c6")
COUNTED = 256
"""labwired's cycle counter adds this for each instruction."""


@pytest.mark.parametrize("name", CHIPS)
def test_a_network_runs_and_is_verified(name: str, tmp_path: Path) -> None:
    model = small_model(tmp_path / "small.onnx")
    with esp32(name, tmp_path) as emulated:
        board = emulated.board_file(name, tmp_path, patience=12)
        line = f"run {model} --board {board} --port {emulated.url} --trust-board --no-split --json"
        result = CliRunner().invoke(cli, line)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["verified"], report["reason"]
    assert report["latency"]["unit"] == "cycles"
    assert report["latency"]["value"] % COUNTED == 0
    assert report["latency"]["value"] / COUNTED > report["macs"]
    assert 100 < report["stack_bytes"] < 4096
    assert report["arena_bytes"] < report["static_ram_bytes"] < 4096


@pytest.mark.parametrize("name", CHIPS)
def test_espressifs_tool_agrees_on_the_memories_and_takes_the_command_line(name: str, tmp_path: Path) -> None:
    """Its map of the chip has the windows of the flash and the RAM; it goes on to open the port."""
    require("esptool")
    deployment, _ = deployed(name, small_model(tmp_path / "small.onnx"))
    elf = built(deployment, tmp_path).elf
    maps = f"from esptool.targets import {name.upper()}ROM as it; print(it.MEMORY_MAP)"
    listed = subprocess.run([PYTHON, "-c", maps], check=True, capture_output=True, text=True)
    regions = {name: Interval(first, end) for first, end, name in ast.literal_eval(listed.stdout)}
    flash, sram = deployment.board.flash, deployment.board.memories[0]
    windows = {regions["IROM"].lo, regions["DROM"].lo} if name == "esp32c3" else {regions["IROM"].lo}
    assert {flash.origin, flash.constants.origin} == windows
    assert regions["DRAM"].covers(sram.addresses)
    port, image = str(tmp_path / "no-port"), elf.with_suffix(".bin")
    (write,) = flash_commands(deployment.board, elf, Attached(port))
    assert write[1:] == ["--chip", name, "--port", port, "write_flash", "0x0", str(image)]
    assert image.read_bytes()[:8] == bytes.fromhex("1d04dbae") * 2
    tool = PYTHON.parent / "esptool"
    without = subprocess.run([tool, *write[1:]], check=False, capture_output=True, text=True, timeout=60)
    assert f"could not open {port}" in (without.stdout + without.stderr).lower()
