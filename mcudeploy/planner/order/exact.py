"""The order with the least peak, by best-first search over sets of completed steps.

Sets are expanded by the least peak with which they can be reached. One pass thus refutes all bounds below the
optimum: a set that fails under one bound waits for the next instead of being searched again. Among sets of
equal peak the one with the most steps comes first. *Dominance*: a step that fits under the bound and does not
increase the live memory is taken at once. Moving it forward in any order hurts no other step: until its old
place all others run with no more memory.
"""

from __future__ import annotations

import heapq
from functools import reduce
from operator import or_

from mcudeploy.common.effort import Effort
from mcudeploy.planner.order.closure import Closure
from mcudeploy.planner.order.order_problem import OrderOutcome, OrderProblem, mask_of

_READY_UNITS = 3.0
"""Effort of one ready step of an expanded set."""

MOST_SETS = 300_000
"""The maximum number of sets in memory: some 300 MB."""


def best_first(problem: OrderProblem, floor: int, beat: int, effort: Effort) -> OrderOutcome:
    """Return an order of least peak, below `beat` bytes, or none. `floor`: a known lower bound.

    The search ends early with the effort or with `MOST_SETS` sets and returns what is proven by then.
    """
    if floor >= beat:
        return OrderOutcome(None, floor)
    everything, everywhere = (1 << problem.steps) - 1, Choosers(problem).movable(Closure.of(problem))
    came_from: dict[int, tuple[int, int]] = {0: (0, -1)}
    # For each set: the peak to reach it, remaining steps, memory after it, itself, ready steps, and the peak
    # for which it was expanded last.
    heap = [(floor, problem.steps, problem.live(0), 0, tuple(problem.ready()), -1)]
    while heap:
        bound, left, memory, done, ready, tried = heapq.heappop(heap)
        if done == everything:
            return OrderOutcome(_order_to(done, came_from), bound)
        if effort.is_spent() or len(came_from) > MOST_SETS:
            return OrderOutcome(None, bound)
        effort.spend(_READY_UNITS * len(ready))
        later = beat
        following: list[tuple[int, int]] = []
        for step in ready:
            rise, net = problem.change(step, done)
            need = memory + rise
            if need > bound:
                later = min(later, need)
            elif net <= 0 and everywhere >> step & 1:
                following, later = [(step, net)], beat
                break
            elif need > tried:
                following.append((step, net))
        if later < beat:
            heapq.heappush(heap, (later, left, memory, done, ready, bound))
        for step, net in following:
            larger = done | 1 << step
            if larger not in came_from:
                came_from[larger] = (done, step)
                after = (*(other for other in ready if other != step), *problem.freed(step, larger))
                heapq.heappush(heap, (bound, left - 1, memory + net, larger, after, -1))
    return OrderOutcome(None, beat)


class Choosers:
    """Steps with several in-place candidates, of which a later one saves more than an earlier one.

    A step that frees what it adds can run at another time without more memory elsewhere. It may come between
    another step and its in-place candidate, but then it has freed as much. However, a step takes its first
    applicable candidate: one that saves less must not become possible before another.
    """

    def __init__(self, problem: OrderProblem) -> None:
        self._touches = problem.touches
        self._of_buffer: dict[int, int] = {}
        for step, chances in problem.chances_of.items():
            savings = [problem.saving(chance) for chance in chances]
            if savings != sorted(savings, reverse=True):
                for number in {number for chance in chances for number in (chance.input, chance.output)}:
                    self._of_buffer[number] = self._of_buffer.get(number, 0) | 1 << step

    def near(self, step: int) -> int:
        """Return the steps that choose among buffers which a step touches."""
        return reduce(or_, (self._of_buffer.get(number, 0) for number in self._touches[step]), 0)

    def movable(self, closure: Closure) -> int:
        """Return the steps that can run at any time: all choosers near them are ancestors or descendants."""
        related = map(or_, closure.ancestors, closure.descendants)
        return mask_of(step for step, each in enumerate(related) if not self.near(step) & ~(each | 1 << step))


def _order_to(done: int, came_from: dict[int, tuple[int, int]]) -> list[int]:
    order = []
    while done:
        done, step = came_from[done]
        order.append(step)
    return order[::-1]
