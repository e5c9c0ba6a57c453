"""The order with the least peak, proven, or within a time limit the best found and a lower bound.

Method: dependences that cost nothing are added (`contract`), and a best-first search over the sets of done
steps (`bestfirst`) finds the optimum. Where that takes too long, annealing looks for a better order (in wide
problems it comes first), and bounds between what is proven and what is found are tried, from below and in
strides that grow while they last: the turns of a few chosen steps refute a bound (`turns`), or what must
come before what within it is learned (`probing`), which refutes it or leaves a smaller problem to a beam
search and to the exact one, and to the bounds below it. The nearer a bound is to what is proven, the sooner
it is decided; where not even the next one is, there is more effort for each. Effort is counted in sets,
moves and cuts; time is a brake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import gcd

from mcudeploy.scheduler.beam import beam
from mcudeploy.scheduler.bestfirst import best_first
from mcudeploy.scheduler.clock import Deadline
from mcudeploy.scheduler.contract import contracted
from mcudeploy.scheduler.pieces import with_pairs
from mcudeploy.scheduler.problem import Problem, Solution

QUICK_SETS = 60_000
"""Sets of the plain search, some 2 s."""

WIDE_STEPS = 200
"""From so many on the plain search is likely to fail: annealing comes before it."""

ANNEALINGS = 4

TRIAL_CUTS, TRIAL_SETS = 20_000, 20_000
"""Minimum cuts and sets for one bound at first; they double when not even the next bound is decided."""

MOST_DOUBLINGS = 4

STRIDES = 8
"""The first stride is this part of the way from what is proven to what is found."""

CONTRACT_SHARE = 0.2
"""Of the time that is left: a brake for contraction."""

BEAM_WIDTH = 50
"""How many sets of each size the beam searches follow."""


def search(problem: Problem, order: Sequence[int], bound: int, deadline: Deadline) -> Iterator[Solution]:
    """Valid orders, ever better, none worse than `order`, the last at best proven optimal, by `deadline` or a
    little later: who stops listening has what was found by then. `bound`: bytes that are known to be needed.
    """
    found = _Search(problem, problem, range(problem.steps), order, problem.peak(order), bound)
    stages = [found.contract, found.plainly]
    stages.insert(1 if problem.steps > WIDE_STEPS else 2, found.anneal)
    for stage in (*stages, found.climb):
        for _ in stage(deadline) if found.bound < found.peak else ():
            yield found.so_far()
    yield found.so_far()


def nearest(problem: Problem, places: Sequence[int]) -> list[int]:
    """The valid order that takes of all steps that are ready the one that has the first place."""
    waiting = [len(needed) for needed in problem.before]
    ready = [(places[step], step) for step, count in enumerate(waiting) if not count]
    heapify(ready)
    order = []
    while ready:
        order.append(heappop(ready)[1])
        for other in problem.after[order[-1]]:
            waiting[other] -= 1
            if not waiting[other]:
                heappush(ready, (places[other], other))
    return order


@dataclass(slots=True)
class _Search:
    """The whole problem; the same with more dependences, and the numbers that its steps have in the whole;
    the best order of the whole so far, its peak, and what is proven.
    """

    whole: Problem
    problem: Problem
    numbers: Sequence[int]
    order: Sequence[int]
    peak: int
    bound: int
    undecided: tuple[int, Problem, Sequence[int]] | None = None
    """The last bound that was left open, the problem with what was learned under it, and its steps' numbers:
    they hold for the bounds below, too.
    """

    def so_far(self) -> Solution:
        """The best order and what is proven."""
        return Solution(tuple(self.order), min(self.bound, self.peak))

    # The stages yield whenever there may be something better.

    def anneal(self, deadline: Deadline) -> Iterator[None]:
        """Look for better orders; with the dependences that cost nothing there are fewer bad ones."""
        from mcudeploy.scheduler.anneal import anneal  # noqa: PLC0415  (numba takes its time)

        for seed in range(ANNEALINGS):
            if self.bound < self.peak and not deadline.passed():
                places = self.whole.places(self.order)
                start = nearest(self.problem, [places[step] for step in self.numbers])
                order = anneal(self.problem, start, seed, self.bound, deadline)
                self.take(self.problem, self.numbers, order)
                yield

    def contract(self, deadline: Deadline) -> Iterator[None]:
        """Add the dependences that cost nothing."""
        self.problem, self.numbers = contracted(self.problem, deadline.share(CONTRACT_SHARE))
        yield

    def plainly(self, deadline: Deadline) -> Iterator[None]:
        """Search for the optimum with little effort."""
        found = best_first(self.problem, self.bound, self.peak, deadline, QUICK_SETS)
        self.bound = found.bound_bytes
        self.take(self.problem, self.numbers, found.order)
        yield

    def take(self, problem: Problem, numbers: Sequence[int], order: Sequence[int] | None) -> None:
        """Keep an order of a problem, whose steps have other numbers, if it is the best."""
        if order is not None and (peak := problem.peak(order)) < self.peak:
            self.order, self.peak = [numbers[step] for step in order], peak

    def climb(self, deadline: Deadline) -> Iterator[None]:
        """Bounds from what is proven upwards, until what is found is met."""
        grain = gcd(*(buffer.size_bytes for buffer in self.problem.buffers))
        stride = max(1, (self.peak - self.bound) // grain // STRIDES)
        doublings, left_open = 0, self.peak
        while self.bound < self.peak and doublings <= MOST_DOUBLINGS and not deadline.passed():
            within = self.bound // grain  # the bound may be another piece's: is there an order within it?
            most = (min(self.peak, left_open) - 1) // grain
            stride = min(stride, max(1, (most - within) // 2))  # near the peak nothing is decided
            bound = min(within + stride - 1, most) * grain
            if most < within:
                doublings, left_open, stride = doublings + 1, self.peak, 1
            elif self._decide(bound, grain, doublings, deadline):
                stride *= 2
            else:
                stride, left_open = max(1, stride // 2), bound
            yield

    def _decide(self, bound: int, grain: int, doublings: int, deadline: Deadline) -> bool:
        """Whether a bound was refuted, so that `grain` more are needed, or an order within it was found."""
        from mcudeploy.scheduler.turns import explore  # noqa: PLC0415  (numba takes its time)

        problem, numbers = self.problem, self.numbers
        if self.undecided and bound <= self.undecided[0]:
            _, problem, numbers = self.undecided
        thinkable, pairs = explore(problem, bound, TRIAL_CUTS << doublings, deadline)
        if thinkable:
            smaller, places = with_pairs(problem, pairs)
            numbers = [numbers[place] for place in places]
            self.undecided = bound, smaller, numbers
            if self.problem.steps > WIDE_STEPS and not doublings:
                return False  # nearer bounds first: they take less than the searches below
            self.take(smaller, numbers, beam(smaller, BEAM_WIDTH, bound, deadline))
            if self.peak <= bound:
                return True
            found = best_first(smaller, bound, bound + 1, deadline, TRIAL_SETS << doublings)
            self.take(smaller, numbers, found.order)
            thinkable = found.bound_bytes <= bound
        if not thinkable:
            self.bound = bound + grain
        return not thinkable or self.peak <= bound
