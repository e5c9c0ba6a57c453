"""A residency from decided transfers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mcudeploy.ir.trace import Item, ItemStay, ItemTransfer, Residency, Trace

Uses = list[tuple[int, bool, bool, bool]]
"""The uses of one item, by step: (step, whether it is read, whether it is written, whether directly)."""


def residency_of(
    trace: Trace, passages: Sequence[ItemTransfer], direct: Sequence[frozenset[int]] = (), method: str = ""
) -> Residency:
    """Return the stays that the transfers and accesses of a trace require, no longer than needed.

    `direct`: by step, the operands that are accessed in the slow memory. `timeline.with_times` adds the
    figures.
    """
    uses = uses_of(trace, direct)
    by_item: list[list[ItemTransfer]] = [[] for _ in trace.items]
    for passage in passages:
        by_item[passage.item].append(passage)
    end = len(trace.steps)
    stays = tuple(
        (*_fast(item, own, passing, end), *_slow(item, own, passing, end))
        for item, own, passing in zip(trace.items, uses, by_item, strict=True)
    )
    return Residency(trace, stays, tuple(passages), 0.0, 0.0, 0.0, 0, method)


def uses_of(trace: Trace, direct: Sequence[frozenset[int]] = ()) -> list[Uses]:
    """Return, by item, the steps that access it."""
    uses: list[Uses] = [[] for _ in trace.items]
    for place, step in enumerate(trace.steps):
        found: dict[int, tuple[bool, bool, bool]] = {}
        for access in step.accesses:
            reads, writes, slow = found.get(access.item, (False, False, False))
            slow = slow or bool(direct and access.operand in direct[place])
            found[access.item] = (reads or not access.writes, writes or access.writes, slow)
        for item, flags in found.items():
            uses[item].append((place, *flags))
    return uses


def _fast(item: Item, uses: Uses, passages: Sequence[ItemTransfer], end: int) -> list[ItemStay]:
    """Return the fast stays: from a write or a transfer inwards to the last access before the next one.

    A transfer out ends a stay too.
    """
    opened: list[int] = []
    if item.loaded or (item.given and item.fixed):
        opened.append(0)
    opened += [passage.start for passage in passages if passage.direction == "in"]
    touched = [(place, reads, writes) for place, reads, writes, slow in uses if not slow]
    opened += [place for place, reads, writes in touched if writes and not reads]
    found: list[ItemStay] = []
    for lo, limit in pairwise([*sorted(set(opened)), end + 1]):
        inside = [place + 1 for place, _, _ in touched if lo <= place < limit]
        inside += [p.end for p in passages if p.direction == "out" and lo < p.end and lo <= p.start < limit]
        hi = max(inside, default=lo)
        if limit > end and _stays_to_end(item, uses, passages):
            hi = end
        if item.fixed and limit <= end:
            hi = limit
        if found and found[-1].hi == lo and not _comes(passages, lo):
            found[-1] = ItemStay(True, found[-1].lo, hi)
        elif hi > lo:
            found.append(ItemStay(True, lo, hi))
    return found


def _comes(passages: Sequence[ItemTransfer], place: int) -> bool:
    return any(passage.direction == "in" and passage.start == place for passage in passages)


def _stays_to_end(item: Item, uses: Uses, passages: Sequence[ItemTransfer]) -> bool:
    """Return whether the only valid bytes of a kept item are in the fast memory at the end."""
    if not item.kept:
        return False
    if item.fixed:
        return True
    written = max((place for place, _, writes, slow in uses if writes and not slow), default=-1)
    saved = [p.start for p in passages if p.direction == "out"]
    saved += [place for place, _, writes, slow in uses if writes and slow]
    return not (item.given and written < 0) and not any(place > written for place in saved)


def _slow(item: Item, uses: Uses, passages: Sequence[ItemTransfer], end: int) -> list[ItemStay]:
    """Return the slow stays: from a transfer out or a direct write to the last read of those bytes."""
    opened = [0] if item.given else []
    opened += [p.start for p in passages if p.direction == "out"]
    opened += [place for place, _, writes, slow in uses if writes and slow]
    stale = [place for place, _, writes, slow in uses if writes and not slow]
    found: list[ItemStay] = []
    for lo in sorted(set(opened)):
        limit = min((place for place in stale if place >= lo), default=end)
        inside = [place + 1 for place, _, _, slow in uses if slow and lo <= place < limit]
        inside += [max(p.end, lo + 1) for p in passages if lo <= p.start <= limit]
        hi = max(inside, default=lo)
        if item.kept and limit == end and not item.fixed:
            hi = end
        if found and found[-1].hi >= lo:
            found[-1] = ItemStay(False, found[-1].lo, max(hi, found[-1].hi))
        elif hi > lo:
            found.append(ItemStay(False, lo, hi))
    return found
