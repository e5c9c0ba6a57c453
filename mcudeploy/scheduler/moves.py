"""What a step does to memory after any set of steps: for searches over sets of done steps.

Sets of steps are integers, bit s for step s. The memory between two steps is a function of the set of
steps that are done, so every search below needs to visit a set only once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_

from mcudeploy.scheduler.problem import Problem


class Moves:
    """A problem with bit masks, and the effect of a step on memory."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.everything = (1 << problem.steps) - 1
        self.needs = [mask_of(needed) for needed in problem.before]
        self.ancestors = ancestors(problem)
        self._masks = [mask_of(buffer.touched_by) for buffer in problem.buffers]
        untouched = [buffer for buffer in problem.buffers if not buffer.touched_by]
        self._base = sum(buffer.size_bytes for buffer in untouched if buffer.kept)
        self._at_first = sum(buffer.size_bytes for buffer in untouched if buffer.initial and not buffer.kept)
        self._chances: list[list[tuple[int, int, int]]] = [[] for _ in problem.before]
        for chance in problem.chances:
            smaller = min(problem.buffers[chance.input].size_bytes, problem.buffers[chance.output].size_bytes)
            self._chances[chance.step].append(
                (self._masks[chance.input], self._masks[chance.output], smaller)
            )
        self._touches = [
            [
                (
                    self._masks[b],
                    problem.buffers[b].size_bytes,
                    problem.buffers[b].initial,
                    problem.buffers[b].kept,
                )
                for b in touched
            ]
            for touched in problem.touches
        ]
        self._near = [reduce(or_, (mask for mask, *_ in touched), 0) for touched in self._touches]
        self._known: list[dict[int, tuple[int, int]]] = [{} for _ in problem.before]
        self._choosers = choosers(problem)
        self.movable = [self._is_movable(step) for step in range(problem.steps)]

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
            found = self._known[step][seen] = self._effect(step, seen)
        return found if done else (found[0] + self._at_first, found[1])

    def _effect(self, step: int, done: int) -> tuple[int, int]:
        born = dead = 0
        bit = 1 << step
        for mask, size, initial, kept in self._touches[step]:
            if not initial and not mask & done:
                born += size
            if not kept and not mask & ~(done | bit):
                dead += size
        for source, target, size in self._chances[step]:
            if source & ~done == bit and not target & done:
                return born - size, born - dead
        return born, born - dead

    def ready(self, done: int) -> int:
        """The steps that can come next."""
        found = 0
        for step, needs in enumerate(self.needs):
            if not needs & ~done and not done >> step & 1:
                found |= 1 << step
        return found

    def ready_after(self, step: int, ready: int, done: int) -> int:
        """The steps that can come next after `step`, which was ready; `done` has it already."""
        ready &= ~(1 << step)
        for other in self.problem.after[step]:
            if not self.needs[other] & ~done:
                ready |= 1 << other
        return ready

    def _is_movable(self, step: int) -> bool:
        """Whether taking a step earlier, where it frees what it adds, leaves no other step with more memory.

        It may come between another and its in-place chance, but then it has freed as much. Yet a step takes
        the first of its chances that applies: one that saves less must not become possible.
        """
        related = self.ancestors[step] | 1 << step
        return all(
            related >> other & 1 or self.ancestors[other] >> step & 1
            for buffer in self.problem.touches[step]
            for other in self._choosers.get(buffer, ())
        )


def choosers(problem: Problem) -> dict[int, list[int]]:
    """For buffers of in-place chances the steps with a chance that saves more behind one that saves less."""
    sizes: dict[int, list[int]] = {}
    for chance in problem.chances:
        smaller = min(problem.buffers[chance.input].size_bytes, problem.buffers[chance.output].size_bytes)
        sizes.setdefault(chance.step, []).append(smaller)
    found: dict[int, list[int]] = {}
    for chance in problem.chances:
        if sizes[chance.step] != sorted(sizes[chance.step], reverse=True):
            found.setdefault(chance.input, []).append(chance.step)
            found.setdefault(chance.output, []).append(chance.step)
    return found


def mask_of(steps: Iterable[int]) -> int:
    """The set of some steps."""
    mask = 0
    for step in steps:
        mask |= 1 << step
    return mask


def members(mask: int) -> list[int]:
    """The steps in a set, ascending."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def ancestors(problem: Problem) -> list[int]:
    """For each step the set of those that must come before it, directly or not."""
    found: list[int] = []
    for needed in problem.before:
        mask = 0
        for other in needed:
            mask |= found[other] | 1 << other
        found.append(mask)
    return found
