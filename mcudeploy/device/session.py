"""A session with a measurer: requests that survive a bad line, and parsed replies."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from mcudeploy.common.errors import ProtocolError
from mcudeploy.common.text import agree, count_text
from mcudeploy.device.frame import Frame, Receiver, encode
from mcudeploy.device.hints import flash_hint, silence_hint
from mcudeploy.device.replies import (
    DeviceInfo,
    FieldError,
    StackReport,
    StepTicks,
    Ticks,
    device_info,
    kernel_addresses,
    parameter_bytes,
    parameters_in,
    require_version,
    stack_of,
    step_ticks,
    ticks_of,
)
from mcudeploy.device.requests import (
    BUSY,
    CHANGING,
    ERROR,
    OF_PARAMETERS,
    REASONS,
    REPLY,
    SEQUENCE,
    UNKNOWN,
    UNSYNCHRONISED,
    Request,
)
from mcudeploy.device.transport import Transport, open_transport
from mcudeploy.ir.parameter_blob import HEADER_BYTES, ParameterBlob

VERSION = 1
_RANGE = struct.Struct("<BIH")
_WRITE = struct.Struct("<BI")
_PULL = struct.Struct("<IH")
_PUSH = struct.Struct("<I")
_CALL = struct.Struct("<BIIII")
_SLOWEST_BYTES_PER_S = 500
"""The lowest rate of a transfer of many requests; a slower one fails, unless the line itself is slower."""
_T = TypeVar("_T")
_P = ParamSpec("_P")

Advance = Callable[[int, int], None]
"""Receives the number of bytes or steps done, and the total."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Time limits of the protocol in seconds.

    `answer_s`: silence after which the line counts as dead. `resend_s`: before the first resend of a request,
    growing by half each time up to six times that. `busy_resend_s`: the same after the device has reported
    that it executes. `factor` multiplies these and the time limits of all requests, for a slow emulator.
    """

    answer_s: float = 5.0
    resend_s: float = 0.25
    busy_resend_s: float = 5.0
    factor: float = 1.0


class Session:
    """A connection to one device. Use as a context manager: leaving closes the line.

    Every method raises ProtocolError if the device is silent, was reset, or refuses the request. After
    silence or a reset the next request begins with a new HELLO; the content of the arenas may be lost.
    """

    def __init__(self, transport: Transport, *, board: str = "", timing: Timing | None = None) -> None:
        self._line = transport
        self._board = board
        self._timing = timing or Timing()
        self._receiver = Receiver()
        self._seq = os.urandom(1)[0]
        self._info: DeviceInfo | None = None
        self.resends = 0
        self.changes = 0
        """The number of requests so far that may have changed an arena."""

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the line."""
        self._line.close()

    @property
    def info(self) -> DeviceInfo:
        """The device's description, which the first use asks for."""
        return self._info or self.hello()

    def hello(self, firmware_hash: int | None = None, timeout_s: float | None = None) -> DeviceInfo:
        """Start or restart, waiting up to `timeout_s` for a board that is starting or busy.

        Raises ProtocolError if the firmware is not the one with `firmware_hash`.
        """
        nonce = os.urandom(4)
        data = self._request(Request.HELLO, nonce, timeout_s, accept=lambda reply: reply.startswith(nonce))
        self.parsed(Request.HELLO, require_version, data, VERSION)
        info = self.parsed(Request.HELLO, device_info, data)
        self._board = self._board or info.board
        if firmware_hash is not None and info.firmware_hash != firmware_hash:
            raise ProtocolError(
                f"{self._line.name} runs firmware {info.firmware_hash:08x} (board {info.board}), "
                f"{firmware_hash:08x} is needed. {flash_hint(self._board)}"
            )
        self._info = info
        return info

    def write(
        self, memory: int, offset: int, data: bytes | memoryview, advance: Advance | None = None
    ) -> None:
        """Write `data` to arena `memory` at byte `offset`."""
        size = self.info.max_data_bytes - _WRITE.size
        view = memoryview(data).cast("B")
        since = time.monotonic()
        for start in range(0, len(view), size):
            self._require_rate(Request.WRITE, since, start)
            part = view[start : start + size]
            self._request(Request.WRITE, _WRITE.pack(memory, offset + start) + bytes(part), reply_bytes=0)
            if advance is not None:
                advance(start + len(part), len(view))

    def read(self, memory: int, offset: int, count: int, advance: Advance | None = None) -> bytes:
        """Read `count` bytes of arena `memory` from byte `offset`."""
        size = self.info.max_data_bytes
        out = bytearray()
        since = time.monotonic()
        while len(out) < count:
            self._require_rate(Request.READ, since, len(out))
            part = min(size, count - len(out))
            out += self._request(Request.READ, _RANGE.pack(memory, offset + len(out), part), reply_bytes=part)
            if advance is not None:
                advance(len(out), count)
        return bytes(out)

    def run(self, first_step: int = 0, count: int | None = None, timeout_s: float = 60.0) -> Ticks:
        """Run `count` steps (all by default) of the deployed program, never twice; return total ticks."""
        steps = self.info.steps - first_step if count is None else count
        data = self._request(Request.RUN, struct.pack("<II", first_step, steps), timeout_s, reply_bytes=9)
        return self.parsed(Request.RUN, ticks_of, data, steps)

    def time_steps(self, first_step: int = 0, count: int | None = None, timeout_s: float = 60.0) -> StepTicks:
        """Run `count` steps (all by default) and return the ticks of each.

        `timeout_s` is for one request; all together run the program once, and may take twice that.
        """
        total = self.info.steps - first_step if count is None else count
        ticks: list[int] = []
        disturbed, since = False, time.monotonic()
        while len(ticks) < total:
            self._require_rate(Request.TIME, since, 4 * len(ticks), 2 * timeout_s)
            part = min(self.info.max_times, total - len(ticks))
            request = struct.pack("<IB", first_step + len(ticks), part)
            data = self._request(Request.TIME, request, timeout_s, reply_bytes=1 + 4 * part)
            observed = self.parsed(Request.TIME, step_ticks, data)
            ticks += observed.ticks
            disturbed |= observed.disturbed
        return StepTicks(tuple(ticks), disturbed)

    def reset(self) -> None:
        """Reset the program's states to their first values."""
        self._request(Request.RESET, b"", reply_bytes=0)

    def pull_parameters(self, advance: Advance | None = None) -> ParameterBlob:
        """Return the present parameters of the program."""
        header = self._request(Request.PARAMETERS, b"", reply_bytes=HEADER_BYTES)
        count = self.parsed(Request.PARAMETERS, parameter_bytes, header)
        size, since, values = self.info.max_data_bytes, time.monotonic(), bytearray()
        while len(values) < count:
            self._require_rate(Request.PULL, since, len(values))
            part = min(size, count - len(values))
            values += self._request(Request.PULL, _PULL.pack(len(values), part), reply_bytes=part)
            if advance is not None:
                advance(len(values), count)
        return self.parsed(Request.PULL, parameters_in, header + values)

    def push_parameters(self, blob: ParameterBlob, advance: Advance | None = None) -> None:
        """Replace the parameters of the program, whole: the device refuses those of another model."""
        content = blob.to_bytes()
        size, since = self.info.max_data_bytes - _PUSH.size, time.monotonic()
        self._request(Request.PUSH, _PUSH.pack(0) + content[:HEADER_BYTES], reply_bytes=0)
        for start in range(HEADER_BYTES, len(content), size):
            self._require_rate(Request.PUSH, since, start)
            part = content[start : start + size]
            self._request(Request.PUSH, _PUSH.pack(start) + part, reply_bytes=0)
            if advance is not None:
                advance(start + len(part), len(content))

    def restore_parameters(self) -> None:
        """Set the initial parameters of the program."""
        self._request(Request.RESTORE, b"", reply_bytes=0)

    def stack(self) -> StackReport:
        """Return the stack depth of the last `run`."""
        data = self._request(Request.STACK, b"", reply_bytes=8)
        return self.parsed(Request.STACK, stack_of, data)

    def call(
        self,
        memory: int,
        offset: int,
        first_row: int,
        end_row: int,
        *,
        repeat: int = 1,
        timeout_s: float = 60.0,
    ) -> Ticks:
        """Call the kernel of the `mcud_op` at `offset` for rows [first_row, end_row), `repeat` times."""
        request = _CALL.pack(memory, offset, first_row, end_row, repeat)
        data = self._request(Request.CALL, request, timeout_s, reply_bytes=9)
        return self.parsed(Request.CALL, ticks_of, data, repeat)

    def kernels(self) -> tuple[int, ...]:
        """Return addresses of the linked kernels, in the order of their sorted names."""
        info, addresses, since = self.info, list[int](), time.monotonic()
        while (left := info.kernel_count - len(addresses)) > 0:
            self._require_rate(Request.KERNELS, since, 8 * len(addresses))
            data = self._request(Request.KERNELS, struct.pack("<I", len(addresses)))
            addresses += self.parsed(Request.KERNELS, kernel_addresses, data, info, left)
        return tuple(addresses)

    def guard(self, memory: int, offset: int, count: int, poison: bool) -> None:
        """Forbid (or allow again) the kernel to touch these bytes; host builds with the sanitizer only."""
        request = struct.pack("<BIIB", memory, offset, count, poison)
        self._request(Request.GUARD, request, reply_bytes=0)

    def request(self, kind: Request, data: bytes = b"", *, reply_bytes: int | None = 0) -> bytes:
        """Send any other request; return the data of its reply, `reply_bytes` long, or of any length."""
        return self._request(kind, data, reply_bytes=reply_bytes)

    def parsed(self, kind: Request, parse: Callable[_P, _T], *fields: _P.args, **named: _P.kwargs) -> _T:
        """Return the result of `parse` on a reply. Raises ProtocolError for a field out of its bounds."""
        try:
            return parse(*fields, **named)
        except FieldError as error:
            raise ProtocolError(
                f"{self._line.name} answers {kind.name} with {error}. {flash_hint(self._board)}"
            ) from None

    def _require_rate(self, kind: Request, since: float, done_bytes: int, run_s: float = 0.0) -> None:
        """Raise ProtocolError if many answers come in time each, but together too slowly.

        `run_s`: time of the program itself.
        """
        timing, spent = self._timing, time.monotonic() - since
        slowest_s = done_bytes * (1 / _SLOWEST_BYTES_PER_S + 8 / self._line.bytes_per_second)
        if spent > timing.factor * (4 * timing.answer_s + slowest_s + run_s):
            raise ProtocolError(
                f"{self._line.name} takes too long: {count_text(done_bytes, 'byte')} of {kind.name} in "
                f"{spent:.0f} s. A slow emulator needs --patience FACTOR."
            )

    def _request(
        self,
        kind: Request,
        data: bytes,
        timeout_s: float | None = None,
        *,
        reply_bytes: int | None = None,
        accept: Callable[[bytes], bool] = lambda reply: True,
    ) -> bytes:
        """Send until the reply comes, within `timeout_s` in all.

        Before BUSY or a reply, silence longer than `answer_s` ends it earlier.
        """
        if kind is not Request.HELLO and self._info is None:
            self.hello()
        self.changes += kind in CHANGING
        self._seq = (self._seq + 1) & 0xFF
        wire = b"\0" + encode(Frame(kind, self._seq, data))
        line_s = 2 * len(wire) / self._line.bytes_per_second
        start = time.monotonic()
        timing = self._timing
        silence_s = timing.factor * timing.answer_s + line_s
        limit = silence_s if timeout_s is None else timing.factor * timeout_s
        deadline = start + (limit if kind is Request.HELLO else min(limit, silence_s))
        # a board that is starting drops the first HELLO: repeat that one sooner
        pause = line_s + timing.factor * timing.resend_s / (8 if kind is Request.HELLO else 1)
        longest_pause = 6 * (line_s + timing.factor * timing.resend_s)
        busy, earlier_garbage = False, self._receiver.garbage_bytes
        self._line.write(wire)
        resend_at = start + pause
        while (now := time.monotonic()) < deadline:
            if now >= resend_at:
                self.resends += 1
                self._line.write(wire)
                pause = min(pause * 1.5, longest_pause)
                resend_at = now + pause
            for frame in self._receiver.feed(self._line.read(min(resend_at, deadline) - now)):
                if frame.seq != self._seq:
                    continue
                if frame.type == kind | REPLY and accept(frame.data):
                    return self._checked(kind, frame.data, reply_bytes)
                if frame.type == BUSY and not busy:
                    busy, deadline = True, start + limit
                    pause = timing.factor * timing.busy_resend_s
                    longest_pause = 6 * pause
                    resend_at = time.monotonic() + pause
                if frame.type == ERROR and kind is not Request.HELLO:
                    raise self._refused(kind, frame.data)
        garbage = self._receiver.garbage_bytes - earlier_garbage
        raise self._silent(kind, time.monotonic() - start, busy, garbage)

    def _checked(self, kind: Request, data: bytes, reply_bytes: int | None) -> bytes:
        if reply_bytes is not None and len(data) != reply_bytes:
            raise ProtocolError(
                f"{self._line.name} answers {kind.name} with {count_text(len(data), 'byte')}, "
                f"needed: {reply_bytes}. {flash_hint(self._board)}"
            )
        return data

    def _refused(self, kind: Request, data: bytes) -> ProtocolError:
        code = data[0] if data else 0
        if code in (UNSYNCHRONISED, SEQUENCE):
            self._info = None
        if code == UNKNOWN and kind in OF_PARAMETERS:
            return ProtocolError(
                f"the program on {self._line.name} has no parameters that could be replaced: build it with "
                "--replaceable and --parameters-in ram"
            )
        subject = "the board" if code == UNSYNCHRONISED else f"{kind.name}: the board"
        return ProtocolError(f"{subject} on {self._line.name} {REASONS.get(code, f'answers error {code}.')}")

    def _silent(self, kind: Request, waited_s: float, busy: bool, garbage: int) -> ProtocolError:
        first_contact, self._info = self._info is None, None
        waited = f"{waited_s:.0f} s" if waited_s >= 1 else f"{waited_s:.1f} s"
        if busy:
            return ProtocolError(
                f"{self._line.name} began {kind.name} and has not finished after {waited}: "
                f"the program hangs or needs a longer time limit."
            )
        if garbage:
            noise = f"{count_text(garbage, 'byte')} that {agree(garbage, 'is not a frame', 'are not frames')}"
            return ProtocolError(
                f"no answer from {self._line.name} for {waited}, only {noise}: "
                f"another firmware or another baud rate. {flash_hint(self._board)}"
            )
        after = " after connecting" if first_contact else f" to {kind.name}"
        return ProtocolError(
            f"no answer from {self._line.name} for {waited}{after}: {silence_hint(self._board)}"
        )


def connect(
    url_or_port: str,
    *,
    baud: int = 115200,
    board: str = "",
    firmware_hash: int | None = None,
    timeout_s: float = 5.0,
    wires: Sequence[int | None] = (),
    patience: float = 1.0,
) -> Session:
    """Return a session with the measurer at `socket://host:port`, `process:FILE` or a serial port.

    The measurer has answered HELLO. `wires`: descriptors for the ports of a process. `patience` multiplies
    all time limits. Raises PortError if the line cannot be opened, and ProtocolError if nobody answers within
    `timeout_s`, or the firmware is not the one with `firmware_hash`.
    """
    timing = Timing(factor=patience)
    session = Session(open_transport(url_or_port, baud, wires), board=board, timing=timing)
    try:
        session.hello(firmware_hash, timeout_s)
    except BaseException:
        session.close()
        raise
    return session
