"""A chip's boot ROM between reset and the first instruction; written by hand from data sheets."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class Memory(Protocol):
    """The memories of a chip, by address."""

    def mem_read(self, address: int, size: int) -> bytearray:
        """Bytes."""

    def mem_write(self, address: int, data: bytes) -> None:
        """Other bytes."""


@dataclass(frozen=True)
class Entry:
    """Where the program starts, and with which stack pointer and vector table."""

    start: int
    stack: int
    vectors: int


def boot(board: str, flash: int, memory: Memory) -> Entry:
    """Boots from the flash at that address; AssertionError if the ROM would not take what is there."""
    return ROMS.get(board, from_vectors)(flash, memory)


def from_vectors(vectors: int, memory: Memory) -> Entry:
    """The core's own start from a vector table; chips without a boot ROM have it at the start of flash."""
    stack, start = struct.unpack("<II", memory.mem_read(vectors, 8))
    return Entry(start, stack, vectors)


def _rp2040(flash: int, memory: Memory) -> Entry:
    """RP2040 Datasheet: 2.8.1, 2.8.1.3.1."""
    stage = bytes(memory.mem_read(flash, 256))
    stored, expected = int.from_bytes(stage[252:], "little"), crc32(stage[:252])
    assert stored == expected, f"the CRC-32 of the second stage is {expected:#010x}, not {stored:#010x}"
    memory.mem_write(0x20041F00, stage)
    return Entry(0x20041F01, 0x20041F00, 0)


def _rp2350(flash: int, memory: Memory) -> Entry:
    """RP2350 Datasheet: 5.1.12, 5.9.3.1, 5.9.5. The vectors are at the origin."""
    words = struct.unpack("<1024I", memory.mem_read(flash, 4096))
    block = words.index(0xFFFFDED3)
    image_type, last, link, end = words[block + 1 : block + 5]
    assert (last, link, end) == (0xFF | 1 << 8, 0, 0xAB123579), (
        "a loop of one block with one item of one word"
    )
    assert image_type & 0xFFFF == 0x42 | 1 << 8, "an image type of one word"
    program, secure, arm, chip = (
        image_type >> 16 >> low & mask for low, mask in ((0, 15), (4, 3), (8, 7), (12, 7))
    )
    assert (program, secure, arm, chip) == (1, 2, 0, 1)
    return from_vectors(flash, memory)


def _imxrt1062(flash: int, memory: Memory) -> Entry:
    """IMXRT1060RM: System Boot. An even entry is a vector table."""
    tag, version = struct.unpack("<II", memory.mem_read(flash, 8))
    assert (tag.to_bytes(4, "little"), version >> 24) == (b"FCFB", ord("V"))
    device, pads, clock = memory.mem_read(flash + 0x44, 3)
    assert (device, pads, clock) == (1, 4, 8), "serial NOR flash, four data pins, 133 MHz"
    steps = struct.unpack("<6H", memory.mem_read(flash + 0x80, 12))
    read = [(it >> 10, 1 << (it >> 8 & 3), it & 255) for it in steps]
    assert read == [(1, 1, 0xEB), (2, 4, 24), (7, 4, 0), (12, 4, 4), (9, 4, 4), (0, 1, 0)]
    table = flash + 0x1000
    header, entry, _, dcd, boot_data, its_own, signature, _ = struct.unpack("<8I", memory.mem_read(table, 32))
    assert header & 0xFFFFFF == 0x2000D1 and (dcd, its_own, signature) == (0, table, 0)
    start, size, plugin = struct.unpack("<3I", memory.mem_read(boot_data, 12))
    assert (start, plugin) == (flash, 0) and start < entry < start + size
    return from_vectors(entry, memory)


def crc32(data: bytes) -> int:
    """That of 0x04C11DB7, most significant bits first, from all ones on, not inverted at the end."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ (0x04C11DB7 if value >> 31 else 0)) & 0xFFFFFFFF
    return value


ROMS: dict[str, Callable[[int, Memory], Entry]] = {
    "rp2040": _rp2040,
    "rp2350": _rp2350,
    "teensy41": _imxrt1062,
}
