"""Sections of programs and object files of Windows (PE, COFF) and macOS (Mach-O), 64 bit, little-endian.

pyelftools reads ELF only, and a library for these two would be a dependency for a few sizes.
Sources: Microsoft's "PE Format"; Apple's <mach-o/loader.h>.
"""

from __future__ import annotations

import struct
from typing import BinaryIO

MACH_O = 0xFEEDFACF
_COFF_MACHINES = (0x8664, 0xAA64)  # x86-64, ARM64
_FILE_HEADER = struct.Struct("<HHIIIHH")
_SECTION = struct.Struct("<8sIIIIIIHHI")
_DISCARDED, _ZEROS = 0x02000000, 0x80
_HAS_MEMORY = 0x20 | 0x40 | _ZEROS  # code, data, zeros
_SEGMENT_64, _ZERO_FILL = 0x19, (0x1, 0xC, 0x12)
_COMMAND = struct.Struct("<II")
_SEGMENT = struct.Struct("<II16sQQQQiiII")
_MACH_SECTION = struct.Struct("<16s16sQQIIIIIIII")


def native_sections(file: BinaryIO) -> list[tuple[str, str, int]] | None:
    """Return (name, type, size) of the sections that occupy memory, with ELF's names and types.

    None for a file of another format.
    """
    content = file.read()
    file.seek(0)
    try:
        if content[:2] == b"MZ":
            (start,) = struct.unpack_from("<I", content, 0x3C)
            return _coff(content, start + 4) if content[start : start + 4] == b"PE\0\0" else None
        if struct.unpack_from("<H", content)[0] in _COFF_MACHINES:
            return _coff(content, 0)
        if struct.unpack_from("<I", content)[0] == MACH_O:
            return _mach_o(content)
    except (struct.error, ValueError):
        return None
    return None


def _coff(content: bytes, start: int) -> list[tuple[str, str, int]]:
    _, count, _, symbols_at, symbols, optional_bytes, _ = _FILE_HEADER.unpack_from(content, start)
    first = start + _FILE_HEADER.size + optional_bytes
    texts = symbols_at + 18 * symbols  # names of more than eight letters are `/` and a position in these
    sections = []
    for number in range(count):
        raw, virtual, _, stored, *_, flags = _SECTION.unpack_from(content, first + number * _SECTION.size)
        name = raw.rstrip(b"\0").decode()
        if name.startswith("/"):
            name = content[texts + int(name[1:]) :].split(b"\0", 1)[0].decode()
        size = virtual if optional_bytes else stored
        in_memory = flags & _HAS_MEMORY and not flags & _DISCARDED and not name.startswith(".debug")
        if in_memory and size:
            sections.append((name.replace(".rdata", ".rodata"), _kind(bool(flags & _ZEROS)), size))
    return sections


def _mach_o(content: bytes) -> list[tuple[str, str, int]]:
    (commands,) = struct.unpack_from("<I", content, 16)
    at, sections = 32, []
    for _ in range(commands):
        command, size = _COMMAND.unpack_from(content, at)
        if command == _SEGMENT_64:
            count = _SEGMENT.unpack_from(content, at)[9]
            for number in range(count):
                place = at + _SEGMENT.size + number * _MACH_SECTION.size
                name, segment, _, length, *_, flags, _, _, _ = _MACH_SECTION.unpack_from(content, place)
                if length and not segment.startswith(b"__DWARF"):
                    zeros = flags & 0xFF in _ZERO_FILL
                    sections.append((_elf_name(name.rstrip(b"\0").decode()), _kind(zeros), length))
        at += size
    return sections


def _elf_name(name: str) -> str:
    if name.startswith(("__const", "__literal", "__cstring")):
        return f".rodata.{name}"
    return {"__data": ".data", "__text": ".text", "__bss": ".bss"}.get(name, name)


def _kind(zeros: bool) -> str:
    return "SHT_NOBITS" if zeros else "SHT_PROGBITS"
