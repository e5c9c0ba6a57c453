"""Beam search over the sets of steps that are done: of each size the few with the least peak are kept.

A step that fits below the peak there is anyway, and leaves no more memory than it found, is taken at once: to
move it forward never hurts (the dominance rule of the exact search).
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nsmallest

from mcudeploy.scheduler.clock import Deadline
from mcudeploy.scheduler.moves import Moves
from mcudeploy.scheduler.problem import Problem

_Path = tuple["_Path", int] | None


@dataclass(slots=True)
class _State:
    """Steps done as a set of bits, the peak so far, bytes now, and by how much each ready step changes them:
    while it runs, and after it.
    """

    done: int
    peak: int
    live: int
    ready: dict[int, tuple[int, int]]
    path: _Path

    def take(self, moves: Moves, step: int) -> None:
        """Run a step, if nobody else holds this state."""
        need, change = self.ready.pop(step)
        self.peak = max(self.peak, self.live + need)
        self.live += change
        self.done |= 1 << step
        self.path = (self.path, step)
        for number in moves.problem.touches[step]:
            for other in moves.problem.buffers[number].touched_by:
                if other in self.ready:
                    self.ready[other] = moves.change(other, self.done)
        for other in moves.problem.after[step]:
            if not moves.needs[other] & ~self.done:
                self.ready[other] = moves.change(other, self.done)

    def settle(self, moves: Moves) -> None:
        """Take what costs nothing until there is no more of it."""
        while True:
            room = self.peak - self.live
            free = (step for step, (need, change) in self.ready.items() if change <= 0 and need <= room)
            step = next(free, None)
            if step is None:
                return
            self.take(moves, step)


def beam(problem: Problem, width: int, floor: int, deadline: Deadline) -> tuple[int, ...] | None:
    """A valid order, or None at `deadline`. `floor`: bytes that every order needs.

    Work: steps * width * (ready steps + steps / 64).
    """
    moves = Moves(problem)
    ready = {step: moves.change(step, 0) for step, needs in enumerate(moves.needs) if not needs}
    first = _State(0, floor, moves.memory(0), ready, None)
    first.settle(moves)
    levels: dict[int, dict[int, _State]] = {first.done.bit_count(): {first.done: first}}
    for count in range(problem.steps):
        states = levels.pop(count, {})
        kept = nsmallest(width, states.values(), key=lambda state: (state.peak, state.live))
        children = (
            (max(state.peak, state.live + need), state.live + change, place, step)
            for place, state in enumerate(kept)
            for step, (need, change) in state.ready.items()
        )
        seen: set[int] = set()
        for _, _, place, step in nsmallest(2 * width, children):
            state = kept[place]
            if state.done | 1 << step in seen:
                continue
            seen.add(state.done | 1 << step)
            child = _State(state.done, state.peak, state.live, dict(state.ready), state.path)
            child.take(moves, step)
            child.settle(moves)
            level = levels.setdefault(child.done.bit_count(), {})
            if child.done not in level or level[child.done].peak > child.peak:
                level[child.done] = child
        if deadline.passed():
            return None
    best = min(levels[problem.steps].values(), key=lambda state: state.peak)
    order: list[int] = []
    path = best.path
    while path is not None:
        path, step = path
        order.append(step)
    return tuple(reversed(order))
