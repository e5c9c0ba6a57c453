"""Deferred updates: uncritical steps are ordered after the others, and inserted where they cost least.

Source: the published patent on exact, then heuristic, then tuned execution orders, for training steps: the
operators that update weights depend on gradients only, and nothing depends on them.

1. Remove the updates from the graph.
2. Order the remaining graph by another method.
3. Insert each update before the first step at which it is ready, does not increase the live memory, and fits
   below the current peak. The rest go to the end, those with the least memory first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from mcudeploy.planner.order.derived import restricted
from mcudeploy.planner.order.order_problem import OrderProblem

Solve = Callable[[OrderProblem], Sequence[int]]


def with_deferred_updates(problem: OrderProblem, updates: Collection[int], solve: Solve) -> tuple[int, ...]:
    """Return a valid order: `solve`'s order of the problem without the updates, with the updates inserted.

    A step that has successors is not removed.
    """
    deferred: set[int] = set()
    for step in sorted(updates, reverse=True):
        if all(other in deferred for other in problem.after[step]):
            deferred.add(step)
    others = [step for step in range(problem.steps) if step not in deferred]
    rest = restricted(problem, others)
    order = solve(rest)
    return _put_back(problem, [others[step] for step in order], deferred, rest.peak(order))


def _put_back(problem: OrderProblem, others: list[int], deferred: set[int], peak: int) -> tuple[int, ...]:
    order: list[int] = []
    done, live = 0, problem.live(0)
    ready = [step for step in problem.ready() if step in deferred]

    def run(step: int) -> None:
        nonlocal done, live, peak
        rise, net = problem.change(step, done)
        peak, live = max(peak, live + rise), live + net
        order.append(step)
        done |= 1 << step
        ready.extend(other for other in problem.freed(step, done) if other in deferred)

    for step in others:
        at = 0
        while at < len(ready):
            rise, net = problem.change(ready[at], done)
            if net <= 0 and rise <= max(peak - live, problem.change(step, done)[0]):
                run(ready.pop(at))
                at = 0
            else:
                at += 1
        run(step)
    while ready:
        step = min(ready, key=lambda other: (problem.change(other, done)[0], other))
        ready.remove(step)
        run(step)
    return tuple(order)
