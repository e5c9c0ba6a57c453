"""Offsets by first fit: each rectangle or stack, in some order, at the lowest offset free during its life."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from typing import TYPE_CHECKING

from mcudeploy.ir.rectangles import PlacementProblem
from mcudeploy.planner.place.placement_problem import conflicts, stacks_at_the_top

if TYPE_CHECKING:
    from mcudeploy.planner.place.greedy_loops import Arrays


@dataclass(frozen=True, eq=False)
class Clusters:
    """Rectangles that get one offset together: by cluster, each with its distance from the cluster's base."""

    problem: PlacementProblem
    parts: tuple[tuple[tuple[int, int], ...], ...]
    neighbours: list[list[int]]

    @classmethod
    def of(cls, problem: PlacementProblem) -> Clusters:
        """Return stacks, rematerialised blocks, and single rectangles as clusters."""
        sizes = [item.size_bytes for item in problem.rectangles]
        parts = [
            tuple(zip(stack, accumulate((sizes[index] for index in stack), initial=0), strict=False))
            for stack in problem.stacks
        ]
        parts += [tuple((index, 0) for index in group) for group in problem.in_turn]
        bound = {index for part in parts for index, _ in part}
        parts += [((index, 0),) for index in range(len(sizes)) if index not in bound]
        return cls(problem, tuple(parts), conflicts(problem))

    def orders(self) -> Iterator[list[int]]:
        """Yield orders of clusters: by size, by life, by area, and by birth."""
        rectangles = self.problem.rectangles
        size = [distance + rectangles[i].size_bytes for *_, (i, distance) in self.parts]
        life = [self._life(part) for part in self.parts]
        area = [
            sum(rectangles[i].size_bytes * len(rectangles[i].life) for i, _ in part) for part in self.parts
        ]
        birth = [min(rectangles[i].life.lo for i, _ in part) for part in self.parts]
        everyone = range(len(self.parts))
        yield sorted(everyone, key=lambda b: (-size[b], -life[b], birth[b]))
        yield sorted(everyone, key=lambda b: (-life[b], -size[b], birth[b]))
        yield sorted(everyone, key=lambda b: (-area[b], birth[b]))
        yield sorted(everyone, key=lambda b: (birth[b], -size[b]))

    def _life(self, part: tuple[tuple[int, int], ...]) -> int:
        """Return the steps of the longest-lived member of a cluster, over all its lives."""
        steps = Counter[int]()
        for index, distance in part:
            steps[distance] += len(self.problem.rectangles[index].life)
        return max(steps.values())

    def first_fit(self, order: Sequence[int], anchored: Mapping[int, int] | None = None) -> tuple[int, ...]:
        """Return offsets of all rectangles, clusters placed in this order; `anchored`: offsets by index."""
        import numpy as np  # noqa: PLC0415

        from mcudeploy.planner.place import greedy_loops  # noqa: PLC0415

        anchored = anchored or {}
        offsets = np.full(len(self.problem.rectangles), -1, np.int64)
        offsets[list(anchored)] = list(anchored.values())
        left = [cluster for cluster in order if self.parts[cluster][0][0] not in anchored]
        place = greedy_loops.first_fit_of(len(self._arrays[-1]))
        place(np.array(left, np.int64), self._arrays, offsets)
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


def used_bytes(problem: PlacementProblem, offsets: Sequence[int]) -> int:
    """Return the end of the highest rectangle in bytes."""
    ends = (offset + item.size_bytes for item, offset in zip(problem.rectangles, offsets, strict=True))
    return max(ends, default=0)


def fixed_orders(clusters: Clusters, target: int) -> tuple[int, ...]:
    """Return the best first-fit offsets over the fixed orders; stops at `target` bytes."""
    best: tuple[int, ...] | None = None
    least = 0
    bases = _bases(clusters.problem, target)
    for order in clusters.orders():
        for anchored in bases:
            offsets = clusters.first_fit(order, anchored)
            used = used_bytes(clusters.problem, offsets)
            if best is None or used < least:
                best, least = offsets, used
            if least <= target:
                return best
    return best or ()


def _bases(problem: PlacementProblem, top: int) -> list[dict[int, int] | None]:
    """Return the anchors of stacks and scratch: none, or from the top, which keeps free space contiguous."""
    anchored, short_lived = stacks_at_the_top(problem, top), short_lived_at_the_top(problem, top)
    choices = [anchored, short_lived] if short_lived != anchored else [anchored]
    return [*(one for one in choices if one and min(one.values()) >= 0), None]


def short_lived_at_the_top(problem: PlacementProblem, top: int) -> dict[int, int]:
    """Return offsets, by index, of stacks and of all that lives for one step (scratch).

    Scratch hangs below the live rows of stacks, or from `top`. Only rows remain for the rest, often of equal
    size.
    """
    anchored = stacks_at_the_top(problem, top)
    room: dict[int, int] = {}
    for index, at in anchored.items():
        life = problem.rectangles[index].life
        room.update((step, min(at, room.get(step, top))) for step in range(life.lo, life.hi))
    bound = {index for group in (*problem.stacks, *problem.in_turn) for index in group}
    singles = ((index,) for index in range(len(problem.rectangles)) if index not in bound)
    for group in sorted((*problem.in_turn, *singles)):
        items = [problem.rectangles[index] for index in group]
        if any(len(item.life) != 1 for item in items):
            continue
        below = min(room.get(item.life.lo, top) for item in items) - items[0].size_bytes
        at = below // items[0].alignment * items[0].alignment
        anchored.update(dict.fromkeys(group, at))
        room.update((item.life.lo, at) for item in items)
    return anchored
