"""Offsets for a problem within a time limit: greedy, orders that learn, then exact; and how good they are."""

from __future__ import annotations

import time
from dataclasses import replace

from mcudeploy.interval import Interval
from mcudeploy.layout.greedy import Units, fixed_orders, learned_orders, used_bytes
from mcudeploy.layout.problem import Placed, Problem, align_up, lower_bound

_ROUNDS = 100
"""Learned orders from each fixed one."""

_LEARNING_SHARE = 0.3
_LEARNING_SECONDS = 3.0
"""The most of the time limit, and the most seconds, for the orders that learn."""

_MOST_FOR_CP = 800
"""CP-SAT's model of more rectangles takes longer to build than it brings."""


def place(problem: Problem, seconds: float, *, grain: int = 1, seed: int = 0) -> Placed:
    """Offsets of all rectangles, with as few bytes used in each memory as are found in `seconds`.

    It stops at the lower bound, rounded up to `grain` bytes: a finer arena has no use. A capacity that is
    exceeded is not an error: compare `used_bytes`. With `seconds` 0 the fixed greedy orders alone are tried.
    """
    offsets = [0] * len(problem.rectangles)
    deadline = time.monotonic() + seconds
    units = [(memory, Units.of(part), indices) for memory, part, indices in _parts(problem)]
    bounds = [lower_bound(one.problem) for _, one, _ in units]
    targets: dict[str, int] = {}
    for (memory, _, _), bound in zip(units, bounds, strict=True):
        targets[memory] = max(targets.get(memory, 0), align_up(bound, grain))
    found = [fixed_orders(one, targets[memory]) for memory, one, _ in units]
    ends = [used_bytes(one.problem, best) for (_, one, _), best in zip(units, found, strict=True)]
    high = [number for number, (memory, _, _) in enumerate(units) if ends[number] > targets[memory]]
    for count, number in enumerate(high if seconds > 0 else ()):
        memory, one, _ = units[number]
        share = max(0.0, deadline - time.monotonic()) / (len(high) - count)
        capacity = problem.capacities.get(memory)
        found[number], bounds[number] = _improve(
            one, found[number], max(bounds[number], targets[memory]),
            capacity=capacity, seconds=share, grain=grain, seed=seed,
        )  # fmt: skip
    used = dict.fromkeys(targets, 0)
    least = dict.fromkeys(targets, 0)
    for number, (memory, one, indices) in enumerate(units):
        for index, offset in zip(indices, found[number], strict=True):
            offsets[index] = offset
        used[memory] = max(used[memory], align_up(used_bytes(one.problem, found[number]), grain))
        least[memory] = max(least[memory], align_up(bounds[number], grain))
    for item in problem.rectangles:
        if not item.lives:  # at the start of its memory, but inside
            used[item.memory] = max(used.get(item.memory, 0), align_up(item.size_bytes, grain))
            least[item.memory] = max(least.get(item.memory, 0), align_up(item.size_bytes, grain))
    return Placed(tuple(offsets), used, least)


def _improve(
    units: Units,
    best: tuple[int, ...],
    bound: int,
    *,
    capacity: int | None,
    seconds: float,
    grain: int,
    seed: int,
) -> tuple[tuple[int, ...], int]:
    """Better offsets than `best` for a problem in one memory, and a proven lower bound.

    `bound` is what the memory needs at least, also for other steps: less has no use.
    """
    start, problem = time.monotonic(), units.problem
    target = align_up(bound, grain)
    learning = start + min(_LEARNING_SHARE * seconds, _LEARNING_SECONDS)
    best = learned_orders(units, best, target=target, rounds=_ROUNDS, deadline=learning, seed=seed)
    if used_bytes(problem, best) <= target:
        return best, bound
    left = start + seconds - time.monotonic()
    # Libraries that few plans need; their import takes long, the first one after an installation above all.
    from mcudeploy.layout import canonical, exact  # noqa: PLC0415

    if canonical.applies(problem):
        return _search(
            units, best, bound, capacity=capacity, deadline=time.monotonic() + left, grain=grain, seed=seed
        )
    if len(problem.rectangles) <= _MOST_FOR_CP:
        found, bound = exact.least_arena(units, best, bound=bound, seconds=left, seed=seed)
        best = found or best
    return best, bound


def _search(
    units: Units,
    best: tuple[int, ...],
    bound: int,
    *,
    capacity: int | None,
    deadline: float,
    grain: int,
    seed: int,
) -> tuple[tuple[int, ...], int]:
    """The canonical search for ever smaller sizes between `bound` and what is used by `best`.

    First for the capacity, if that is not kept yet, then for the bound, then for sizes halfway, each for half
    of the time that is left.
    """
    from mcudeploy.layout import canonical  # noqa: PLC0415

    problem = units.problem
    used = used_bytes(problem, best)
    tried = bound
    while used > align_up(bound, grain) and time.monotonic() < deadline:
        must = capacity is not None and bound <= capacity < used
        size = capacity if must and capacity is not None else tried
        until = deadline if must else time.monotonic() + (deadline - time.monotonic()) / 2
        if not must and deadline - time.monotonic() < 0.05:
            break
        outcome = canonical.pack(problem, units.neighbours, size, until, seed)
        if outcome.offsets is not None:
            best, used = outcome.offsets, used_bytes(problem, outcome.offsets)
        elif outcome.proven:
            bound = size + 1
        tried = max(bound, (tried + used) // 2 if outcome.offsets is None else (bound + used) // 2)
        if tried >= used:
            break
    return best, bound


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
            stacks=tuple(tuple(number[i] for i in s) for s in problem.stacks if s and s[0] in number),
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
