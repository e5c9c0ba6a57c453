"""The order with the least peak, proven, or within a time limit the best found and a lower bound.

Method: dependences that cost nothing are added (`contract`), and a best-first search over the sets of done
steps (`bestfirst`) finds the optimum. Where that takes too long, annealing looks for a better order, and
bounds between what is proven and what is found are tried, from below and in strides that grow while they
last: what must come before what within a bound is learned (`probing`), which refutes the bound or leaves a
smaller problem to a beam search and to the exact one. The nearer a bound is to what is proven, the sooner it
is decided. Effort is counted in sets, moves and cuts; time is a brake.
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

QUICK_SETS = 60_000
"""Sets of the plain search, some 2 s."""

ANNEALINGS = 2

TRIAL_CUTS, TRIAL_SETS = 10_000, 20_000
"""Minimum cuts and sets for one bound at first; they double when not even the next bound is decided."""

MOST_DOUBLINGS = 4

STRIDES = 8
"""The first stride is this part of the way from what is proven to what is found."""

CONTRACT_SHARE = 0.2
"""Of the time that is left: a brake for contraction."""

BEAM_WIDTH = 50
"""How many sets of each size the beam searches follow."""


def search(problem: Problem, order: Sequence[int], bound: int, deadline: float) -> Solution:
    """A valid order no worse than `order`, at best proven optimal, by `deadline` (time.monotonic) or a little
    later. `bound`: bytes that are known to be needed.
    """
    peak = problem.peak(order)
    if bound >= peak:
        return Solution(tuple(order), peak)
    found = _Search(*contracted(problem, share(deadline, CONTRACT_SHARE)), order, peak, bound)
    found.plainly(deadline)
    for seed in range(ANNEALINGS):
        if found.bound < found.peak and time.monotonic() < deadline:
            found.take(problem, range(problem.steps), _annealed(problem, found, seed, deadline))
    found.climb(deadline)
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

    def plainly(self, deadline: float) -> None:
        """Search for the optimum with little effort."""
        found = best_first(self.problem, self.bound, self.peak, deadline, QUICK_SETS)
        self.bound = found.bound_bytes
        self.take(self.problem, self.numbers, found.order)

    def take(self, problem: Problem, numbers: Sequence[int], order: Sequence[int] | None) -> None:
        """Keep an order of a problem, whose steps have other numbers, if it is the best."""
        if order is not None and (peak := problem.peak(order)) < self.peak:
            self.order, self.peak = [numbers[step] for step in order], peak

    def climb(self, deadline: float) -> None:
        """Bounds from what is proven upwards, until what is found is met."""
        grain = gcd(*(buffer.size_bytes for buffer in self.problem.buffers))
        stride, doublings = 0, 0
        while self.bound < self.peak and doublings <= MOST_DOUBLINGS and time.monotonic() < deadline:
            within = self.bound // grain  # the bound may be another piece's: is there an order within it?
            stride = min(
                stride or ((self.peak - 1) // grain - within) // STRIDES, (self.peak - 1) // grain - within
            )
            if self._decide((within + stride) * grain, grain, doublings, deadline):
                stride *= 2
            elif stride:
                stride //= 2
            else:
                doublings += 1

    def _decide(self, bound: int, grain: int, doublings: int, deadline: float) -> bool:
        """Whether a bound was refuted, so that `grain` more are needed, or an order within it was found."""
        thinkable, pairs = learn(self.problem, bound, TRIAL_CUTS << doublings, deadline)
        if thinkable:
            smaller, places = with_pairs(self.problem, pairs)
            numbers = [self.numbers[place] for place in places]
            self.take(smaller, numbers, beam(smaller, BEAM_WIDTH, bound, deadline))
            if self.peak <= bound:
                return True
            found = best_first(smaller, bound, bound + 1, deadline, TRIAL_SETS << doublings)
            self.take(smaller, numbers, found.order)
            thinkable = found.bound_bytes <= bound
        if not thinkable:
            self.bound = bound + grain
        return not thinkable or self.peak <= bound


def _annealed(problem: Problem, found: _Search, seed: int, deadline: float) -> Sequence[int]:
    from mcudeploy.scheduler.anneal import anneal  # noqa: PLC0415  (numba takes its time)

    return anneal(problem, found.order, seed, found.bound, deadline)


def share(deadline: float, part: float) -> float:
    """The moment when a part of the time that is left has gone by."""
    now = time.monotonic()
    return now + part * (deadline - now)
