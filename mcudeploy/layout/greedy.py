"""Offsets by first fit: each rectangle or stack, in some order, at the lowest offset that is free while it
lives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from typing import TYPE_CHECKING

from mcudeploy.layout.problem import Problem, conflicts, stacks_at_the_top

if TYPE_CHECKING:
    from mcudeploy.layout.greedy_loops import Arrays


@dataclass(frozen=True, eq=False)
class Units:
    """What gets one offset each: the rectangles of a unit with their distance from its base."""

    problem: Problem
    parts: tuple[tuple[tuple[int, int], ...], ...]
    neighbours: list[list[int]]

    @classmethod
    def of(cls, problem: Problem) -> Units:
        """Stacks, and rectangles that are in none."""
        stacked = {index for stack in problem.stacks for index in stack}
        stacks = [*problem.stacks, *((i,) for i in range(len(problem.rectangles)) if i not in stacked)]
        parts = []
        for stack in stacks:
            distance, members = 0, []
            for index in stack:
                members.append((index, distance))
                distance += problem.rectangles[index].size_bytes
            parts.append(tuple(members))
        return cls(problem, tuple(parts), conflicts(problem))

    def orders(self) -> Iterator[list[int]]:
        """Numbers of units: by size, by life, by area, and by birth."""
        rectangles = self.problem.rectangles
        size = [sum(rectangles[i].size_bytes for i, _ in part) for part in self.parts]
        life = [max(sum(map(len, rectangles[i].lives)) for i, _ in part) for part in self.parts]
        area = [
            sum(rectangles[i].size_bytes * sum(map(len, rectangles[i].lives)) for i, _ in part)
            for part in self.parts
        ]
        birth = [
            min((life.lo for i, _ in part for life in rectangles[i].lives), default=0) for part in self.parts
        ]
        everyone = range(len(self.parts))
        yield sorted(everyone, key=lambda u: (-size[u], -life[u], birth[u]))
        yield sorted(everyone, key=lambda u: (-life[u], -size[u], birth[u]))
        yield sorted(everyone, key=lambda u: (-area[u], birth[u]))
        yield sorted(everyone, key=lambda u: (birth[u], -size[u]))

    def first_fit(self, order: Sequence[int], hung: Mapping[int, int] | None = None) -> tuple[int, ...]:
        """Offsets of all rectangles with the units placed in this order, but for `hung`, offsets by index."""
        import numpy as np  # noqa: PLC0415 - with the loop it takes its time

        from mcudeploy.layout import greedy_loops  # noqa: PLC0415

        hung = hung or {}
        offsets = np.full(len(self.problem.rectangles), -1, np.int64)
        offsets[list(hung)] = list(hung.values())
        left = [unit for unit in order if self.parts[unit][0][0] not in hung]
        greedy_loops.first_fit(np.array(left, np.int64), self._arrays, offsets)
        return tuple(offsets.tolist())

    @cached_property
    def _arrays(self) -> Arrays:
        import numpy as np  # noqa: PLC0415

        rectangles = self.problem.rectangles
        lists = (
            list(accumulate(map(len, self.parts), initial=0)),
            [index for part in self.parts for index, _ in part],
            [distance for part in self.parts for _, distance in part],
            [item.size_bytes for item in rectangles],
            [item.alignment for item in rectangles],
            list(accumulate(map(len, self.neighbours), initial=0)),
            list(chain.from_iterable(self.neighbours)),
        )
        begin, members, distance, size, alignment, at, neighbours = (
            np.array(each, np.int64) for each in lists
        )
        return begin, members, distance, size, alignment, at, neighbours


def used_bytes(problem: Problem, offsets: Sequence[int]) -> int:
    """The end of the highest rectangle."""
    ends = (offset + item.size_bytes for item, offset in zip(problem.rectangles, offsets, strict=True))
    return max(ends, default=0)


def fixed_orders(units: Units, target: int) -> tuple[int, ...]:
    """The best of first fit in the fixed orders; stops at `target` bytes."""
    best: tuple[int, ...] | None = None
    least = 0
    for order in units.orders():
        for hung in _bases(units.problem, target):
            offsets = units.first_fit(order, hung)
            used = used_bytes(units.problem, offsets)
            if best is None or used < least:
                best, least = offsets, used
            if least <= target:
                return best
    return best or ()


def _bases(problem: Problem, top: int) -> list[dict[int, int] | None]:
    """Where stacks and scratch may be: hung from the top, which leaves one free piece, or anywhere."""
    hung, brief = stacks_at_the_top(problem, top), brief_at_the_top(problem, top)
    choices = [hung, brief] if brief != hung else [hung]
    return [*(one for one in choices if one and min(one.values()) >= 0), None]


def brief_at_the_top(problem: Problem, top: int) -> dict[int, int]:
    """Offsets by index of stacks, and of all that lives for one step at a time (scratch), which hangs below
    what of the stacks is alive then, or from `top`. Rows alone are left for the rest, often all of one size.
    """
    hung = stacks_at_the_top(problem, top)
    room: dict[int, int] = {}
    for index, at in hung.items():
        for life in problem.rectangles[index].lives:
            room.update((step, min(at, room.get(step, top))) for step in range(life.lo, life.hi))
    for index, item in enumerate(problem.rectangles):
        if index in hung or not item.lives or any(len(life) > 1 for life in item.lives):
            continue
        below = min(room.get(life.lo, top) for life in item.lives) - item.size_bytes
        hung[index] = below // item.alignment * item.alignment
        room.update((life.lo, hung[index]) for life in item.lives)
    return hung
