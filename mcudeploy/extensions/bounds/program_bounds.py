"""Bounds of a program's instructions and cycles, by step: the most over all values of its data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from mcudeploy.execution.cycles.core import Core


class Dependence(StrEnum):
    """How the instructions of a step depend on data."""

    NONE = "independent"
    """All data execute the same instructions at the same addresses of data."""
    TABLES = "tables"
    """The same instructions; addresses of some loads or stores, or operands of divisions, depend on data."""
    BRANCHES = "branches"
    """Branches depend on data, and have a longest path."""
    LOOPS = "loops"
    """Data decide how often a loop runs, or which function is called: there is no bound."""


@dataclass(frozen=True, slots=True)
class StepBound:
    """The bound of one entry of the tape.

    `counted`: its instructions in the counted run; `instructions` and `cycles`: the most over all data, None
    without a bound, for which `reason` states the cause.
    """

    operator: str
    kernel: str
    counted: int
    dependence: Dependence
    instructions: int | None
    cycles: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ProgramBounds:
    """The bounds of a program by step, and of a whole run.

    `board`: the emulated board that counted; `core`: the cycle model, None if its core has none;
    `step_overhead` and `run_overhead`: what MODEL_step() and MODEL_run() add, in instructions and cycles.
    """

    board: str
    core: Core | None
    compiler: str
    steps: tuple[StepBound, ...]
    step_overhead: tuple[int, float]
    run_overhead: tuple[int, float]

    @property
    def by_operator(self) -> list[list[StepBound]]:
        """The steps of each operator, in the order of the first ones."""
        operators: dict[str, list[StepBound]] = {}
        for step in self.steps:
            operators.setdefault(step.operator, []).append(step)
        return list(operators.values())

    @property
    def counted(self) -> int:
        """The instructions of the counted run, without overheads."""
        return sum(step.counted for step in self.steps)

    @property
    def step_instructions(self) -> int | None:
        """The most instructions of one call of MODEL_step()."""
        return _with_overhead(max, [step.instructions for step in self.steps], self.step_overhead[0])

    @property
    def step_cycles(self) -> int | None:
        """The most cycles of one call of MODEL_step()."""
        return _with_overhead(max, [step.cycles for step in self.steps], self.step_overhead[1])

    @property
    def run_instructions(self) -> int | None:
        """The most instructions of one call of MODEL_run()."""
        return _with_overhead(sum, [step.instructions for step in self.steps], self.run_overhead[0])

    @property
    def run_cycles(self) -> int | None:
        """The most cycles of one call of MODEL_run()."""
        return _with_overhead(sum, [step.cycles for step in self.steps], self.run_overhead[1])


def _with_overhead(
    combine: Callable[[Iterable[int]], int], bounds: Sequence[int | None], overhead: float
) -> int | None:
    """Return the maximum or sum of bounds, plus an overhead; None if a bound is missing."""
    bound = combined(combine, bounds)
    return None if bound is None else math.ceil(bound + overhead)


def combined(combine: Callable[[Iterable[int]], int], bounds: Sequence[int | None]) -> int | None:
    """Return the maximum or sum of bounds; None if a bound is missing, or there are no bounds."""
    known = [it for it in bounds if it is not None]
    return combine(known) if known and len(known) == len(bounds) else None
