"""A part of a problem: the searches for better offsets, and what is known whenever they are stopped."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mcudeploy.interval import Interval
from mcudeploy.layout.effort import BRAKE, LOOKED_AT, SOLVED
from mcudeploy.layout.greedy import Units, used_bytes
from mcudeploy.layout.problem import Problem, align_up

if TYPE_CHECKING:
    from mcudeploy.layout.within import Within

_LITTLE = 0.1
"""Of the effort, for a first try within the floor. Most that reach it do so with little effort, so proofs
that raise it come after that.
"""

_SOME_LIMITS = 6
"""Where the bound is not reached limits are bisected, each with this part of what is left."""

_FEW_STEPS = 10_000
"""So many steps are walked through one by one."""

_LESS_SHARE = 3
"""The canonical search for less than the capacity has this part of the effort."""

_MOST_FOR_CP = 200
_SOLVER_SHARE = 0.5
"""CP-SAT proves something, or finds more, only for so few rectangles; its part of the time."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is searched for in one memory: offsets within the capacity if there is one, then with the fewest
    bytes, rounded up to `grain`.
    """

    capacity: int | None
    grain: int
    seed: int


@dataclass(slots=True, eq=False)
class Part:
    """A problem in one memory, by index the rectangles of the whole that it has, the best offsets so far and
    the bytes that are needed at least. Less than `floor` has no use.
    """

    memory: str
    indices: list[int]
    units: Units
    best: tuple[int, ...]
    bound: int
    floor: int = 0

    @property
    def used(self) -> int:
        """The end of the highest rectangle."""
        return used_bytes(self.units.problem, self.best)

    def improve(self, wanted: Wanted, floor: int, seconds: float) -> None:
        """Search for so long; less than `floor` has no use. An interrupt loses no more than what the search
        within one limit has by then.
        """
        self.floor = max(floor, self.bound)
        problem, start = self.units.problem, time.process_time()
        # Few plans need these libraries; their import takes long, the first after an installation above all.
        from mcudeploy.layout import canonical  # noqa: PLC0415
        from mcudeploy.layout.within import Within  # noqa: PLC0415

        if wanted.capacity is not None and canonical.applies(problem) and not problem.stacks:
            self._search(wanted, wanted.capacity, int(seconds * LOOKED_AT), start + seconds)
            return
        deadline = start + BRAKE * seconds
        few = len(problem.rectangles) <= _MOST_FOR_CP
        units = replace(self.units, problem=_with_few_steps(problem))
        search = Within.of(units, seconds * (1 - _SOLVER_SHARE if few else 1), deadline, wanted.seed)
        if wanted.capacity is None:
            self._within(search, align_up(self.floor, wanted.grain), _LITTLE * search.left)
        self._fit(search, wanted)
        if few and self.used > align_up(self.floor, wanted.grain):
            from mcudeploy.layout import exact  # noqa: PLC0415

            effort, brake = seconds * _SOLVER_SHARE * SOLVED, max(0.1, deadline - time.process_time())
            found, bound = exact.least_arena(
                units, self.best, bound=self.floor, effort=effort, brake=brake, seed=wanted.seed
            )
            self._proven(bound)
            self.best = found or self.best

    def _proven(self, bound: int) -> None:
        if bound > self.floor:
            self.floor = self.bound = bound

    def _fit(self, search: Within, wanted: Wanted) -> None:
        """Offsets within the capacity, then within the floor, each with a half of the effort that is left;
        then within limits between it and what is used. Before that the floor is raised by proofs.
        """
        grain = wanted.grain
        if self.used <= align_up(self.floor, grain):
            return
        self._proven(search.bound(self.floor, self.used))
        low, high = align_up(self.floor, grain) - grain, align_up(self.used, grain)
        room = high if wanted.capacity is None else wanted.capacity // grain * grain
        aims = [limit for limit in (low + grain, room) if low < limit < high]
        while search.goes_on and low + grain < high:
            seconds = search.left / (2 if aims else _SOME_LIMITS)
            limit = aims.pop() if aims else align_up((low + high) // 2, grain)
            if self._within(search, limit, seconds):
                high = align_up(self.used, grain)
            else:
                low, aims = limit, []

    def _within(self, search: Within, limit: int, seconds: float) -> bool:
        """Whether offsets within the limit are found; they are kept."""
        found = search.fit(self.best, limit, seconds)
        if found.proven:
            self._proven(limit + 1)
        self.best = found.offsets or self.best
        return found.offsets is not None

    def _search(self, wanted: Wanted, capacity: int, work: int, deadline: float) -> None:
        """The canonical search for the capacity, if that is not kept yet; then for the floor, and for sizes
        halfway between it and what is used.
        """
        from mcudeploy.layout import canonical  # noqa: PLC0415

        problem, used, size, left = self.units.problem, self.used, self.floor, work // _LESS_SHARE
        if self.floor <= capacity < used:
            size, left = capacity, work
        while size < used and left > work // 1000 and time.process_time() < deadline:
            share = left if size == capacity < used else left // _SOME_LIMITS
            outcome = canonical.pack(
                problem, self.units.neighbours, size, work=share, deadline=deadline, seed=wanted.seed
            )
            left = min(left - max(outcome.work, 1), work // _LESS_SHARE)
            if outcome.offsets is not None:
                self.best, used = outcome.offsets, used_bytes(problem, outcome.offsets)
                size = self.floor if size == capacity else (self.floor + used) // 2
            else:
                if outcome.proven:
                    self._proven(size + 1)
                size = max(self.floor, (size + used + 1) // 2)
            if used <= align_up(self.floor, wanted.grain):
                break


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
