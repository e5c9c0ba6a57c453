"""The order with the least peak, proven, or within a time limit the best found and a lower bound.

Method: a minimum cut gives for every step the least that memory can hold while it runs (`bounds`); the graph
falls apart at steps without slack (`segments`); a best-first search over the sets of done steps closes what
is left (`bestfirst`), part by part, the part with the highest peak first.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from mcudeploy.scheduler.bestfirst import best_first
from mcudeploy.scheduler.bounds import least_needs
from mcudeploy.scheduler.moves import Moves, mask_of
from mcudeploy.scheduler.problem import Problem
from mcudeploy.scheduler.segments import part_of, segments

MOST_SETS = 3_000_000
"""Sets of steps that the search may hold at once; some 300 bytes each."""


@dataclass(frozen=True, slots=True)
class ExactResult:
    """`order` has a lower peak than the one given, or is None. No order has a peak below the bound; where
    `proven`, the better of the two orders has exactly that peak.
    """

    order: tuple[int, ...] | None
    lower_bound_bytes: int
    proven: bool


@dataclass(slots=True)
class _Part:
    """A part of the problem: its own steps in the whole, its best order so far and that order's peak."""

    problem: Problem
    steps: tuple[int, ...]
    order: Sequence[int]
    peak: int
    bound: int = 0


def search(problem: Problem, seconds: float, upper: Sequence[int]) -> ExactResult:
    """Look for an order with a lower peak than `upper`, a valid one, for at most some `seconds`."""
    start = time.monotonic()
    parts = _parts(problem, upper)
    floor = 0
    for part in sorted(parts, key=lambda part: -part.peak):
        if part.peak > floor:
            needs = least_needs(part.problem, start + seconds / 2, part.peak)
            part.bound = max(needs, default=0)
            floor = max(floor, part.bound)
    for part in sorted(parts, key=lambda part: -part.peak):
        if part.peak <= floor:
            break
        moves = Moves(part.problem)
        found = best_first(moves, floor, part.peak, start + seconds, MOST_SETS)
        part.bound = max(part.bound, found.bound_bytes)
        floor = max(floor, part.bound)
        if found.order is not None:
            part.order, part.peak = found.order, found.bound_bytes
    order = tuple(part.steps[step] for part in parts for step in part.order)
    peak = problem.peak(order)
    bound = min(floor, peak)
    return ExactResult(order if peak < problem.peak(upper) else None, bound, peak == bound)


def _parts(problem: Problem, upper: Sequence[int]) -> list[_Part]:
    place = {step: at for at, step in enumerate(upper)}
    parts, earlier = [], 0
    for steps in segments(problem):
        part = part_of(problem, steps, earlier)
        number = {step: at for at, step in enumerate(steps)}
        order = [number[step] for step in sorted(steps, key=place.__getitem__)]
        parts.append(_Part(part, steps, order, part.peak(order)))
        earlier |= mask_of(steps)
    return parts
