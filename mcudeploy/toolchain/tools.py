"""External programs as child processes, which never outlive this one."""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mcudeploy.common.programs import empty_folder, start

_LOG = logging.getLogger(__name__)


def told(command: Sequence[str]) -> None:
    """Print the command line that runs, if the user asked for it (`--verbose`)."""
    _LOG.info("+ %s", shlex.join(map(str, command)))


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that ran: its exit status (None if its time was up) and its output."""

    status: int | None
    output: str


def run_tool(
    command: Sequence[str],
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Ended:
    """Run a program to its end or its time limit. Raises OSError if it cannot be started.

    `environment`: this process's by default; `folder`: an empty one by default. If this call ends for any
    reason, the program and its children end: also on an interrupt while it starts, and on a signal that kills
    this process.
    """
    told(command)
    with empty_folder() as empty, process_group() as group:
        process = start(
            command,
            folder or empty,
            environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=group,
        )
        try:
            output, _ = process.communicate(timeout=timeout_s)
            status: int | None = process.returncode
        except subprocess.TimeoutExpired:
            _kill(group)
            output, status = _rest(process), None
    return Ended(status, output.decode("utf-8", errors="replace"))


def _rest(process: subprocess.Popen[bytes]) -> bytes:
    """Return the output of a killed program, even if its daemon keeps the pipe open."""
    try:
        return process.communicate(timeout=2)[0]
    except subprocess.TimeoutExpired as error:
        return error.output or b""


@contextmanager
def process_group() -> Iterator[int]:
    """Yield the number of a process group that ends with the block, or with this process.

    A program in it never outlives either, even if an interrupt comes before its Popen object exists. Its
    first member waits for the end of a pipe from here. PR_SET_PDEATHSIG would already kill when the starting
    thread ends, and could not be set before an interrupt comes.
    """
    guard = start(
        ["/bin/sh", "-c", "read -r _; kill -KILL 0"],
        "/",
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )
    try:
        yield guard.pid
    finally:
        _kill(guard.pid)
        guard.wait()
        if guard.stdin is not None:
            guard.stdin.close()


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def ending(status: int) -> str:
    """Return how a program ended, by its exit status: Popen's, or a shell's."""
    number = -status if status < 0 else status - 128
    try:
        return f"was ended by {signal.Signals(number).name}"
    except ValueError:
        return f"ended with status {status}"
