"""Bounds and conflicts of a placement problem, and the outcome of a search."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from mcudeploy.ir.rectangles import PlacementProblem


def align_up(value: int, alignment: int) -> int:
    """Return the smallest multiple of `alignment` (bytes) that is not below `value`."""
    return -(-value // alignment) * alignment


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
