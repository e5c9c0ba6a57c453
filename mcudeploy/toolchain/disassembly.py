"""A program's instructions as values, from the toolchain's disassembler."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from mcudeploy.common.errors import BuildError
from mcudeploy.common.programs import find_program
from mcudeploy.common.system.host_tools import install_command
from mcudeploy.toolchain.firmware_build import COMPILER_PACKAGES, run_logged

_LINE = re.compile(r"^\s*([0-9a-f]+):\t((?:[0-9a-f]{4} ?){1,2})\s*\t(\S+)(?:\s+([^@<]*))?")
_REGISTER = re.compile(r"\b(?:[rsdq]\d+|sb|sl|fp|ip|sp|lr|pc)\b")
_RANGE = re.compile(r"\b([sd])(\d+)-[sd](\d+)\b")
_VECTOR = re.compile(r"\bq\d")
_SINGLES = {"d": 2, "q": 4}
"""The number of single registers in a wider one."""
_ALIASES = {"sb": "r9", "sl": "r10", "fp": "r11", "ip": "r12", "sp": "r13", "lr": "r14", "pc": "r15"}
CONDITION = r"(?:eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)"


def spelled(stem: str) -> re.Pattern[str]:
    """Return a pattern for mnemonics of that stem (a regular expression) with any condition only."""
    return re.compile(f"(?:{stem}){CONDITION}?")


_NONE = spelled(
    r"cmp|cmn|tst|teq|str\w*|stm\w*|push|vstr[bhwd]?[te]?|vstm\w*|vpush|vcmpe?|cbn?z|b|bl|bx|blx|tb[bh]|vmsr"
)
_PAIR = spelled(r"ldrd|[us]mull|[us]mlal\w*|umaal|smlal\w*|smlsldx?")
_LIST = spelled(r"ldm\w*|pop|vldm\w*|vpop")
_MACS = ("vmla", "vmls", "vnml", "vfm", "vfnm")
_COPIES = ("mov", "mvn", "neg", "ldr", "v", "sxt", "uxt", "clz", "rev", "rbit")


@dataclass(frozen=True)
class Instruction:
    """One instruction: its address, its bytes, its mnemonic without width and type, its operands as written.

    Registers are named r0 to r15 and s0 to s31; a double register is its two single ones, a vector its four.
    """

    address: int
    size: int
    mnemonic: str
    operands: str

    @cached_property
    def address_registers(self) -> frozenset[str]:
        """The registers that a load or store computes its address from."""
        if self.mnemonic.startswith(("push", "pop", "vpush", "vpop")):
            return frozenset({"r13"})
        inside = re.search(r"\[([^\]]*)\]", self.operands)
        return _registers(inside[1] if inside else self.operands.partition(",")[0])

    @cached_property
    def results(self) -> frozenset[str]:
        """The registers that the instruction writes, except an updated base register."""
        if _NONE.fullmatch(self.mnemonic):
            return frozenset()
        if _LIST.fullmatch(self.mnemonic):
            return _registers(self.operands[max(self.operands.find("{"), 0) :])
        parts = self.operands.split(",")
        return _registers(",".join(parts[: 2 if _PAIR.fullmatch(self.mnemonic) else 1]))

    @cached_property
    def reads(self) -> frozenset[str]:
        """The registers that the instruction reads; in a two-operand form also the one it writes."""
        parts = self.operands.split(",")
        if not self.results:
            return _registers(self.operands)
        if _LIST.fullmatch(self.mnemonic):
            return self.address_registers
        own = 2 if _PAIR.fullmatch(self.mnemonic) else 1
        accumulates = self.mnemonic.startswith((*_MACS, "bfi", "movt"))
        accumulates |= bool(re.match(r"[us]mlal|umaal|smlsld", self.mnemonic))
        two_operands = len(parts) == 2 and not self.mnemonic.startswith(_COPIES)
        rest = _registers(",".join(parts[own:]))
        return rest | self.results if accumulates or two_operands else rest

    @property
    def is_vector(self) -> bool:
        """Whether the instruction is of the vector extension (MVE), or only sets its predicates."""
        return _VECTOR.search(self.operands) is not None or self.mnemonic.startswith(
            ("vpst", "vctp", "vpnot")
        )

    @property
    def addend(self) -> frozenset[str]:
        """The addend of a floating-point multiply-add: it is needed a cycle later than the factors."""
        return self.results if self.mnemonic.startswith(_MACS) else frozenset()


def _registers(text: str) -> frozenset[str]:
    listed = _RANGE.sub(lambda it: ",".join(f"{it[1]}{n}" for n in range(int(it[2]), int(it[3]) + 1)), text)
    registers: set[str] = set()
    for name in _REGISTER.findall(listed):
        if name[0] in _SINGLES:
            count = _SINGLES[name[0]]
            first = count * int(name[1:])
            registers |= {f"s{number}" for number in range(first, first + count)}
        else:
            registers.add(_ALIASES.get(name, name))
    return frozenset(registers)


def disassemble(elf: Path, toolchain: str, *, vectors: bool = False) -> Mapping[int, Instruction]:
    """Return the instructions of a program by address; `vectors`: it uses the vector extension (MVE).

    Raises BuildError if its toolchain has no objdump.
    """
    tool = find_program(f"{toolchain}-objdump")
    if tool is None:
        packages = COMPILER_PACKAGES[toolchain]
        raise BuildError(f"{toolchain}-objdump is not installed: {install_command(packages)}")
    machine = ("-m", "armv8.1-m.main") if vectors else ()  # objdump does not take it from the file
    status, text = run_logged([tool, "-d", *machine, str(elf)], None, elf.parent)
    if status:
        raise BuildError(f"{toolchain}-objdump refuses {elf.name}:\n{text.strip()}")
    parsed = (parse(line) for line in text.splitlines())
    return {instruction.address: instruction for instruction in parsed if instruction is not None}


def parse(line: str) -> Instruction | None:
    """Return the instruction of one line of objdump's listing; None for any other line."""
    match = _LINE.match(line)
    if match is None:
        return None
    size = len(match[2].replace(" ", "")) // 2
    mnemonic = match[3].partition(".")[0]  # without width and type
    return Instruction(int(match[1], 16), size, mnemonic, (match[4] or "").strip())


