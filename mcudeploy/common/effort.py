"""Budgets of a search, counted instead of timed: a busy machine finds the same plan."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import count, takewhile
from math import inf
from time import process_time

from mcudeploy.common.fast import lacking

_LOG = logging.getLogger(__name__)

UNITS_PER_SECOND = 1_000_000
"""A unit is about a microsecond of an ordinary PC. Each search prices its steps in units."""

ROUND_ENDS_S = (1.0, 5.0, 10.0, 20.0, 60.0, 180.0, 540.0)
"""Seconds of effort after which rounds end; each later round ends after three times the seconds."""

_CLOCK_UNITS = 10_000
"""Units of work between two readings of the clock, which can take longer than a step of a search."""

_CUTOFF, _CUTOFF_PLAIN, _COMPILING_S = 4.0, 40.0, 120.0
"""CPU-time cutoff, as a multiple of the time limit with compiled loops and with plain ones, plus the time of
the first compilation of the loops.

Normally the count of units stops planning long before.
"""


class Effort:
    """A budget of work units. Units that a part spends count in the whole, too."""

    __slots__ = ("_clock_due", "_clock_end", "_units", "_whole", "spent")

    def __init__(self, units: float, clock_end: float = inf, whole: Effort | None = None) -> None:
        self._units, self._clock_end, self._whole = units, clock_end, whole
        self.spent = self._clock_due = 0.0

    @classmethod
    def of(cls, seconds: float) -> Effort:
        """Return the effort of `seconds` on an ordinary PC."""
        cutoff = _CUTOFF_PLAIN if lacking() else _CUTOFF
        return cls(seconds * UNITS_PER_SECOND, process_time() + cutoff * seconds + _COMPILING_S)

    @property
    def left(self) -> float:
        """The units that may still be spent; never below 0."""
        own = max(0.0, self._units - self.spent)
        return own if self._whole is None else min(own, self._whole.left)

    @property
    def clock_left(self) -> float:
        """The seconds of CPU time until the cutoff, for a solver with its own clock."""
        return max(0.0, self._clock_end - process_time())

    def spend(self, units: float) -> None:
        """Count finished work."""
        self.spent += units
        if self._whole is not None:
            self._whole.spend(units)

    def rounds(self, seconds: float, until: float = inf) -> Iterator[Effort]:
        """Yield the effort of each round that ends within `seconds`; effort that is spent already counts.

        If no round fits, one takes all seconds. More seconds add rounds and leave the earlier ones as they
        are. A round that would end after `until` ends there, and is the last.
        """
        spent, first, last = self.spent, ROUND_ENDS_S[0], ROUND_ENDS_S[-1]
        longer = takewhile(lambda end: end <= seconds, (last * 3**power for power in count(1)))
        ends = [end for end in (*ROUND_ENDS_S, *longer) if end <= seconds] if seconds >= first else [seconds]
        if until < ends[-1]:
            ends = [*(end for end in ends if end < until), until]
        for end in ends:
            if process_time() > self._clock_end:
                return
            effort = Effort(max(0.0, end * UNITS_PER_SECOND - spent), self._clock_end)
            yield effort
            spent += effort.spent

    def is_spent(self) -> bool:
        """Whether the budget or the CPU time is used up."""
        if self.left <= 0:
            return True
        if self.spent < self._clock_due:
            return False
        self._clock_due = self.spent + _CLOCK_UNITS
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

    def within(self, seconds: float) -> Effort:
        """Return at most `seconds` of the remaining effort, as a separate limit."""
        return Effort(min(seconds * UNITS_PER_SECOND, self.left), self._clock_end, self)

    def again(self) -> Effort:
        """Return a separate effort of as many units as this one began with; it does not spend them here."""
        return Effort(self._units, self._clock_end)

    def part(self, share: float) -> Effort:
        """Return a share (0 to 1) of the remaining units, as a separate limit."""
        return Effort(share * self.left, self._clock_end, self)


def endless() -> Effort:
    """Return unlimited effort."""
    return Effort(inf)
