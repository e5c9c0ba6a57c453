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
    """Rectangles, by index, that share one of some `memories`, by index, and their accessed bytes."""

    rectangles: tuple[int, ...]
    memories: tuple[int, ...]
    accessed_bytes: int


@dataclass(frozen=True, slots=True)
class Assigned:
    """An assignment: the memory of every group, offsets at birth by rectangle, moves as in `Packed`.

    By name of each used memory: the bytes of its arena, and their lower bound. `proven`: if it fits, no
    assignment costs less; otherwise, none fits.
    """

    memories: tuple[int, ...]
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
    memories: Sequence[ArenaMemory]
    costs: Table
    ranks: Table
    pinned: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls,
        problem: PlacementProblem,
        groups: Sequence[RectangleGroup],
        memories: Sequence[ArenaMemory],
        pinned: Collection[int] = (),
    ) -> MemoryAssignment:
        """Return the problem with its tables."""
        costs = [Fraction(memory.cost).limit_denominator(1000) for memory in memories]
        unit = lcm(*(cost.denominator for cost in costs))
        return cls(
            problem, groups, memories,
            tuple(tuple(group.accessed_bytes * int(cost * unit) for cost in costs) for group in groups),
            tuple(tuple(max(1, it.accessed_bytes) * at for at in range(len(memories))) for it in groups),
            frozenset(pinned),
        )  # fmt: skip

    def expense(self, memories: Sequence[int]) -> tuple[int, int]:
        """Return the cost and rank of an assignment."""
        chosen = tuple(enumerate(memories))
        cost = sum(self.costs[group][memory] for group, memory in chosen)
        return cost, sum(self.ranks[group][memory] for group, memory in chosen)

    def padded_bytes(self, index: int, memory: int) -> int:
        """Return the bytes of a rectangle up to where another one may begin in a memory."""
        item = self.problem.rectangles[index]
        return align_up(item.size_bytes, lcm(item.alignment, self.memories[memory].alignment))

    def packed(self, memories: Sequence[int], budget: Budget | None) -> Assigned:
        """Return the groups in these memories, with offsets; rectangles that do not fit exceed a capacity."""
        offsets = [0] * len(self.problem.rectangles)
        moves: list[tuple[int, int, int]] = []
        used, bound = dict[str, int](), dict[str, int]()
        for number, memory in enumerate(self.memories):
            there = [g.rectangles for g, at in zip(self.groups, memories, strict=True) if at == number]
            indices = sorted(index for rectangles in there for index in rectangles)
            if not indices:
                continue
            packing = self._packed(indices, memory, budget)
            used[memory.name], bound[memory.name] = packing.used_bytes, packing.bound_bytes
            for index, offset in zip(indices, packing.offsets, strict=True):
                offsets[index] = offset
            moves += [(step, indices[at], offset) for step, at, offset in packing.moves]
        moves.sort(key=lambda move: move[0])
        excess = bool(self.excess(used))
        return Assigned(tuple(memories), tuple(offsets), tuple(moves), used, bound, fits=not excess)

    def _packed(self, indices: Sequence[int], memory: ArenaMemory, budget: Budget | None) -> Packed:
        part = self.problem.part(indices)
        aligned = (replace(item, alignment=lcm(item.alignment, memory.alignment)) for item in part.rectangles)
        problem = replace(part, rectangles=tuple(aligned))
        pinned = {at: NEVER for at, index in enumerate(indices) if index in self.pinned}
        return pack(problem, pinned, budget, memory.capacity_bytes // ARENA_GRAIN_BYTES * ARENA_GRAIN_BYTES)

    def excess(self, used_bytes: Mapping[str, int]) -> dict[int, int]:
        """Return the bytes beyond its capacity, by memory that exceeds it."""
        over = (used_bytes.get(memory.name, 0) - memory.capacity_bytes for memory in self.memories)
        return {number: missing for number, missing in enumerate(over) if missing > 0}
