"""Beam search over the sets of steps that are done: of each size the few with the least peak are kept.

A step that fits below the peak there is anyway, and leaves no more memory than it found, is taken at once: to
move it forward never hurts (the dominance rule of the exact search).
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nsmallest
from time import monotonic

from mcudeploy.scheduler.problem import InPlace, Problem

_Costs = dict[int, tuple[int, int]]
_Path = tuple["_Path", int] | None


@dataclass(slots=True)
class _State:
    """Steps done as a set of bits, the peak so far, bytes now, and what each ready step needs and leaves."""

    done: int
    peak: int
    live: int
    ready: _Costs
    path: _Path


class _Search:
    def __init__(self, problem: Problem, floor: int) -> None:
        self.problem = problem
        self.floor = floor
        self.touched_by = [sum(1 << step for step in set(b.touched_by)) for b in problem.buffers]
        self.needed = [sum(1 << step for step in set(needed)) for needed in problem.before]
        self.chances: dict[int, list[InPlace]] = {}
        for chance in problem.chances:
            self.chances.setdefault(chance.step, []).append(chance)

    def cost(self, step: int, done: int) -> tuple[int, int]:
        """Bytes that a step needs above those alive, and by how much it changes them."""
        made = freed = 0
        bit = 1 << step
        for number in self.problem.touches[step]:
            buffer, touched_by = self.problem.buffers[number], self.touched_by[number]
            if not buffer.initial and not touched_by & done:
                made += buffer.size_bytes
            if not buffer.kept and touched_by & ~done == bit:
                freed += buffer.size_bytes
        saved = 0
        for chance in self.chances.get(step, ()):
            over, out = self.touched_by[chance.input], self.touched_by[chance.output]
            if over & ~done == bit and not out & done:
                sizes = self.problem.buffers
                saved = min(sizes[chance.input].size_bytes, sizes[chance.output].size_bytes)
                break
        return made - saved, made - freed

    def start(self) -> _State:
        live = sum(b.size_bytes for b in self.problem.buffers if (b.initial if b.touched_by else b.kept))
        ready = {step: self.cost(step, 0) for step, needed in enumerate(self.needed) if not needed}
        return _State(0, self.floor, live, ready, None)

    def take(self, state: _State, step: int) -> None:
        """Run a step in a state that nobody else holds."""
        need, change = state.ready.pop(step)
        state.peak = max(state.peak, state.live + need)
        state.live += change
        state.done = done = state.done | 1 << step
        state.path = (state.path, step)
        ready = state.ready
        for number in self.problem.touches[step]:
            for other in self.problem.buffers[number].touched_by:
                if other in ready:
                    ready[other] = self.cost(other, done)
        for other in self.problem.after[step]:
            if not self.needed[other] & ~done:
                ready[other] = self.cost(other, done)

    def settle(self, state: _State) -> None:
        """Take what costs nothing until there is no more of it."""
        while True:
            room = state.peak - state.live
            step = next(
                (s for s, (need, change) in state.ready.items() if change <= 0 and need <= room), None
            )
            if step is None:
                return
            self.take(state, step)


def beam(problem: Problem, width: int, floor: int, seconds: float) -> tuple[int, ...] | None:
    """A valid order, or None if time runs out. `floor`: bytes that every order needs.

    Work: steps * width * (ready steps + steps / 64).
    """
    deadline = monotonic() + seconds
    search = _Search(problem, floor)
    first = search.start()
    search.settle(first)
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
            search.take(child, step)
            search.settle(child)
            level = levels.setdefault(child.done.bit_count(), {})
            if child.done not in level or level[child.done].peak > child.peak:
                level[child.done] = child
        if monotonic() > deadline:
            return None
    best = min(levels[problem.steps].values(), key=lambda state: state.peak)
    order: list[int] = []
    path = best.path
    while path is not None:
        path, step = path
        order.append(step)
    return tuple(reversed(order))
