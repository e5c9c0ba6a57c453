"""The order with the least peak, proven, or within a time limit the best found and a lower bound.

Method: dependences that cost nothing are added (`contract`), and a best-first search over the sets of done
steps (`bestfirst`) finds the optimum. Where that takes too long, bounds between what is proven and what is
found are tried by bisection: what must come before what within a bound is learned (`probing`), which refutes
the bound or leaves a smaller problem to a beam search and to the exact one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from mcudeploy.scheduler.beam import beam
from mcudeploy.scheduler.bestfirst import best_first
from mcudeploy.scheduler.contract import contracted
from mcudeploy.scheduler.probing import learn, with_pairs
from mcudeploy.scheduler.problem import Problem, Solution

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


def search(problem: Problem, order: Sequence[int], bound: int, deadline: float) -> Solution:
    """A valid order no worse than `order`, at best proven optimal, by `deadline` (time.monotonic) or a little
    later. `bound`: bytes that are known to be needed.
    """
    peak = problem.peak(order)
    if bound >= peak:
        return Solution(tuple(order), peak)
    found = _Search(*contracted(problem, share(deadline, CONTRACT_SHARE)), order, peak, bound)
    found.run(deadline)
    return Solution(tuple(found.order), min(found.bound, found.peak))


@dataclass(slots=True)
class _Search:
    """A problem with the dependences that cost nothing, the numbers that its steps had before, the best order
    so far by those numbers, its peak, and what is proven.
    """

    problem: Problem
    numbers: Sequence[int]
    order: Sequence[int]
    peak: int
    bound: int

    def run(self, deadline: float) -> None:
        """Search plainly, then with a beam, then bound by bound."""
        found = best_first(self.problem, self.bound, self.peak, share(deadline, QUICK_SHARE), MOST_SETS)
        self.bound = found.bound_bytes
        self._take(self.problem, self.numbers, found.order)
        if self.bound < self.peak:
            self._beam(self.problem, self.numbers, self.bound, share(deadline, BEAM_SHARE))
            self._bisect(deadline)

    def _take(self, problem: Problem, numbers: Sequence[int], order: Sequence[int] | None) -> None:
        """Keep an order of a problem, whose steps have other numbers, if it is the best."""
        if order is not None and (peak := problem.peak(order)) < self.peak:
            self.order, self.peak = [numbers[step] for step in order], peak

    def _beam(self, problem: Problem, numbers: Sequence[int], floor: int, deadline: float) -> None:
        for width in BEAM_WIDTHS:
            if time.monotonic() < deadline and self.peak > floor:
                self._take(problem, numbers, beam(problem, width, floor, deadline))

    def _bisect(self, deadline: float) -> None:
        """Bounds between what is proven and what is found; those not decided come again later."""
        grain = gcd(*(buffer.size_bytes for buffer in self.problem.buffers))
        undecided = 0
        while self.bound < self.peak and (now := time.monotonic()) < deadline:
            self.bound = -(-self.bound // grain) * grain
            lowest = max(undecided, self.bound)
            if lowest >= self.peak:
                undecided = 0
                continue
            bound = lowest + (self.peak - 1 - lowest) // grain // 2 * grain
            until = max(share(deadline, TRIAL_SHARE), min(deadline, now + LEAST_TRIAL_SECONDS))
            if not self._decide(bound, until):
                undecided = bound + grain

    def _decide(self, bound: int, deadline: float) -> bool:
        """Whether a bound was refuted or an order within it was found."""
        thinkable, pairs = learn(self.problem, bound, share(deadline, LEARN_SHARE))
        if thinkable:
            smaller, places = with_pairs(self.problem, pairs)
            numbers = [self.numbers[place] for place in places]
            self._beam(smaller, numbers, bound, share(deadline, BEAM_SHARE))
            if self.peak <= bound:
                return True
            found = best_first(smaller, bound, bound + 1, deadline, MOST_SETS)
            self._take(smaller, numbers, found.order)
            thinkable = found.bound_bytes <= bound
        if not thinkable:
            self.bound = bound + 1
        return not thinkable or self.peak <= bound


def share(deadline: float, part: float) -> float:
    """The moment when a part of the time that is left has gone by."""
    now = time.monotonic()
    return now + part * (deadline - now)
