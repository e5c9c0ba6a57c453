"""Timelines: when cores and engines do their jobs, and when they wait for each other.

Source of the timeline of a residency: Capuchin (Peng et al., ASPLOS 2020). An engine serves transfers in the
order of their issue: start = max(issued, engine free), end = start + latency + bytes / rate; a wait costs
max(0, end - now).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Lane, Sync, WorkSlice
from mcudeploy.ir.trace import FAST, ItemAccess, MemoryLink, Residency, Trace, TraceStep

Times = tuple[tuple[float, ...], ...]
"""A time for each slice of each core's tape, by core."""


@dataclass(slots=True)
class Clock:
    """The clock of a core or an engine. `jobs`: the begin and end of each of its jobs, in sequence."""

    now: float = 0.0
    jobs: list[tuple[float, float]] = field(default_factory=list)

    def run(self, ticks: float, issued: float = 0.0) -> float:
        """Do a job as soon as it is issued, and return its end."""
        begin = max(self.now, issued)
        self.now = begin + ticks
        self.jobs.append((begin, self.now))
        return self.now

    def wait(self, end: float) -> float:
        """Wait until the end of another clock's job, and return the ticks of waiting."""
        idle = max(0.0, end - self.now)
        self.now = max(self.now, end)
        return idle


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
    clocks, places = [Clock() for _ in lanes], [0] * len(lanes)

    def advance(core: int) -> bool:
        """Run a core as far as possible and return whether it advanced."""
        first, clock = places[core], clocks[core]
        for entry in lanes[core][first:]:
            if isinstance(entry, Sync):
                done = clocks[entry.core].jobs
                if entry.parts > len(done):
                    break
                if entry.parts > 0:
                    clock.wait(done[entry.parts - 1][1])
            else:
                clock.run(ticks[core][len(clock.jobs)])
            places[core] += 1
        return places[core] > first

    while any(advance(core) for core in range(len(lanes))):
        pass
    stuck = [core for core, lane in enumerate(lanes) if places[core] < len(lane)]
    if stuck:
        raise ValueError(
            "; ".join(f"core {core} waits for ever: {lanes[core][places[core]]}" for core in stuck)
        )
    begins, ends = (tuple(tuple(job[which] for job in clock.jobs) for clock in clocks) for which in (0, 1))
    return CoreTimeline(begins, ends)


@dataclass(frozen=True, slots=True)
class Stall:
    """Cycles before step `step` during which the core waits for transfer `transfer`, or copies itself."""

    step: int
    transfer: int
    cycles: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """The start of each step and the load of the fast memory; the last of `starts` is the end.

    `waits` that take time, by step; `served[p]`: start and end of transfer p on its engine. `direct_cycles`
    by step.
    """

    starts: tuple[float, ...]
    loads: tuple[int, ...]
    waits: tuple[Stall, ...]
    served: tuple[tuple[float, float], ...]
    direct_cycles: tuple[float, ...]

    @property
    def exposed_cycles(self) -> float:
        """Waits, copies by the core, and direct accesses."""
        return sum(wait.cycles for wait in self.waits) + sum(self.direct_cycles)


def timeline(residency: Residency, link: MemoryLink) -> Timeline:
    """Replay a residency that the checker accepts."""
    steps = residency.trace.steps
    direct = [
        _direct_cycles(step, operands, link)
        for step, operands in zip(steps, direct_operands(residency), strict=True)
    ]
    core, engine = Clock(), Clock()
    starts, waits = list[float](), list[Stall]()
    ending, starting = ([list[int]() for _ in range(len(steps) + 1)] for _ in range(2))
    for number, transfer in enumerate(residency.transfers):
        if transfer.end > transfer.start:
            ending[transfer.end].append(number)
        starting[transfer.start].append(number)
    for place in range(len(steps) + 1):
        for number in (*ending[place], *starting[place]):
            transfer = residency.transfers[number]
            if transfer.start == place:
                size = residency.trace.items[transfer.item].size_bytes
                engine.run(link.cycles(size, transfer.direction), issued=core.now)
            if transfer.end == place and (idle := core.wait(engine.jobs[number][1])):
                waits.append(Stall(place, number, idle))
        starts.append(core.now)
        if place < len(steps):
            core.run(steps[place].cycles + direct[place])
    return Timeline(tuple(starts), fast_loads(residency), tuple(waits), tuple(engine.jobs), tuple(direct))


def with_times(residency: Residency, link: MemoryLink) -> Residency:
    """Return the residency with the figures of its timeline."""
    run = timeline(residency, link)
    return replace(
        residency,
        cycles=run.starts[-1],
        exposed_cycles=run.exposed_cycles,
        repeated_cycles=repeated_cycles(residency.trace),
        peak_bytes=max(run.loads, default=0),
    )


def repeated_cycles(trace: Trace) -> float:
    """Return the cycles of steps whose origin ran before."""
    seen: set[int] = set()
    total = 0.0
    for step in trace.steps:
        if step.origin >= 0 and step.origin in seen:
            total += step.cycles
        seen.add(step.origin)
    return total


def fast_loads(residency: Residency) -> tuple[int, ...]:
    """Return the bytes of the fast memory in use during each step."""
    change = [0] * (len(residency.trace.steps) + 1)
    for item, residences in zip(residency.trace.items, residency.residences, strict=True):
        for each in residences:
            if each.memory == FAST:
                change[each.life.lo] += item.size_bytes
                change[each.life.hi] -= item.size_bytes
    return tuple(
        load + step.work_bytes for load, step in zip(accumulate(change), residency.trace.steps, strict=False)
    )


def direct_operands(residency: Residency) -> list[frozenset[int]]:
    """Return, by step, the operands that are read or written in the slow memory."""
    arriving: dict[int, list[Interval]] = {}
    for transfer in residency.transfers:
        if transfer.direction == "in":
            arriving.setdefault(transfer.item, []).append(Interval(transfer.start, transfer.end))

    def is_fast(place: int, access: ItemAccess) -> bool:
        resides = any(it.memory == FAST and place in it.life for it in residency.residences[access.item])
        arrives = not access.writes and any(place in flight for flight in arriving.get(access.item, ()))
        return resides and not arrives

    return [
        frozenset(access.operand for access in step.accesses if not is_fast(place, access))
        for place, step in enumerate(residency.trace.steps)
    ]


def _direct_cycles(step: TraceStep, operands: frozenset[int], link: MemoryLink) -> float:
    return sum(
        (access.direct_bytes or 0) / (link.write_rate if access.writes else link.read_rate)
        for access in step.accesses
        if access.operand in operands
    )
