"""What the cycle models of all cores share: cycles, executed instructions, and what a model is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mcudeploy.execution.cycles.classes import Kind, classify, may_pass
from mcudeploy.toolchain.disassembly import Instruction

FLOAT_RESULT = frozenset({Kind.FLOAT_ARITHMETIC, Kind.FLOAT_MAC, Kind.FLOAT_DIVIDE})
"""Kinds whose results wait for the floating-point pipeline."""


@dataclass(frozen=True, slots=True)
class Cycles:
    """Cycles, and the least and most that the rules allow."""

    least: float = 0
    typical: float = 0
    most: float = 0

    def __add__(self, other: Cycles) -> Cycles:
        return Cycles(self.least + other.least, self.typical + other.typical, self.most + other.most)

    def __mul__(self, count: int) -> Cycles:
        return Cycles(self.least * count, self.typical * count, self.most * count)


@dataclass(frozen=True, slots=True)
class Executed:
    """An instruction with its kind, how often it ran, and how often it did not go on to the one behind it."""

    instruction: Instruction
    kind: Kind
    count: int
    left: int

    @classmethod
    def of(cls, instruction: Instruction, count: int, left: int) -> Executed:
        return cls(instruction, classify(instruction), count, left)

    @property
    def went_on(self) -> int:
        """How often the instruction behind it was next. What leaves always does so also at a window's end."""
        return self.count - self.jumps if self.can_jump else self.count - self.left

    @property
    def can_jump(self) -> bool:
        """Whether it is a branch, or loads the program counter."""
        return self.kind in (Kind.BRANCH, Kind.BRANCH_TABLE) or self.loads_pc

    @property
    def jumps(self) -> int:
        """How often it was a taken branch."""
        if not self.can_jump:
            return 0
        return self.left if may_pass(self.instruction) else self.count

    @property
    def loads_pc(self) -> bool:
        """Whether it loads the program counter."""
        return self.kind in (Kind.LOAD, Kind.LOAD_MANY) and "r15" in self.instruction.results

    @property
    def registers(self) -> int:
        """How many 32-bit registers it loads or stores."""
        if self.kind in (Kind.LOAD_MANY, Kind.FLOAT_LOAD):
            return len(self.instruction.results)
        if self.instruction.mnemonic.startswith("strd"):
            return 2
        listed = self.instruction.reads
        return max(len(listed - self.instruction.address_registers), 1)


@dataclass(frozen=True, slots=True)
class Core:
    """A model: where its figures are from, what it does not see, and the cost of an instruction.

    `cost` gets an instruction, the one in front of it in memory (None if nothing executed is), and whether
    that one shares its cycle with the one before it. It gives the cycles of all executions, and whether this
    one shares its cycle with the one in front.
    """

    name: str
    source: str
    left_out: tuple[str, ...]
    cost: Callable[[Executed, Executed | None, bool], tuple[Cycles, bool]]
