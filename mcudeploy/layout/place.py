"""Offsets for a problem within a time limit: greedy, then searched for; and how good they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mcudeploy.interval import Interval
from mcudeploy.layout.greedy import Units, fixed_orders
from mcudeploy.layout.part import Part, Wanted
from mcudeploy.layout.problem import Placed, Problem, align_up, lower_bound


def place(
    problem: Problem,
    seconds: float,
    *,
    grain: int = 1,
    seed: int = 0,
    fitting: bool = False,
    interruptible: bool = False,
) -> Placed:
    """Offsets of all rectangles, with as few bytes used in each memory as are found in `seconds`.

    `seconds` stand for an effort, so that the same problem and seed have the same offsets on any computer.
    It stops at the lower bound, rounded up to `grain` bytes: a finer arena has no use; `fitting`: or at the
    capacity, which is aimed at first in any case. A capacity that is exceeded is not an error: compare
    `used_bytes`. With `seconds` 0 the fixed greedy orders alone are tried. `interruptible`: Ctrl-C ends the
    search, not the program, once no capacity is exceeded.
    """
    seed %= 1 << 31  # compiled loops have numbers of 64 bits
    members = _parts(problem)
    bounds = [lower_bound(one) for _, one, _ in members]
    targets: dict[str, int] = {}
    for (memory, _, _), bound in zip(members, bounds, strict=True):
        enough = problem.capacities.get(memory, 0) // grain * grain if fitting else 0
        targets[memory] = max(targets.get(memory, enough), align_up(bound, grain))
    parts = []
    for (memory, one, indices), bound in zip(members, bounds, strict=True):
        units = Units.of(one)
        parts.append(Part(memory, indices, units, fixed_orders(units, targets[memory]), bound))
    high = [part for part in parts if part.used > targets[part.memory]]
    high.sort(key=lambda part: -part.bound)  # who needs most comes first
    try:
        for part in high if seconds > 0 else ():
            memory = part.memory
            if part.used > targets[memory]:
                wanted = Wanted(problem.capacities.get(memory), grain, seed)
                part.improve(wanted, targets[memory], seconds / len(high))
                # Less than what one part has is of no use for the others.
                targets[memory] = max(targets[memory], align_up(part.used, grain))
    except KeyboardInterrupt:
        over = any(part.used > problem.capacities.get(part.memory, part.used) for part in parts)
        if over or not interruptible:
            raise
    return _together(problem, parts, grain)


def _together(problem: Problem, parts: Sequence[Part], grain: int) -> Placed:
    """What the parts of a problem add up to."""
    offsets = [0] * len(problem.rectangles)
    used: dict[str, int] = {}
    least: dict[str, int] = {}
    for part in parts:
        for index, offset in zip(part.indices, part.best, strict=True):
            offsets[index] = offset
        used[part.memory] = max(used.get(part.memory, 0), align_up(part.used, grain))
        least[part.memory] = max(least.get(part.memory, 0), align_up(part.bound, grain))
    for item in problem.rectangles:
        if not item.lives:  # at the start of its memory, but inside
            used[item.memory] = max(used.get(item.memory, 0), align_up(item.size_bytes, grain))
            least[item.memory] = max(least.get(item.memory, 0), align_up(item.size_bytes, grain))
    return Placed(tuple(offsets), used, least)


def _parts(problem: Problem) -> list[tuple[str, Problem, list[int]]]:
    """Problems that have nothing to do with each other: by memory, and between steps where nothing lives."""
    group = _groups(problem)
    members: dict[tuple[str, int], list[int]] = {}
    for index, item in enumerate(problem.rectangles):
        if item.lives:
            members.setdefault((item.memory, group[index]), []).append(index)
    parts = []
    for (memory, _), indices in members.items():
        number = {index: at for at, index in enumerate(indices)}
        part = Problem(
            tuple(problem.rectangles[index] for index in indices),
            stacks=tuple(tuple(number[i] for i in s) for s in problem.stacks if s[0] in number),
            overlaps=tuple(
                replace(overlap, first=number[overlap.first], second=number[overlap.second])
                for overlap in problem.overlaps
                if overlap.first in number and overlap.second in number
            ),
            fixed={number[index]: at for index, at in problem.fixed.items() if index in number},
        )
        parts.append((memory, part, indices))
    return parts


def _groups(problem: Problem) -> list[int]:
    """By rectangle the number of its run of steps, within its memory, in which something is always alive."""
    spans = [
        Interval(item.lives[0].lo, item.lives[-1].hi) if item.lives else Interval(0, 0)
        for item in problem.rectangles
    ]
    for stack in problem.stacks:
        hull = spans[stack[0]]
        for index in stack:
            hull = hull.hull(spans[index])
        for index in stack:
            spans[index] = hull
    group = [0] * len(spans)
    ends: dict[str, tuple[int, int]] = {}
    for index in sorted(range(len(spans)), key=lambda i: spans[i].lo):
        memory = problem.rectangles[index].memory
        number, end = ends.get(memory, (-1, -1))
        if number < 0 or spans[index].lo >= end:
            number += 1
        ends[memory] = number, max(end, spans[index].hi)
        group[index] = number
    return group
