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

_LESS_DIVISOR = 3
"""The work for sizes below the capacity is the whole work divided by this."""

_SIZE_DIVISOR = 6
"""The work for each size of the bisection is the remaining work divided by this."""


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
    clusters: Clusters
    best: tuple[int, ...]
    bound: int

    @property
    def used(self) -> int:
        return used_bytes(self.clusters.problem, self.best)


def place(
    problem: PlacementProblem, capacity: int, effort: Effort, *, seed: int = 0, fewest: bool = True
) -> Placed:
    """Return offsets of all rectangles within the capacity (bytes) if possible.

    With `fewest`, the search goes on for an arena of the fewest bytes. Exceeding the capacity is not an
    error: compare `used_bytes`. Without effort only first fit is tried. Ctrl-C ends the search; if nothing
    fits yet, the program.
    """
    seed %= 1 << 31  # compiled loops have 64-bit integers
    parts = [_part(problem, indices) for indices in _separate_in_time(problem)]
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

    problem = part.clusters.problem
    if not canonical.applies(problem):
        return
    work = int(effort.left / _UNITS)
    floor = max(part.bound, enough)
    size, left = (capacity, work) if floor <= capacity < part.used else (floor, work // _LESS_DIVISOR)
    while size < part.used and left > work // 1000 and not effort.is_spent():
        share = left if size == capacity < part.used else left // _SIZE_DIVISOR
        outcome = canonical.pack(problem, part.clusters.neighbours, size, effort, work=share, seed=seed)
        effort.spend(_UNITS * outcome.work)
        left = min(left - max(outcome.work, 1), work // _LESS_DIVISOR)
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
    clusters, bound = Clusters.of(one), lower_bound(one)
    return _SeparatePart(indices, clusters, fixed_orders(clusters, bound), bound)


def _separate_in_time(problem: PlacementProblem) -> list[list[int]]:
    """Return groups of rectangles such that no two of different groups are live at the same step."""
    spans = [item.life for item in problem.rectangles]
    for group in (*problem.stacks, *problem.in_turn):
        hull = Interval(0, 0)
        for index in group:
            hull = hull.hull(spans[index])
        for index in group:
            spans[index] = hull
    groups: list[list[int]] = []
    end = -1
    alive = [(span.lo, span.hi, index) for index, span in enumerate(spans) if len(span)]
    for lo, hi, index in sorted(alive):
        if not groups or lo >= end:
            groups.append([])
        groups[-1].append(index)
        end = max(end, hi)
    return [sorted(group) for group in groups]
