"""Mutants of frames: a device whose replies are damaged on the line, or are nonsense with a right CRC."""

from __future__ import annotations

import random
import struct
import time
from pathlib import Path

from mutate_values import mutated_bytes

from mcudeploy.device.frame import Frame, Receiver, encode
from mcudeploy.device.requests import Request
from mcudeploy.device.session import Session, Timing

MEMORY = bytes(range(256)) * 8
KERNELS = (0x1000, 0x2000, 2**40)
_HASTY = Timing(answer_s=0.004, resend_s=0.001, busy_resend_s=0.002)
_WAIT_S = 0.006


class Device:
    """A transport with a measurer of the test behind it, whose replies are mutants. `lies`: it spoils what it
    says before the CRC is made of it; else the line spoils the bytes.
    """

    name = "line"
    bytes_per_second = float("inf")

    def __init__(self, source: random.Random, *, lies: bool) -> None:
        self._source, self._lies = source, lies
        self._receiver, self._waiting = Receiver(), bytearray()

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
        if self._source.random() < 0.5:
            return encode(frame)
        if self._lies:
            return encode(Frame(frame.type, frame.seq, mutated_bytes(frame.data, self._source)[:60000]))
        return mutated_bytes(encode(frame), self._source)

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
            case _:
                return [(done, b"")]


class FrameSubject:
    """Sessions of one command each with such a device. Behind a bad line what comes back is right."""

    def __init__(self, folder: Path) -> None:
        del folder

    def __call__(self, source: random.Random) -> None:
        lies = source.random() < 0.5
        with Session(Device(source, lies=lies), timing=_HASTY) as session:
            found, right = _command(session, source)
        if found != right and not lies:
            raise AssertionError(f"{found!r} came over the line, {right!r} was sent")


def _command(session: Session, source: random.Random) -> tuple[object, object]:
    """What one command brought, and what it should have."""
    match source.randrange(8):
        case 0:
            return session.hello(7).board, "host"
        case 1:
            return session.write(0, 10, bytes(300)), None
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
