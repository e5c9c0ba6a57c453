"""The order with the least peak, proven, or within a time limit the best found and a lower bound.

Method: a minimum cut gives for every step the least that memory can hold while it runs (`bounds`); the graph
falls apart at steps without slack (`segments`), which are closed one by one, the one with the highest peak
first: dependences that cost nothing are added (`contract`), and a best-first search over the sets of done
steps (`bestfirst`) finds the optimum. Where that takes too long, bounds between the two are tried by
bisection: what must come before what within a bound is learned (`probing`), which refutes the bound or leaves
a smaller problem to a beam search and to the exact one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from mcudeploy.scheduler.beam import beam
from mcudeploy.scheduler.bestfirst import best_first
from mcudeploy.scheduler.bounds import least_needs
from mcudeploy.scheduler.contract import contracted
from mcudeploy.scheduler.moves import Moves, mask_of
from mcudeploy.scheduler.probing import learn, with_pairs
from mcudeploy.scheduler.problem import Problem
from mcudeploy.scheduler.segments import part_of, segments

MOST_SETS = 2_000_000
"""Sets of steps that one search may hold at once; some 500 bytes each."""

CONTRACT_SHARE = 0.2
QUICK_SHARE = 0.25
TRIAL_SHARE = 0.3
LEARN_SHARE = 0.6
BEAM_SHARE = 0.5
"""Each of the time that is left then: for contraction, for the plain search, for trying one bound; of that
for learning dependences; for the beam search.
"""

LEAST_TRIAL_SECONDS = 5.0
"""A bound is not tried for less, unless there is no more time."""

BEAM_WIDTHS = (50, 400)
"""How many sets of each size the beam searches follow."""


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
    """A part of the problem: what its steps are in the whole, its best order so far and that order's peak."""

    problem: Problem
    steps: Sequence[int]
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
        _close(part, until)
        floor = part.bound
    order = tuple(part.steps[step] for part in parts for step in part.order)
    peak = problem.peak(order)
    bound = min(floor, peak)
    return ExactResult(order if peak < problem.peak(upper) else None, bound, peak == bound)


def _close(part: _Part, deadline: float) -> None:
    """Search a part: plainly, then with a beam, then bound by bound."""
    smaller, numbers = contracted(part.problem, _share(deadline, CONTRACT_SHARE))
    found = best_first(Moves(smaller), part.bound, part.peak, _share(deadline, QUICK_SHARE), MOST_SETS)
    part.bound = found.bound_bytes
    _take(part, smaller, numbers, found.order)
    if part.bound < part.peak:
        _beam(part, smaller, numbers, part.bound, _share(deadline, BEAM_SHARE))
        _bisect(part, smaller, numbers, deadline)


def _take(part: _Part, problem: Problem, numbers: Sequence[int], order: Sequence[int] | None) -> None:
    """Keep an order of a smaller problem, whose steps have other numbers, if it is the best."""
    if order is not None and problem.peak(order) < part.peak:
        part.order, part.peak = [numbers[step] for step in order], problem.peak(order)


def _beam(part: _Part, problem: Problem, numbers: Sequence[int], floor: int, deadline: float) -> None:
    for width in BEAM_WIDTHS:
        left = deadline - time.monotonic()
        if left > 0 and part.peak > floor:
            _take(part, problem, numbers, beam(problem, width, floor, left))


def _bisect(part: _Part, problem: Problem, numbers: Sequence[int], deadline: float) -> None:
    """Bounds between what is proven and what is found; those that could not be decided come again later."""
    grain = gcd(*(buffer.size_bytes for buffer in problem.buffers))
    undecided = 0
    while part.bound < part.peak and (now := time.monotonic()) < deadline:
        part.bound = -(-part.bound // grain) * grain
        lowest = max(undecided, part.bound)
        if lowest >= part.peak:
            undecided = 0
            continue
        bound = lowest + (part.peak - 1 - lowest) // grain // 2 * grain
        until = max(_share(deadline, TRIAL_SHARE), min(deadline, now + LEAST_TRIAL_SECONDS))
        if not _decide(part, problem, numbers, bound, until):
            undecided = bound + grain


def _decide(part: _Part, problem: Problem, numbers: Sequence[int], bound: int, deadline: float) -> bool:
    """Whether a bound was refuted or an order within it was found; the part then has the news."""
    thinkable, pairs = learn(problem, bound, _share(deadline, LEARN_SHARE))
    if thinkable:
        smaller, places = with_pairs(problem, pairs)
        places = [numbers[place] for place in places]
        _beam(part, smaller, places, bound, _share(deadline, BEAM_SHARE))
        if part.peak <= bound:
            return True
        found = best_first(Moves(smaller), bound, bound + 1, deadline, MOST_SETS)
        _take(part, smaller, places, found.order)
        thinkable = found.bound_bytes <= bound
    if not thinkable:
        part.bound = bound + 1
    return not thinkable or part.peak <= bound


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
