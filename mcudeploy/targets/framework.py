"""Firmware that PlatformIO builds with a framework: its project, what is kept of a build, its sizes."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import BuildError, FitError
from mcudeploy.targets.firmware import Sizes, constant_bytes, measure

ENVIRONMENT = "firmware"
PROJECT = "project"
"""The folder beside firmware.elf from which PlatformIO uploads."""
BAUD = 115200
_FLAGS = ("-O2", "-ffp-contract=off", "-Isrc/kernels", "-Isrc/hal", "-Isrc/measurer", "-Isrc/generated")
_RENAMED = ("timer_init",)
"""Functions of the HAL that a core has another one of."""
_BUILD = Path(".pio", "build", ENVIRONMENT)
_OBJECTS = {".o", ".a", ".d"}
_USED = re.compile(r"^(RAM|Flash):.*\(used (\d+) bytes from \d+ bytes\)", re.M)


def header_facts(board: Board) -> list[tuple[str, str]]:
    """What mcud_board.h says beside the timer."""
    return [("MCUD_UART_BAUD", f"{BAUD}u"), ("MCUD_STACK_BYTES", f"{board.stack_bytes}u")]


def ini(board: Board, firmware_hash: int, defines: Mapping[str, int]) -> str:
    """platformio.ini; `defines`: what the compiler is told beside the board."""
    framework = board.framework
    assert framework is not None
    macros = [
        "-DMCUD_EMULATED=0",
        f"-DMCUD_FIRMWARE_HASH={firmware_hash:#010x}u",
        f'-DMCUD_BOARD_NAME=\\"{board.name}\\"',
        *(f"-D{name}={value}" for name, value in defines.items()),
        *(f"-D{name}=mcud_{name}" for name in _RENAMED),
    ]
    lines = [
        f"; pio run -e {ENVIRONMENT}: the measurer for {board.name}",
        f"[env:{ENVIRONMENT}]",
        f"platform = {framework.platform}",
        f"board = {framework.board}",
        f"framework = {framework.name}",
        f"monitor_speed = {BAUD}",
        "build_src_flags =",
        *(f"  {flag}" for flag in (*_FLAGS, *macros)),
    ]
    return "\n".join(lines) + "\n"


def run_command(folder: Path, *options: str) -> list[str]:
    """PlatformIO's command line for a project."""
    return [sys.executable, "-m", "platformio", "run", "-d", str(folder), "-e", ENVIRONMENT, *options]


def keep(sources: Path, ready: Path, log: str, board: Board) -> Sizes:
    """Puts into `ready` what a finished build leaves for the upload; its sizes.

    Raises BuildError where there is no program, FitError where its RAM leaves no room for the stack.
    """
    elf = next(iter(sorted((sources / _BUILD).glob("*.elf"))), None)
    if elf is None:
        raise BuildError(f"PlatformIO made no ELF file for {board.name}")
    sizes = _sizes(elf, log)
    short = sizes.static_ram_bytes + board.stack_bytes - board.ram_bytes
    if short > 0:
        raise FitError(
            f"the firmware does not fit {board.name}: its RAM ({board.ram_bytes} B) is {short} B too small "
            f"for {sizes.static_ram_bytes} B and a stack of {board.stack_bytes} B. `--memory sram=SIZE` "
            "limits the arena."
        )
    shutil.copyfile(elf, ready / "firmware.elf")
    shutil.copytree(sources, ready / PROJECT, ignore=_objects)
    return sizes


def _objects(_: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if Path(name).suffix in _OBJECTS]


def _sizes(elf: Path, log: str) -> Sizes:
    """As PlatformIO states them, which knows the sections of its platforms, else as the ELF file does."""
    found = measure(elf)
    used = {name: int(count) for name, count in _USED.findall(log)}
    generated = elf.parent / "src" / "generated"
    weights = constant_bytes(generated.glob("weights.*o"))
    tables = constant_bytes(generated.glob("model.*o"))
    flash = used.get("Flash", found.flash_bytes)
    data = found.data_bytes
    return Sizes(
        flash,
        flash - weights - tables - data,
        weights,
        tables,
        data,
        used.get("RAM", found.static_ram_bytes) - data,
    )
