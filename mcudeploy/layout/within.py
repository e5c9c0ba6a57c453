"""Offsets within a limit, by all ways that there are for it, one after the other, in so much effort.

Import only where it is needed: they use numba, which takes its time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from mcudeploy.layout import crowd
from mcudeploy.layout.ejection import Ejection
from mcudeploy.layout.greedy import Units
from mcudeploy.layout.problem import Outcome, stacks_at_the_top
from mcudeploy.layout.sweep import Sweep

_SWEPT_PER_SECOND = 40_000_000
_VISITS_PER_SECOND = 10_000_000
_WORK_PER_SECOND = 100_000_000
"""What sweeps, ejection and the canonical search do in a second of a desktop computer, each in its measure.
"""

_SWEEP_SHARE = 0.6
_CROWD_SHARE = 0.5
"""The part of sweeps in the effort, and of the canonical search, crowded steps first, in what is then left
for it and ejection.
"""


_STARTS = 4
"""Ejection begins from so many random places at most."""

_LEAST_S = 1e-3
"""What a limit costs at least, so that there is an end."""


@dataclass(slots=True, eq=False)
class Within:
    """A problem in one memory and what is left of the effort for it, in seconds of a desktop computer.
    `deadline` (of `time.process_time`) ends the search after all where the computer is much slower.
    """

    units: Units
    sweep: Sweep | None
    ejection: Ejection
    left: float
    deadline: float
    seed: int

    @classmethod
    def of(cls, units: Units, seconds: float, deadline: float, seed: int) -> Within:
        """Nothing is searched yet."""
        return cls(units, Sweep.of(units), Ejection.of(units), seconds, deadline, seed)

    @property
    def goes_on(self) -> bool:
        """False where effort or time is used up."""
        return self.left > 0 and time.process_time() < self.deadline

    def fit(self, start: tuple[int, ...], limit: int, seconds: float) -> Outcome:
        """Offsets with all ends within `limit` bytes, for so many seconds of effort; `start` are some that
        are higher.
        """
        problem, seconds = self.units.problem, min(seconds, self.left)
        self.left -= _LEAST_S
        swept = seconds * _SWEEP_SHARE
        if self.sweep is not None:
            given = {**problem.fixed, **stacks_at_the_top(problem, limit)}
            found = self.sweep.fit(limit, given=given, work=int(swept * _SWEPT_PER_SECOND), seed=self.seed)
            self.left -= found.work / _SWEPT_PER_SECOND
            seconds -= found.work / _SWEPT_PER_SECOND
            if found.offsets is not None:
                return Outcome(found.offsets)
        if not problem.overlaps and not problem.fixed:
            part = seconds * _CROWD_SHARE
            crowded = crowd.fit(
                self.ejection, limit, work=int(part * _WORK_PER_SECOND),
                visits=int(part * _VISITS_PER_SECOND / 2), deadline=self.deadline, seed=self.seed,
            )  # fmt: skip
            self.left -= part
            seconds -= part
            if crowded.offsets is not None or crowded.proven:
                return crowded
        for number in range(_STARTS):
            if not self.goes_on:
                break
            visits = int(seconds / _STARTS * _VISITS_PER_SECOND)
            ejected = self.ejection.fit(start, limit, visits=visits, seed=self.seed + number)
            self.left -= ejected.work / _VISITS_PER_SECOND
            if ejected.offsets is not None:
                return Outcome(ejected.offsets)
        return Outcome(None)
