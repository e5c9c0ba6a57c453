"""Chip emulators that others wrote, as boards at a port of this computer; `.ci/independent` installs them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from mcudeploy.common.resources import resource_dir
from tests.independent.upload import ask

HERE = Path(__file__).parent
TOOLS = Path(sys.prefix) / "independent"
PYTHON = TOOLS / "python/bin/python"
NODE = "node"
ROM_ANALOGUE_WRITE, ROM_ANALOGUE_WRITE_BITS = 0x195C, 0x1960
"""Offsets in the ESP32-C3's ROM."""
RISCV_RETURN = bytes.fromhex("67800000")
ANALOGUE = """
  - id: "analogue_master"
    type: "stub"
    base_address: 0x6000E000
    size: "4KB"
"""
LOW_POWER = "".join(
    f"""
  - id: "{name}"
    type: "stub"
    base_address: {base:#x}
    size: "1KB"
"""
    for name, base in (
        *(("modem_clocks", 0x600AF000), ("analogue_calibration", 0x600AF800), ("pmu", 0x600B0000)),
        *(("lp_aon", 0x600B1000), ("lp_wdt", 0x600B1C00), ("analogue_master", 0x600B2400)),
    )
)
_FLASHERS = re.compile(r"\[\[flasher\]\]\n(?:[^\[].*\n|\n)*")


def require(tool: str) -> None:
    """Skip the test, with the reason, if a tool is not installed."""
    reason = TOOLS / f"{tool}.missing"
    if reason.exists():
        pytest.skip(reason.read_text(encoding="utf-8").strip())
    if not TOOLS.is_dir():
        pytest.skip(f"{TOOLS} is missing: .ci/independent {sys.prefix} makes it")


@dataclass(frozen=True)
class Emulated:
    """A running emulator: the port of its UART, and the one of its boot loader. `form`: what that takes."""

    serial: int
    loader: int
    form: str

    @property
    def url(self) -> str:
        """The serial line, as `--port` takes it."""
        return f"socket://127.0.0.1:{self.serial}"

    def status(self) -> dict[str, object]:
        """Return what the emulator says of its chip."""
        answer: dict[str, object] = json.loads(ask(self.loader, b"?"))
        return answer

    def board_file(self, name: str, folder: Path, patience: float) -> Path:
        """Write the file of a shipped board whose only flasher is the emulator's boot loader."""
        text = (resource_dir("boards") / f"{name}.toml").read_text(encoding="utf-8")
        words = [sys.executable, str(HERE / "upload.py"), self.form, str(self.loader), "{elf}"]
        flasher = f'\n[[flasher]]\ntool = "command"\nline = {json.dumps(words)}\n'
        path = folder / f"{name}.toml"
        path.write_text(f"patience = {patience}\n{_FLASHERS.sub('', text)}{flasher}", encoding="utf-8")
        return path


@contextmanager
def rp2040js(line: Literal["uart", "usb"] = "uart") -> Iterator[Emulated]:
    """rp2040js: its boot loader takes UF2 files for an RP2040."""
    require("rp2040js")
    with _started([NODE, str(HERE / "rp2040.mjs"), str(TOOLS), line], "uf2") as emulated:
        yield emulated


@contextmanager
def labwired(chip: str, uart: str = "", fragment: str = "", form: str = "elf") -> Iterator[Emulated]:
    """labwired's model of a chip. `fragment`: see labwired_board.py."""
    require("labwired")
    with _started([str(PYTHON), str(HERE / "labwired_board.py"), chip, uart, fragment], form) as emulated:
        yield emulated


def esp32(name: str, folder: Path) -> AbstractContextManager[Emulated]:
    """Return labwired's ESP32-C3 or C6 after its boot ROM."""
    return esp32c3(folder) if name == "esp32c3" else esp32c6()


@contextmanager
def esp32c3(folder: Path) -> Iterator[Emulated]:
    """labwired's ESP32-C3 after its boot ROM: the image is mapped, and started after its mark.

    labwired lacks the bus to the analogue PLL, and the ROM's functions that use it: here they do nothing.
    """
    rom = bytearray(0x60000)
    for address in (ROM_ANALOGUE_WRITE, ROM_ANALOGUE_WRITE_BITS):
        rom[address : address + len(RISCV_RETURN)] = RISCV_RETURN
    path = folder / "rom.bin"
    path.write_bytes(rom)
    command = [str(PYTHON), str(HERE / "labwired_board.py"), "esp32c3", "", ANALOGUE]
    require("labwired")
    with _started(command, "esp32c3", {"LABWIRED_ESP32C3_ROM": str(path)}) as emulated:
        yield emulated


@contextmanager
def esp32c6() -> Iterator[Emulated]:
    """labwired's ESP32-C6 after its boot ROM: the image is mapped, and started after its mark.

    labwired lacks registers of the low-power system, and the bus to the analogue PLL: here they are memory.
    """
    with labwired("esp32c6", "", LOW_POWER, "esp32c6") as emulated:
        yield emulated


@contextmanager
def _started(
    command: Sequence[str], form: str, variables: Mapping[str, str] | None = None
) -> Iterator[Emulated]:
    environment = {**os.environ, **(variables or {})}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        serial, loader = map(int, process.stdout.readline().split())
        yield Emulated(serial, loader, form)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
