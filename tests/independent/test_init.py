"""Projects of `init`, built by PlatformIO: their programs pass the self-test on independent emulators."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcudeploy.cli.main import cli
from mcudeploy.toolchain.firmware_build import platformio_environment
from tests.independent.tools import Emulated, esp32, rp2040js
from tests.independent.upload import FORMS, ask
from tests.networks.small import small_model

PRINTS_S = 60.0
"""Seconds of this computer between two texts of a program."""


def built(board: str, folder: Path) -> Path:
    """Return the program of the project that `init` writes."""
    project = folder / "project"
    line = f"init {project} {small_model(folder / 'small.onnx')} --board {board} --no-split"
    result = CliRunner().invoke(cli, line)
    assert result.exit_code == 0, result.output
    command = [sys.executable, "-m", "platformio", "run", "-d", project, "-e", board]
    environment = platformio_environment(folder / "core")
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return project / f".pio/build/{board}/firmware.elf"


def passes(elf: Path, emulated: Emulated) -> None:
    """Assert that the program prints a passed self-test, then its latency."""
    with socket.create_connection(("127.0.0.1", emulated.serial)) as line:
        line.settimeout(PRINTS_S)
        assert ask(emulated.loader, FORMS[emulated.form](elf)) == "started"
        line.sendall(b"x")  # labwired runs while it owes an answer
        printed = b""
        while not printed.endswith(b" us\r\n"):
            printed += line.recv(4096)
    assert printed.startswith(b"small: self-test passed, 0 outputs differ\r\n"), printed


def test_on_an_rp2040(tmp_path: Path) -> None:
    """The boot loader of rp2040.mjs reads the UF2 blocks, and checks the CRC-32 of the second stage."""
    elf = built("rp2040", tmp_path)
    with rp2040js() as emulated:
        passes(elf, emulated)


def test_on_an_rp2040_over_usb(tmp_path: Path) -> None:
    """The program begins before the host has found the chip, and none of its text is lost."""
    elf = built("rp2040-usb", tmp_path)
    readme = (tmp_path / "project/README.md").read_text(encoding="utf-8")
    assert "| the program prints on | USB" in readme and "BOOTSEL" in readme and "`firmware.uf2`" in readme
    with rp2040js("usb") as emulated:
        passes(elf, emulated)


@pytest.mark.parametrize("name", ["esp32c3", "esp32c6"])
def test_on_an_esp32(name: str, tmp_path: Path) -> None:
    elf = built(name, tmp_path)
    with esp32(name, tmp_path) as emulated:
        passes(elf, emulated)
