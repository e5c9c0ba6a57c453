"""What a device reports, and how the replies of the wire protocol say it (firmware/WIRE.md)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_HELLO = struct.Struct("<IBBBBIIIIIHBB")


@dataclass(frozen=True, slots=True)
class Arena:
    """A device's static array in one memory."""

    base: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """What a device says of itself (HELLO). `align` is the unit of row offsets in bytes."""

    pointer_bytes: int
    offset_bytes: int
    align: int
    firmware_hash: int
    clock_hz: int
    ticks_hz: int
    steps: int
    kernel_count: int
    max_data_bytes: int
    max_times: int
    arenas: tuple[Arena, ...]
    board: str


@dataclass(frozen=True, slots=True)
class Ticks:
    """Observed time. `disturbed`: bytes arrived meanwhile, so interrupts are part of it."""

    ticks: int
    disturbed: bool = False


@dataclass(frozen=True, slots=True)
class StepTicks:
    """Observed time of consecutive steps."""

    ticks: tuple[int, ...]
    disturbed: bool = False


@dataclass(frozen=True, slots=True)
class Stack:
    """Bytes of stack that the last RUN reached, and how many there are."""

    used_bytes: int
    size_bytes: int


def device_info(data: bytes) -> DeviceInfo:
    """From the data of a HELLO reply. Raises struct.error, IndexError or UnicodeDecodeError for nonsense."""
    (_, _, pointer, offset, align, *words, arenas) = _HELLO.unpack_from(data)
    firmware, clock, ticks, steps, kernels, max_data, max_times = words
    at = _HELLO.size
    found = tuple(Arena(*struct.unpack_from("<QI", data, at + 12 * i)) for i in range(arenas))
    at += 12 * arenas
    board = data[at + 1 :].decode("ascii")
    known = pointer in (4, 8) and offset in (2, 4)
    if len(board) != data[at] or not known or align == 0 or max_times == 0:
        raise IndexError
    return DeviceInfo(
        pointer, offset, align, firmware, clock, ticks, steps, kernels, max_data, max_times, found, board
    )


def ticks_of(data: bytes) -> Ticks:
    """From the data of a RUN or CALL reply."""
    disturbed, ticks = struct.unpack("<BQ", data)
    return Ticks(ticks, disturbed != 0)
