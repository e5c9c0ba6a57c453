"""Frames of the wire protocol (firmware/WIRE.md): COBS(type, seq, length, data, CRC-32) and a zero byte."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

HEADER = struct.Struct("<BBH")
CRC = struct.Struct("<I")
MAX_RUN = 254
"""Bytes in a full COBS block, which contains no zero."""
_LONGEST = 70_000
"""More bytes than any frame takes on the line."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One request or reply."""

    type: int
    seq: int
    data: bytes


def cobs_encode(raw: bytes) -> bytes:
    """Return the encoding of `raw` without zeros; the delimiter is not part of it."""
    out = bytearray()
    for run in raw.split(b"\0"):
        start = 0
        while len(run) - start >= MAX_RUN:
            out.append(MAX_RUN + 1)
            out += run[start : start + MAX_RUN]
            start += MAX_RUN
        out.append(len(run) - start + 1)
        out += run[start:]
    return bytes(out)


def cobs_decode(wire: bytes) -> bytes | None:
    """Return the bytes that `wire` encodes; None if it is not a valid encoding."""
    out = bytearray()
    at, size = 0, len(wire)
    while at < size:
        code = wire[at]
        end = at + code
        if code == 0 or end > size:
            return None
        out += wire[at + 1 : end]
        at = end
        if code != MAX_RUN + 1 and at < size:
            out.append(0)
    return bytes(out)


def encode(frame: Frame) -> bytes:
    """Return the bytes of a frame on the line, delimiter included."""
    body = HEADER.pack(frame.type, frame.seq, len(frame.data)) + frame.data
    return cobs_encode(body + CRC.pack(zlib.crc32(body))) + b"\0"


def decode(wire: bytes) -> Frame | None:
    """Return the frame between two delimiters; None if it is damaged."""
    raw = cobs_decode(wire)
    if raw is None or len(raw) < HEADER.size + CRC.size:
        return None
    body, (crc,) = raw[: -CRC.size], CRC.unpack(raw[-CRC.size :])
    kind, seq, length = HEADER.unpack_from(body)
    if length != len(body) - HEADER.size or crc != zlib.crc32(body):
        return None
    return Frame(kind, seq, body[HEADER.size :])


class Receiver:
    """Splits received bytes into frames, and counts the bytes that belong to none."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._garbage_bytes = 0

    def feed(self, received: bytes) -> list[Frame]:
        """Return the intact frames that `received` completes."""
        self._pending += received
        *pieces, rest = self._pending.split(b"\0")
        self._pending = rest
        frames = []
        for piece in pieces:
            frame = decode(bytes(piece)) if piece else None
            if frame is not None:
                frames.append(frame)
            else:
                self._garbage_bytes += len(piece)
        if len(self._pending) > _LONGEST:
            self._garbage_bytes += len(self._pending)
            self._pending.clear()
        return frames

    @property
    def garbage_bytes(self) -> int:
        """Bytes so far outside of any frame, including those that wait for their end."""
        return self._garbage_bytes + len(self._pending)
