"""The transfers of a sequence of steps, for `compiled`.

`serve` runs the steps with one engine. Transfers out start as soon as possible; transfers in as early as
there is room, the earliest deadline first. Places of accesses are those of `list_loops`; times are in cycles.

Import this module lazily: numba is slow to load. It is one file, since numba's cache does not see changes of
other files.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcudeploy.common.compiled import compiled, flags, floats, ints
from mcudeploy.planner.offload.list_loops import Accesses, Choice, Decisions
from mcudeploy.planner.offload.trace_tables import Flags, Floats, Ints, TraceTable

_WINDOW = 8  # the number of items returning next that are tried for room


class Served(NamedTuple):
    """Total cycles; transfers in order of issue (item, whether inwards, from and to step); waits by step."""

    cycles: float
    item: Ints
    inwards: Flags
    start: Ints
    end: Ints
    waits: Floats


@compiled
def _add(load: Ints, lo: int, hi: int, size: int) -> None:
    for k in range(lo, min(hi, len(load))):
        load[k] += size


@compiled
def _fits(load: Ints, lo: int, hi: int, size: int, capacity: int) -> bool:
    for k in range(lo, hi):  # noqa: SIM110  (numba has no all)
        if load[k] + size > capacity:
            return False
    return True


@compiled
def _leaving(table: TraceTable, seen: Accesses, choice: Choice, place: int) -> int:
    """Return the place after which the bytes of a place leave; -1 if they change or are read directly."""
    while choice.leaves[place] < 0 or choice.direct[place]:
        place = seen.following[place]
        if place < 0 or table.writes[seen.entry[place]] or choice.direct[place]:
            return -1
    return place


@compiled
def serve(  # noqa: PLR0915  (one function of arrays, as numba wants it)
    table: TraceTable, seen: Accesses, decisions: Decisions, choice: Choice, capacity: int
) -> Served:
    """Run the steps with the chosen evictions, and return the transfers."""
    sequence, outs_first = decisions.sequence, decisions.outs_first
    steps, items = len(sequence), len(table.size)
    count = seen.start[steps]
    load, missing, leaves = choice.load.copy(), choice.missing.copy(), choice.leaves.copy()
    clean = table.given.copy()
    number = ints(count + items, -1)  # of the transfer outwards, inwards, by place
    most = 3 * (count + items)
    p_item, p_in = ints(most, 0), flags(most, False)
    p_place = ints(most, -1)
    p_start, p_end, p_done = ints(most, 0), ints(most, 0), floats(most, 0.0)
    pending = ints(count + items, 0)
    flying = ints(count + items, 0)
    wanted = ints(count + 1, 0)
    waits = floats(steps + 1, 0.0)
    waiting, flights, transfers, wants, next_want = 0, 0, 0, 0, 0
    for f in range(count):
        if missing[f]:
            wanted[wants] = f
            wants += 1
    now = free = 0.0
    for k in range(steps + 1):
        begin = now
        # Items that step k - 1 accessed last: gone at once, or waiting to be written out.
        for f in range(seen.start[k - 1] if k else count, seen.start[k] if k else count + items):
            i = f - count if f >= count else table.item[seen.entry[f]]
            if (f < count and table.writes[seen.entry[f]]) or (f >= count and table.loaded[i]):
                clean[i] = choice.direct[f] if f < count else table.given[i]
                g = -1 if clean[i] or not table.linked else _leaving(table, seen, choice, f)
                if g >= 0 and k < steps:
                    pending[waiting] = g
                    waiting += 1
            if leaves[f] >= 0 and not choice.direct[f] and clean[i] and number[f] < 0:
                _add(load, k, leaves[f], -table.size[i])
        # Items that should have left by now stay a step longer; items in use stay.
        left = 0
        for n in range(waiting):
            f = pending[n]
            i = f - count if f >= count else table.item[seen.entry[f]]
            back = seen.following[f]
            if back >= 0 and seen.step[back] == k and not choice.direct[back]:
                _add(load, leaves[f], k, table.size[i])
                missing[back] = False
                f = -1 if table.writes[seen.entry[back]] else _leaving(table, seen, choice, back)
                if f < 0:
                    continue
            pending[left] = f
            left += 1
            if leaves[f] <= k < steps:
                _add(load, leaves[f], k + 1, table.size[i])
                leaves[f] = k + 1
        waiting = left
        if k == steps:
            for n in range(transfers):
                if not p_in[n] and p_end[n] >= steps:
                    now = max(now, p_done[n])
            waits[k] = now - begin
            break
        # What is read directly must have been written out; what does not fit must have left.
        urgent = seen.start[k]
        while True:
            chosen = -1
            while urgent < seen.start[k + 1]:
                i = table.item[seen.entry[urgent]]
                if choice.direct[urgent] and table.reads[seen.entry[urgent]]:
                    for n in range(waiting):
                        if pending[n] == seen.before[urgent]:
                            chosen = n
                    if chosen < 0 and not clean[i]:  # it never left: it is written out, and stays
                        free = max(now, free) + table.out_cycles[i]
                        now = free
                        p_item[transfers], p_in[transfers], p_done[transfers] = i, False, free
                        p_start[transfers], p_end[transfers] = k, k
                        transfers += 1
                        clean[i] = True
                    for n in range(flights):
                        if p_item[flying[n]] == i and p_end[flying[n]] > k:
                            now = max(now, p_done[flying[n]])
                            _add(load, k, p_end[flying[n]], -table.size[p_item[flying[n]]])
                            p_end[flying[n]] = k
                if chosen >= 0:
                    break
                urgent += 1
            if chosen < 0 and load[k] <= capacity:
                break
            if chosen < 0:
                first = -1
                left = 0
                for n in range(flights):
                    p = flying[n]
                    if p_end[p] > k or seen.step[p_place[p]] >= k:
                        flying[left] = p
                        left += 1
                        if seen.step[p_place[p]] < k and (first < 0 or p_done[p] < p_done[first]):
                            first = p
                flights = left
                if first >= 0:
                    now = max(now, p_done[first])
                    _add(load, k, p_end[first], -table.size[p_item[first]])
                    p_end[first] = k
                    continue
                for n in range(waiting):
                    if seen.step[pending[n]] < k and (
                        chosen < 0 or leaves[pending[n]] < leaves[pending[chosen]]
                    ):
                        chosen = n
                if chosen < 0:
                    break
            f = pending[chosen]
            waiting -= 1
            pending[chosen] = pending[waiting]
            i = f - count if f >= count else table.item[seen.entry[f]]
            free = max(now, free) + table.out_cycles[i]
            now = free
            p_item[transfers], p_in[transfers], p_done[transfers] = i, False, free
            p_start[transfers], p_end[transfers] = k, k
            number[f] = transfers
            transfers += 1
            clean[i] = True
            _add(load, k, leaves[f], -table.size[i])
        for f in range(seen.start[k], seen.start[k + 1]):
            if missing[f] and number[f] >= 0:
                now = max(now, p_done[number[f]])
        for f in range(seen.start[k], seen.start[k + 1]):
            if not missing[f] or number[f] >= 0:
                continue
            i, p = table.item[seen.entry[f]], number[seen.before[f]]
            if p >= 0 and p_end[p] > k:
                now = max(now, p_done[p])
                _add(load, k, p_end[p], -table.size[i])
                p_end[p] = k
            free = max(now, free) + table.in_cycles[i]
            now = free
            p_item[transfers], p_in[transfers], p_done[transfers] = i, True, free
            p_start[transfers], p_end[transfers] = k, k
            number[f] = transfers
            transfers += 1
        # What returns to the slow memory begins to leave before the last step.
        left = 0
        for n in range(waiting):
            f = pending[n]
            i = f - count if f >= count else table.item[seen.entry[f]]
            if k < steps - 1 or not table.home[i] or seen.following[f] >= 0:
                pending[left] = f
                left += 1
                continue
            free = max(now, free) + table.out_cycles[i]
            p_item[transfers], p_in[transfers], p_done[transfers] = i, False, free
            p_start[transfers], p_end[transfers] = k, steps if table.overlapped else k
            if not table.overlapped:
                now = free
                _add(load, k, leaves[f], -table.size[i])
            number[f], p_place[transfers] = transfers, f
            transfers += 1
            clean[i] = True
        waiting = left
        waits[k] = now - begin
        spent = table.cycles[sequence[k]]
        last = -1
        for f in range(seen.start[k], seen.start[k + 1]):
            if choice.direct[f] and table.operand[seen.entry[f]] != last:
                last = table.operand[seen.entry[f]]
                spent += table.direct[seen.entry[f]]
        # Keep the engine busy while the step runs.
        while table.overlapped and free - now < spent:
            best, chosen, inward = np.inf, -1, -1
            for n in range(waiting):
                f = pending[n]
                i = f - count if f >= count else table.item[seen.entry[f]]
                back = seen.following[f]
                if back >= 0 and not choice.direct[back]:
                    gap = seen.clock[seen.step[back]] - seen.clock[k]
                    if gap < max(free - now, 0.0) + table.out_cycles[i] + table.in_cycles[i]:
                        continue  # if there is room it never leaves
                due = seen.clock[leaves[f]] - table.out_cycles[i]
                if due < best:
                    best, chosen = due, n
            while next_want < wants and (seen.step[wanted[next_want]] <= k or number[wanted[next_want]] >= 0):
                next_want += 1
            tried = 0
            n = next_want
            while n < wants and tried < _WINDOW and not (outs_first and chosen >= 0):
                f = wanted[n]
                n += 1
                g = seen.before[f]
                if number[f] >= 0 or (g < count and seen.step[g] >= k) or not missing[f]:
                    continue
                tried += 1
                i = table.item[seen.entry[f]]
                if (
                    not clean[i]
                    or (k == 0 and table.loaded[i])
                    or (number[g] >= 0 and (p_end[number[g]] > k or p_start[number[g]] == k))
                ):
                    continue
                due = seen.clock[seen.step[f]] - table.in_cycles[i]
                if due < best and _fits(load, k, seen.step[f], table.size[i], capacity):
                    best, inward = due, f
                    break
            if inward >= 0:
                i = table.item[seen.entry[inward]]
                free = max(now, free) + table.in_cycles[i]
                p_item[transfers], p_in[transfers], p_done[transfers] = i, True, free
                p_start[transfers], p_end[transfers] = k, seen.step[inward]
                number[inward] = transfers
                transfers += 1
                _add(load, k, seen.step[inward], table.size[i])
            elif chosen >= 0:
                f = pending[chosen]
                waiting -= 1
                pending[chosen] = pending[waiting]
                i = f - count if f >= count else table.item[seen.entry[f]]
                free = max(now, free) + table.out_cycles[i]
                p = k + 1
                late = now + spent - seen.clock[k + 1]
                while p < steps and seen.clock[p] + late < free:
                    p += 1
                p_item[transfers], p_in[transfers], p_done[transfers] = i, False, free
                p_start[transfers], p_end[transfers] = k, p
                number[f], p_place[transfers] = transfers, f
                flying[flights] = transfers
                flights += 1
                transfers += 1
                clean[i] = True
                gone = max(p, seen.step[f] + 1)
                _add(load, gone, leaves[f], -table.size[i])
                _add(load, leaves[f], gone, table.size[i])
            else:
                break
        now += spent
    return Served(now, p_item[:transfers], p_in[:transfers], p_start[:transfers], p_end[:transfers], waits)
