"""Beam search over sets of completed steps: of each size it keeps the few with the least peak.

A step that fits below the current peak and does not increase the live memory is taken at once: moving it
forward never hurts (the dominance rule of the exact search).
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nsmallest

from mcudeploy.common.effort import Effort
from mcudeploy.planner.order.order_problem import OrderProblem

_READY_UNITS, _TAKEN_UNITS = 1.0, 10.0
"""Effort of a ready step of an expanded set, and of a step that is taken, for small sets."""

_LONG_SET = 3000
"""The number of steps at which a set takes twice the effort."""

_Path = tuple["_Path", int] | None


@dataclass(slots=True)
class _BeamState:
    """Completed steps, the peak, live bytes, and the change by each ready step: during it and after it."""

    done: int
    peak: int
    live: int
    ready: dict[int, tuple[int, int]]
    path: _Path

    def take(self, problem: OrderProblem, step: int) -> None:
        """Run a step; nothing else may share this state."""
        rise, net = self.ready.pop(step)
        self.peak = max(self.peak, self.live + rise)
        self.live += net
        self.done |= 1 << step
        self.path = (self.path, step)
        for other in problem.changed(step, self.done):
            if other in self.ready:
                self.ready[other] = problem.change(other, self.done)
        for other in problem.freed(step, self.done):
            self.ready[other] = problem.change(other, self.done)

    def settle(self, problem: OrderProblem) -> None:
        """Take steps that cost nothing until none is left."""
        while True:
            room = self.peak - self.live
            free = (step for step, (rise, net) in self.ready.items() if net <= 0 and rise <= room)
            step = next(free, None)
            if step is None:
                return
            self.take(problem, step)


def beam(problem: OrderProblem, width: int, floor: int, effort: Effort) -> tuple[int, ...] | None:
    """Return a valid order, or None if the effort does not suffice. `floor`: bytes that every order needs.

    Work: steps * width * (ready steps + steps / 64).
    """
    ready = {step: problem.change(step, 0) for step in problem.ready()}
    first = _BeamState(0, floor, problem.live(0), ready, None)
    first.settle(problem)
    levels: dict[int, dict[int, _BeamState]] = {first.done.bit_count(): {first.done: first}}
    for count in range(problem.steps):
        states = levels.pop(count, {})
        followed = nsmallest(width, states.values(), key=lambda state: (state.peak, state.live))
        children = [
            (max(state.peak, state.live + rise), state.live + net, place, step)
            for place, state in enumerate(followed)
            for step, (rise, net) in state.ready.items()
        ]
        seen: set[int] = set()
        taken = 0
        for _, _, place, step in nsmallest(2 * width, children):
            state = followed[place]
            if state.done | 1 << step in seen:
                continue
            seen.add(state.done | 1 << step)
            child = _BeamState(state.done, state.peak, state.live, dict(state.ready), state.path)
            child.take(problem, step)
            child.settle(problem)
            taken += child.done.bit_count() - count
            level = levels.setdefault(child.done.bit_count(), {})
            if child.done not in level or level[child.done].peak > child.peak:
                level[child.done] = child
        effort.spend((_READY_UNITS * len(children) + _TAKEN_UNITS * taken) * (1 + problem.steps / _LONG_SET))
        if effort.is_spent():
            return None
    best = min(levels[problem.steps].values(), key=lambda state: state.peak)
    order: list[int] = []
    path = best.path
    while path is not None:
        path, step = path
        order.append(step)
    return tuple(reversed(order))