@dataclass(frozen=True, slots=True)
class ProgramFunction:
    """A function of a program; size in bytes."""

    name: str
    address: int
    size: int


@dataclass(frozen=True, slots=True)
class ElfSymbol:
    """A symbol of a program: its type as ELF names it, value and size in bytes."""

    name: str
    type: str
    value: int
    size: int


def read_symbols(elf: Path) -> list[ElfSymbol]:
    """Return the symbols of an ELF file."""
    with elf.open("rb") as file:
        tables = (it for it in ELFFile(file).iter_sections() if isinstance(it, SymbolTableSection))
        return [
            ElfSymbol(it.name, it["st_info"]["type"], it["st_value"], it["st_size"])
            for table in tables
            for it in table.iter_symbols()
        ]


class Functions:
    """The functions of an ELF file, by name and by the addresses inside them."""

    def __init__(self, elf: Path) -> None:
        functions = {
            ProgramFunction(it.name, it.value & ~1, it.size)
            for it in read_symbols(elf)
            if it.type == "STT_FUNC"
        }
        self.all = sorted(functions, key=lambda it: (it.address, it.size))
        self._starts = [it.address for it in self.all]
        self._by_name = {it.name: it for it in self.all}

    def named(self, name: str) -> ProgramFunction:
        """Return the function of that name. Raises BuildError if the program has none."""
        if name not in self._by_name:
            raise BuildError(f"the firmware has no function {name}")
        return self._by_name[name]

    def typed(self, name: str) -> ProgramFunction:
        """Return the function of that name, also with the types that mcud_config.h adds: NAME_o16_c8_a4.

        Raises BuildError if the program has none.
        """
        types = re.compile(rf"{name}_o\d+_c\d+_a\d+")
        return next((it for it in self.all if types.fullmatch(it.name)), None) or self.named(name)

    def start_of(self, address: int) -> int:
        """Return the address of the function that an address belongs to; 0 before the first one."""
        position = bisect_right(self._starts, address) - 1
        return self._starts[position] if position >= 0 else 0

    def at(self, address: int) -> str:
        """Return the name of the function that contains an address; `?` outside of all."""
        position = bisect_right(self._starts, address) - 1
        if position < 0:
            return "?"
        function = self.all[position]
        # Assembler routines of the C library may have no size.
        is_inside = function.size == 0 or address < function.address + function.size
        return function.name if is_inside else "?"
