"""The common parts of all cores' cycle models: cycles, executed instructions, and the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mcudeploy.execution.cycles.classes import Kind, classify, may_pass
from mcudeploy.toolchain.disassembly import Instruction

RULES_VERSION = 2
"""The version of the models' rules: it grows when the rules of any core change."""
FLOAT_RESULT: frozenset[Kind] = frozenset({Kind.FLOAT_ARITHMETIC, Kind.FLOAT_MAC, Kind.FLOAT_DIVIDE})
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
    """An instruction, its kind, its executions, and those not followed by the next instruction in memory."""

    instruction: Instruction
    kind: Kind
    count: int
    not_followed: int

    @classmethod
    def of(cls, instruction: Instruction, count: int, not_followed: int) -> Executed:
        return cls(instruction, classify(instruction), count, not_followed)

    @property
    def followed(self) -> int:
        """Executions after which the next instruction in memory ran, or would have run after a window."""
        return self.count - self.jumps if self.can_jump else self.count - self.not_followed

    @property
    def can_jump(self) -> bool:
        """Whether the instruction is a branch, or loads the program counter."""
        return self.kind in (Kind.BRANCH, Kind.BRANCH_TABLE) or self.loads_pc

    @property
    def jumps(self) -> int:
        """The number of taken branches."""
        if not self.can_jump:
            return 0
        return self.not_followed if may_pass(self.instruction) else self.count

    @property
    def loads_pc(self) -> bool:
        """Whether the instruction loads the program counter."""
        return self.kind in (Kind.LOAD, Kind.LOAD_MANY) and "r15" in self.instruction.results

    @property
    def registers(self) -> int:
        """The number of 32-bit registers that the instruction loads or stores."""
        if self.kind in (Kind.LOAD_MANY, Kind.FLOAT_LOAD):
            return len(self.instruction.results)
        if self.instruction.mnemonic.startswith("strd"):
            return 2
        listed = self.instruction.reads
        return max(len(listed - self.instruction.address_registers), 1)


@dataclass(frozen=True, slots=True)
class Core:
    """A model: the source of its figures, the effects it ignores, and the cost of an instruction.

    `cost` receives an instruction, the previous one in memory (None if none is executed), and whether that
    one shares its cycle with the one before it. It returns the cycles of all executions, and whether this
    instruction shares its cycle with the previous one.
    """

    name: str
    source: str
    left_out: tuple[str, ...]
    cost: Callable[[Executed, Executed | None, bool], tuple[Cycles, bool]]
