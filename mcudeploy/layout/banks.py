"""What is to be put into which memory: groups of rectangles, the memories, and what each would cost where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

from mcudeploy.layout.place import place
from mcudeploy.layout.problem import Placed, Problem, align_up


@dataclass(frozen=True, slots=True)
class Bank:
    """A memory: the bytes that rectangles may take of it, what access to one of them costs, and what offsets
    in it are multiples of, beside the rectangles' own alignment.
    """

    name: str
    capacity_bytes: int
    cost: float = 1.0
    alignment: int = 1


@dataclass(frozen=True, slots=True)
class Group:
    """Rectangles, by index, that lie in one memory, one of `banks` (by index); and how many bytes are read
    from and written to them.
    """

    rectangles: tuple[int, ...]
    banks: tuple[int, ...]
    accessed_bytes: int


@dataclass(frozen=True, slots=True)
class Assigned:
    """The bank of every group, and offsets.

    `proven`: where it fits, that no assignment has a lower cost; where it does not, that none fits.
    """

    banks: tuple[int, ...]
    placed: Placed
    fits: bool
    proven: bool


Table = tuple[tuple[int, ...], ...]
"""A number for each group in each bank."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What is to be assigned; rectangles name no memory yet. `costs`, and `ranks` that decide between equal
    costs, are tables of whole numbers.
    """

    problem: Problem
    groups: Sequence[Group]
    banks: Sequence[Bank]
    grain: int
    costs: Table
    ranks: Table

    @classmethod
    def of(cls, problem: Problem, groups: Sequence[Group], banks: Sequence[Bank], grain: int) -> Task:
        """The task with its tables."""
        costs = [Fraction(bank.cost).limit_denominator(1000) for bank in banks]
        unit = lcm(*(cost.denominator for cost in costs))
        return cls(
            problem, groups, banks, grain,
            tuple(tuple(group.accessed_bytes * int(cost * unit) for cost in costs) for group in groups),
            tuple(tuple(max(1, group.accessed_bytes) * b for b in range(len(banks))) for group in groups),
        )  # fmt: skip

    def expense(self, banks: Sequence[int]) -> tuple[int, int]:
        """Cost and rank of an assignment."""
        at = tuple(enumerate(banks))
        return sum(self.costs[g][b] for g, b in at), sum(self.ranks[g][b] for g, b in at)

    def alignment(self, index: int, bank: int) -> int:
        """What the offset of a rectangle is a multiple of in a bank."""
        return lcm(self.problem.rectangles[index].alignment, self.banks[bank].alignment)

    def packed(
        self,
        banks: Sequence[int],
        seconds: float,
        *,
        limited: bool = True,
        fitting: bool = False,
    ) -> Assigned:
        """The groups in these banks, with offsets; `limited`: the capacities are aimed at; `fitting`: to keep
        them is enough.
        """
        bank_of = {i: bank for group, bank in zip(self.groups, banks, strict=True) for i in group.rectangles}
        rectangles = tuple(
            replace(item, alignment=self.alignment(i, bank_of[i]), memory=self.banks[bank_of[i]].name)
            for i, item in enumerate(self.problem.rectangles)
        )
        capacities = {bank.name: bank.capacity_bytes for bank in self.banks} if limited else {}
        problem = replace(self.problem, rectangles=rectangles, capacities=capacities)
        placed = place(problem, seconds, grain=self.grain, fitting=fitting)
        return Assigned(tuple(banks), placed, not self.excess(placed.used_bytes), proven=False)

    def settled(self, banks: Sequence[int], offsets: Sequence[int]) -> Assigned:
        """The groups in these banks, at these offsets."""
        used: dict[str, int] = {}
        for group, bank in zip(self.groups, banks, strict=True):
            name = self.banks[bank].name
            for index in group.rectangles:
                end = align_up(offsets[index] + self.problem.rectangles[index].size_bytes, self.grain)
                used[name] = max(used.get(name, 0), end)
        return Assigned(tuple(banks), Placed(tuple(offsets), used, {}), not self.excess(used), proven=False)

    def excess(self, used_bytes: Mapping[str, int]) -> dict[int, int]:
        """By bank the bytes beyond its capacity, where there are any."""
        over = {b: used_bytes.get(bank.name, 0) - bank.capacity_bytes for b, bank in enumerate(self.banks)}
        return {b: missing for b, missing in over.items() if missing > 0}
