"""The look-ahead plan of a sequence of steps, compiled: what leaves the fast memory and when it passes.

`choose` walks over the steps as if transfers took no time, and lets go what is used latest (Belady) until what
a step needs has room. `serve` then runs the steps with one engine: what leaves goes as soon as it may, what
comes back as early as there is room, the earliest deadline first. An access of a step in the sequence has a
number, its place; numbers behind all accesses stand for items before the first step. Times are in cycles.

Import only where it is needed: numba takes its time. One file: its cache does not see others change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from mcudeploy.residency.tables import Flags, Floats, Ints, Table

FREE, STAY, LEAVE = 0, 1, 2
"""What may become of the gap in front of an entry."""

LATEST, LONGEST, WORTH = 0, 1, 2
"""What leaves first: what is used latest, what has the longest free time, what frees most time per transfer."""

_WINDOW = 8  # so many of the items that come back next are tried for room
_FAR = 1 << 60


class Accesses(NamedTuple):
    """Places of a sequence: those of step k are [start[k], start[k + 1]); by place its step, its entry in the
    table, and the places of the same item before and behind it (-1: none).
    """

    start: Ints
    step: Ints
    entry: Ints
    before: Ints
    behind: Ints
    clock: Floats


class Choice(NamedTuple):
    """By place: the step before which its item leaves (-1: it stays), whether the item is missing, whether it
    is accessed directly. By step the bytes in the fast memory. Bytes that did not fit, and the worst step.
    """

    leaves: Ints
    missing: Flags
    direct: Flags
    load: Ints
    overflow: float
    worst: int


class Served(NamedTuple):
    """Cycles in all; passages in the order of their issue: item, whether inwards, from and to step; waits of
    each step.
    """

    cycles: float
    item: Ints
    inwards: Flags
    start: Ints
    end: Ints
    waits: Floats


@njit(cache=True)
def accesses_of(table: Table, sequence: Ints) -> Accesses:
    """The accesses of a sequence, joined to chains by item."""
    steps, items = len(sequence), len(table.size)
    start = np.zeros(steps + 1, np.int64)
    clock = np.zeros(steps + 1)
    for k in range(steps):
        s = sequence[k]
        start[k + 1] = start[k] + table.first[s + 1] - table.first[s]
        clock[k + 1] = clock[k] + table.cycles[s]
    count = start[steps]
    step = np.full(count + items, -1, np.int64)
    entry = np.full(count + items, -1, np.int64)
    before = np.full(count + items, -1, np.int64)
    behind = np.full(count + items, -1, np.int64)
    last = np.arange(count, count + items)
    for k in range(steps):
        for f in range(start[k], start[k + 1]):
            e = table.first[sequence[k]] + f - start[k]
            step[f], entry[f], before[f] = k, e, last[table.item[e]]
            behind[before[f]] = f
            last[table.item[e]] = f
    return Accesses(start, step, entry, before, behind, clock)


@njit(cache=True)
def _score(table: Table, seen: Accesses, place: int, k: int, clean: bool, rule: int) -> float:
    i = table.item[seen.entry[place]] if seen.entry[place] >= 0 else place - seen.start[-1]
    back = seen.behind[place]
    ending = back < 0
    then = seen.clock[-1] if ending else seen.clock[seen.step[back]]
    cost = (0.0 if clean else table.out_cycles[i]) + (0.0 if ending else table.in_cycles[i])
    if rule == LATEST:
        return then
    if rule == LONGEST:
        return then - seen.clock[seen.step[place] + 1] - cost
    return (then - seen.clock[k] + 1.0) * table.size[i] / (cost + 1.0)


@njit(cache=True)
def choose(  # noqa: PLR0915, PLR0917  (one function of arrays, as numba wants it)
    table: Table, sequence: Ints, seen: Accesses, force: Ints, direct: Flags, room: Ints, rule: int
) -> Choice:
    """What leaves. `room`: the bytes of the fast memory, and those below which it is held where that costs
    nothing. `force` and `direct` by entry of the table: what becomes of the gap before it, and whether it may
    be accessed directly.
    """
    steps, items = len(sequence), len(table.size)
    count = seen.start[steps]
    leaves = np.full(count + items, -1, np.int64)
    missing = np.zeros(count + items, np.bool_)
    directly = np.zeros(count + items, np.bool_)
    load = np.zeros(steps, np.int64)
    here = np.zeros(items, np.bool_)
    clean = table.given.copy()
    at = np.arange(count, count + items)
    needed = np.full(items, -1, np.int64)
    live, listed = np.empty(items, np.int64), np.zeros(items, np.bool_)
    alive, held, overflow, worst, most = 0, 0, 0.0, -1, 0
    for i in range(items):
        if table.loaded[i] or (table.fixed[i] and table.given[i]):
            back = seen.behind[count + i]
            wanted = table.kept[i] and not table.given[i] if back < 0 else table.reads[seen.entry[back]]
            if not (wanted or (table.fixed[i] and (back >= 0 or table.kept[i]))):
                continue
            here[i], live[alive], listed[i], alive = True, i, True, alive + 1
            held += table.size[i]
        else:
            leaves[count + i] = 0
    for k in range(steps):
        lo, hi = seen.start[k], seen.start[k + 1]
        f = lo
        while f < hi:  # an operand is there as a whole, or all of it is accessed directly
            e = seen.entry[f]
            g, whole, able = f, True, direct[e]
            while g < hi and table.operand[seen.entry[g]] == table.operand[e]:
                i = table.item[seen.entry[g]]
                whole = whole and here[i]
                able = able and (k > 0 or clean[i] or not here[i])
                g += 1
            if able and not whole:
                for h in range(f, g):
                    directly[h] = True
                    i = table.item[seen.entry[h]]
                    writes = table.writes[seen.entry[h]]
                    if here[i] and (writes or not clean[i]):
                        here[i], leaves[at[i]], held = False, k, held - table.size[i]
                    clean[i] = True
            f = g
        for f in range(lo, hi):
            i = table.item[seen.entry[f]]
            needed[i] = k
            if not directly[f] and not here[i]:
                here[i], missing[f], held = True, table.reads[seen.entry[f]], held + table.size[i]
                if not listed[i]:
                    live[alive], listed[i] = i, True
                    alive += 1
        work = table.work[sequence[k]]
        while held + work > room[1]:
            best, chosen = -np.inf, -1
            kept = 0
            for n in range(alive):
                i = live[n]
                if not here[i]:
                    listed[i] = False
                    continue
                live[kept] = i
                kept += 1
                if needed[i] == k or table.fixed[i] or not table.linked or (k == 0 and not clean[i]):
                    continue
                back = seen.behind[at[i]]
                if back >= 0 and force[seen.entry[back]] == STAY:
                    continue
                if held + work <= room[0]:
                    then = seen.clock[-1] if back < 0 else seen.clock[seen.step[back]]
                    if then - seen.clock[k] < table.out_cycles[i] + table.in_cycles[i]:
                        continue
                score = _score(table, seen, at[i], k, clean[i], rule)
                if score > best:
                    best, chosen = score, i
            alive = kept
            if chosen < 0:
                break
            here[chosen], clean[chosen], leaves[at[chosen]] = False, True, k
            held -= table.size[chosen]
        if held + work > room[0]:
            excess = held + work - room[0]
            overflow += excess
            if excess > most:
                most, worst = excess, k
        load[k] = held + work
        for f in range(lo, hi):
            e = seen.entry[f]
            i, back = table.item[e], seen.behind[f]
            at[i] = f
            if not here[i]:
                leaves[f] = k + 1
                continue
            if table.writes[e] and not directly[f]:
                clean[i] = False
            over = back < 0 and not (table.kept[i] and not clean[i])
            over = over or (back >= 0 and not table.reads[seen.entry[back]])
            if over and not (table.fixed[i] and (back >= 0 or table.kept[i])):
                here[i], held = False, held - table.size[i]
                if back < 0 and table.kept[i]:
                    leaves[f] = k + 1
            elif back >= 0 and force[seen.entry[back]] == LEAVE and not table.fixed[i] and table.linked:
                here[i], clean[i], leaves[f], held = False, True, k + 1, held - table.size[i]
    return Choice(leaves, missing, directly, load, overflow, worst)


@njit(cache=True)
def _add(load: Ints, lo: int, hi: int, size: int) -> None:
    for k in range(lo, min(hi, len(load))):
        load[k] += size


@njit(cache=True)
def _fits(load: Ints, lo: int, hi: int, size: int, capacity: int) -> bool:
    for k in range(lo, hi):  # noqa: SIM110  (numba has no all)
        if load[k] + size > capacity:
            return False
    return True


@njit(cache=True)
def _leaving(table: Table, seen: Accesses, choice: Choice, place: int) -> int:
    """The place behind which the bytes of a place leave, -1 if they change or are accessed directly before."""
    while choice.leaves[place] < 0 or choice.direct[place]:
        place = seen.behind[place]
        if place < 0 or table.writes[seen.entry[place]] or choice.direct[place]:
            return -1
    return place


@njit(cache=True)
def serve(  # noqa: PLR0915, PLR0917  (one function of arrays, as numba wants it)
    table: Table, sequence: Ints, seen: Accesses, choice: Choice, capacity: int, outs_first: bool
) -> Served:
    """Run the steps with what leaves, and give the passages."""
    steps, items = len(sequence), len(table.size)
    count = seen.start[steps]
    load, missing, leaves = choice.load.copy(), choice.missing.copy(), choice.leaves.copy()
    clean = table.given.copy()
    number = np.full(count + items, -1, np.int64)  # of the passage outwards, inwards, by place
    most = 3 * (count + items)
    p_item, p_in = np.empty(most, np.int64), np.zeros(most, np.bool_)
    p_place = np.full(most, -1, np.int64)
    p_start, p_end, p_done = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    pending = np.empty(count + items, np.int64)
    flying = np.empty(count + items, np.int64)
    wanted = np.empty(count + 1, np.int64)
    waits = np.zeros(steps + 1)
    waiting, flights, passages, wants, next_want = 0, 0, 0, 0, 0
    for f in range(count):
        if missing[f]:
            wanted[wants] = f
            wants += 1
    now = free = 0.0
    for k in range(steps + 1):
        begin = now
        # What step k - 1 touched last: gone at once, or waiting to be written out.
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
        # Those that should have left by now stay a step longer; those that are used now stay.
        left = 0
        for n in range(waiting):
            f = pending[n]
            i = f - count if f >= count else table.item[seen.entry[f]]
            back = seen.behind[f]
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
            for n in range(passages):
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
                        p_item[passages], p_in[passages], p_done[passages] = i, False, free
                        p_start[passages], p_end[passages] = k, k
                        passages += 1
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
            p_item[passages], p_in[passages], p_done[passages] = i, False, free
            p_start[passages], p_end[passages] = k, k
            number[f] = passages
            passages += 1
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
            p_item[passages], p_in[passages], p_done[passages] = i, True, free
            p_start[passages], p_end[passages] = k, k
            number[f] = passages
            passages += 1
        waits[k] = now - begin
        spent = table.cycles[sequence[k]]
        last = -1
        for f in range(seen.start[k], seen.start[k + 1]):
            if choice.direct[f] and table.operand[seen.entry[f]] != last:
                last = table.operand[seen.entry[f]]
                spent += table.direct[seen.entry[f]]
        # While the step runs the engine shall have work.
        while table.overlapped and free - now < spent:
            best, chosen, inward = np.inf, -1, -1
            for n in range(waiting):
                f = pending[n]
                i = f - count if f >= count else table.item[seen.entry[f]]
                back = seen.behind[f]
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
                p_item[passages], p_in[passages], p_done[passages] = i, True, free
                p_start[passages], p_end[passages] = k, seen.step[inward]
                number[inward] = passages
                passages += 1
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
                p_item[passages], p_in[passages], p_done[passages] = i, False, free
                p_start[passages], p_end[passages] = k, p
                number[f], p_place[passages] = passages, f
                flying[flights] = passages
                flights += 1
                passages += 1
                clean[i] = True
                gone = max(p, seen.step[f] + 1)
                _add(load, gone, leaves[f], -table.size[i])
                _add(load, leaves[f], gone, table.size[i])
            else:
                break
        now += spent
    return Served(now, p_item[:passages], p_in[:passages], p_start[:passages], p_end[:passages], waits)
