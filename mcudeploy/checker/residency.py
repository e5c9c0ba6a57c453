"""The checker of residencies of an access trace: it runs the steps on memories that record versions of items.

The version of an item is the step of the trace that wrote it last.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from mcudeploy.checker.owners import PlanFaultError
from mcudeploy.ir.plan import Residence
from mcudeploy.ir.trace import FAST, SLOW, ItemAccess, ItemTransfer, Residency, Trace

_INVALID = -2
"""The version of bytes that nothing may read."""
_INITIAL = -1
"""The version of what is valid before the first step."""


def check_residency(residency: Residency, trace: Trace, capacity_bytes: int) -> None:
    """Raise PlanFaultError if a residency of a trace is wrong, naming step and item.

    A correct residency runs every step of the trace at least once. Each step reads the versions that it read
    in the trace. The fast memory never exceeds its capacity.
    """
    _require_steps(residency, trace)
    if len(residency.residences) != len(trace.items) or residency.trace.items != trace.items:
        raise PlanFaultError("the items are not those of the trace")
    _require_order(residency)
    replay = _Replay(residency, trace, capacity_bytes)
    for time in range(len(residency.trace.steps)):
        replay.prepare(time)
        replay.run(time)
    replay.prepare(len(residency.trace.steps))
    replay.end()


def _require_steps(residency: Residency, trace: Trace) -> None:
    runs = Counter(step.origin for step in residency.trace.steps)
    for time, step in enumerate(residency.trace.steps):
        if not 0 <= step.origin < len(trace.steps):
            raise PlanFaultError(f"step {time} has no origin")
        source = trace.steps[step.origin]
        if (step.accesses, step.work_bytes, step.cycles) != (
            source.accesses,
            source.work_bytes,
            source.cycles,
        ):
            raise PlanFaultError(f"step {time} is not what its origin {step.origin} is")
        if runs[step.origin] > 1 and not source.repeatable:
            raise PlanFaultError(f"step {time} runs again and must not")
    missing = sorted(set(range(len(trace.steps))) - set(runs))
    if missing:
        raise PlanFaultError(f"step {missing[0]} of the trace never runs")


def _require_order(residency: Residency) -> None:
    end, latest = len(residency.trace.steps), 0
    for residences in residency.residences:
        for memory in (FAST, SLOW):
            last = 0
            for life in (it.life for it in residences if it.memory == memory):
                if not last <= life.lo < life.hi <= end:
                    raise PlanFaultError(f"residence {life} overlaps another, is empty or lies outside")
                last = life.hi
    for transfer in residency.transfers:
        if not latest <= transfer.start <= transfer.end <= end:
            raise PlanFaultError(f"{transfer} is out of order")
        latest = transfer.start


def _versions(trace: Trace) -> list[dict[int, int]]:
    """Return the versions of items that each step of the trace reads, and of kept items at the end."""
    latest: dict[int, int] = {}
    read = []
    for time, step in enumerate(trace.steps):
        read.append({it.item: latest.get(it.item, _INITIAL) for it in step.accesses if not it.writes})
        latest.update({it.item: time for it in step.accesses if it.writes})
    read.append({item: latest.get(item, _INITIAL) for item, it in enumerate(trace.items) if it.kept})
    return read


class _Replay:
    """The versions that the current residences contain, by memory and item."""

    def __init__(self, residency: Residency, trace: Trace, capacity_bytes: int) -> None:
        self._residency, self._capacity = residency, capacity_bytes
        self._items, self._steps = trace.items, residency.trace.steps
        self._expected = _versions(trace)
        self._versions: dict[str, dict[int, int]] = {FAST: {}, SLOW: {}}
        self._in_flight: dict[int, ItemTransfer] = {}
        self._fast_bytes = 0
        self._begins, self._ends = (defaultdict[int, list[tuple[int, Residence]]](list) for _ in range(2))
        self._starts = defaultdict[int, list[ItemTransfer]](list)
        for item, residences in enumerate(residency.residences):
            for each in residences:
                self._begins[each.life.lo].append((item, each))
                self._ends[each.life.hi].append((item, each))
        for transfer in residency.transfers:
            self._starts[transfer.start].append(transfer)

    def _fail(self, time: int, item: int, fault: str) -> None:
        raise PlanFaultError(f"before or at step {time}, item {item} ({self._items[item].name}): {fault}")

    def prepare(self, time: int) -> None:
        """Before a step, end transfers and residences, then begin residences and transfers.

        An item that the core copies out leaves the fast memory after its copy. An item that comes in takes
        room when its transfer begins, the output of a step after all transfers.
        """
        for transfer in [it for it in self._in_flight.values() if it.end == time]:
            self._arrive(transfer, time)
        at_once = {it.item for it in self._starts[time] if it.end == time and it.direction == "out"}
        leaving = {item: it for item, it in self._ends[time] if it.memory == FAST and item in at_once}
        leaving_slow = [(item, it) for item, it in self._ends[time] if it.memory == SLOW]
        for item, each in self._ends[time]:
            if each.memory == FAST and item not in leaving:
                self._close(item, each, time)
        coming = {item: it for item, it in self._begins[time] if it.memory == FAST}
        for item, each in self._begins[time]:
            if each.memory == SLOW:
                leaving_slow = [(other, it) for other, it in leaving_slow if other != item]
                self._open(item, each, valid=time == 0 and self._items[item].given)
            elif time == 0 and self._is_loaded(item):
                self._open(item, coming.pop(item), valid=True)
        for transfer in self._starts[time]:
            if transfer.direction == "in" and transfer.item in coming:
                self._open(transfer.item, coming.pop(transfer.item))
            self._begin(transfer, time)
            if transfer.end == time:
                self._arrive(transfer, time)
                if transfer.direction == "out" and transfer.item in leaving:
                    self._close(transfer.item, leaving.pop(transfer.item), time)
        for item, each in coming.items():
            self._open(item, each)
        for item, each in leaving_slow:
            self._close(item, each, time)

    def _open(self, item: int, residence: Residence, *, valid: bool = False) -> None:
        self._versions[residence.memory][item] = _INITIAL if valid else _INVALID
        self._fast_bytes += self._items[item].size_bytes * (residence.memory == FAST)

    def _is_loaded(self, item: int) -> bool:
        """Return whether an item is in the fast memory before the first step."""
        return self._items[item].loaded or (self._items[item].given and self._items[item].fixed)

    def _close(self, item: int, residence: Residence, time: int) -> None:
        if item in self._in_flight:
            self._fail(time, item, "its bytes are left while a transfer uses them")
        if time < len(self._steps):
            del self._versions[residence.memory][item]
            self._fast_bytes -= self._items[item].size_bytes * (residence.memory == FAST)

    def _begin(self, transfer: ItemTransfer, time: int) -> None:
        item, (source, target) = transfer.item, self._way(transfer)
        if item in self._in_flight:
            self._fail(time, item, "two transfers at a time")
        if source.get(item, _INVALID) == _INVALID:
            self._fail(time, item, f"its transfer {transfer.direction} finds nothing valid")
        if item not in target:
            self._fail(time, item, f"its transfer {transfer.direction} has no target")
        target[item] = _INVALID
        self._in_flight[item] = transfer
        if self._fast_bytes > self._capacity:
            self._fail(time, item, f"{self._fast_bytes} B in the fast memory at its transfer")

    def _arrive(self, transfer: ItemTransfer, time: int) -> None:
        item, (source, target) = transfer.item, self._way(transfer)
        del self._in_flight[item]
        if item not in source or item not in target:
            self._fail(time, item, "source or target is gone before its transfer ends")
        target[item] = source[item]

    def _way(self, transfer: ItemTransfer) -> tuple[dict[int, int], dict[int, int]]:
        slow, fast = self._versions[SLOW], self._versions[FAST]
        return (slow, fast) if transfer.direction == "in" else (fast, slow)

    def run(self, time: int) -> None:
        """Run a step: check all reads, then write."""
        step = self._steps[time]
        load = self._fast_bytes + step.work_bytes
        if load > self._capacity:
            raise PlanFaultError(f"step {time} ({step.name}) has {load} B in the fast memory")
        direct = {it.operand for it in step.accesses if not self._is_fast(it)}
        for access in step.accesses:
            if access.operand in direct and access.direct_bytes is None:
                self._fail(time, access.item, "it is not in the fast memory and cannot be accessed directly")
            versions = self._versions[SLOW if access.operand in direct else FAST]
            if access.item not in versions:
                self._fail(time, access.item, "it has no bytes where it is accessed")
            version = versions[access.item]
            if not access.writes and version != self._expected[step.origin][access.item]:
                self._fail(time, access.item, f"version {version} where it is read")
        for access in (it for it in step.accesses if it.writes):
            if access.item in self._in_flight:
                self._fail(time, access.item, "it is written while a transfer uses it")
            written, other = (SLOW, FAST) if access.operand in direct else (FAST, SLOW)
            self._versions[written][access.item] = step.origin
            if access.item in self._versions[other]:
                self._versions[other][access.item] = _INVALID

    def _is_fast(self, access: ItemAccess) -> bool:
        version = self._versions[FAST].get(access.item)
        return version is not None and (access.writes or version != _INVALID)

    def end(self) -> None:
        """Check that kept items are valid, and that fixed items never left."""
        end = len(self._steps)
        for item, version in self._expected[-1].items():
            places = [self._versions[SLOW]] if self._items[item].home else self._versions.values()
            if all(versions.get(item) != version for versions in places):
                self._fail(end, item, "it is not valid at the end")
        uses: dict[int, list[int]] = {}
        for time, step in enumerate(self._steps):
            for access in step.accesses:
                uses.setdefault(access.item, []).append(time)
        for number, it in enumerate(self._items):
            if it.fixed and number in uses:
                lo = 0 if it.given or it.loaded else uses[number][0]
                hi = end if it.kept else uses[number][-1] + 1
                lives = (each.life for each in self._residency.residences[number] if each.memory == FAST)
                if not any(life.lo <= lo and hi <= life.hi for life in lives):
                    self._fail(lo, number, "it is fixed, but away at times")
