"""The checker of placed rectangles: quadratic, and without code shared with the placement."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mcudeploy.checker.owners import PlanFaultError
from mcudeploy.ir.rectangles import PlacementProblem


def check_offsets(problem: PlacementProblem, offsets: Sequence[int], capacity: int | None = None) -> None:
    """Check offsets of rectangles.

    Raises PlanFaultError if two rectangles share bytes while both are live, or if one is misaligned, beyond
    the capacity (bytes) or separate from its stack.
    """
    if len(offsets) != len(problem.rectangles):
        raise PlanFaultError(f"{len(offsets)} offsets for {len(problem.rectangles)} rectangles")
    above_of = {below: above for stack in problem.stacks for above, below in pairwise(stack)}
    for index, item in enumerate(problem.rectangles):
        offset, end = offsets[index], offsets[index] + item.size_bytes
        if offset < 0 or (capacity is not None and end > capacity):
            raise PlanFaultError(f"rectangle {index} at [{offset}, {end}) leaves its {capacity} bytes")
        if index in above_of:
            above = above_of[index]
            if offset != offsets[above] + problem.rectangles[above].size_bytes:
                raise PlanFaultError(f"rectangle {index} at {offset} does not touch {above} of its stack")
        elif offset % item.alignment:
            raise PlanFaultError(f"rectangle {index} at {offset} is not aligned to {item.alignment}")
    for one in range(len(offsets)):
        for two in range(one):
            _require_disjoint(problem, offsets, one, two)


def _require_disjoint(problem: PlacementProblem, offsets: Sequence[int], one: int, two: int) -> None:
    a, b = problem.rectangles[one], problem.rectangles[two]
    if offsets[one] >= offsets[two] + b.size_bytes or offsets[two] >= offsets[one] + a.size_bytes:
        return
    if a.life.overlaps(b.life):
        step = max(a.life.lo, b.life.lo)
        raise PlanFaultError(f"rectangles {two} and {one} share bytes at step {step}")
