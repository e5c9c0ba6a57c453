"""Triggers of transfers: first as late as planned, then earlier according to measured waits.

Source: Capuchin (Peng et al., ASPLOS 2020), triggers and feedback. The in-trigger is the latest step from
which the transfer, queued after those already booked, ends by the back access. If a wait is measured there,
the trigger moves earlier, entry by entry, in the next iteration. This ends when no wait is left or none can
be removed.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

from mcudeploy.costs.timeline import Timeline, fast_loads, timeline, with_times
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.trace import FAST, SLOW, ItemTransfer, MemoryLink, Residency


def with_late_triggers(residency: Residency, link: MemoryLink) -> Residency:
    """Return the residency with every transfer inwards at the latest step from which it ends in time."""
    run = timeline(residency, link)
    limit = run.starts[-1]
    transfers = list(residency.transfers)
    for number in reversed(range(len(transfers))):
        transfer = transfers[number]
        size = residency.trace.items[transfer.item].size_bytes
        if transfer.direction == "in":
            limit = min(limit, run.starts[transfer.end]) - link.cycles(size, "in")
            start = min(transfer.end, max(transfer.start, bisect_right(run.starts, limit) - 1))
            residency = _moved(residency, transfer, start)
        else:
            limit = min(limit, run.served[number][0])
    return with_times(residency, link)


def earlier(residency: Residency, run: Timeline, capacity_bytes: int) -> Residency | None:
    """Return the residency in which the transfers that a run waited for start earlier; None if none can.

    Each starts earlier by the steps that take as long as the wait, at least one, as far as there is room.
    """
    result = residency
    for wait in run.waits:
        transfer = residency.transfers[wait.transfer]
        # A step starts after its waits, also after that for a transfer which begins and ends right before it.
        wanted = run.starts[transfer.start] - wait.cycles * (1 + (transfer.start == transfer.end))
        while transfer.direction == "in" and _may_start_earlier(result, transfer, capacity_bytes):
            result = _moved(result, transfer, transfer.start - 1)
            transfer = replace(transfer, start=transfer.start - 1)
            if run.starts[transfer.start] <= wanted:
                break
    return None if result is residency else result


def _may_start_earlier(residency: Residency, transfer: ItemTransfer, capacity_bytes: int) -> bool:
    """Return whether a transfer inwards may start a step earlier.

    There must be room, its item must not be in the fast memory, and its source must be valid.
    """
    start = transfer.start - 1
    if start < 0:
        return False
    item = transfer.item
    fast = [each.life for each in residency.residences[item] if each.memory == FAST]
    slow = [each.life for each in residency.residences[item] if each.memory == SLOW]
    is_away = not any(start in life or (start == 0 and life.hi == transfer.start) for life in fast)
    has_source = any(life.lo <= start and transfer.start <= life.hi for life in slow)
    before = (it for it in residency.transfers if it.item == item and it.start < transfer.start)
    is_saved = all(it.end <= start for it in before)
    is_written = any(it.item == item for it in residency.trace.steps[start].accesses if it.writes)
    has_room = fast_loads(residency)[start] + residency.trace.items[item].size_bytes <= capacity_bytes
    return is_away and has_source and is_saved and not is_written and has_room


def _moved(residency: Residency, transfer: ItemTransfer, start: int) -> Residency:
    """Return a residency in which a transfer inwards starts at another step, in the order of the steps."""
    if start == transfer.start:
        return residency
    left = list(residency.transfers)
    left.remove(transfer)
    at = next((n for n, one in enumerate(left) if one.start > start), len(left))
    left.insert(at, replace(transfer, start=start))
    residences = list(residency.residences)
    residences[transfer.item] = tuple(
        replace(each, life=Interval(start, each.life.hi))
        if each.memory == FAST and each.life.lo == transfer.start
        else each
        for each in residences[transfer.item]
    )
    return replace(residency, transfers=tuple(left), residences=tuple(residences))
