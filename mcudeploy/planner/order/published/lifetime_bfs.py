"""Lifetime-aware breadth-first order: of the ready steps, the one that leaves the least memory.

Source: the published patent on exact, then heuristic, then tuned execution orders, second stage (relatives:
OLLA, ROAM).

1. A buffer is estimated to live from the ASAP of its first step to the latest ALAP of its others.
2. The ready step with the least bytes allocated - bytes freed comes first. Ties take the least bytes
   allocated * estimated life, then the least ALAP.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from mcudeploy.planner.order.closure import Closure
from mcudeploy.planner.order.order_problem import OrderProblem

_Key = tuple[int, int, int, int]


def lifetime_bfs(problem: OrderProblem) -> tuple[int, ...]:
    """Return a valid order. Near-linear: a step's key is recomputed only after a neighbouring step ran."""
    closure = Closure.of(problem)
    weight = [
        buffer.size_bytes * _life(problem, closure, number) for number, buffer in enumerate(problem.buffers)
    ]
    producer = [min(buffer.touched_by, default=-1) for buffer in problem.buffers]
    written = [
        sum(weight[n] for n in problem.touches[step] if producer[n] == step) for step in range(problem.steps)
    ]
    done = 0

    def key(step: int) -> _Key:
        return problem.change(step, done)[1], written[step], closure.alap[step], step

    latest = {step: key(step) for step in problem.ready()}
    heap = list(latest.values())
    heapify(heap)
    order = []
    while heap:
        candidate = heappop(heap)
        step = candidate[-1]
        if latest.get(step) != candidate:
            continue
        del latest[step]
        order.append(step)
        done |= 1 << step
        near = (other for other in problem.changed(step, done) if other in latest)
        for other in (*problem.freed(step, done), *near):
            latest[other] = key(other)
            heappush(heap, latest[other])
    return tuple(order)


def _life(problem: OrderProblem, closure: Closure, number: int) -> int:
    """Return the places between the earliest begin and the latest end of a buffer."""
    buffer = problem.buffers[number]
    begin = 0 if buffer.initial else min((closure.asap[step] for step in buffer.touched_by), default=0)
    end = problem.steps if buffer.kept else max((closure.alap[step] for step in buffer.touched_by), default=0)
    return end - begin
