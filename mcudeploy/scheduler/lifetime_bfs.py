"""Lifetime-aware breadth first order: of the steps that are ready the one that leaves the least memory.

Method: the published patent on exact, then heuristic, then tuned execution orders (relatives: OLLA, ROAM).
The least of bytes made - bytes freed comes first, then of bytes made * estimated life, then of ALAP. A
buffer is estimated to live from the ASAP of its first step to the latest ALAP of its others.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from mcudeploy.scheduler.memory import Memory
from mcudeploy.scheduler.problem import Problem
from mcudeploy.scheduler.slack import Slack

_Key = tuple[int, int, int, int]


def lifetime_bfs(problem: Problem, slack: Slack) -> tuple[int, ...]:
    """A valid order. Near-linear: a step's key is worked out anew only when a step beside it has run."""
    memory = Memory(problem)
    weight = [
        buffer.size_bytes * _life(problem, slack, number) for number, buffer in enumerate(problem.buffers)
    ]
    maker = [min(buffer.touched_by, default=-1) for buffer in problem.buffers]

    def key(step: int) -> _Key:
        made, freed = memory.cost(step)
        life = sum(weight[number] for number in problem.touches[step] if maker[number] == step)
        return made - freed, life, slack.alap[step], step

    latest = {step: key(step) for step in range(problem.steps) if not memory.waiting[step]}
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
        fresh = memory.run(step)
        for other in (*fresh, *(near for near in memory.changed(step) if near in latest)):
            latest[other] = key(other)
            heappush(heap, latest[other])
    return tuple(order)


def _life(problem: Problem, slack: Slack, number: int) -> int:
    """Places between the earliest that a buffer can begin and the latest that it can end."""
    buffer = problem.buffers[number]
    begin = 0 if buffer.initial else min((slack.asap[step] for step in buffer.touched_by), default=0)
    end = problem.steps if buffer.kept else max((slack.alap[step] for step in buffer.touched_by), default=0)
    return end - begin
