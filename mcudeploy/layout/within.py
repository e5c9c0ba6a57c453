"""Offsets within a limit, by all ways that there are for it, one after the other, in so much effort.

Import only where it is needed: they use numba, which takes its time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import product

from mcudeploy.interval import Interval
from mcudeploy.layout import cells, crowd, effort
from mcudeploy.layout.ejection import Ejection
from mcudeploy.layout.greedy import Units
from mcudeploy.layout.problem import Outcome, stacks_at_the_top
from mcudeploy.layout.sweep import Sweep

_SWEEP_SHARE, _CROWD_SHARE, _EJECTION_SHARE = 0.2, 0.7, 0.3
"""Parts of the effort that is left then: of sweeps; of the crowded steps first; and of ejection alone. What
is between the last two is for sweeps with another seed.
"""

_REACHES, _TRIES_S = (5, 8, 16, 1 << 40), (0.25, 2.0)
"""A proof that less is not enough is tried for so many steps on either side of the most crowded one, with
ever more effort for each try.
"""

_STACK_SHARE, _PROOF_SHARE = 0.25, 0.1
"""Of the effort, for all such proofs: where stacks are, which leave holes as a rule, and elsewhere."""

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
    open_at: set[tuple[Interval, int, int]] = field(default_factory=set)
    """What is known to fit: steps, bytes of a cell, and cells."""

    @classmethod
    def of(cls, units: Units, seconds: float, deadline: float, seed: int) -> Within:
        """Nothing is searched yet."""
        return cls(units, Sweep.of(units), Ejection.of(units), seconds, deadline, seed)

    @property
    def goes_on(self) -> bool:
        """False where effort or time is used up."""
        return self.left > 0 and time.process_time() < self.deadline

    def bound(self, bound: int, enough: int) -> int:
        """The lower bound in bytes, or a higher one, of `enough` at most: what lives around the most crowded
        step does not fit within less.
        """
        if self.units.problem.overlaps or self.units.problem.fixed:
            return bound
        share = _STACK_SHARE if self.units.problem.stacks else _PROOF_SHARE
        end = (1 - share) * self.left
        for each, steps in product(_TRIES_S, self._windows()):
            if self.left <= end or time.process_time() > self.deadline:
                break
            bound, took = cells.least(
                self.units.problem, steps, bound, enough=enough, open_at=self.open_at, each=each,
                seconds=self.left - end, brake=max(0.1, self.deadline - time.process_time()), seed=self.seed,
            )  # fmt: skip
            self.left -= took
        return min(bound, enough)

    def fit(self, start: tuple[int, ...], limit: int, seconds: float) -> Outcome:
        """Offsets with all ends within `limit` bytes, for so many seconds of effort; `start` are some that
        are higher.
        """
        end = self.left - min(seconds, self.left)
        self.left -= _LEAST_S
        found = self._swept(limit, _SWEEP_SHARE * (self.left - end), self.seed)
        if not found.decided and not self.units.problem.overlaps and not self.units.problem.fixed:
            found, took = crowd.fit(
                self.ejection, limit, seconds=_CROWD_SHARE * (self.left - end), deadline=self.deadline,
                seed=self.seed,
            )  # fmt: skip
            self.left -= took
        if not found.decided:
            found = self._swept(limit, (1 - _EJECTION_SHARE) * (self.left - end), self.seed + 1)
        for number in range(_STARTS):
            if found.decided or not self.goes_on:
                break
            visits = int((self.left - end) / (_STARTS - number) * effort.VISITED)
            found = self.ejection.fit(start, limit, visits=visits, seed=self.seed + number)
            self.left -= found.work / effort.VISITED
        return found

    def _swept(self, limit: int, seconds: float, seed: int) -> Outcome:
        if self.sweep is None:
            return Outcome(None)
        given = {**self.units.problem.fixed, **stacks_at_the_top(self.units.problem, limit)}
        found = self.sweep.fit(limit, given=given, work=int(seconds * effort.SWEPT), seed=seed)
        self.left -= found.work / effort.SWEPT
        return found

    def _windows(self) -> list[Interval]:
        """Steps around the most crowded one, ever more."""
        loads = crowd.loads(self.units.problem)
        most = max(loads)
        full = [step for step, load in enumerate(loads) if load == most]
        middle = full[len(full) // 2]
        ends = {(max(0, middle - reach), min(len(loads), middle + reach)) for reach in _REACHES}
        return [Interval(*both) for both in sorted(ends, key=lambda both: both[1] - both[0])]
