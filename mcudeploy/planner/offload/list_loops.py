"""The choice of what leaves the fast memory in a sequence of steps, for `compiled`.

`choose` simulates the steps as if transfers took no time, and evicts the item used latest (Belady) until the
needs of a step have room. An access of a step in the sequence has a number, its place; numbers after all
accesses stand for items before the first step. Times are in cycles.

Import this module lazily: numba is slow to load. It is one file, since numba's cache does not see changes of
other files.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcudeploy.common.compiled import compiled, flags, floats, ints, numbers_from
from mcudeploy.planner.offload.trace_tables import Flags, Floats, Ints, TraceTable

FREE, STAY, LEAVE = 0, 1, 2
"""The options for the gap before an entry."""

LATEST, LONGEST, WORTH = 0, 1, 2
"""The eviction order: latest use, longest free time, or most free time per transfer time."""


class Accesses(NamedTuple):
    """Places of a sequence: those of step k are [start[k], start[k + 1]).

    By place: its step, its entry in the table, and the previous and next place of the same item (-1: none).
    """

    start: Ints
    step: Ints
    entry: Ints
    before: Ints
    following: Ints
    clock: Floats


class Decisions(NamedTuple):
    """Decisions made beforehand.

    The steps in order with repeated ones; by entry of the table the choice for the gap before it and whether
    it may be direct; bytes kept free if that costs nothing; the eviction order, and whether transfers out go
    first.
    """

    sequence: Ints
    force: Ints
    direct: Flags
    slack: int = 0
    rule: int = LATEST
    outs_first: bool = False


class Choice(NamedTuple):
    """The decisions by place, and the load by step.

    By place: the step before which its item leaves (-1: it stays), whether the item is missing, and whether
    it is accessed directly. Also the bytes in the fast memory by step, the bytes that did not fit, and the
    worst step.
    """

    leaves: Ints
    missing: Flags
    direct: Flags
    load: Ints
    overflow: float
    worst: int


@compiled
def accesses_of(table: TraceTable, sequence: Ints) -> Accesses:
    """Return the accesses of a sequence, joined to chains by item."""
    steps, items = len(sequence), len(table.size)
    start = ints(steps + 1, 0)
    clock = floats(steps + 1, 0.0)
    for k in range(steps):
        s = sequence[k]
        start[k + 1] = start[k] + table.first[s + 1] - table.first[s]
        clock[k + 1] = clock[k] + table.cycles[s]
    count = start[steps]
    step = ints(count + items, -1)
    entry = ints(count + items, -1)
    before = ints(count + items, -1)
    following = ints(count + items, -1)
    last = numbers_from(count, items)
    for k in range(steps):
        for f in range(start[k], start[k + 1]):
            e = table.first[sequence[k]] + f - start[k]
            step[f], entry[f], before[f] = k, e, last[table.item[e]]
            following[before[f]] = f
            last[table.item[e]] = f
    return Accesses(start, step, entry, before, following, clock)


@compiled
def choose(  # noqa: PLR0915  (one function of arrays, as numba wants it)
    table: TraceTable, seen: Accesses, decisions: Decisions, capacity: int
) -> Choice:
    """Choose what leaves a fast memory of `capacity` bytes."""
    sequence, force, direct, slack, rule, _ = decisions
    steps, items = len(sequence), len(table.size)
    count = seen.start[steps]
    leaves = ints(count + items, -1)
    missing = flags(count + items, False)
    directly = flags(count + items, False)
    load = ints(steps, 0)
    here = flags(items, False)
    clean = table.given.copy()
    at = numbers_from(count, items)
    needed = ints(items, -1)
    live, listed = ints(items, 0), flags(items, False)
    alive, held, pinned, overflow, worst, most = 0, 0, 0, 0.0, -1, 0
    for i in range(items):
        if table.loaded[i] or (table.fixed[i] and table.given[i]):
            back = seen.following[count + i]
            wanted = table.kept[i] and not table.given[i] if back < 0 else table.reads[seen.entry[back]]
            if not (wanted or (table.fixed[i] and (back >= 0 or table.kept[i]))):
                continue
            here[i], live[alive], listed[i], alive = True, i, True, alive + 1
            held += table.size[i]
            pinned += table.size[i] * table.fixed[i]
        else:
            leaves[count + i] = 0
    for k in range(steps):
        lo, hi = seen.start[k], seen.start[k + 1]
        work = table.work[sequence[k]]
        need = work + pinned
        for f in range(lo, hi):
            i = table.item[seen.entry[f]]
            need += table.size[i] * (not (table.fixed[i] and here[i]))
        tight = need > capacity  # then no eviction of other items is enough
        f = lo
        while f < hi:  # an operand is present completely, or accessed directly completely
            e = seen.entry[f]
            g, whole, able = f, True, direct[e]
            while g < hi and table.operand[seen.entry[g]] == table.operand[e]:
                i = table.item[seen.entry[g]]
                whole = whole and here[i]
                able = able and (k > 0 or clean[i] or not here[i])
                g += 1
            if able and (tight or not whole):
                for h in range(f, g):
                    directly[h] = True
                    i = table.item[seen.entry[h]]
                    writes = table.writes[seen.entry[h]]
                    if here[i] and (tight or writes or not clean[i]):
                        here[i], leaves[at[i]], held = False, k, held - table.size[i]
                    clean[i] = True
            f = g
        for f in range(lo, hi):
            i = table.item[seen.entry[f]]
            needed[i] = k
            if not directly[f] and not here[i]:
                here[i], missing[f], held = True, table.reads[seen.entry[f]], held + table.size[i]
                pinned += table.size[i] * table.fixed[i]
                if not listed[i]:
                    live[alive], listed[i] = i, True
                    alive += 1
        while held + work > capacity - slack:
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
                back = seen.following[at[i]]
                if back >= 0 and force[seen.entry[back]] == STAY:
                    continue
                then = seen.clock[-1] if back < 0 else seen.clock[seen.step[back]]
                if (
                    held + work <= capacity
                    and then - seen.clock[k] < table.out_cycles[i] + table.in_cycles[i]
                ):
                    continue
                cost = (0.0 if clean[i] else table.out_cycles[i]) + (0.0 if back < 0 else table.in_cycles[i])
                if rule == LATEST:
                    score = then
                elif rule == LONGEST:
                    score = then - seen.clock[seen.step[at[i]] + 1] - cost
                else:
                    score = (then - seen.clock[k] + 1.0) * table.size[i] / (cost + 1.0)
                if score > best:
                    best, chosen = score, i
            alive = kept
            if chosen < 0:
                break
            here[chosen], clean[chosen], leaves[at[chosen]] = False, True, k
            held -= table.size[chosen]
        if held + work > capacity:
            excess = held + work - capacity
            overflow += excess
            if excess > most:
                most, worst = excess, k
        load[k] = held + work
        for f in range(lo, hi):
            e = seen.entry[f]
            i, back = table.item[e], seen.following[f]
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
                pinned -= table.size[i] * table.fixed[i]
                if back < 0 and table.kept[i]:
                    leaves[f] = k + 1
            elif table.linked and (
                (back < 0 and table.home[i])
                or (back >= 0 and force[seen.entry[back]] == LEAVE and not table.fixed[i])
            ):
                here[i], clean[i], leaves[f], held = False, True, k + 1, held - table.size[i]
    return Choice(leaves, missing, directly, load, overflow, worst)
