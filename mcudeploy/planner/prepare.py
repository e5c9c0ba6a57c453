"""Compilation of all search loops for this machine before they are needed."""

from __future__ import annotations

from mcudeploy.common.effort import Effort
from mcudeploy.costs.tiles import CopyCost
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.rectangles import PlacementProblem, Rectangle
from mcudeploy.ir.trace import Item, ItemAccess, MemoryLink, Trace, TraceStep
from mcudeploy.planner.offload.offload import plan_residency
from mcudeploy.planner.place.compaction import relocate
from mcudeploy.planner.place.place import place

_EFFORT_S = 0.1


def compile_loops() -> None:
    """Run every search once on a small problem: numba compiles everything that its cache does not contain."""
    lives = ((0, 2), (0, 4), (1, 6), (3, 6), (4, 8), (5, 8))
    sizes = (8, 16, 8, 24, 8, 16)
    rectangles = zip(sizes, lives, strict=True)
    problem = PlacementProblem(tuple(Rectangle(size, Interval(*life), 8) for size, life in rectangles))
    relocate(problem, 48, {}, CopyCost(1, 1, 1), Effort.of(_EFFORT_S))
    place(problem, 40, Effort.of(_EFFORT_S))
    items = tuple(Item(name, 8, given=True) for name in "abc")
    steps = tuple(TraceStep(str(at), 4.0, (ItemAccess(at % 3, writes=False),)) for at in range(6))
    effort = Effort.of(_EFFORT_S)
    plan_residency(Trace(items, steps), 16, MemoryLink(1.0, 1.0), recompute=False, effort=effort)
