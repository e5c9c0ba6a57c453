"""The ESP32-C3's firmware on labwired, from its plain flash image; the image by Espressif's own tool."""

from __future__ import annotations

import ast
import json
import subprocess
from pathlib import Path

from click.testing import CliRunner

from mcudeploy.cli.main import cli
from mcudeploy.ir.interval import Interval
from mcudeploy.toolchain import flash_commands
from mcudeploy.toolchain.flash_tools import Attached
from tests.chips.models import small_model
from tests.chips.programs import built, deployed
from tests.independent.tools import PYTHON, esp32c3, require

COUNTED = 256
"""labwired's cycle counter adds this for each instruction."""


def test_a_network_runs_and_is_verified(tmp_path: Path) -> None:
    model = small_model(tmp_path / "small.onnx")
    with esp32c3(tmp_path) as emulated:
        board = emulated.board_file("esp32c3", tmp_path, patience=4)
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


def test_espressifs_tool_agrees_on_the_memories_and_takes_the_command_line(tmp_path: Path) -> None:
    """Its map of the chip has the two windows of the flash and the RAM; it goes on to open the port."""
    require("esptool")
    made, _ = deployed("esp32c3", small_model(tmp_path / "small.onnx"))
    elf = built(made, tmp_path).elf
    maps = "from esptool.targets import ESP32C3ROM as it; print(it.MEMORY_MAP)"
    listed = subprocess.run([PYTHON, "-c", maps], check=True, capture_output=True, text=True)
    regions = {name: Interval(first, end) for first, end, name in ast.literal_eval(listed.stdout)}
    flash, sram = made.board.flash, made.board.memories[0]
    assert (flash.origin, flash.constants.origin) == (regions["IROM"].lo, regions["DROM"].lo)
    assert regions["DRAM"].covers(sram.addresses)
    port, image = str(tmp_path / "no-port"), elf.with_suffix(".bin")
    (write,) = flash_commands(made.board, elf, Attached(port))
    assert write[1:] == ["--chip", "esp32c3", "--port", port, "write_flash", "0x0", str(image)]
    assert image.read_bytes()[:8] == bytes.fromhex("1d04dbae") * 2
    tool = PYTHON.parent / "esptool"
    without = subprocess.run([tool, *write[1:]], check=False, capture_output=True, text=True, timeout=60)
    assert f"could not open {port}" in (without.stdout + without.stderr).lower()
