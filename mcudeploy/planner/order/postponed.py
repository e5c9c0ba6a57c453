"""Orders in which steps that take memory wait until another step needs them."""

from __future__ import annotations

from collections.abc import Sequence

from mcudeploy.planner.order.order_problem import OrderProblem, mask_of


def postponed(problem: OrderProblem, order: Sequence[int]) -> list[int]:
    """Return an order with the same peak in which no step begins memory long before another step reads it.

    A step that begins more memory than it ends runs right before the first step that depends on it. Between
    its old place and its new one less memory is live, which leaves room for cuts there.
    """
    peak, result = problem.peak(order), list(order)
    for step in reversed(order):
        old = result.index(step)
        dependents = set(problem.after[step])
        new = next((at for at in range(old + 1, len(result)) if result[at] in dependents), old) - 1
        if new <= old:
            continue
        done = mask_of(result[:old] + result[old + 1 : new + 1])
        begun, ended = problem.begun_and_ended(step, done)
        if begun > ended and problem.live(done) + problem.change(step, done)[0] <= peak:
            result.insert(new, result.pop(old))
    return result
