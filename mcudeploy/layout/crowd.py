"""Offsets below a limit, the crowded steps first: the canonical search places what is alive in them as if
there was nothing else, first fit puts the rest around that, and ejection mends what then ends too high. The
fewer steps count as crowded the easier is the first part and the harder the last; so it begins with few.

Row blocks that run depth first need this: a few steps of each turn are full to the last byte, most are not.
Import only where it is needed: numba takes its time.
"""

from __future__ import annotations

import time
from itertools import accumulate

from mcudeploy.layout import canonical
from mcudeploy.layout.ejection import Ejection
from mcudeploy.layout.greedy import Units, used_bytes
from mcudeploy.layout.problem import Problem, conflicts, stacks_at_the_top

_SHARES = (0.95, 0.92, 0.9, 0.88, 0.86, 0.84, 0.82, 0.8, 0.75, 0.7, 0.0)
"""A step is crowded where its load is at least this part of the limit; the last ones are all steps."""


def fit(
    ejection: Ejection, limit: int, *, work: int, visits: int, deadline: float, seed: int
) -> tuple[int, ...] | None:
    """Offsets with all ends within `limit` bytes, or None. `work` is for the canonical search, `visits` for
    ejection, both in all; the clock ends it at `deadline` (of `time.monotonic`). The problem is one without
    overlaps and fixed offsets.
    """
    units = ejection.units
    problem = units.problem
    loads = _loads(problem)
    hung = stacks_at_the_top(problem, limit)
    if any(at < 0 for at in hung.values()):
        return None
    stacked = set(hung)
    before: list[int] = []
    for share in _SHARES:
        crowded = [load >= share * limit for load in loads]
        indices = [
            index
            for index, item in enumerate(problem.rectangles)
            if index in stacked or any(any(crowded[life.lo : life.hi]) for life in item.lives)
        ]
        if indices in (before, []):
            continue
        before, part = indices, _part(problem, indices)
        if work <= 0 or not canonical.applies(part) or time.monotonic() > deadline:
            return None
        found = canonical.pack(part, conflicts(part), limit, work=work, deadline=deadline, seed=seed)
        work -= found.work
        if found.offsets is None:
            return None  # with more of them it is harder
        best = _around(units, dict(zip(indices, found.offsets, strict=True)))
        if used_bytes(problem, best) <= limit:
            return best
        mended = ejection.fit(best, limit, visits=visits // len(_SHARES), seed=seed).offsets
        if mended is not None:
            return mended
    return None


def _loads(problem: Problem) -> list[int]:
    """Bytes alive by step."""
    change = [0] * (max(item.lives[-1].hi for item in problem.rectangles) + 1)
    for item in problem.rectangles:
        for life in item.lives:
            change[life.lo] += item.size_bytes
            change[life.hi] -= item.size_bytes
    return list(accumulate(change))[:-1]


def _part(problem: Problem, indices: list[int]) -> Problem:
    """Some rectangles alone, all stacks among them."""
    number = {index: at for at, index in enumerate(indices)}
    stacks = tuple(tuple(number[index] for index in stack) for stack in problem.stacks)
    return Problem(tuple(problem.rectangles[index] for index in indices), stacks=stacks)


def _around(units: Units, placed: dict[int, int]) -> tuple[int, ...]:
    """The best of first fit in the fixed orders, around what is placed."""
    found = (units.first_fit(order, placed) for order in units.orders())
    return min(found, key=lambda offsets: used_bytes(units.problem, offsets))
