"""The order with the least peak, by best-first search over the sets of done steps.

Sets are taken by the least peak with which they can be reached, so that all bounds below the optimum are
refuted in one go: what fails under one bound waits for the next instead of being searched again. Among sets
of the same peak the one with the most steps comes first. *Dominance*: a step whose memory fits under the
bound and after which there is no more memory than before is taken at once. Moved forward in any order it
hurts no other step: until its old place all others run with no more memory.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from mcudeploy.scheduler.clock import Deadline
from mcudeploy.scheduler.moves import Moves, movable
from mcudeploy.scheduler.problem import Problem
from mcudeploy.scheduler.slack import Slack, members

_CLOCK_EVERY = 64
"""Sets between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The best order, if one has a peak below the one to beat. No order has a peak below `bound_bytes`."""

    order: list[int] | None
    bound_bytes: int


def best_first(problem: Problem, floor: int, beat: int, deadline: Deadline, most_sets: int) -> Outcome:
    """An order of least peak, below `beat` bytes, or none. `floor`: a lower bound that is known already.

    Ends early at `deadline` or with `most_sets` sets in memory, with what is proven by then.
    """
    if floor >= beat:
        return Outcome(None, floor)
    moves, everywhere = Moves(problem), movable(problem, Slack.of(problem))
    came: dict[int, tuple[int, int]] = {0: (0, -1)}
    # Peak to reach it, steps left, memory after it, the set, what is ready, the peak for which it was tried
    heap = [(floor, problem.steps, moves.memory(0), 0, moves.ready(0), -1)]
    looked = 0
    while heap:
        bound, left, memory, done, ready, tried = heapq.heappop(heap)
        if done == moves.everything:
            return Outcome(_way(came, done), bound)
        looked += 1
        if looked % _CLOCK_EVERY == 0 and (deadline.passed() or len(came) > most_sets):
            return Outcome(None, bound)
        later = beat
        following: list[tuple[int, int]] = []
        for step in members(ready):
            rise, net = moves.effect(step, done)
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
            then = done | 1 << step
            if then not in came:
                came[then] = (done, step)
                after = moves.ready_after(step, ready, then)
                heapq.heappush(heap, (bound, left - 1, memory + net, then, after, -1))
    return Outcome(None, beat)


def _way(came: dict[int, tuple[int, int]], done: int) -> list[int]:
    order = []
    while done:
        done, step = came[done]
        order.append(step)
    return order[::-1]
