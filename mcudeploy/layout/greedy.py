"""Offsets by first fit: each rectangle or stack, in some order, at the lowest offset that is free while it
lives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mcudeploy.layout.problem import Problem, align_up, conflicts, stacks_at_the_top


@dataclass(frozen=True, slots=True, eq=False)
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
        birth = [min(rectangles[i].lives[0].lo for i, _ in part) for part in self.parts]
        everyone = range(len(self.parts))
        yield sorted(everyone, key=lambda u: (-size[u], -life[u], birth[u]))
        yield sorted(everyone, key=lambda u: (-life[u], -size[u], birth[u]))
        yield sorted(everyone, key=lambda u: (-area[u], birth[u]))
        yield sorted(everyone, key=lambda u: (birth[u], -size[u]))

    def first_fit(self, order: Sequence[int], hung: Mapping[int, int] | None = None) -> tuple[int, ...]:
        """Offsets of all rectangles with the units placed in this order, but for `hung`, offsets by index."""
        rectangles, fixed = self.problem.rectangles, {**self.problem.fixed, **(hung or {})}
        offsets = [fixed.get(index, -1) for index in range(len(rectangles))]  # below 0: not placed yet
        for unit in order:
            first = self.parts[unit][0][0]
            if first in fixed:
                continue
            taken = []
            for index, distance in self.parts[unit]:
                end = distance + rectangles[index].size_bytes
                for other in self.neighbours[index]:
                    at = offsets[other]
                    if at >= 0:
                        taken.append((at - end, at + rectangles[other].size_bytes - distance))
            taken.sort()
            base, alignment = 0, rectangles[first].alignment
            for below, above in taken:  # a base between these two, both excluded, would share bytes
                if base <= below:
                    break
                if base < above:
                    base = align_up(above, alignment)
            for index, distance in self.parts[unit]:
                offsets[index] = base + distance
        return tuple(offsets)


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
    if problem.fixed or problem.overlaps:
        return [None]
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
