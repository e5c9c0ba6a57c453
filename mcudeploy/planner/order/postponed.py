"""Orders in which no step takes memory long before another needs it, or keeps memory that it could free."""

from __future__ import annotations

from collections.abc import Sequence

from mcudeploy.planner.order.derived import reverse, turned
from mcudeploy.planner.order.order_problem import OrderProblem, mask_of


def without_idle_memory(problem: OrderProblem, order: Sequence[int]) -> list[int]:
    """Return an order whose peak is no larger, with less memory live elsewhere: that leaves room for cuts.

    A step that begins more memory than it ends runs right before the first step that depends on it. One that
    ends more runs right after the last step that it depends on.
    """
    return turned(_postponed(reverse(problem), turned(_postponed(problem, order))))


def _postponed(problem: OrderProblem, order: Sequence[int]) -> list[int]:
    peak, result = problem.peak(order), list(order)
    for step in reversed(order):
        old, dependents = result.index(step), problem.after[step]
        new = next((at for at in range(old + 1, len(result)) if result[at] in dependents), old) - 1
        if new <= old:
            continue
        done = mask_of(result[:old] + result[old + 1 : new + 1])
        begun, ended = problem.begun_and_ended(step, done)
        if begun > ended and problem.live(done) + problem.change(step, done)[0] <= peak:
            result.insert(new, result.pop(old))
    return result
