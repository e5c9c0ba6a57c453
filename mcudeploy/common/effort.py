"""Budgets of a search, counted instead of timed: a busy machine finds the same plan."""

from __future__ import annotations

import logging
from math import inf
from time import process_time

_LOG = logging.getLogger(__name__)

UNITS_PER_SECOND = 1_000_000
"""Units per second: a unit is about a microsecond of an ordinary PC. Each search prices its steps in units.
"""

_CUTOFF, _COMPILING_S = 4.0, 120.0
"""CPU-time cutoff, as a multiple of the time limit, plus the time of the first compilation of the loops.

Normally the count of units stops planning long before.
"""


class Effort:
    """A budget of work units. Units spent by a part are also spent by the whole."""

    __slots__ = ("_clock_end", "_units", "_whole")

    def __init__(self, units: float, clock_end: float = inf, whole: Effort | None = None) -> None:
        self._units, self._clock_end, self._whole = units, clock_end, whole

    @classmethod
    def of(cls, seconds: float) -> Effort:
        """Return the effort of `seconds` on an ordinary PC."""
        return cls(seconds * UNITS_PER_SECOND, process_time() + _CUTOFF * seconds + _COMPILING_S)

    @property
    def left(self) -> float:
        """Return the units that may still be spent; never below 0."""
        own = max(0.0, self._units)
        return own if self._whole is None else min(own, self._whole.left)

    @property
    def clock_left(self) -> float:
        """Return seconds of CPU time until the cutoff, for a solver with its own clock."""
        return max(0.0, self._clock_end - process_time())

    def spend(self, units: float) -> None:
        """Count finished work."""
        self._units -= units
        if self._whole is not None:
            self._whole.spend(units)

    def is_spent(self) -> bool:
        """Whether the budget or the CPU time is used up."""
        if self.left <= 0:
            return True
        if process_time() <= self._clock_end:
            return False
        _LOG.warning(
            "warning: planning stopped at its CPU-time cutoff; another run may give a different plan"
        )
        whole = self
        while whole._whole is not None:
            whole = whole._whole
        whole.spend(whole.left)  # so that the warning appears once
        return True

    def part(self, share: float) -> Effort:
        """Return a share (0 to 1) of the remaining units, as a separate limit."""
        return Effort(share * self.left, self._clock_end, self)


def endless() -> Effort:
    """Return unlimited effort."""
    return Effort(inf)
