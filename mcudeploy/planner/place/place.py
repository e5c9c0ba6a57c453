"""Fixed offsets for plain rectangles within a capacity: first fit, then a canonical search."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from mcudeploy.common.effort import Effort
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.rectangles import PlacementProblem
from mcudeploy.planner.place.greedy import Clusters, fixed_orders, used_bytes
from mcudeploy.planner.place.placement_problem import lower_bound

_LOG = logging.getLogger(__name__)

_UNITS = 0.01
"""Effort of a rectangle or section that the canonical search examines."""

_LESS_SHARE = 3
"""The fraction of the work for sizes below the capacity."""

_SIZES = 6
"""The fraction of the remaining work for each size in the bisection between the bound and the used bytes."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Byte offsets by rectangle, the bytes used, and a lower bound for any placement."""

    offsets: tuple[int, ...]
    used_bytes: int
    lower_bound_bytes: int

    @property
    def status(self) -> str:
        """`optimal` if the used bytes equal the bound."""
        return "optimal" if self.used_bytes == self.lower_bound_bytes else "feasible"


@dataclass(slots=True, eq=False)
class _SeparatePart:
    """Rectangles, by index, that overlap no others in time, with their best offsets and a lower bound."""

    indices: list[int]
    bundles: Clusters
    best: tuple[int, ...]
    bound: int

    @property
    def used(self) -> int:
        return used_bytes(self.bundles.problem, self.best)


def place(
    problem: PlacementProblem, capacity: int, effort: Effort, *, seed: int = 0, fewest: bool = True
) -> Placed:
    """Return offsets of all rectangles within the capacity (bytes) if possible.

    With `fewest` the search then goes on to fewer bytes, until none are possible.

    Exceeding the capacity is not an error: compare `used_bytes`. Without effort only first fit is tried.
    Ctrl-C ends the search, or the program if nothing fits yet.
    """
    seed %= 1 << 31  # compiled loops have 64-bit integers
    parts = [_part(problem, indices) for indices in _apart(problem)]
    try:
        for part in sorted(parts, key=lambda part: -part.bound):
            enough = max([0 if fewest else capacity, *(other.bound for other in parts)])
            if part.used > enough and not effort.is_spent():
                _improve(part, capacity, enough, effort.part(1 / len(parts)), seed)
    except KeyboardInterrupt:
        if any(part.used > capacity for part in parts):
            raise
        _LOG.warning("interrupted: the search ends with the best offsets so far")
    offsets = [0] * len(problem.rectangles)
    for part in parts:
        for index, offset in zip(part.indices, part.best, strict=True):
            offsets[index] = offset
    idle = max((item.size_bytes for item in problem.rectangles if not len(item.life)), default=0)
    return Placed(
        tuple(offsets),
        max((part.used for part in parts), default=idle),
        max((part.bound for part in parts), default=idle),
    )


def _improve(part: _SeparatePart, capacity: int, enough: int, effort: Effort, seed: int) -> None:
    """Run the canonical search for the capacity, if it is exceeded; then for the bound and sizes in between.

    Sizes are bisected. Less than `enough` bytes has no use.
    """
    from mcudeploy.planner.place import canonical  # noqa: PLC0415 - numba is slow to load

    problem = part.bundles.problem
    if not canonical.applies(problem):
        return
    work = int(effort.left / _UNITS)
    floor = max(part.bound, enough)
    size, left = (capacity, work) if floor <= capacity < part.used else (floor, work // _LESS_SHARE)
    while size < part.used and left > work // 1000 and not effort.is_spent():
        share = left if size == capacity < part.used else left // _SIZES
        outcome = canonical.pack(problem, part.bundles.neighbours, size, effort, work=share, seed=seed)
        effort.spend(_UNITS * outcome.work)
        left = min(left - max(outcome.work, 1), work // _LESS_SHARE)
        if outcome.offsets is not None:
            part.best = outcome.offsets
            size = floor if size == capacity else (floor + part.used) // 2
        else:
            if outcome.proven:
                part.bound = max(part.bound, size + 1)
                floor = max(floor, size + 1)
            size = max(floor, (size + part.used + 1) // 2)


def _part(problem: PlacementProblem, indices: list[int]) -> _SeparatePart:
    one = problem.part(indices)
    bundles, bound = Clusters.of(one), lower_bound(one)
    return _SeparatePart(indices, bundles, fixed_orders(bundles, bound), bound)


def _apart(problem: PlacementProblem) -> list[list[int]]:
    """Return the rectangles grouped by runs of steps without an empty step."""
    spans = [item.life for item in problem.rectangles]
    for group in (*problem.stacks, *problem.again):
        hull = Interval(0, 0)
        for index in group:
            hull = hull.hull(spans[index])
        for index in group:
            spans[index] = hull
    runs: list[list[int]] = []
    end = -1
    alive = [(span.lo, span.hi, index) for index, span in enumerate(spans) if len(span)]
    for lo, hi, index in sorted(alive):
        if not runs or lo >= end:
            runs.append([])
        runs[-1].append(index)
        end = max(end, hi)
    return [sorted(run) for run in runs]
