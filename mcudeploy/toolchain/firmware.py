"""A built firmware and its sizes, read from its file: ELF, or the format of this computer's programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import BuildError
from mcudeploy.toolchain.native_sections import native_sections

CALLS_NAME = "calls.ci"
"""A file beside firmware.elf: frames and calls of its functions as GCC states them; not for the host."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes in bytes. flash = code + weights + tables + data: everything written into flash.

    weights: constants of weights.c; tables: constants of model.c (records, offsets, schedule); code: all
    else in flash (functions, their constants, vectors). static_ram = data + bss; bss counts all memory that
    is not loaded (.bss, .noinit, arenas in further memories), never the stack.
    """

    flash_bytes: int
    code_bytes: int
    weights_bytes: int
    tables_bytes: int
    data_bytes: int
    bss_bytes: int

    @property
    def static_ram_bytes(self) -> int:
        """RAM that the program holds from start to end, without its stack."""
        return self.data_bytes + self.bss_bytes


@dataclass(frozen=True, slots=True)
class Firmware:
    """A program for a board, its 32-bit hash (the program reports the same) and its sizes."""

    elf: Path
    board: Board
    hash: int
    emulated: bool
    sizes: Sizes


_ELF, _PE, _MACH_O = b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe"
_KINDS = (_ELF, _PE, _MACH_O)
"""The first bytes of programs: of Linux, Windows and macOS."""
_NO_RAM = (".stack", ".skipped", ".data_image")
"""Sections without content that do not count as RAM: its unused rest, and addresses of flash (data_bus.ld).
"""


def measure(elf: Path) -> Sizes:
    """Return the sizes of a linked program. Without .weights and .tables (host) they count as code."""
    loaded: dict[str, int] = {}
    reserved = 0
    for name, kind, size in _sections(elf):
        if kind != "SHT_NOBITS":
            loaded[name] = loaded.get(name, 0) + size
        elif name not in _NO_RAM and not name.startswith(".tbss"):
            reserved += size
    weights, tables = loaded.get(".weights", 0), loaded.get(".tables", 0)
    data = sum(loaded.get(name, 0) for name in (".data", ".sdata"))
    flash = sum(loaded.values())
    return Sizes(flash, flash - weights - tables - data, weights, tables, data, reserved)


def constant_bytes(objects: Iterable[Path]) -> int:
    """Return the size of the read-only data of object files."""
    return sum(size for it in objects for name, _, size in _sections(it) if name.startswith(".rodata"))


def save(folder: Path, sizes: Sizes) -> None:
    """Write the sizes beside firmware.elf: the mark of a complete build."""
    (folder / "firmware.json").write_text(json.dumps(asdict(sizes)) + "\n", encoding="utf-8", newline="\n")


def load(folder: Path, board: Board, firmware_hash: int, emulated: bool) -> Firmware | None:
    """Return the firmware of a complete build; None if a crash of the computer damaged its files."""
    elf = folder / "firmware.elf"
    try:
        sizes = Sizes(**json.loads((folder / "firmware.json").read_text(encoding="utf-8")))
        with elf.open("rb") as file:
            is_program = file.read(4).startswith(_KINDS if board.is_host else _ELF)
    except (OSError, ValueError, TypeError):
        return None
    return Firmware(elf, board, firmware_hash, emulated, sizes) if is_program else None


def _sections(path: Path) -> list[tuple[str, str, int]]:
    """Return (name, type, size) of the sections that occupy memory."""
    try:
        with path.open("rb") as file:
            if (native := native_sections(file)) is not None:
                return native
            return [
                (section.name, section["sh_type"], section["sh_size"])
                for section in ELFFile(file).iter_sections()
                if section["sh_flags"] & SH_FLAGS.SHF_ALLOC and section["sh_size"]
            ]
    except ELFError as error:
        raise BuildError(f"{path.name} is not an ELF file: {error}") from error
