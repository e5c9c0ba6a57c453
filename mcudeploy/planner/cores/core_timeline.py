"""The begin and end of each core's slices: each slice runs as early as its core and its waits allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcudeploy.ir.plan import Lane, Sync, WorkSlice

Times = tuple[tuple[float, ...], ...]
"""A time for each slice of each core's tape, by core."""


@dataclass(frozen=True, slots=True)
class CoreTimeline:
    """The begin and end of each slice, by core, in the unit of the given ticks; all cores begin at 0."""

    start: Times
    end: Times

    @property
    def ticks(self) -> float:
        """The latest end."""
        return max((lane[-1] for lane in self.end if lane), default=0)


def critical_path(lanes: Sequence[Lane], ticks: Sequence[Sequence[float]]) -> CoreTimeline:
    """Return the begin and end of slices with the given ticks, by core and slice.

    A slice begins when the previous slice and everything that its core waits for in between have ended.
    Raises ValueError if core tapes deadlock, or wait for slices that do not exist.
    """
    counts = [sum(isinstance(entry, WorkSlice) for entry in lane) for lane in lanes]
    if counts != [len(each) for each in ticks]:
        raise ValueError(f"lanes of {counts} parts have {[len(each) for each in ticks]} times")
    starts: list[list[float]] = [[] for _ in lanes]
    ends: list[list[float]] = [[] for _ in lanes]
    free: list[float] = [0] * len(lanes)
    places = [0] * len(lanes)

    def advance(core: int) -> bool:
        """Run a core as far as possible and return whether it advanced."""
        first = places[core]
        for entry in lanes[core][first:]:
            if isinstance(entry, Sync):
                if entry.parts > len(ends[entry.core]):
                    break
                if entry.parts > 0:
                    free[core] = max(free[core], ends[entry.core][entry.parts - 1])
            else:
                starts[core].append(free[core])
                free[core] += ticks[core][len(ends[core])]
                ends[core].append(free[core])
            places[core] += 1
        return places[core] > first

    while any(advance(core) for core in range(len(lanes))):
        pass
    stuck = [core for core, lane in enumerate(lanes) if places[core] < len(lane)]
    if stuck:
        raise ValueError(
            "; ".join(f"core {core} waits for ever: {lanes[core][places[core]]}" for core in stuck)
        )
    return CoreTimeline(*(tuple(map(tuple, each)) for each in (starts, ends)))
