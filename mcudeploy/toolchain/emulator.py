"""A board in QEMU; on POSIX its serial line is a socket that only this user can reach."""

from __future__ import annotations

import contextlib
import math
import re
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache as memoize
from pathlib import Path
from typing import IO, Self

from mcudeploy.boards.board import Board
from mcudeploy.boards.facts import EmulatorFacts
from mcudeploy.common.errors import BoardNotFoundError, UsageError
from mcudeploy.common.programs import empty_folder, find_program, process_group, start
from mcudeploy.common.system.host_tools import install_command
from mcudeploy.common.system.streams import line_to_serve
from mcudeploy.toolchain.tools import ending, log_command, run_tool

QEMU_PACKAGES = {"qemu-system-arm": "qemu-system-arm", "qemu-system-riscv32": "qemu-system-misc"}
_VERSION_S = 20.0
_ENDING_S = 0.5
_EXIT = ("-semihosting-config", "enable=on,target=gdb")
"""Cortex-M ends a program by semihosting. With the target `native`, its files and commands would reach this
computer; here they go to a debugger, and none is attached. A RISC-V machine has a device that ends it.
"""
_LOG_TAIL_BYTES = 1024
_REPORT = re.compile(rb"(?:\0[\x20-\x7e\n]+)+\Z")
"""The last message of a fault handler: texts with a NUL before each (firmware/hal/report.c)."""
FAULT_EXIT = 86  # the status of a program that ended in its fault handler


def emulator_of(board: Board) -> EmulatorFacts:
    """Return the machine that emulates a board. Raises UsageError for a board without one."""
    if board.emulator is None:
        raise UsageError(
            f"{board.name} cannot be emulated: connect it and leave out --emulate, or take another board. "
            "`mcudeploy boards` names the machine of those that can."
        )
    return board.emulator


def qemu_command(board: Board, elf: Path, serial: Sequence[str]) -> list[str]:
    """Return QEMU's command line for a program; `serial`: the arguments that connect its serial line.

    Raises UsageError for a board without emulator, BoardNotFoundError if its QEMU is not installed.
    """
    facts = emulator_of(board)
    if find_program(facts.qemu) is None:
        raise BoardNotFoundError(
            f"{board.name} needs {facts.qemu}, which is not installed: "
            f"{install_command(QEMU_PACKAGES[facts.qemu])}"
        )
    return [
        facts.qemu,
        *("-M", facts.machine, *facts.args),
        *("-kernel", str(elf)),
        *("-icount", f"shift={facts.icount_shift}"),
        *("-display", "none", "-monitor", "none", "-nodefaults", "-no-user-config"),
        *(_EXIT if facts.qemu == "qemu-system-arm" else ()),
        *serial,
    ]


def emulated_board(board: Board) -> Board:
    """Return the board with its memories at their addresses in the installed QEMU.

    Without QEMU, or if its version is unknown, they are at the chip's addresses.
    """
    facts = board.emulator
    if facts is None or qemu_version(facts.qemu) >= facts.own_map_since:
        return board
    return board.model_copy(update={"memories": board.memories_as_emulated()})


@memoize
def qemu_version(program: str) -> float:
    """Return QEMU's major version; infinite if it is unknown."""
    try:
        output = run_tool([program, "--version"], _VERSION_S).output
    except OSError:
        return math.inf
    match = re.search(r"version (\d+)\.", output)
    return int(match[1]) if match else math.inf


def _ports(wires: Sequence[int | None]) -> list[str]:
    """Return QEMU's arguments that connect further serial lines to descriptors."""
    ports = []
    for number, wire in enumerate(wires):
        if wire is None:
            ports += ["-serial", "null"]
        else:
            ports += ["-chardev", f"socket,id=port{number},fd={wire}", "-serial", f"chardev:port{number}"]
    return ports


class Emulator:
    """A running board as a context manager; QEMU ends with the block, however this process ends.

    QEMU also gets `arguments` and the descriptors `wires`, which connect the board's serial ports to other
    boards in the order of the board file; None leaves a port open. The program starts when something connects
    to `url`, so no byte of it is lost; see `system.line_to_serve`. QEMU runs in a private folder, and writes
    messages of the program there.
    """

    def __init__(
        self, board: Board, elf: Path, arguments: Sequence[str] = (), wires: Sequence[int | None] = ()
    ) -> None:
        self.board = board
        self.elf = elf
        self.arguments = arguments
        self.wires = wires
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._group = ExitStack()
        self._messages: IO[bytes] | None = None
        self._sent = Path()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:  # also an interrupt: QEMU may already wait for its connection
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def alive(self) -> bool:
        """Whether QEMU still runs."""
        if self._process is None:
            return False
        return self._process.poll() is None

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status if the program ends within that time, None otherwise."""
        if self._process is None:
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        return None if self.alive() else self._process.returncode

    def messages(self) -> str:
        """Return the messages of QEMU and of the program's fault handler."""
        if self._messages is None:
            return ""
        self._messages.seek(0)
        lines = self._messages.read().decode("utf-8", errors="replace").splitlines()
        texts = [it for it in lines if ": info: " not in it and ": warning: " not in it]
        report = _REPORT.search(self._last_sent())
        if report is not None:
            texts.append(report[0].replace(b"\0", b"").decode("ascii"))
        return "\n".join(texts).strip()

    def _last_sent(self) -> bytes:
        try:
            with self._sent.open("rb") as stream:
                stream.seek(max(0, self._sent.stat().st_size - _LOG_TAIL_BYTES))
                return stream.read()
        except OSError:
            return b""

    def why_dead(self) -> str | None:
        """Return the reason why the board stopped, in one line for an error message; None while it runs.

        A program that has closed its socket gets a moment to end.
        """
        if self._process is None or self.wait(_ENDING_S) is None:
            return None
        status = self._process.returncode
        cause = "the program faulted" if status == FAULT_EXIT else f"the emulator {ending(status)}"
        texts = self.messages()
        return f"{cause}: {texts}" if texts else cause

    def close(self) -> None:
        """End QEMU; a second call does nothing."""
        self._group.close()
        if self._process is not None:
            self._process.wait()
        if self._messages is not None and not self._messages.closed:
            self._messages.close()
        self._messages = None

    def _start(self) -> None:
        folder = Path(self._group.enter_context(empty_folder()))
        self._sent = folder / "sent"
        with line_to_serve(folder) as line:
            log = str(self._sent).replace(",", ",,")
            chardev = f"socket,id=uart,{line.options},server=on,wait=on,logfile={log}"
            serial = ("-chardev", chardev, "-serial", "chardev:uart")
            elf = self.elf.absolute()
            command = [*qemu_command(self.board, elf, serial), *_ports(self.wires), *self.arguments]
            self.url = line.url
            self._messages = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
            # a separate process group: our interrupts do not reach QEMU
            group = self._group.enter_context(process_group())
            log_command(command)
            self._process = start(
                command,
                folder,
                group=group,
                stdin=subprocess.DEVNULL,
                stdout=self._messages,
                stderr=subprocess.STDOUT,
                pass_fds=(*line.descriptors, *(wire for wire in self.wires if wire is not None)),
            )
