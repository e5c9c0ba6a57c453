"""The passive first iteration: items are evicted on demand, and return when they are accessed.

Source: Capuchin (Peng et al., ASPLOS 2020), passive mode. The items accessed earliest leave first, until the
overflow is gone. There is no look-ahead, with one exception: bytes that are never read again are free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from mcudeploy.costs.timeline import timeline, with_times
from mcudeploy.ir.trace import ItemTransfer, MemoryLink, Residency, Trace
from mcudeploy.planner.offload.trace_residency import residency_of, uses_of
from mcudeploy.planner.offload.trace_tables import steps_of


@dataclass(frozen=True, slots=True)
class Touch:
    """A read or write of an item by a step; `cycles`: the step's start without the waits for transfers."""

    item: int
    step: int
    writes: bool
    cycles: float


def passive_plan(
    trace: Trace, capacity_bytes: int, link: MemoryLink, direct: Sequence[frozenset[int]] = ()
) -> Residency | None:
    """Return the plan of the first iteration; None if a step does not fit.

    `direct`: by step, operands that are accessed in the slow memory if a step has no room for all.
    """
    run = _Passive(trace, capacity_bytes, direct)
    for place in range(len(trace.steps)):
        if not run.step(place):
            return None
    steps = steps_of(trace, range(len(trace.steps)))
    return with_times(residency_of(steps, run.transfers, direct, "passive"), link)


def tight_operands(trace: Trace, capacity_bytes: int) -> list[frozenset[int]]:
    """Return, by step, the operands to access directly if the step has no room for all its items.

    Operands with the shortest wait per byte of room come first.
    """
    held = _fixed_bytes(trace)
    operands = []
    for place, step in enumerate(trace.steps):
        groups: dict[int, set[int]] = {}
        waits: dict[int, float] = {}
        for access in step.accesses:
            groups.setdefault(access.operand, set()).add(access.item)
            never = access.direct_bytes is None or trace.items[access.item].fixed
            cost = inf if never else access.direct_bytes or 0
            waits[access.operand] = waits.get(access.operand, 0.0) + cost
        sizes = {
            operand: sum(trace.items[item].size_bytes for item in items if not trace.items[item].fixed)
            for operand, items in groups.items()
        }
        need = held[place] + step.work_bytes + sum(sizes.values())
        direct = set()
        for operand in sorted(groups, key=lambda one: (waits[one] / max(1, sizes[one]), one)):
            if need > capacity_bytes and waits[operand] < inf and sizes[operand]:
                direct.add(operand)
                need -= sizes[operand]
        operands.append(frozenset(direct))
    return operands


def _fixed_bytes(trace: Trace) -> list[int]:
    """Return, by step, the bytes of items that are fixed in the fast memory."""
    touched: dict[int, list[int]] = {}
    for place, step in enumerate(trace.steps):
        for access in step.accesses:
            touched.setdefault(access.item, []).append(place)
    held = [0] * len(trace.steps)
    for number, places in touched.items():
        item = trace.items[number]
        if item.fixed:
            lo, hi = 0 if item.given else places[0], len(held) if item.kept else places[-1] + 1
            held[lo:hi] = [bytes_held + item.size_bytes for bytes_held in held[lo:hi]]
    return held


def touches_of(plan: Residency, link: MemoryLink) -> tuple[Touch, ...]:
    """Return the access trace of a plan that ran: times as they would be without its waits."""
    run = timeline(plan, link)
    lost = 0.0
    waits: dict[int, float] = {}
    for wait in run.waits:
        waits[wait.step] = waits.get(wait.step, 0.0) + wait.cycles
    touches = []
    for place, step in enumerate(plan.trace.steps):
        lost += waits.get(place, 0.0)
        touches += [Touch(a.item, place, a.writes, run.starts[place] - lost) for a in step.accesses]
        lost += run.direct_cycles[place]
    return tuple(touches)


class _Passive:
    def __init__(self, trace: Trace, capacity_bytes: int, direct: Sequence[frozenset[int]]) -> None:
        self._trace, self._capacity = trace, capacity_bytes
        self._uses = uses_of(trace, direct)
        self._next = [0] * len(trace.items)
        self._last: dict[int, int] = {}
        """The step that last accessed each item in the fast memory."""
        self._clean = {number for number, item in enumerate(trace.items) if item.given}
        self.transfers: list[ItemTransfer] = []
        for number, item in enumerate(trace.items):
            if (item.loaded or (item.given and item.fixed)) and self._is_wanted(number):
                self._last[number] = -1

    def _is_wanted(self, item: int) -> bool:
        """Return whether the content of an item is read later, or kept."""
        later = self._uses[item][self._next[item] :]
        kept = self._trace.items[item].kept
        if self._trace.items[item].fixed:
            return bool(later) or kept
        return later[0].reads if later else kept and item not in self._clean

    def step(self, place: int) -> bool:
        """Run a step: evict as much as needed, then bring in what is missing."""
        touched = {}
        for access in self._trace.steps[place].accesses:
            touched[access.item] = self._uses[access.item][self._next[access.item]]
        near = [item for item, use in touched.items() if not use.direct]
        absent = [item for item in near if item not in self._last]
        free = self._capacity - self._trace.steps[place].work_bytes
        free -= sum(self._trace.items[item].size_bytes for item in (*self._last, *absent))
        for item, use in touched.items():
            if use.direct and item in self._last:
                if place == 0 and use.reads and item not in self._clean:
                    return False  # it leaves during the step that reads it
                free += self._evict(item, place, save=use.reads)
            elif use.direct and use.reads and item not in self._clean:
                return False
        for item in sorted(self._last, key=lambda one: (self._last[one], one)):
            if free >= 0:
                break
            if item not in touched and not self._trace.items[item].fixed:
                free += self._evict(item, place, save=True)
        if free < 0:
            return False
        if place == len(self._trace.steps) - 1:
            for item in [it for it in self._last if self._trace.items[it].home and it not in touched]:
                self._evict(item, place, save=True)
        for item in absent:
            if touched[item].reads:
                self.transfers.append(ItemTransfer(item, "in", place, place))
        for item, use in touched.items():
            self._next[item] += 1
            if use.writes:
                (self._clean.add if use.direct else self._clean.discard)(item)
            if not use.direct:
                self._last[item] = place
                if not self._is_wanted(item):
                    del self._last[item]
        return True

    def _evict(self, item: int, place: int, *, save: bool) -> int:
        del self._last[item]
        if not save or item in self._clean:
            return self._trace.items[item].size_bytes
        # What is loaded before the first step leaves during it.
        self.transfers.append(ItemTransfer(item, "out", place, place + (place == 0)))
        self._clean.add(item)
        return self._trace.items[item].size_bytes * (place > 0)
