"""The placement problem: rectangles (live ranges x bytes) in a memory, and constraints on their offsets.

bytes
  ^   +-------+   +-----+
  |   +-------+   +-----+
  |       +-----------+
  |       +-----------+
  +---------------------> steps
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mcudeploy.ir.interval import Interval


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Bytes that are in use during the steps `life`; if it is empty, the rectangle overlaps no other one."""

    size_bytes: int
    life: Interval
    alignment: int = 1

    def __post_init__(self) -> None:
        if self.size_bytes <= 0 or self.alignment <= 0:
            raise ValueError(f"a rectangle has {self.size_bytes} bytes and alignment {self.alignment}")


@dataclass(frozen=True, slots=True)
class PlacementProblem:
    """Rectangles in one memory, by their indices in constraints.

    Each of `stacks` lists rectangles that lie in sequence without gaps, the first one aligned. Each of
    `in_turn` lists rectangles that live in turn: those of one rematerialised block, or of tensors of one tag.
    First fit gives such a group one offset, so that one row table is enough; searches may give it several.
    """

    rectangles: tuple[Rectangle, ...]
    stacks: tuple[tuple[int, ...], ...] = ()
    in_turn: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        stacked = [index for stack in self.stacks for index in stack]
        if not all(self.stacks):
            raise ValueError("a stack is empty")
        if not all(len(self.rectangles[index].life) for index in stacked):
            raise ValueError("a rectangle of a stack never lives")
        constrained = stacked + [index for group in self.in_turn for index in group]
        if len(set(constrained)) < len(constrained):
            raise ValueError("a rectangle is in two constraints")
        for one, other in (pair for group in self.in_turn for pair in pairwise(group)):
            if self.rectangles[one].life.hi > self.rectangles[other].life.lo:
                raise ValueError("a block is recomputed while it is live")

    def part(self, indices: Sequence[int]) -> PlacementProblem:
        """Return the problem of some rectangles with their constraints, which `indices` must not divide."""
        number = {index: at for at, index in enumerate(indices)}
        stacks, in_turn = (
            tuple(tuple(number[index] for index in group) for group in groups if group[0] in number)
            for groups in (self.stacks, self.in_turn)
        )
        return PlacementProblem(tuple(self.rectangles[index] for index in indices), stacks, in_turn)
