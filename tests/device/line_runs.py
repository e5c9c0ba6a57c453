"""Sessions over a bad line, with a board that is reset or unplugged: right results, or one error."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import tty
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bad_line import BadLine, Faults

from mcudeploy.common.errors import DeployError, ProtocolError
from mcudeploy.device.session import Session, Timing
from mcudeploy.device.transport import SerialTransport, Transport

BAUDS = (4_000_000, 4_000_000, 115_200)
ARENA_BYTES, BLOB_AT, STEPS, KERNELS = 65536, 64, 40, 5
ACCIDENTS = ("none", "none", "none", "reset", "unplug")
_HASTY = Timing(answer_s=1.0, resend_s=0.01, busy_resend_s=0.03)
_CALM = Timing(answer_s=20.0)


class WrongError(Exception):
    """A command brought something else than it should have."""


class Board:
    """The measurer of these tests at a pseudo terminal. Use as a context manager."""

    def __init__(self, program: Path) -> None:
        self._program = program
        self._device, self._line = os.openpty()
        tty.setraw(self._line)
        self.port = os.ttyname(self._line)
        self.plugged = True
        self.resets = -1
        self._process: subprocess.Popen[bytes] | None = None
        self.reset()

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        self.unplug()

    def reset(self) -> None:
        """The program restarts; what stands in the terminal's buffers stays there."""
        self._stop()
        command = [self._program]
        self._process = subprocess.Popen(
            command, stdin=self._device, stdout=self._device, stderr=subprocess.DEVNULL
        )
        self.resets += 1

    def unplug(self) -> None:
        """The port is gone."""
        if self.plugged:
            self._stop()
            os.close(self._device)
            os.close(self._line)
        self.plugged = False

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Accident:
    """A transport at whose so manieth write or read something happens to the board, once."""

    def __init__(self, inner: Transport, at: int, happens: Callable[[], None]) -> None:
        self._inner, self._left, self._happens = inner, at, happens
        self.name, self.bytes_per_second = inner.name, inner.bytes_per_second

    def write(self, data: bytes) -> None:
        self._count()
        self._inner.write(data)

    def read(self, timeout_s: float) -> bytes:
        self._count()
        return self._inner.read(timeout_s)

    def close(self) -> None:
        self._inner.close()

    def _count(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._happens()


@dataclass
class Expected:
    """The arena's content: the counters of program.c, and bytes that were written."""

    runs: int = 0
    total: int = 0
    blob: bytes = b""
    pending: tuple[int, int] = field(default=(0, 0))
    """The counts that a RUN or TIME under way adds."""


def one_run(program: Path, seed: int) -> str:
    """A session of up to twelve commands. "survived", or the first words of the error that ended it.

    Raises WrongError for a wrong result, an error that is not a ProtocolError, or a command that was executed
    another number of times than it should have been.
    """
    source = random.Random(seed)
    happens = source.choice(ACCIDENTS)
    expected = Expected()
    with Board(program) as board:
        wire = SerialTransport(board.port, source.choice(BAUDS))
        accident = {"reset": board.reset, "unplug": board.unplug, "none": lambda: None}[happens]
        line = BadLine(Accident(wire, source.randrange(1, 80), accident), _faults(source), seed)
        try:
            with Session(line, timing=_HASTY) as session:
                _converse(session, source, expected)
            outcome = "survived"
        except ProtocolError as error:
            outcome = _words(str(error), board.port)
        except DeployError as error:
            raise WrongError(f"{type(error).__name__}, exit code {error.exit_code}: {error}") from error
        if board.plugged and board.resets == 0:
            with Session(SerialTransport(board.port, BAUDS[0]), timing=_CALM) as session:
                _require_arena(session, expected, may_have_run=outcome != "survived")
    return outcome


def _faults(source: random.Random) -> Faults:
    """One kind of fault, or all of them, seldom or often."""
    rate = source.choice((0.0, 0.0005, 0.002, 0.01))
    kinds = ("drop", "corrupt", "insert", "repeat", "lose", "delay")
    chosen = kinds if source.random() < 0.3 else (source.choice(kinds),)
    of_a_chunk = min(0.5, rate * 40)
    rates = {kind: rate if kind in kinds[:3] else of_a_chunk for kind in chosen}
    return Faults(**rates, delay_s=source.choice((0.01, 0.1)))


def _converse(session: Session, source: random.Random, expected: Expected) -> None:
    session.hello()
    session.write(0, 0, bytes(12))
    for _ in range(source.randrange(2, 12)):
        first = source.randrange(STEPS // 2)
        count = source.randrange(1, STEPS // 2)
        match source.randrange(7):
            case 0:
                expected.blob = b""  # undecided while it is written
                blob = source.randbytes(source.choice((1, 100, 3000)))
                session.write(0, BLOB_AT, blob)
                expected.blob = blob
            case 1:
                _require(session.read(0, BLOB_AT, len(expected.blob)), expected.blob)
            case 2 | 3:
                expected.pending = count, sum(range(first + 1, first + count + 1))
                session.run(first, count, timeout_s=5.0)
                _done(expected)
            case 4:
                for start in range(first, first + count, 15):  # a request each
                    part = min(15, first + count - start)
                    expected.pending = part, sum(range(start + 1, start + part + 1))
                    timed = session.time_steps(start, part, timeout_s=5.0)
                    _require(timed.ticks, tuple(range(start, start + part)))
                    _done(expected)
            case 5:
                _require(len(session.kernels()), KERNELS)
            case _:
                _require(session.stack().size_bytes, ARENA_BYTES)
        if source.random() < 0.3:
            _require_arena(session, expected, may_have_run=False)


def _done(expected: Expected) -> None:
    runs, total = expected.pending
    expected.runs, expected.total = expected.runs + runs, expected.total + total
    expected.pending = 0, 0


def _require_arena(session: Session, expected: Expected, *, may_have_run: bool) -> None:
    words = struct.unpack("<II", session.read(0, 0, 8))
    right = [(expected.runs, expected.total)]
    if may_have_run:
        right.append((expected.runs + expected.pending[0], expected.total + expected.pending[1]))
    if words not in right:
        raise WrongError(f"the counters are {words}, not one of {right}")
    _require(session.read(0, BLOB_AT, len(expected.blob)), expected.blob)


def _require(value: object, right: object) -> None:
    if value != right:
        raise WrongError(f"{value!r:.80} came over the line, not {right!r:.80}")


def _words(message: str, port: str) -> str:
    """The message without what differs from run to run: the port and the numbers."""
    text = "".join("#" if letter.isdigit() else letter for letter in message.replace(port, "PORT"))
    return " ".join(text.split())[:70]
