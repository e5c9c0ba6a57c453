"""The order with the least peak, proven, or within a time limit the best found and a lower bound.

Method: a minimum cut gives for every step the least that memory can hold while it runs (`bounds`); the graph
falls apart at steps without slack (`segments`); a best-first search over the sets of done steps closes what
is left (`bestfirst`), part by part, the part with the highest peak first. Where that takes too long, bounds
between the two are tried by bisection: what must come before what within a bound is learned (`probing`);
that refutes the bound or leaves a smaller problem to a beam search and to the exact one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from mcudeploy.scheduler.beam import beam
from mcudeploy.scheduler.bestfirst import best_first
from mcudeploy.scheduler.bounds import least_needs
from mcudeploy.scheduler.moves import Moves, mask_of
from mcudeploy.scheduler.probing import learn, with_pairs
from mcudeploy.scheduler.problem import Problem
from mcudeploy.scheduler.segments import part_of, segments

MOST_SETS = 2_000_000
"""Sets of steps that one search may hold at once; some 500 bytes each."""

QUICK_SHARE = 0.1
"""Of the time that is left: how long the plain search has before bounds are bisected."""

TRIAL_SHARE = 0.35
"""Of the time that is left: how long one bound may take, and of that, in turn, learning and the beam."""
LEARN_SHARE = 0.6
BEAM_SHARE = 0.6

BEAM_WIDTH = 200
"""How many sets of each size the beam search follows."""


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
    open_parts = sorted((part for part in parts if part.peak > floor), key=lambda part: part.peak)
    while open_parts and (part := open_parts.pop()).peak > floor:
        part.bound = max(part.bound, floor)
        until = _share(start + seconds, 1 / (1 + sum(other.peak > floor for other in open_parts)))
        _search_sets(part, _share(until, QUICK_SHARE))
        _bisect(part, until)
        floor = part.bound
    order = tuple(part.steps[step] for part in parts for step in part.order)
    peak = problem.peak(order)
    bound = min(floor, peak)
    return ExactResult(order if peak < problem.peak(upper) else None, bound, peak == bound)


def _search_sets(part: _Part, deadline: float) -> None:
    found = best_first(Moves(part.problem), part.bound, part.peak, deadline, MOST_SETS)
    part.bound = found.bound_bytes
    if found.order is not None:
        part.order, part.peak = found.order, found.bound_bytes


def _bisect(part: _Part, deadline: float) -> None:
    """Bounds between what is proven and what is found, those that could not be decided left out."""
    grain = gcd(*(buffer.size_bytes for buffer in part.problem.buffers))
    undecided = part.bound
    while part.bound < part.peak and time.monotonic() < deadline:
        part.bound = -(-part.bound // grain) * grain
        lowest = max(undecided, part.bound)
        if lowest >= part.peak:
            break
        bound = lowest + (part.peak - 1 - lowest) // grain // 2 * grain
        if not _decide(part, bound, grain, _share(deadline, TRIAL_SHARE)):
            undecided = bound + grain


def _decide(part: _Part, bound: int, grain: int, deadline: float) -> bool:
    """Whether a bound was refuted or an order within it was found; the part then has the news."""
    thinkable, pairs = learn(part.problem, bound, _share(deadline, LEARN_SHARE))
    if not thinkable:
        part.bound = bound + grain
        return True
    smaller, numbers = with_pairs(part.problem, pairs)
    tried = beam(smaller, BEAM_WIDTH, bound, _share(deadline, BEAM_SHARE) - time.monotonic())
    if tried is not None and smaller.peak(tried) < part.peak:
        part.order, part.peak = [numbers[step] for step in tried], smaller.peak(tried)
        if part.peak <= bound:
            return True
    found = best_first(Moves(smaller), bound, bound + 1, deadline, MOST_SETS)
    if found.order is not None:
        part.order, part.peak = [numbers[step] for step in found.order], smaller.peak(found.order)
    elif found.bound_bytes > bound:
        part.bound = bound + grain
    return found.order is not None or found.bound_bytes > bound


def _share(deadline: float, share: float) -> float:
    """The moment when some share of the time that is left has gone by."""
    now = time.monotonic()
    return now + share * (deadline - now)


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
