"""Frames and calls of functions without a source, such as those of the C library, from their instructions."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from mcudeploy.common.errors import BuildError
from mcudeploy.toolchain.disassembly import CONDITION, Functions, Instruction, disassemble

_PUSH = re.compile(r"(?:push|stmdb|stmfd|vpush|vstmdb)$")
_LIST = re.compile(r"\{([^}]*)\}")
_SUBTRACTED = re.compile(r"sp, (?:sp, )?#(\d+)$")
_STORED = re.compile(r"\[sp, #-(\d+)\]!")
_ADDED = re.compile(r"sp, ?(?:sp, ?)?#?(-?\d+)$")
_CHANGED = re.compile(r"sp(?:,(?! ?\{)|!|$)")
_KEEPS = re.compile(r"(?:cmp|cmn|tst|sw|sd|fsw|fsd|str\w*)$")
_TARGET = re.compile(r"(?:^|,)\s*([0-9a-f]+)$")
_SAVE = re.compile(r"__riscv_save_(\d+)$")
_CALL = re.compile(r"(?:bl|blx|jal|call)$")
_BRANCH = re.compile(rf"(?:b{CONDITION}?|cbn?z|b(?:eq|ne|lt|ge|gt|le|ltu|geu|gtu|leu)z?|j|tail)$")
_END = re.compile(r"(?:b|bx|j|jr|ret|mret|udf|tail)$")


class LibraryFunctions:
    """The functions of an ELF file, read from their instructions on first use."""

    def __init__(self, elf: Path, toolchain: str) -> None:
        self._elf = elf
        self._toolchain = toolchain

    def __contains__(self, name: str) -> bool:
        return name in self._starts

    def frame(self, name: str) -> tuple[int, frozenset[str]]:
        """Return the bytes that a function pushes, on all paths together, and the functions it may call.

        A missing function needs nothing: the linker dropped its callers, or the compiler its calls.
        Raises BuildError if the stack pointer is set to an unknown value, and for calls through pointers.
        """
        if name not in self:
            return 0, frozenset()
        start = self._starts[name]
        body = self._bodies[start]
        targets = {target for it in body for target in self._targets(it, start, name)}
        following = bisect_right(self._order, start)
        if following < len(self._order) and not _ends(body):
            targets.add(self._order[following])
        called = {self._names[it] for it in targets}
        # their pushes stay in the caller
        saved = {it: int(match[1]) for it in called if (match := _SAVE.match(it))}
        pushed = self.pushed(name) + max(map(_saved_bytes, saved.values()), default=0)
        return pushed, frozenset(called - set(saved))

    def pushed(self, name: str) -> int:
        """Return the bytes that a function pushes, on all paths together; 0 for a missing one.

        Raises BuildError if the stack pointer is set to an unknown value.
        """
        body = self._bodies[self._starts[name]] if name in self else ()
        return sum(pushed_bytes(it, name) for it in body)

    def _targets(self, instruction: Instruction, start: int, name: str) -> list[int]:
        call = bool(_CALL.match(instruction.mnemonic))
        if not call and not _BRANCH.match(instruction.mnemonic):
            if instruction.mnemonic in ("jalr", "jr") and instruction.operands != "ra":
                raise _unreadable(name, instruction)
            return []
        match = _TARGET.search(instruction.operands)
        if match is None:
            raise _unreadable(name, instruction)
        position = bisect_right(self._order, int(match[1], 16)) - 1
        target = self._order[max(position, 0)]
        # a call to the middle of itself is a far jump, or its pushes are counted already
        return [target] if target != start or (int(match[1], 16) == start and call) else []

    @cached_property
    def _all(self) -> Functions:
        return Functions(self._elf)

    @cached_property
    def _names(self) -> dict[int, str]:
        """The names by address; static functions of one name have their address in it."""
        count = Counter(it.name for it in self._all.all)
        return {
            it.address: it.name if count[it.name] == 1 else f"{it.name}@{it.address:x}"
            for it in self._all.all
        }

    @cached_property
    def _starts(self) -> dict[str, int]:
        aliases = {it.name: it.address for it in self._all.all}
        return aliases | {name: address for address, name in self._names.items()}

    @cached_property
    def _order(self) -> list[int]:
        return sorted(self._names)

    @cached_property
    def _bodies(self) -> dict[int, list[Instruction]]:
        bodies: dict[int, list[Instruction]] = {start: [] for start in self._order}
        for address, instruction in sorted(disassemble(self._elf, self._toolchain).items()):
            position = bisect_right(self._order, address) - 1
            if position >= 0 and instruction.mnemonic not in ("", "nop"):  # data between functions, padding
                bodies[self._order[position]].append(instruction)
        return bodies


def _saved_bytes(registers: int) -> int:
    """Return the bytes that __riscv_save_N of a 32-bit libgcc pushes; it returns with them pushed."""
    return 16 if registers < 4 else 64


def pushed_bytes(instruction: Instruction, function: str) -> int:
    """Return the bytes by which an Arm or RISC-V instruction lowers the stack pointer, 0 if it raises it.

    Raises BuildError for an instruction that sets it to an unknown value.
    """
    mnemonic, operands = instruction.mnemonic, instruction.operands
    if _PUSH.match(mnemonic) and (operands.startswith(("sp!", "{"))):
        return _list_bytes(operands)
    if stored := _STORED.search(operands):
        return int(stored[1])
    if mnemonic in ("sub", "subs", "subw") and (subtracted := _SUBTRACTED.match(operands)):
        return int(subtracted[1])
    if mnemonic in ("add", "addw", "addi") and (added := _ADDED.match(operands)):
        return max(0, -int(added[1]))
    raises = mnemonic.startswith(("ldm", "vldm", "pop", "vpop"))
    if _CHANGED.match(operands) and not raises and not _KEEPS.match(mnemonic):
        raise _unreadable(function, instruction)
    return 0


def _list_bytes(operands: str) -> int:
    """Return the bytes of a register list such as {r4, r5, lr} or {d8-d11}."""
    match = _LIST.search(operands)
    names = [part.strip() for part in match[1].split(",")] if match else []
    total = 0
    for name in names:
        first, _, last = name.partition("-")
        count = int(last[1:]) - int(first[1:]) + 1 if last else 1
        total += count * (8 if name.startswith("d") else 4)
    return total


def _ends(body: Sequence[Instruction]) -> bool:
    """Whether nothing is executed after the last instruction."""
    last = body[-1] if body else None
    if last is None:
        return False
    to_pc = last.mnemonic.startswith(("pop", "ldm", "ldr", "mov")) and bool(
        re.search(r"\bpc\b", last.operands)
    )
    return to_pc or bool(_END.match(last.mnemonic))


def _unreadable(function: str, instruction: Instruction) -> BuildError:
    text = f"{instruction.mnemonic} {instruction.operands}"
    return BuildError(f"no bound for the stack: `{text}` in {function} sets an unknown depth")
