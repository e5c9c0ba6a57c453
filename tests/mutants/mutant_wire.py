"""Mutants of frames, and of their fields under a right CRC: of a bad line, and of a device that lies."""

from __future__ import annotations

import random
import re
import struct
import time
from dataclasses import replace
from pathlib import Path

from mutate_values import INTEGERS, mutated_bytes

from mcudeploy.device.frame import Frame, Receiver, encode
from mcudeploy.device.requests import Request
from mcudeploy.device.session import Session, Timing

MEMORY = bytes(range(256)) * 8
WRITTEN_BYTES = 300
KERNELS = (0x1000, 0x2000, 2**40)
_HASTY = Timing(answer_s=0.004, resend_s=0.001, busy_resend_s=0.002)
_WAIT_S = 0.006
_FIELDS = {
    Request.HELLO: "IBBBBIIIIIHBBQIB",
    Request.RUN: "BQ",
    Request.CALL: "BQ",
    Request.TIME: "B5I",
    Request.STACK: "II",
    Request.KERNELS: "3Q",
}
"""Integers that a reply begins with; the nonce first, so that it too is spoilt."""
_STALLS = 200
"""Frames that a stalling device sends for each request."""


class Device:
    """A transport to a test measurer whose replies are mutants.

    `fault`: the `line` spoils the bytes, or the device spoils `data` or `fields` before the CRC, or it
    `stalls`: no reply, but BUSY and replies to other requests.
    """

    name = "line"
    bytes_per_second = float("inf")

    def __init__(self, source: random.Random, fault: str) -> None:
        self._source, self._fault = source, fault
        self._receiver, self._waiting = Receiver(), bytearray()
        self.written = bytearray()

    def write(self, data: bytes) -> None:
        for request in self._receiver.feed(data):
            for kind, reply in self._replies(request):
                self._waiting += self._spoilt(Frame(kind, request.seq, reply))

    def read(self, timeout_s: float) -> bytes:
        if not self._waiting:
            time.sleep(min(max(timeout_s, 0), 0.001))
            return b""
        count = self._source.choice((1, 7, len(self._waiting)))
        data = bytes(self._waiting[:count])
        del self._waiting[:count]
        return data

    def close(self) -> None:
        pass

    def _spoilt(self, frame: Frame) -> bytes:
        first = self._fault == "fields" and frame.type == Request.HELLO | 0x80
        if not first and self._source.random() < 0.5:
            return encode(frame)
        match self._fault:
            case "data":
                return encode(replace(frame, data=mutated_bytes(frame.data, self._source)[:60000]))
            case "fields":
                return encode(replace(frame, data=self._other_fields(frame)))
            case "stalls":
                late = Frame(frame.type, frame.seq ^ 1, frame.data)
                kinds = self._source.choices((Frame(0xFE, frame.seq, b""), late), k=_STALLS)
                return b"".join(map(encode, kinds))
        return mutated_bytes(encode(frame), self._source)

    def _other_fields(self, frame: Frame) -> bytes:
        """The data with one to three integers replaced by values that programs stumble over."""
        layout = _FIELDS.get(Request(frame.type & 0x7F), "") if frame.type < 0xFE else ""
        fields = struct.Struct(f"<{layout}")
        if not layout or len(frame.data) < fields.size:
            return frame.data
        values = list(fields.unpack_from(frame.data))
        codes = re.sub(r"(\d)(.)", lambda many: int(many[1]) * many[2], layout)
        for _ in range(self._source.choice((1, 1, 2, 3))):
            at = self._source.randrange(len(values))
            value = self._source.choice((values[at] + 1, values[at] - 1, *INTEGERS))
            values[at] = value % 256 ** struct.calcsize(f"<{codes[at]}")
        return fields.pack(*values) + frame.data[fields.size :]

    def _replies(self, request: Frame) -> list[tuple[int, bytes]]:
        data, done = request.data, request.type | 0x80
        match request.type:
            case Request.HELLO:
                facts = struct.pack("<BBBBIIIIIHBB", 1, 8, 4, 4, 7, 10**6, 10**6, 9, len(KERNELS), 246, 15, 1)
                return [(done, data + facts + struct.pack("<QI", 0x20000000, len(MEMORY)) + b"\4host")]
            case Request.READ:
                _, offset, count = struct.unpack("<BIH", data)
                return [(done, MEMORY[offset : offset + count])]
            case Request.RUN | Request.CALL:
                return [(0xFE, b""), (done, struct.pack("<BQ", 0, 12345))]
            case Request.TIME:
                return [(0xFE, b""), (done, struct.pack(f"<B{data[4]}I", 0, *range(data[4])))]
            case Request.STACK:
                return [(done, struct.pack("<II", 100, 2048))]
            case Request.KERNELS:
                return [(done, struct.pack(f"<{len(KERNELS)}Q", *KERNELS))]
            case Request.WRITE:
                self.written += data[5:]
                return [(done, b"")]
            case _:
                return [(done, b"")]


class FrameSubject:
    """Sessions of one command each with such a device. After a bad line, later replies are right."""

    def __init__(self, folder: Path) -> None:
        del folder

    def __call__(self, source: random.Random) -> None:
        fault = source.choice(("line", "line", "data", *["fields"] * 3, "stalls"))
        device = Device(source, fault)
        with Session(device, timing=_HASTY) as session:
            answer, right = _command(session, source)
        if answer != right and fault == "line":
            raise AssertionError(f"{answer!r} came over the line, {right!r} was sent")
        if right is None and len(device.written) < WRITTEN_BYTES:
            raise AssertionError(
                f"{len(device.written)} of {WRITTEN_BYTES} bytes were sent, without an error"
            )


def _command(session: Session, source: random.Random) -> tuple[object, object]:
    """The results of one command, and the expected ones."""
    match source.randrange(8):
        case 0:
            return session.hello(7).board, "host"
        case 1:
            return session.write(0, 10, bytes(WRITTEN_BYTES)), None
        case 2:
            return session.read(0, 5, 300), MEMORY[5:305]
        case 3:
            return session.run(0, 3, _WAIT_S).ticks, 12345
        case 4:
            return session.time_steps(0, 5, _WAIT_S).ticks, tuple(range(5))
        case 5:
            return session.call(0, 0, 0, 1, timeout_s=_WAIT_S).ticks, 12345
        case 6:
            return session.stack().used_bytes, 100
        case _:
            return session.kernels(), KERNELS
