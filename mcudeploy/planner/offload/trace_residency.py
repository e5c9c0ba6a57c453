"""The residency that follows from the transfers of a trace, and the uses of its items."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Residence
from mcudeploy.ir.trace import FAST, SLOW, Item, ItemTransfer, Residency, Trace


class Use(NamedTuple):
    """A step that uses an item: whether it reads it, writes it, and accesses it in the slow memory."""

    step: int
    reads: bool
    writes: bool
    direct: bool


Uses = list[Use]
"""The uses of one item, by step."""


def residency_of(
    trace: Trace, transfers: Sequence[ItemTransfer], direct: Sequence[frozenset[int]] = (), method: str = ""
) -> Residency:
    """Return the residences that the transfers and accesses of a trace require, no longer than needed.

    `direct`: by step, the operands that are accessed in the slow memory. `timeline.with_times` adds the
    figures.
    """
    uses = uses_of(trace, direct)
    by_item: list[list[ItemTransfer]] = [[] for _ in trace.items]
    for transfer in transfers:
        by_item[transfer.item].append(transfer)
    end = len(trace.steps)
    residences = tuple(
        tuple(sorted(
            (*_slow_ones(item, own, moving, end), *_fast_ones(item, own, moving, end)),
            key=lambda it: it.life.lo,
        ))
        for item, own, moving in zip(trace.items, uses, by_item, strict=True)
    )  # fmt: skip
    return Residency(trace, residences, tuple(transfers), 0.0, 0.0, 0.0, 0, method)


def uses_of(trace: Trace, direct: Sequence[frozenset[int]] = ()) -> list[Uses]:
    """Return, by item, the steps that access it."""
    uses: list[Uses] = [[] for _ in trace.items]
    for place, step in enumerate(trace.steps):
        flags_of: dict[int, tuple[bool, bool, bool]] = {}
        for access in step.accesses:
            reads, writes, slow = flags_of.get(access.item, (False, False, False))
            slow = slow or bool(direct and access.operand in direct[place])
            flags_of[access.item] = (reads or not access.writes, writes or access.writes, slow)
        for item, flags in flags_of.items():
            uses[item].append(Use(place, *flags))
    return uses


def _fast_ones(item: Item, uses: Uses, transfers: Sequence[ItemTransfer], end: int) -> list[Residence]:
    """Return the residences in the fast memory: from a write or a transfer inwards to the last access.

    The next write, transfer inwards or transfer out ends a residence.
    """
    coming = {transfer.start for transfer in transfers if transfer.direction == "in"}
    begins = set(coming)
    if item.loaded or (item.given and item.fixed):
        begins.add(0)
    fast_uses = [use for use in uses if not use.direct]
    begins |= {use.step for use in fast_uses if use.writes and not use.reads}
    outwards = [it for it in transfers if it.direction == "out"]
    residences: list[Residence] = []
    for lo, limit in pairwise([*sorted(begins), end + 1]):
        ends = [use.step + 1 for use in fast_uses if lo <= use.step < limit]
        ends += [it.end for it in outwards if lo < it.end and lo <= it.start < limit]
        hi = max(ends, default=lo)
        if limit > end and _is_kept_fast(item, uses, transfers):
            hi = end
        if item.fixed and limit <= end:
            hi = limit
        if residences and residences[-1].life.hi == lo and lo not in coming:
            residences[-1] = Residence(Interval(residences[-1].life.lo, hi), FAST)
        elif hi > lo:
            residences.append(Residence(Interval(lo, hi), FAST))
    return residences


def _is_kept_fast(item: Item, uses: Uses, transfers: Sequence[ItemTransfer]) -> bool:
    """Return whether the only valid bytes of a kept item are in the fast memory at the end."""
    if not item.kept:
        return False
    if item.fixed:
        return True
    written = max((use.step for use in uses if use.writes and not use.direct), default=-1)
    saved = [it.start for it in transfers if it.direction == "out"]
    saved += [use.step for use in uses if use.writes and use.direct]
    return not (item.given and written < 0) and not any(place > written for place in saved)


def _slow_ones(item: Item, uses: Uses, transfers: Sequence[ItemTransfer], end: int) -> list[Residence]:
    """Return the residences in the slow memory: from a transfer out or a direct write to the last read.

    A transfer out begins another residence.
    """
    leaving = {it.start for it in transfers if it.direction == "out"}
    begins = leaving | ({0} if item.given else set())
    begins |= {use.step for use in uses if use.writes and use.direct}
    fast_writes = [use.step for use in uses if use.writes and not use.direct]
    lives: list[Interval] = []
    for lo in sorted(begins):
        limit = min((step for step in fast_writes if step >= lo), default=end)  # then its bytes are stale
        ends = [use.step + 1 for use in uses if use.direct and lo <= use.step < limit]
        ends += [max(it.end, lo + 1) for it in transfers if lo <= it.start <= limit]
        hi = max(ends, default=lo)
        if item.kept and limit == end and not item.fixed:
            hi = end
        if lives and lives[-1].hi >= lo:
            last = lives.pop()
            hi = max(hi, last.hi)
            times = (last.lo, lo, hi) if lo in leaving and last.lo < lo else (last.lo, hi)
            lives += [Interval(*span) for span in pairwise(times)]
        elif hi > lo:
            lives.append(Interval(lo, hi))
    return [Residence(life, SLOW) for life in lives]
