"""What a search may spend, counted instead of timed: a busy machine finds the same plan."""

from __future__ import annotations

import logging
from math import inf
from time import process_time

_LOG = logging.getLogger(__name__)

UNITS_PER_SECOND = 1_000_000
"""A unit is about a microsecond of an ordinary PC. Each search says what its own steps are worth in units."""

_CUTOFF, _COMPILING_S = 4.0, 120.0
"""Planning stops at so many times the time limit in CPU time, plus the time that the first compilation of the
loops may take. The count of units normally stops it long before.
"""


class Effort:
    """A budget of work units. What a part spends is spent by the whole as well."""

    __slots__ = ("_clock_end", "_units", "_whole")

    def __init__(self, units: float, clock_end: float = inf, whole: Effort | None = None) -> None:
        self._units, self._clock_end, self._whole = units, clock_end, whole

    @classmethod
    def of(cls, seconds: float) -> Effort:
        """What fits into so many seconds on an ordinary PC."""
        return cls(seconds * UNITS_PER_SECOND, process_time() + _CUTOFF * seconds + _COMPILING_S)

    @property
    def left(self) -> float:
        """Units that may still be spent; never below 0."""
        own = max(0.0, self._units)
        return own if self._whole is None else min(own, self._whole.left)

    @property
    def clock_left(self) -> float:
        """Seconds of CPU time until the clock ends it, for a solver that has a clock of its own."""
        return max(0.0, self._clock_end - process_time())

    def spend(self, units: float) -> None:
        """Count work that was done."""
        self._units -= units
        if self._whole is not None:
            self._whole.spend(units)

    def is_spent(self) -> bool:
        """Whether the budget is used up, or the CPU time."""
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
        """A share (0 to 1) of what is left, as a limit of its own."""
        return Effort(share * self.left, self._clock_end, self)


def endless() -> Effort:
    """Effort without an end."""
    return Effort(inf)
