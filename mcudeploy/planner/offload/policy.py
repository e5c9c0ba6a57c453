"""The policy of Capuchin (Peng et al., ASPLOS 2020): candidates by free time, from the first iteration.

A candidate is a gap between two accesses of an item that spans the step with the largest need.
FT = (t_back - swap time) - (t_evict + swap time), less the booked time of the channel; the largest comes
first. If a swap would be exposed and recomputing the item from present items costs less, it is recomputed.
Candidates are booked until every step fits.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter

import numpy as np

from mcudeploy.ir.trace import MemoryLink, Trace
from mcudeploy.planner.offload.passive import Touch
from mcudeploy.planner.offload.repeats import Producers, Repeats, producers_of, steps_to_recompute, with_steps


@dataclass(frozen=True, slots=True)
class Gap:
    """A gap between two steps that access an item, of which the second reads it."""

    item: int
    lo: int
    hi: int


@dataclass(frozen=True, slots=True)
class Policy:
    """The gaps for which items leave and return, and the repeated steps."""

    away: tuple[Gap, ...]
    repeats: Repeats


def free_time_policy(
    trace: Trace, touches: Sequence[Touch], capacity_bytes: int, link: MemoryLink, *, recompute: bool
) -> Policy:
    """Return the decisions of Capuchin's policy. If gaps run out, some steps still exceed the capacity."""
    gaps = _gaps(trace, touches)
    times = {(touch.item, touch.step): touch.cycles for touch in touches}
    load = _loads(trace, gaps)
    book = _Book(trace, times, link, producers_of(trace) if recompute else None)
    away: list[Gap] = []
    left = set(gaps)
    while left and load.max(initial=0) > capacity_bytes:
        peak = int(load.argmax())
        spanning = sorted((gap for gap in left if gap.lo < peak < gap.hi), key=lambda gap: (gap.lo, gap.item))
        if not spanning:
            break
        best = max(spanning, key=book.free_time)
        if book.reserve(best):
            away.append(best)
        left.discard(best)
        load[best.lo + 1 : best.hi] -= trace.items[best.item].size_bytes
    return Policy(tuple(away), book.repeats)


class _Book:
    """The bookings: the link, the time until which it is free at the back accesses, and repeated steps."""

    def __init__(
        self, trace: Trace, times: dict[tuple[int, int], float], link: MemoryLink, producers: Producers | None
    ) -> None:
        self._trace, self._times, self._link, self._producers = trace, times, link, producers
        self._order = list(range(len(trace.steps)))
        # In order, since bookings of one direction do not overlap.
        self._outs: list[tuple[float, float]] = []
        self._ins: list[tuple[float, float]] = []
        self._present = {number for number, item in enumerate(trace.items) if not item.size_bytes}
        self.repeats: Repeats = {}

    def _swap(self, gap: Gap) -> tuple[float, float]:
        size = self._trace.items[gap.item].size_bytes
        return self._link.cycles(size, "out"), self._link.cycles(size, "in")

    def _slots(self, gap: Gap) -> tuple[float, float]:
        """Return when a gap's transfer out ends, and when its transfer in starts, given the bookings."""
        out, back = self._swap(gap)
        gone = self._times[gap.item, gap.lo] + self._trace.steps[gap.lo].cycles + out
        first = bisect_right(self._outs, gone - out, key=itemgetter(1))
        for start, end in islice(self._outs, first, None):
            if start >= gone:
                break
            gone = end + out
        come = self._times[gap.item, gap.hi] - back
        for at in range(bisect_left(self._ins, come + back, key=itemgetter(0)) - 1, -1, -1):
            start, end = self._ins[at]
            if end <= come:
                break
            come = start - back
        return gone, come

    def free_time(self, gap: Gap) -> float:
        """Return the cycles between the two transfers; negative if they would cause a wait."""
        if not self._link.read_rate or not self._link.write_rate:
            return -self._recomputation(gap)[0]
        gone, come = self._slots(gap)
        return come - gone

    def _recomputation(self, gap: Gap) -> tuple[float, frozenset[int]]:
        """Return the cycles and steps that recompute an item from what is present at its back access."""
        if self._producers is None:
            return np.inf, frozenset()
        present = frozenset(touch for touch, step in self._times if step >= gap.hi or touch in self._present)
        target, depth = (gap.item, gap.hi), len(self._order)
        steps = steps_to_recompute(self._producers, self._order, present, target, depth)
        if steps is None:
            return np.inf, frozenset()
        return sum(self._trace.steps[step].cycles for step in steps), steps

    def reserve(self, gap: Gap) -> bool:
        """Book a gap the cheaper way; return whether that is by the link."""
        cost, steps = self._recomputation(gap)
        linked = self._link.read_rate > 0 and self._link.write_rate > 0
        if cost < np.inf and (not linked or cost < max(0.0, -self.free_time(gap))):
            self.repeats = with_steps(self.repeats, gap.hi, steps)
            return False
        if linked:
            (gone, come), (out, back) = self._slots(gap), self._swap(gap)
            insort(self._outs, (gone - out, gone))
            insort(self._ins, (come, come + back))
        return linked


def _gaps(trace: Trace, touches: Sequence[Touch]) -> list[Gap]:
    last: dict[int, int] = {}
    gaps = []
    for touch in touches:
        before = last.get(touch.item)
        free = not trace.items[touch.item].fixed
        if free and before is not None and before + 1 < touch.step and not touch.writes:
            gaps.append(Gap(touch.item, before, touch.step))
        last[touch.item] = touch.step
    return gaps


def _loads(trace: Trace, gaps: Sequence[Gap]) -> np.ndarray:
    """Return the bytes at each step if every item stays in its gaps."""
    load = np.array([step.work_bytes for step in trace.steps], np.int64)
    for place, step in enumerate(trace.steps):
        load[place] += sum(trace.items[item].size_bytes for item in {a.item for a in step.accesses})
    for gap in gaps:
        load[gap.lo + 1 : gap.hi] += trace.items[gap.item].size_bytes
    return load
