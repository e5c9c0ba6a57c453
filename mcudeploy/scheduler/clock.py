"""Deadlines in CPU time, so that a busy machine changes little, with the clock behind them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from time import monotonic, process_time


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moment when the process has used so much CPU time (`time.process_time`), or the clock
    (`time.monotonic`) says so. All its threads count.
    """

    cpu: float
    clock: float

    @classmethod
    def after(cls, seconds: float, clock_seconds: float) -> Deadline:
        """So many seconds of CPU time from now, or of the clock."""
        return cls(process_time() + seconds, monotonic() + clock_seconds)

    def passed(self) -> bool:
        """Whether it is over."""
        return process_time() > self.cpu or monotonic() > self.clock

    def left(self, threads: int = 1) -> float:
        """Seconds that so many busy threads have left."""
        return min((self.cpu - process_time()) / threads, self.clock - monotonic())

    def share(self, part: float) -> Deadline:
        """The moment when a part of the CPU time that is left has been used; the clock's limit stays."""
        now = process_time()
        return replace(self, cpu=now + part * (self.cpu - now))


NEVER = Deadline(inf, inf)
