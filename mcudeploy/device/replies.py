"""Reports of a device, and the bounds of every field of a reply; firmware/WIRE.md states both."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from mcudeploy.common.text import count_text
from mcudeploy.ir.parameter_blob import ParameterBlob

MIN_DATA_BYTES = 128
_VERSIONED = 5
"""Bytes of a HELLO reply up to its version, the same in every version of the protocol."""
_HELLO = struct.Struct("<IBBBBIIIIIHBB")
_ARENA = struct.Struct("<QI")
_PARAMETER_SIZE_AT = 16
_U32 = 2**32 - 1
_STEPS = 2**24
_KERNELS = 4096


class FieldError(ValueError):
    """A field of a reply that is out of its bounds."""

    def __init__(self, field: str, value: object, bound: str) -> None:
        super().__init__(f"{field} = {value}: {bound} is allowed")


def within(field: str, value: int, least: int, most: int) -> int:
    """Return the value of a field from `least` to `most`. Raises FieldError for other values."""
    if not least <= value <= most:
        raise FieldError(field, f"{value:,}", f"{least:,} to {most:,}")
    return value


def _one_of(field: str, value: int, allowed: Iterable[int]) -> int:
    if value not in (known := tuple(allowed)):
        raise FieldError(field, value, ", ".join(map(str, known)))
    return value


@dataclass(frozen=True, slots=True)
class Arena:
    """A device's static array in one memory."""

    base: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device's description of itself (HELLO). `align` is the unit of row offsets in bytes."""

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
class StackReport:
    """Bytes of stack that the last RUN reached, and the stack's size."""

    used_bytes: int
    size_bytes: int


def require_version(data: bytes, version: int) -> None:
    """Raise FieldError if a HELLO reply is of another version of the protocol."""
    if len(data) < _VERSIONED:
        raise FieldError("length", count_text(len(data), "byte"), f"{_HELLO.size + 2} or more")
    _one_of("version", data[_VERSIONED - 1], (version,))


def device_info(data: bytes) -> DeviceInfo:
    """Parse the data of a HELLO reply. Raises FieldError for a field out of its bounds."""
    if len(data) < _HELLO.size:
        raise FieldError("length", count_text(len(data), "byte"), f"{_HELLO.size + 2} or more")
    (_, _, pointer, offset, align, *words, arenas) = _HELLO.unpack_from(data)
    firmware, clock, ticks, steps, kernels, max_data, max_times = words
    _one_of("pointer_bytes", pointer, (4, 8))
    _one_of("offset_bytes", offset, (2, 4))
    _one_of("align", align, (1, 2, 4, 8, 16, 32, 64))
    within("clock_hz", clock, 1, _U32)
    within("ticks_hz", ticks, 1, _U32)
    within("steps", steps, 0, _STEPS)
    within("kernels", kernels, 0, _KERNELS)
    within("max_data", max_data, MIN_DATA_BYTES, 65535)
    within("max_times", max_times, 1, min(255, (max_data - 1) // 4))
    at = _HELLO.size + _ARENA.size * within("arenas", arenas, 1, 255)
    text = data[at + 1 :]
    if len(data) <= at or len(text) != data[at] or len(data) > max_data:
        right = f"{at + 1 + (data[at] if len(data) > at else 1)}, and no more than max_data = {max_data},"
        raise FieldError("length", count_text(len(data), "byte"), right)
    return DeviceInfo(
        pointer,
        offset,
        align,
        firmware,
        clock,
        ticks,
        steps,
        kernels,
        max_data,
        max_times,
        tuple(_arena(i, data, pointer, align) for i in range(arenas)),
        _board_name(text),
    )


def _arena(index: int, data: bytes, pointer_bytes: int, align: int) -> Arena:
    base, size = _ARENA.unpack_from(data, _HELLO.size + _ARENA.size * index)
    within(f"bytes of arena {index}", size, 1, 2**31)
    within(f"base of arena {index}", base, 0, 256**pointer_bytes - size)
    if base % align:
        raise FieldError(f"base of arena {index}", f"{base:#x}", f"a multiple of align = {align}")
    return Arena(base, size)


def _board_name(text: bytes) -> str:
    if not text or any(not 0x21 <= byte <= 0x7E for byte in text):
        raise FieldError("board", ascii(text.decode("latin-1")), "visible ASCII without spaces")
    return text.decode("ascii")


def ticks_of(data: bytes, intervals: int) -> Ticks:
    """Parse the data of a RUN or CALL reply: the sum of `intervals` intervals, each below 2^32 ticks."""
    disturbed, ticks = struct.unpack("<BQ", data)
    return Ticks(within("ticks", ticks, 0, intervals * _U32), _flag("disturbed", disturbed))


def step_ticks(data: bytes) -> StepTicks:
    """Parse the data of a TIME reply."""
    disturbed, *ticks = struct.unpack(f"<B{len(data) // 4}I", data)
    return StepTicks(tuple(ticks), _flag("disturbed", disturbed))


def stack_of(data: bytes) -> StackReport:
    """Parse the data of a STACK reply."""
    used, size = struct.unpack("<II", data)
    return StackReport(within("used", used, 0, size), size)


def kernel_addresses(data: bytes, info: DeviceInfo, left: int) -> tuple[int, ...]:
    """Parse the data of a KERNELS reply, the addresses of up to `left` kernels."""
    most = min(left, info.max_data_bytes // 8)
    if len(data) % 8 or not 1 <= len(data) // 8 <= most:
        raise FieldError("length", count_text(len(data), "byte"), f"8 for each of 1 to {most} kernels")
    addresses = struct.unpack(f"<{len(data) // 8}Q", data)
    return tuple(within("address", address, 1, 256**info.pointer_bytes - 1) for address in addresses)


def parameter_bytes(header: bytes) -> int:
    """Return the size of the values that a PARAMETERS reply, the header of a blob, states."""
    (size,) = struct.unpack_from("<I", header, _PARAMETER_SIZE_AT)
    return within("bytes of the values", size, 1, 2**31)


def parameters_in(data: bytes) -> ParameterBlob:
    """Parse the header of a PARAMETERS reply and the values of PULL replies."""
    try:
        return ParameterBlob.of(data)
    except ValueError as error:
        raise FieldError("parameters", error, "an intact blob") from None


def _flag(field: str, value: int) -> bool:
    return bool(within(field, value, 0, 1))
