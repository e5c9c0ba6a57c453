"""Offsets below a limit, the crowded steps first: the canonical search places what is alive in them as if
there was nothing else, first fit puts the rest around that, and ejection mends what then ends too high. The
fewer steps count as crowded the easier is the first part and the harder the last; so it begins with few.
All this is done with scratch anywhere, and with scratch at the top, which leaves rows of few sizes.

Row blocks that run depth first need this: a few steps of each turn are full to the last byte, most are not.
Import only where it is needed: numba takes its time.
"""

from __future__ import annotations

import time
from itertools import accumulate

from mcudeploy.layout import canonical
from mcudeploy.layout.ejection import Ejection
from mcudeploy.layout.greedy import Units, brief_at_the_top, used_bytes
from mcudeploy.layout.problem import Outcome, Problem, conflicts, stacks_at_the_top

_SHARES = (0.95, 0.92, 0.9, 0.88, 0.86, 0.84, 0.82, 0.8, 0.75, 0.7, 0.0)
"""A step is crowded where its load is at least this part of the limit; the last ones are all steps."""


def fit(ejection: Ejection, limit: int, *, work: int, visits: int, deadline: float, seed: int) -> Outcome:
    """Offsets with all ends within `limit` bytes. `work` is for the canonical search, `visits` for ejection,
    both in all; `deadline` (of `time.process_time`) ends it. The problem is one without overlaps and fixed
    offsets.
    """
    problem = ejection.units.problem
    choices = [stacks_at_the_top(problem, limit), brief_at_the_top(problem, limit)]
    if choices[0] == choices[1]:
        choices = choices[:1]
    for hung in choices:
        found = _fit(
            ejection, limit, hung, work=work // len(choices), visits=visits // len(choices),
            deadline=deadline, seed=seed,
        )  # fmt: skip
        if found.offsets is not None or found.proven:
            return found
    return Outcome(None)


def _fit(
    ejection: Ejection,
    limit: int,
    hung: dict[int, int],
    *,
    work: int,
    visits: int,
    deadline: float,
    seed: int,
) -> Outcome:
    """The same with these offsets, by index, for what is crowded."""
    units = ejection.units
    problem = units.problem
    if any(at < 0 for at in hung.values()):
        return Outcome(None)
    loads = _loads(problem)
    stacked = {index for stack in problem.stacks for index in stack}
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
        if work <= 0 or not canonical.applies(part) or time.process_time() > deadline:
            break
        given = {at: hung[index] for at, index in enumerate(indices) if index in hung}
        found = canonical.pack(
            part, conflicts(part), limit, work=work, deadline=deadline, seed=seed, hung=given
        )  # fmt: skip
        work -= found.work
        if found.offsets is None:
            return Outcome(None, found.proven)  # with more of them it is harder
        best = _around(units, dict(zip(indices, found.offsets, strict=True)))
        if used_bytes(problem, best) <= limit:
            return Outcome(best)
        mended = ejection.fit(best, limit, visits=visits // len(_SHARES), seed=seed).offsets
        if mended is not None:
            return Outcome(mended)
    return Outcome(None)


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
