"""A live chart of the search in a terminal: least arena over time, and candidates per second."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_HEIGHT, _WIDTH, _MARGIN, _BESIDE = 6, 72, 12, 20
"""Lines of the chart, its maximum columns, and the columns left and right of it."""


@dataclass(slots=True)
class SearchChart:
    """Seconds, least arena in bytes and candidates so far; draws itself.

    Consecutive searches under one latency limit form one line.
    """

    seconds: list[float] = field(default_factory=list)
    arenas: list[int] = field(default_factory=list)
    candidates: list[int] = field(default_factory=list)
    _last_seconds: float = 0.0
    _earlier: tuple[float, int] = (0.0, 0)
    """Seconds and candidates of the searches before the present one."""

    def add(self, seconds: float, arena_bytes: int, candidates: int) -> None:
        """Add a newer state of a search; a second search restarts its clock."""
        if seconds < self._last_seconds:
            self._earlier = self.seconds[-1], self.candidates[-1]
        self._last_seconds = seconds
        self.seconds.append(self._earlier[0] + seconds)
        self.arenas.append(min(arena_bytes, *self.arenas[-1:]) if self.arenas else arena_bytes)
        self.candidates.append(self._earlier[1] + candidates)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines; none before a second point, or in a terminal without block characters."""
        width = min(_WIDTH, options.max_width - _MARGIN - _BESIDE)
        if len(self.seconds) > 1 and width > 8 and not options.ascii_only:
            yield from (Text(line) for line in self.lines(width))

    def lines(self, width: int) -> list[str]:
        """Return the chart in `width` columns, from the start of the search until now."""
        first, last = self.seconds[0], self.seconds[-1]
        ends = [first + (last - first) * (column + 1) / width for column in range(width)]
        best = [self.arenas[bisect_right(self.seconds, end) - 1] for end in ends]
        most = max(self.arenas)
        rows = [
            "".join(_part(8 * _HEIGHT * arena / most - 8 * row) for arena in best)
            for row in reversed(range(_HEIGHT))
        ]
        labels = [f"{most:,} ", *[""] * (_HEIGHT - 2), "0 "]
        drawn = [f"{label:>{_MARGIN}}{row}" for label, row in zip(labels, rows, strict=True)]
        return [
            f"{'arena':>{_MARGIN - 1}} {self.arenas[-1]:,} B",
            *drawn,
            f"{'a second':>{_MARGIN - 1}} {self._rates(ends)} {self._rate():,.0f} candidates",
        ]

    def _rates(self, ends: list[float]) -> str:
        """Return candidates per second in each column, relative to the maximum."""
        counts = [self._count(end) for end in (self.seconds[0], *ends)]
        rates = [after - before for before, after in pairwise(counts)]
        most = max(rates) or 1.0
        return "".join(_part(8 * each / most) for each in rates)

    def _count(self, seconds: float) -> float:
        """Return the candidates until `seconds`, interpolated linearly."""
        at = min(bisect_right(self.seconds, seconds), len(self.seconds) - 1)
        before, after = self.seconds[at - 1], self.seconds[at]
        share = (seconds - before) / (after - before) if after > before else 1.0
        return self.candidates[at - 1] + min(1.0, share) * (self.candidates[at] - self.candidates[at - 1])

    def _rate(self) -> float:
        passed = self.seconds[-1]
        return self.candidates[-1] / passed if passed else 0.0


def _part(eighths: float) -> str:
    """Return a character that is filled to this number of eighths."""
    return _EIGHTHS[max(0, min(8, round(eighths)))]
