"""Linked programs in the formats that flashers take: plain bytes, Intel HEX, UF2 blocks."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from mcudeploy.boards.facts import BoardRegion
from mcudeploy.common.errors import FlashError
from mcudeploy.common.files import write_file

_ERASED = b"\xff"
_HEX_BYTES = 16
_UF2_PAYLOAD = 256
_UF2_BLOCK = struct.Struct("<8I476sI")
_UF2_MAGIC = 0x0A324655, 0x9E5D5157, 0x0AB16F30
_UF2_HAS_FAMILY = 0x2000


def flash_content(elf: Path, flash: BoardRegion) -> bytes:
    """Return the program's flash content from the origin on, gaps as erased. Raises FlashError."""
    content = bytearray()
    for address, data in _loaded(elf):
        start = address - flash.origin
        if start < 0 or start + len(data) > flash.bytes:
            raise FlashError(f"{elf.name} has {len(data)} bytes at {address:#010x}, outside of the flash")
        content += _ERASED * (start + len(data) - len(content))
        content[start : start + len(data)] = data
    if not content:
        raise FlashError(f"{elf.name} has nothing for the flash")
    return bytes(content)


def intel_hex(content: bytes, origin: int) -> str:
    """Return records of Intel HEX with extended linear addresses."""
    lines: list[str] = []
    upper = None
    for start in range(0, len(content), _HEX_BYTES):
        address = origin + start
        if address >> 16 != upper:
            upper = address >> 16
            lines.append(_record(4, 0, upper.to_bytes(2, "big")))
        lines.append(_record(0, address & 0xFFFF, content[start : start + _HEX_BYTES]))
    return "\n".join([*lines, _record(1, 0, b"")]) + "\n"


def uf2(content: bytes, origin: int, family: int) -> bytes:
    """Return UF2 blocks of 256 bytes for a chip family."""
    starts = range(0, len(content), _UF2_PAYLOAD)
    first, second, last = _UF2_MAGIC
    return b"".join(
        _UF2_BLOCK.pack(
            *(first, second, _UF2_HAS_FAMILY, origin + start, _UF2_PAYLOAD, number, len(starts), family),
            content[start : start + _UF2_PAYLOAD].ljust(_UF2_PAYLOAD, _ERASED),
            last,
        )
        for number, start in enumerate(starts)
    )


def write_image(
    elf: Path, flash: BoardRegion, suffix: str, encode: Callable[[bytes, int], bytes | str]
) -> Path:
    """Write an image of the program beside it; several processes may do so at once."""
    path = elf.with_suffix(suffix)
    write_file(path, encode(flash_content(elf, flash), flash.origin))
    return path


def _record(kind: int, address: int, data: bytes) -> str:
    whole = bytes([len(data), *address.to_bytes(2, "big"), kind, *data])
    return f":{(whole + bytes([-sum(whole) & 0xFF])).hex().upper()}"


def _loaded(elf: Path) -> list[tuple[int, bytes]]:
    """Return (load address, bytes) of the loaded sections, by address."""
    with elf.open("rb") as stream:
        try:
            file = ELFFile(stream)
        except ELFError as error:
            raise FlashError(f"{elf.name} is not an ELF file: {error}") from error
        segments = [it for it in file.iter_segments() if it["p_type"] == "PT_LOAD"]
        loaded = []
        for section in file.iter_sections():
            if section["sh_type"] == "SHT_NOBITS" or not section["sh_flags"] & SH_FLAGS.SHF_ALLOC:
                continue
            segment = next((it for it in segments if it.section_in_segment(section)), None)
            if segment is not None and section["sh_size"]:
                address = segment["p_paddr"] + section["sh_offset"] - segment["p_offset"]
                loaded.append((address, section.data()))
    return sorted(loaded)
