"""The timeline of a residency: every step, wait, copy and direct access, in sequence.

Source: the timeline of Capuchin (Peng et al., ASPLOS 2020). An engine serves transfers in the order of their
issue: start = max(issued, engine free), end = start + latency + bytes / rate; a wait costs max(0, end - now).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from mcudeploy.ir.trace import (
    Item,
    ItemAccess,
    ItemStay,
    ItemTransfer,
    MemoryLink,
    Residency,
    Trace,
    TraceStep,
)


@dataclass(frozen=True, slots=True)
class Stall:
    """Cycles before step `step` during which the core waits for transfer `passage`, or copies itself."""

    step: int
    passage: int
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


def timeline(plan: Residency, link: MemoryLink) -> Timeline:
    """Replay a residency that the checker accepts."""
    steps = plan.trace.steps
    direct = [
        _direct_cycles(step, operands, link)
        for step, operands in zip(steps, direct_operands(plan), strict=True)
    ]
    clock = _EngineClock(plan.trace.items, link)
    starts = []
    before = [[list[int](), list[int]()] for _ in range(len(steps) + 1)]
    for number, passage in enumerate(plan.passages):
        if passage.end > passage.start:
            before[passage.end][0].append(number)
        before[passage.start][1].append(number)
    for place, (ending, starting) in enumerate(before):
        for number in ending:
            clock.wait(number, place)
        for number in starting:
            clock.issue(plan.passages[number], number)
            if plan.passages[number].end == place:
                clock.wait(number, place)
        starts.append(clock.now)
        if place < len(steps):
            clock.now += steps[place].cycles + direct[place]
    served = tuple(clock.served[number] for number in range(len(plan.passages)))
    return Timeline(tuple(starts), fast_loads(plan), tuple(clock.waits), served, tuple(direct))


def with_times(plan: Residency, link: MemoryLink, method: str | None = None) -> Residency:
    """Return the residency with the figures of its timeline."""
    run = timeline(plan, link)
    return replace(
        plan,
        cycles=run.starts[-1],
        exposed_cycles=run.exposed_cycles,
        repeated_cycles=repeated_cycles(plan.trace),
        peak_bytes=max(run.loads, default=0),
        method=plan.method if method is None else method,
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


def fast_loads(plan: Residency) -> tuple[int, ...]:
    """Return the bytes of the fast memory in use during each step."""
    change = [0] * (len(plan.trace.steps) + 1)
    for item, stays in zip(plan.trace.items, plan.stays, strict=True):
        for stay in stays:
            if stay.fast:
                change[stay.lo] += item.size_bytes
                change[stay.hi] -= item.size_bytes
    return tuple(
        load + step.work_bytes for load, step in zip(accumulate(change), plan.trace.steps, strict=False)
    )


class _EngineClock:
    def __init__(self, items: Sequence[Item], link: MemoryLink) -> None:
        self._items, self._link = items, link
        self.now = self._free = 0.0
        self.served: dict[int, tuple[float, float]] = {}
        self.waits: list[Stall] = []

    def issue(self, passage: ItemTransfer, number: int) -> None:
        start = max(self.now, self._free)
        end = start + self._link.cycles(self._items[passage.item].size_bytes, passage.direction)
        self.served[number], self._free = (start, end), end

    def wait(self, number: int, step: int) -> None:
        end = self.served[number][1]
        if end > self.now:
            self.waits.append(Stall(step, number, end - self.now))
            self.now = end


def direct_operands(plan: Residency) -> list[frozenset[int]]:
    """Return, by step, the operands that are read or written in the slow memory."""
    arriving: dict[int, list[ItemTransfer]] = {}
    for passage in plan.passages:
        if passage.direction == "in":
            arriving.setdefault(passage.item, []).append(passage)

    def is_fast(place: int, access: ItemAccess) -> bool:
        if stay_at(plan.stays[access.item], place, fast=True) is None:
            return False
        flights = () if access.writes else arriving.get(access.item, ())
        return not any(passage.start <= place < passage.end for passage in flights)

    return [
        frozenset(access.operand for access in step.accesses if not is_fast(place, access))
        for place, step in enumerate(plan.trace.steps)
    ]


def _direct_cycles(step: TraceStep, operands: frozenset[int], link: MemoryLink) -> float:
    return sum(
        (access.direct_bytes or 0) / (link.write_rate if access.writes else link.read_rate)
        for access in step.accesses
        if access.operand in operands
    )


def stay_at(stays: Sequence[ItemStay], place: int, *, fast: bool) -> ItemStay | None:
    """Return the stay in one of the memories that includes a step."""
    return next((stay for stay in stays if stay.fast == fast and stay.lo <= place < stay.hi), None)
