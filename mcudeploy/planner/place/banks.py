"""The assignment problem: groups of rectangles, the memories, and the cost of each group in each memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

from mcudeploy.ir.rectangles import PlacementProblem
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES, Budget, Packed, pack
from mcudeploy.planner.place.compaction import NEVER
from mcudeploy.planner.place.placement_problem import align_up


@dataclass(frozen=True, slots=True)
class ArenaMemory:
    """A memory: the bytes available to rectangles, the cost of an access, and the alignment of offsets.

    Rectangles may have additional alignments.
    """

    name: str
    capacity_bytes: int
    cost: float = 1.0
    alignment: int = 1


@dataclass(frozen=True, slots=True)
class RectangleGroup:
    """Rectangles, by index, that lie in one memory, one of `banks` (by index), and their accessed bytes."""

    rectangles: tuple[int, ...]
    banks: tuple[int, ...]
    accessed_bytes: int


@dataclass(frozen=True, slots=True)
class Assigned:
    """An assignment: the memory of every group, offsets at birth by rectangle, moves as in `Packed`.

    By name of each used memory: the bytes of its arena, and their lower bound. `proven`: if it fits, no
    assignment costs less; otherwise, none fits.
    """

    banks: tuple[int, ...]
    offsets: tuple[int, ...]
    moves: tuple[tuple[int, int, int], ...]
    used_bytes: Mapping[str, int]
    bound_bytes: Mapping[str, int]
    fits: bool
    proven: bool = False


Table = tuple[tuple[int, ...], ...]
"""A number for each group in each memory."""


@dataclass(frozen=True, slots=True, eq=False)
class MemoryAssignment:
    """The assignment problem. `costs`, and `ranks` that decide ties, are tables of integers.

    `pinned` rectangles do not move.
    """

    problem: PlacementProblem
    groups: Sequence[RectangleGroup]
    banks: Sequence[ArenaMemory]
    costs: Table
    ranks: Table
    pinned: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls,
        problem: PlacementProblem,
        groups: Sequence[RectangleGroup],
        banks: Sequence[ArenaMemory],
        pinned: Collection[int] = (),
    ) -> MemoryAssignment:
        """Return the problem with its tables."""
        costs = [Fraction(bank.cost).limit_denominator(1000) for bank in banks]
        unit = lcm(*(cost.denominator for cost in costs))
        return cls(
            problem, groups, banks,
            tuple(tuple(group.accessed_bytes * int(cost * unit) for cost in costs) for group in groups),
            tuple(tuple(max(1, group.accessed_bytes) * b for b in range(len(banks))) for group in groups),
            frozenset(pinned),
        )  # fmt: skip

    def expense(self, banks: Sequence[int]) -> tuple[int, int]:
        """Return the cost and rank of an assignment."""
        at = tuple(enumerate(banks))
        return sum(self.costs[g][b] for g, b in at), sum(self.ranks[g][b] for g, b in at)

    def padded_bytes(self, index: int, bank: int) -> int:
        """Return the bytes of a rectangle up to where another one may begin in a memory."""
        item = self.problem.rectangles[index]
        return align_up(item.size_bytes, lcm(item.alignment, self.banks[bank].alignment))

    def packed(self, banks: Sequence[int], budget: Budget | None) -> Assigned:
        """Return the groups in these memories, with offsets; rectangles that do not fit exceed a capacity."""
        offsets = [0] * len(self.problem.rectangles)
        moves: list[tuple[int, int, int]] = []
        used, bound = dict[str, int](), dict[str, int]()
        for number, bank in enumerate(self.banks):
            there = [g.rectangles for g, at in zip(self.groups, banks, strict=True) if at == number]
            indices = sorted(index for rectangles in there for index in rectangles)
            if not indices:
                continue
            packing = self._packed(indices, bank, budget)
            used[bank.name], bound[bank.name] = packing.used_bytes, packing.bound_bytes
            for index, offset in zip(indices, packing.offsets, strict=True):
                offsets[index] = offset
            moves += [(step, indices[at], offset) for step, at, offset in packing.moves]
        moves.sort(key=lambda move: move[0])
        excess = bool(self.excess(used))
        return Assigned(tuple(banks), tuple(offsets), tuple(moves), used, bound, fits=not excess)

    def _packed(self, indices: Sequence[int], bank: ArenaMemory, budget: Budget | None) -> Packed:
        part = self.problem.part(indices)
        aligned = (replace(item, alignment=lcm(item.alignment, bank.alignment)) for item in part.rectangles)
        problem = replace(part, rectangles=tuple(aligned))
        pinned = {at: NEVER for at, index in enumerate(indices) if index in self.pinned}
        return pack(problem, pinned, budget, bank.capacity_bytes // ARENA_GRAIN_BYTES * ARENA_GRAIN_BYTES)

    def excess(self, used_bytes: Mapping[str, int]) -> dict[int, int]:
        """Return the bytes beyond its capacity, by memory that exceeds it."""
        over = {b: used_bytes.get(bank.name, 0) - bank.capacity_bytes for b, bank in enumerate(self.banks)}
        return {b: missing for b, missing in over.items() if missing > 0}
