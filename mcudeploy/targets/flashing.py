"""Writes a program into a board's flash with OpenOCD."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import BoardNotFoundError, FlashError, UsageError
from mcudeploy.targets.emulator import qemu_command
from mcudeploy.targets.ports import find_port

OPENOCD_REMEDY = "sudo apt-get install openocd"
_REMEDIES = (
    (
        "LIBUSB_ERROR_ACCESS",
        "the probe may not be opened: install the udev rules of openocd, then plug it in again",
    ),
    ("unable to find a matching CMSIS-DAP", "no probe is attached: connect the board by USB"),
    ("open failed", "no probe is attached: connect the board, or its ST-Link, by USB"),
    (
        "init mode failed",
        "the probe does not reach the chip: check power and SWD wires, hold reset meanwhile",
    ),
    ("couldn't find script", "this OpenOCD has no script for the board: " + OPENOCD_REMEDY),
    ("checksum mismatch", "flash does not hold what was written: is it write-protected?"),
)


def flash_command(board: Board, elf: Path, port: str | None = None, *, emulate: bool = False) -> list[str]:
    """OpenOCD's command line that writes, verifies and starts a program; or that of its emulator.

    `port` is the board's serial port, found where not given and a board is attached: the probe that offers
    it is the one used. Raises UsageError for the host, and for a board that exists only in the emulator.
    """
    if board.is_host:
        raise UsageError(f"{board.name} is a process of this computer: nothing is flashed.")
    if emulate:
        return qemu_command(board, elf, ("-serial", "tcp:127.0.0.1:4405,server=on,wait=on"))
    if board.openocd is None:
        raise UsageError(f"{board.name} exists only in the emulator: add --emulate.")
    if port is None:
        with suppress(BoardNotFoundError):
            port = find_port(board)
    serial = probe_serial(port) if port else None
    choose = ["-c", f"adapter serial {serial}"] if serial else []
    return ["openocd", *board.openocd.args, *choose, "-c", f"program {{{elf}}} verify reset exit"]


def flash(board: Board, elf: Path, port: str | None = None, *, timeout_s: float = 120.0) -> None:
    """Writes the program and starts it; FlashError names the cause and the way out."""
    command = flash_command(board, elf, port)
    if shutil.which(command[0]) is None:
        raise FlashError(f"openocd is not installed: {OPENOCD_REMEDY}")
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise FlashError(
            f"openocd did not finish within {timeout_s:.0f} s: unplug the board, plug it in again, and retry."
        ) from error
    if done.returncode:
        raise FlashError(explain(board, command, done.stdout.decode("utf-8", errors="replace")))


def explain(board: Board, command: list[str], output: str) -> str:
    """The message for a failed OpenOCD run."""
    said = [line.strip() for line in output.splitlines()]
    lines = [line for line in said if "Error" in line or "**" in line][:3] or said[-3:]
    remedy = next((text for sign, text in _REMEDIES if sign.lower() in output.lower()), None)
    hint = remedy or f"run it by hand for the whole output: {shlex.join(command)}"
    return f"{board.name} was not flashed: {'; '.join(lines)}. {hint[0].upper()}{hint[1:]}."


def probe_serial(port: str) -> str | None:
    """The USB serial number of the probe behind a serial port, from Linux's sysfs; None where unknown."""
    device = Path("/sys/class/tty") / Path(port).name / "device"
    if not device.exists():
        return None
    for folder in list(device.resolve().parents)[:3]:
        number = folder / "serial"
        if number.is_file():
            return number.read_text(encoding="utf-8", errors="replace").strip() or None
    return None
