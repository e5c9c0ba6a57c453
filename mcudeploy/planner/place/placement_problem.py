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
from math import gcd

from mcudeploy.ir.interval import Interval


def align_up(value: int, alignment: int) -> int:
    """Return the smallest multiple of `alignment` (bytes) that is not below `value`."""
    return -(-value // alignment) * alignment


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Bytes that are needed for a life, in steps; with an empty life they have an offset but
    block nothing.
    """

    size_bytes: int
    life: Interval
    alignment: int = 1

    def __post_init__(self) -> None:
        if self.size_bytes <= 0 or self.alignment <= 0:
            raise ValueError(f"a rectangle has {self.size_bytes} bytes and alignment {self.alignment}")


@dataclass(frozen=True, slots=True)
class PlacementProblem:
    """Rectangles in one memory.

    A `stack` lists rectangles that lie in sequence, the first one aligned; only their common base is free.
    `again` lists the rectangles of one rematerialised block, or of tensors of one tag. First fit gives these
    one offset, so that one row table suffices; searches may give them several.
    """

    rectangles: tuple[Rectangle, ...]
    stacks: tuple[tuple[int, ...], ...] = ()
    again: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        stacked = [index for stack in self.stacks for index in stack]
        if not all(self.stacks):
            raise ValueError("a stack is empty")
        if not all(len(self.rectangles[index].life) for index in stacked):
            raise ValueError("a rectangle of a stack never lives")
        bound = stacked + [index for group in self.again for index in group]
        if len(set(bound)) < len(bound):
            raise ValueError("a rectangle is bound twice")
        for one, other in (pair for group in self.again for pair in pairwise(group)):
            if self.rectangles[one].life.hi > self.rectangles[other].life.lo:
                raise ValueError("a block is made again before it is dead")

    def part(self, indices: Sequence[int]) -> PlacementProblem:
        """Return some rectangles with their constraints; stacks and rematerialised blocks are
        never divided.
        """
        number = {index: at for at, index in enumerate(indices)}
        stacks, again = (
            tuple(tuple(number[index] for index in group) for group in groups if group[0] in number)
            for groups in (self.stacks, self.again)
        )
        return PlacementProblem(tuple(self.rectangles[index] for index in indices), stacks, again)


@dataclass(frozen=True, slots=True)
class PlacementOutcome:
    """The result of a search for offsets within a limit: offsets by rectangle, or None.

    If `proven`, there are none. `work` is the effort spent, in the measure of the search.
    """

    offsets: tuple[int, ...] | None
    proven: bool = False
    work: int = 0


def lower_bound(problem: PlacementProblem) -> int:
    """Return the largest sum of live bytes, including alignment.

    Between two rectangles at one step lies the padding of at least one of them; the topmost has none. Only
    the common divisor of all alignments is thus certain. Rectangles of stacks do not count there, because
    they may lie in the padding of others.
    """
    rectangles = problem.rectangles
    stacked = {index for stack in problem.stacks for index in stack}
    grain = gcd(*(item.alignment for item in rectangles)) or 1
    sizes = [item.size_bytes for item in rectangles]
    rounded = [0 if index in stacked else align_up(size, grain) for index, size in enumerate(sizes)]
    most = max((padded - size for padded, size in zip(rounded, sizes, strict=True)), default=0)
    return max(_largest_load(problem, sizes), _largest_load(problem, rounded) - most)


def _largest_load(problem: PlacementProblem, sizes: list[int]) -> int:
    change: dict[int, int] = {}
    for item, size in zip(problem.rectangles, sizes, strict=True):
        change[item.life.lo] = change.get(item.life.lo, 0) + size
        change[item.life.hi] = change.get(item.life.hi, 0) - size
    best = load = 0
    for time in sorted(change):
        load += change[time]
        best = max(best, load)
    return best


def stacks_at_the_top(problem: PlacementProblem, top: int) -> dict[int, int]:
    """Return offsets of stacked rectangles, by index: each stack below the previous, the first at `top`."""
    offsets: dict[int, int] = {}
    for stack in problem.stacks:
        alignment = problem.rectangles[stack[0]].alignment
        top = (top - sum(problem.rectangles[i].size_bytes for i in stack)) // alignment * alignment
        at = top
        for index in stack:
            offsets[index] = at
            at += problem.rectangles[index].size_bytes
    return offsets


def conflicts(problem: PlacementProblem) -> list[list[int]]:
    """Return, for each rectangle, those that are live at the same step, except those in its stack."""
    import numpy as np  # noqa: PLC0415 - slow to load

    lo = np.array([item.life.lo for item in problem.rectangles], np.int64)
    hi = np.array([item.life.hi for item in problem.rectangles], np.int64)
    stack = -np.arange(1, len(lo) + 1)
    for number, members in enumerate(problem.stacks):
        stack[list(members)] = number
    some = lo < hi
    return [
        np.flatnonzero((lo < hi[index]) & (hi > lo[index]) & (stack != stack[index]) & some).tolist()
        if some[index]
        else []
        for index in range(len(lo))
    ]
