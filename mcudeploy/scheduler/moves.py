"""What a step does to memory after any set of steps: for searches over sets of done steps.

Sets of steps are integers, bit s for step s. The memory between two steps is a function of the set of
steps that are done, so every search needs to visit a set only once.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from mcudeploy.scheduler.problem import Problem
from mcudeploy.scheduler.slack import Slack, mask_of


class Moves:
    """A problem with bit masks, and the effect of a step on memory."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.everything = (1 << problem.steps) - 1
        self.needs = [mask_of(needed) for needed in problem.before]
        self._masks = [mask_of(buffer.touched_by) for buffer in problem.buffers]
        untouched = [buffer for buffer in problem.buffers if not buffer.touched_by]
        self._base = sum(buffer.size_bytes for buffer in untouched if buffer.kept)
        self._at_first = sum(buffer.size_bytes for buffer in untouched if buffer.initial and not buffer.kept)
        self._chances = {
            step: [(self._masks[c.input], self._masks[c.output], problem.saving(c)) for c in chances]
            for step, chances in problem.chances_of.items()
        }
        own = [
            (mask, buffer.size_bytes, buffer.initial, buffer.kept)
            for mask, buffer in zip(self._masks, problem.buffers, strict=True)
        ]
        self._touches = [[own[number] for number in touched] for touched in problem.touches]
        self._near = [reduce(or_, (mask for mask, *_ in touched), 0) for touched in self._touches]
        self._known: list[dict[int, tuple[int, int]]] = [{} for _ in problem.before]

    def memory(self, done: int) -> int:
        """Bytes in memory after a set of steps and before the next."""
        total = self._base
        for mask, buffer in zip(self._masks, self.problem.buffers, strict=True):
            started = buffer.initial or mask & done
            if mask and started and (buffer.kept or mask & ~done):
                total += buffer.size_bytes
        return total

    def effect(self, step: int, done: int) -> tuple[int, int]:
        """Bytes during a step, and after it, over those before it; `done`: the steps before it."""
        seen = done & self._near[step]
        found = self._known[step].get(seen)
        if found is None:
            found = self._known[step][seen] = self.change(step, seen)
        return found if done else (found[0] + self._at_first, found[1])

    def change(self, step: int, done: int) -> tuple[int, int]:
        """`effect`, worked out anew, and without what only the first step shares memory with."""
        born = dead = 0
        bit = 1 << step
        for mask, size, initial, kept in self._touches[step]:
            if not initial and not mask & done:
                born += size
            if not kept and not mask & ~(done | bit):
                dead += size
        for source, target, size in self._chances.get(step, ()):
            if source & ~done == bit and not target & done:
                return born - size, born - dead
        return born, born - dead

    def ready(self, done: int) -> int:
        """The steps that can come next."""
        return mask_of(
            step for step, needs in enumerate(self.needs) if not needs & ~done and not done >> step & 1
        )

    def ready_after(self, step: int, ready: int, done: int) -> int:
        """The steps that can come next after `step`, which was ready; `done` has it already."""
        ready &= ~(1 << step)
        for other in self.problem.after[step]:
            if not self.needs[other] & ~done:
                ready |= 1 << other
        return ready


def movable(problem: Problem, slack: Slack) -> int:
    """The steps that, where they free what they add, can be taken at another time and no other step has more.

    One may come between another and its in-place chance, but then it has freed as much. Yet a step takes
    the first of its chances that applies: one that saves less must not become possible in front of another.
    """
    choosers: dict[int, int] = {}  # for buffers the steps with a chance behind one that saves less
    for step, chances in problem.chances_of.items():
        savings = [problem.saving(chance) for chance in chances]
        if savings != sorted(savings, reverse=True):
            for number in {number for chance in chances for number in (chance.input, chance.output)}:
                choosers[number] = choosers.get(number, 0) | 1 << step
    return mask_of(
        step
        for step, touched in enumerate(problem.touches)
        if not reduce(or_, (choosers.get(number, 0) for number in touched), 0)
        & ~(slack.ancestors[step] | slack.descendants[step] | 1 << step)
    )
