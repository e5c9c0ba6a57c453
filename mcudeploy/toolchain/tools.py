"""External programs as child processes, which never outlive this one."""

from __future__ import annotations

import logging
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mcudeploy.common.programs import empty_folder, process_group, start
from mcudeploy.common.system.processes import fault_of

_LOG = logging.getLogger(__name__)


def log_command(command: Sequence[str]) -> None:
    """Print a command line before it runs, if the user asked for that (`--verbose`)."""
    _LOG.info("+ %s", shlex.join(map(str, command)))


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A program that ran: its exit status (None if its time was up) and its output."""

    status: int | None
    output: str


def run_tool(
    command: Sequence[str],
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> ToolResult:
    """Run a program to its end or its time limit. Raises OSError if it cannot be started.

    `environment`: this process's by default; `folder`: an empty one by default. If this call ends for any
    reason, the program and its children end: also on an interrupt while it starts, and on a signal that kills
    this process.
    """
    log_command(command)
    with empty_folder() as empty, process_group() as group:
        process = start(
            command,
            folder or empty,
            environment,
            group,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        try:
            output, _ = process.communicate(timeout=timeout_s)
            status: int | None = process.returncode
        except subprocess.TimeoutExpired:
            group.kill()
            output, status = _rest(process), None
    return ToolResult(status, output.decode("utf-8", errors="replace"))


def _rest(process: subprocess.Popen[bytes]) -> bytes:
    """Return the output of a killed program, even if its daemon keeps the pipe open."""
    try:
        return process.communicate(timeout=2)[0]
    except subprocess.TimeoutExpired as error:
        return error.output or b""


def ending(status: int) -> str:
    """Return how a program ended, by its exit status: Popen's, or a shell's."""
    if fault := fault_of(status):
        return f"was ended by {fault}"
    number = -status if status < 0 else status - 128
    try:
        return f"was ended by {signal.Signals(number).name}"
    except ValueError:
        return f"ended with status {status}"
