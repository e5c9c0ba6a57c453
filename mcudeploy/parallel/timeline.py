"""When several cores do their parts: each as soon as it can, waits being as long as others take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcudeploy.ir.plan import Await, Lane, Part

Times = tuple[tuple[float, ...], ...]
"""By core a time of each part of its lane."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """When each part begins and ends, by core, in the unit of the given ticks; all cores begin at 0."""

    start: Times
    end: Times

    @property
    def ticks(self) -> float:
        """The latest end."""
        return max((lane[-1] for lane in self.end if lane), default=0)

    @property
    def busy(self) -> tuple[float, ...]:
        """How long each core does parts."""
        lanes = zip(self.start, self.end, strict=True)
        return tuple(sum(end - start for start, end in zip(*lane, strict=True)) for lane in lanes)

    @property
    def idle(self) -> tuple[float, ...]:
        """How long each core does none, until the last one is done."""
        return tuple(self.ticks - busy for busy in self.busy)


def critical_path(lanes: Sequence[Lane], ticks: Sequence[Sequence[float]]) -> Timeline:
    """When parts begin and end that take so many ticks, by core and part: each begins once the part in front
    of it has ended, and all that the core awaits between them.

    Raises ValueError for lanes that wait for each other for ever, or for parts that there are not.
    """
    counts = [sum(isinstance(entry, Part) for entry in lane) for lane in lanes]
    if counts != [len(each) for each in ticks]:
        raise ValueError(f"lanes of {counts} parts have {[len(each) for each in ticks]} times")
    starts: list[list[float]] = [[] for _ in lanes]
    ends: list[list[float]] = [[] for _ in lanes]
    free: list[float] = [0] * len(lanes)
    places = [0] * len(lanes)

    def advance(core: int) -> bool:
        """Whether a core comes on; as far as it can."""
        first = places[core]
        for entry in lanes[core][first:]:
            if isinstance(entry, Await):
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
    return Timeline(*(tuple(map(tuple, each)) for each in (starts, ends)))
