"""Writing a program into a board's flash, with the first of its flashers that is installed."""

from __future__ import annotations

import logging
import shlex
import time
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.boards.flashers import Flasher, Uf2
from mcudeploy.boards.trust import require_trusted
from mcudeploy.common.errors import FlashError, UsageError
from mcudeploy.common.system.drives import flush_disks
from mcudeploy.toolchain.boot_loader import enter_boot_loader
from mcudeploy.toolchain.flash_tools import TOOLS, Attached, command_lines, drive_of, make_image
from mcudeploy.toolchain.tools import run_tool

_LOG = logging.getLogger(__name__)
_TIMEOUT_S = 120.0
_LEAVES_S = 20.0
"""Seconds that the drive of a boot loader may stay after its file has been copied."""
_LAST_LINES = 3


def installed(flasher: Flasher) -> bool:
    """Whether a flasher can be called on this computer."""
    tool = TOOLS[flasher.tool]
    return not tool.programs or tool.program is not None


def choose_flasher(board: Board, name: str | None = None, *, needed: bool = True) -> Flasher:
    """Return the flasher of that name, or else the first installed one of the board.

    Raises UsageError for one that the board file does not name. Raises FlashError with the install commands
    if none is installed and it is `needed`.
    """
    if not board.flashers:
        raise UsageError(f"{board.name} cannot be flashed: its board file names no flasher.")
    candidates = [it for it in board.flashers if name in (None, it.tool)]
    if not candidates:
        known = ", ".join(it.tool for it in board.flashers)
        raise UsageError(f"{board.name} is not flashed by {name}; its board file names {known}.")
    flasher = next((it for it in candidates if installed(it)), None)
    if flasher is None and needed:
        ways = "; or ".join(f"{it.tool}: {TOOLS[it.tool].install}" for it in candidates)
        fault = "is not installed" if len(candidates) == 1 else "none of its flashers is installed"
        raise FlashError(
            f"{board.name} cannot be flashed, {fault if name is None else name + ' ' + fault}: {ways}"
        )
    return flasher or candidates[0]


def flash_commands(
    board: Board, elf: Path, attached: Attached | None = None, name: str | None = None
) -> list[list[str]]:
    """Return the command lines of a flasher, installed or not, after writing the file that they name."""
    flasher = choose_flasher(board, name, needed=False)
    make_image(flasher, board, elf)
    return command_lines(flasher, board, elf, attached or Attached())


def flash(
    board: Board,
    elf: Path,
    attached: Attached | None = None,
    name: str | None = None,
) -> None:
    """Write the program and start it. FlashError names the cause and the way out.

    Raises ConfigError for a board that is not trusted.
    """
    require_trusted(board)
    flasher = choose_flasher(board, name)
    make_image(flasher, board, elf)
    if TOOLS[flasher.tool].note:
        _LOG.warning("%s: %s", board.name, TOOLS[flasher.tool].note)
    enter_boot_loader(board, flasher, attached.port if attached else None)
    drive = drive_of(flasher) if isinstance(flasher, Uf2) else None
    timeout_s = _TIMEOUT_S * board.patience
    deadline = time.monotonic() + timeout_s
    for line in command_lines(flasher, board, elf, attached or Attached()):
        _run(flasher, board, line, max(0.0, deadline - time.monotonic()), timeout_s)
    if drive is not None:
        _require_gone(board, drive)


def _run(flasher: Flasher, board: Board, line: list[str], left_s: float, timeout_s: float) -> None:
    environment = TOOLS[flasher.tool].environment
    try:
        ended = run_tool(line, left_s, environment() if environment else None)
    except OSError as error:
        raise FlashError(
            f"{board.name} was not flashed: {line[0]} does not start: {error.strerror}"
        ) from error
    if ended.status is None:
        note = TOOLS[flasher.tool].note or "unplug the board, plug it in again, and retry"
        text_of_tool = _last_lines(ended.output)
        raise FlashError(
            f"{board.name} was not flashed: {flasher.tool} did not finish within {timeout_s:g} s"
            f"{f' ({text_of_tool})' if text_of_tool else ''}: {note}."
        )
    if ended.status:
        raise FlashError(explain(flasher, board, line, ended.output))


def explain(flasher: Flasher, board: Board, line: list[str], output: str) -> str:
    """Return the message for a flasher that failed: its last lines, and the advice."""
    lowered = output.lower()
    remedy = next((text for sign, text in TOOLS[flasher.tool].remedies if sign in lowered), None)
    hint = remedy or f"run it by hand for the whole output: {shlex.join(line)}"
    text_of_tool = _last_lines(output) or "without a word"
    return (
        f"{board.name} was not flashed, {flasher.tool} failed: {text_of_tool}. {hint[0].upper()}{hint[1:]}."
    )


def _last_lines(output: str) -> str:
    """Return the first errors of a program, or else its last lines."""
    texts = [text for line in output.splitlines() if (text := line.strip().rstrip("."))]
    lines = [line for line in texts if "error" in line.lower() or "**" in line][:_LAST_LINES]
    return "; ".join(lines or texts[-_LAST_LINES:])


def _require_gone(board: Board, drive: Path) -> None:
    """Check that a boot loader took a file: it then starts the program, and its drive disappears."""
    flush_disks()
    deadline = time.monotonic() + _LEAVES_S
    while (drive / "INFO_UF2.TXT").exists():
        if time.monotonic() > deadline:
            raise FlashError(
                f"{board.name} was not flashed: its boot loader has not taken the file, {drive} is still "
                f"there {_LEAVES_S:g} s after the copy. Unplug the board, plug it in again, and retry."
            )
        time.sleep(0.05)
