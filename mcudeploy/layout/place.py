"""Offsets for a problem within a time limit: greedy, then searched for; and how good they are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mcudeploy.interval import Interval
from mcudeploy.layout.effort import BRAKE, LOOKED_AT, SOLVED
from mcudeploy.layout.greedy import Units, fixed_orders, used_bytes
from mcudeploy.layout.problem import Outcome, Placed, Problem, align_up, lower_bound

if TYPE_CHECKING:
    from mcudeploy.layout.within import Within

_LITTLE = 0.1
"""Of the effort, for a first try within the bound."""

_AT_BOUND = 0.4
"""The same where a certain limit is to be kept."""

_SOME_LIMITS = 6
"""Where the bound is not reached limits are bisected, each with this part of what is left."""

_FEW_STEPS = 10_000
"""So many steps are walked through one by one."""

_LESS_SHARE = 3
"""The canonical search for less than the capacity has this part of the effort."""

_MOST_FOR_CP = 200
_SOLVER_SHARE = 0.5
"""CP-SAT proves something, or finds more, only for so few rectangles; its part of the time."""


def place(
    problem: Problem,
    seconds: float,
    *,
    grain: int = 1,
    seed: int = 0,
    fitting: bool = False,
    most: int | None = None,
) -> Placed:
    """Offsets of all rectangles, with as few bytes used in each memory as are found in `seconds`.

    `seconds` stand for an effort, so that the same problem and seed have the same offsets on any computer.
    It stops at the lower bound, rounded up to `grain` bytes: a finer arena has no use; `fitting`: or at the
    capacity, which is aimed at first in any case. A capacity that is exceeded is not an error: compare
    `used_bytes`. Where more than `most` bytes in a memory have no use, it looks for that before for less, and
    ends if it does not find it. With `seconds` 0 the fixed greedy orders alone are tried.
    """
    seed %= 1 << 31  # compiled loops have numbers of 64 bits
    units = [(memory, Units.of(part), indices) for memory, part, indices in _parts(problem)]
    bounds = [lower_bound(one.problem) for _, one, _ in units]
    targets: dict[str, int] = {}
    for (memory, _, _), bound in zip(units, bounds, strict=True):
        enough = problem.capacities.get(memory, 0) // grain * grain if fitting else 0
        targets[memory] = max(targets.get(memory, enough), align_up(bound, grain))
    found = [fixed_orders(one, targets[memory]) for memory, one, _ in units]
    ends = [used_bytes(one.problem, best) for (_, one, _), best in zip(units, found, strict=True)]
    high = [number for number, (memory, _, _) in enumerate(units) if ends[number] > targets[memory]]
    high.sort(key=lambda number: -bounds[number])  # who needs most comes first
    for number in high if seconds > 0 else ():
        memory, one, _ = units[number]
        if ends[number] <= targets[memory]:
            continue
        found[number], bound = _improve(
            one, found[number], targets[memory],
            capacity=problem.capacities.get(memory), most=most, seconds=seconds / len(high), grain=grain,
            seed=seed,
        )  # fmt: skip
        if bound > targets[memory]:  # only then something is proven of this part
            bounds[number] = bound
        # Less than what one part has is of no use for the others.
        targets[memory] = max(targets[memory], align_up(used_bytes(one.problem, found[number]), grain))
    return _together(problem, units, found, bounds, grain)


def _together(
    problem: Problem,
    units: Sequence[tuple[str, Units, list[int]]],
    found: Sequence[tuple[int, ...]],
    bounds: Sequence[int],
    grain: int,
) -> Placed:
    """What the parts of a problem add up to."""
    offsets = [0] * len(problem.rectangles)
    used: dict[str, int] = {}
    least: dict[str, int] = {}
    for number, (memory, one, indices) in enumerate(units):
        for index, offset in zip(indices, found[number], strict=True):
            offsets[index] = offset
        used[memory] = max(used.get(memory, 0), align_up(used_bytes(one.problem, found[number]), grain))
        least[memory] = max(least.get(memory, 0), align_up(bounds[number], grain))
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
    most: int | None,
    seconds: float,
    grain: int,
    seed: int,
) -> tuple[tuple[int, ...], int]:
    """Better offsets than `best` for a problem in one memory, and a lower bound, proven where it is above
    `bound`: with less than that the search ends, because less has no use.
    """
    problem, start = units.problem, time.process_time()
    # Libraries that few plans need; their import takes long, the first one after an installation above all.
    from mcudeploy.layout import canonical  # noqa: PLC0415
    from mcudeploy.layout.within import Within  # noqa: PLC0415

    if capacity is not None and canonical.applies(problem) and not problem.stacks:
        work = int(seconds * LOOKED_AT)
        return _search(
            units, best, bound, capacity=capacity, work=work, deadline=start + seconds, grain=grain, seed=seed
        )
    units, deadline = replace(units, problem=_with_few_steps(problem)), start + BRAKE * seconds
    few = len(problem.rectangles) <= _MOST_FOR_CP
    search = Within.of(units, seconds * (1 - _SOLVER_SHARE if few else 1), deadline, seed)
    if most is not None and most < used_bytes(problem, best):
        useful, bound = _useful(search, best, bound, most, grain)
        if useful is None:
            return best, bound
        best = useful
    best, bound = _fit(search, best, bound, capacity, grain)
    if few and used_bytes(problem, best) > align_up(bound, grain):
        from mcudeploy.layout import exact  # noqa: PLC0415

        effort, brake = seconds * _SOLVER_SHARE * SOLVED, max(0.1, deadline - time.process_time())
        found, bound = exact.least_arena(units, best, bound=bound, effort=effort, brake=brake, seed=seed)
        best = found or best
    return best, bound


def _useful(
    search: Within, best: tuple[int, ...], bound: int, most: int, grain: int
) -> tuple[tuple[int, ...] | None, int]:
    """Offsets within the bound, or within `most` bytes, or None; and the bound."""
    found = search.fit(best, align_up(bound, grain), _AT_BOUND * search.left)
    if found.offsets is None:
        bound = search.bound(bound, most + 1)
        found = search.fit(best, most, search.left) if bound <= most else Outcome(None)
        bound = most + 1 if found.proven else bound
    return found.offsets, bound


def _fit(
    search: Within, best: tuple[int, ...], bound: int, capacity: int | None, grain: int
) -> tuple[tuple[int, ...], int]:
    """Offsets within the capacity, then within the bound, each with a half of the effort that is left; then
    within limits between it and what is used by `best`. And the bound, higher where that is proven. Most
    that reach it do so with little effort, so proofs come after that.
    """
    problem = search.units.problem
    if capacity is None:
        found = search.fit(best, align_up(bound, grain), _LITTLE * search.left)
        if found.offsets is not None:
            return found.offsets, bound
    bound = search.bound(bound, used_bytes(problem, best))
    low, high = align_up(bound, grain) - grain, align_up(used_bytes(problem, best), grain)
    room = high if capacity is None else capacity // grain * grain
    aims = [limit for limit in (low + grain, room) if low < limit < high]
    while search.goes_on and low + grain < high:
        seconds = search.left / (2 if aims else _SOME_LIMITS)
        limit = aims.pop() if aims else align_up((low + high) // 2, grain)
        found = search.fit(best, limit, seconds)
        bound = limit + 1 if found.proven else bound
        if found.offsets is None:
            low, aims = limit, []
        else:
            best, high = found.offsets, align_up(used_bytes(problem, found.offsets), grain)
    return best, bound


def _with_few_steps(problem: Problem) -> Problem:
    """The problem with steps in which nothing is born or dies left out, if there are many steps."""
    spans = [life for item in problem.rectangles for life in item.lives]
    if max(span.hi for span in spans) <= _FEW_STEPS:
        return problem
    spans += [overlap.steps for overlap in problem.overlaps]
    times = sorted({time for span in spans for time in (span.lo, span.hi)})
    number = {time: at for at, time in enumerate(times)}

    def ranked(span: Interval) -> Interval:
        return Interval(number[span.lo], number[span.hi])

    return replace(
        problem,
        rectangles=tuple(replace(item, lives=tuple(map(ranked, item.lives))) for item in problem.rectangles),
        overlaps=tuple(replace(overlap, steps=ranked(overlap.steps)) for overlap in problem.overlaps),
    )


def _search(
    units: Units,
    best: tuple[int, ...],
    bound: int,
    *,
    capacity: int,
    work: int,
    deadline: float,
    grain: int,
    seed: int,
) -> tuple[tuple[int, ...], int]:
    """The canonical search for the capacity, if that is not kept yet; then for the bound, and for sizes
    halfway between it and what is used.
    """
    from mcudeploy.layout import canonical  # noqa: PLC0415

    problem, used, size, left = units.problem, used_bytes(units.problem, best), bound, work // _LESS_SHARE
    if bound <= capacity < used:
        size, left = capacity, work
    while size < used and left > work // 1000 and time.process_time() < deadline:
        share = left if size == capacity < used else left // _SOME_LIMITS
        outcome = canonical.pack(problem, units.neighbours, size, work=share, deadline=deadline, seed=seed)
        left = min(left - max(outcome.work, 1), work // _LESS_SHARE)
        if outcome.offsets is not None:
            best, used = outcome.offsets, used_bytes(problem, outcome.offsets)
            size = bound if size == capacity else (bound + used) // 2
        else:
            bound = size + 1 if outcome.proven else bound
            size = max(bound, (size + used + 1) // 2)
        if used <= align_up(bound, grain):
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
