"""The choice of what leaves the fast memory in a sequence of steps, for `compiled`.

`choose` simulates the steps as if transfers took no time. Until a step has room, it evicts the item that is
used latest (Belady), or the best one by another rule. An access of a step in the sequence has a number, its
place. Numbers after all accesses stand for items before the first step. Times are in cycles.

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
    """The accesses of a sequence; step k has the places [start[k], start[k + 1]).

    By place: its step, its entry in the table, and the previous and next place of the same item (-1: none).
    `clock`: the start of each step in cycles, without waits.
    """

    start: Ints
    step: Ints
    entry: Ints
    before: Ints
    following: Ints
    clock: Floats


class Decisions(NamedTuple):
    """Decisions made beforehand.

    `sequence`: the steps in order, with repeated ones. By entry of the table: `force`, the option for the gap
    before it, and whether it may be `direct`. `slack`: bytes kept free if that costs nothing. `rule`: the
    eviction order. `outs_first`: transfers out go first.
    """

    sequence: Ints
    force: Ints
    direct: Flags
    slack: int = 0
    rule: int = LATEST
    outs_first: bool = False


class Choice(NamedTuple):
    """The decisions by place: the step before which its item leaves (-1: it stays), whether the item is
    missing, and whether it is accessed directly.

    `load`: the bytes in the fast memory by step. `overflow`: the bytes that did not fit; `worst`: the step
    with the most of them.
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
    table: TraceTable, accesses: Accesses, decisions: Decisions, capacity: int
) -> Choice:
    """Choose what leaves a fast memory of `capacity` bytes."""
    sequence, force, direct, slack, rule, _ = decisions
    steps, items = len(sequence), len(table.size)
    count = accesses.start[steps]
    leaves = ints(count + items, -1)
    missing = flags(count + items, False)
    directly = flags(count + items, False)
    load = ints(steps, 0)
    here = flags(items, False)
    clean = table.given.copy()
    last_place = numbers_from(count, items)
    needed = ints(items, -1)
    live, listed = ints(items, 0), flags(items, False)
    alive, held, pinned, overflow, worst, most = 0, 0, 0, 0.0, -1, 0
    # Items that are in the fast memory before the first step, if anything needs them there.
    for item in range(items):
        if table.loaded[item] or (table.fixed[item] and table.given[item]):
            back = accesses.following[count + item]
            wanted = table.kept[item] and not table.given[item]
            if back >= 0:
                wanted = table.reads[accesses.entry[back]]
            if not (wanted or (table.fixed[item] and (back >= 0 or table.kept[item]))):
                continue
            here[item], live[alive], listed[item], alive = True, item, True, alive + 1
            held += table.size[item]
            pinned += table.size[item] * table.fixed[item]
        else:
            leaves[count + item] = 0
    for step in range(steps):
        lo, hi = accesses.start[step], accesses.start[step + 1]
        work = table.work[sequence[step]]
        need = work + pinned
        for place in range(lo, hi):
            item = table.item[accesses.entry[place]]
            need += table.size[item] * (not (table.fixed[item] and here[item]))
        tight = need > capacity  # then no eviction of other items is enough
        # Operands that are accessed directly: all that may be if the step is tight, else those not present.
        place = lo
        while place < hi:  # an operand is present completely, or accessed directly completely
            entry = accesses.entry[place]
            end, whole, able = place, True, direct[entry]
            while end < hi and table.operand[accesses.entry[end]] == table.operand[entry]:
                item = table.item[accesses.entry[end]]
                whole = whole and here[item]
                able = able and (step > 0 or clean[item] or not here[item])
                end += 1
            if able and (tight or not whole):
                for other in range(place, end):
                    directly[other] = True
                    item = table.item[accesses.entry[other]]
                    writes = table.writes[accesses.entry[other]]
                    if here[item] and (tight or writes or not clean[item]):
                        here[item], leaves[last_place[item]], held = False, step, held - table.size[item]
                    clean[item] = True
            place = end
        # The other items of the step come into the fast memory.
        for place in range(lo, hi):
            item = table.item[accesses.entry[place]]
            needed[item] = step
            if not directly[place] and not here[item]:
                here[item], missing[place] = True, table.reads[accesses.entry[place]]
                held += table.size[item]
                pinned += table.size[item] * table.fixed[item]
                if not listed[item]:
                    live[alive], listed[item] = item, True
                    alive += 1
        # Evict the item of the best score until the step has room, with the slack if that costs nothing.
        while held + work > capacity - slack:
            best, chosen = -np.inf, -1
            kept = 0
            for n in range(alive):
                item = live[n]
                if not here[item]:
                    listed[item] = False
                    continue
                live[kept] = item
                kept += 1
                is_bound = needed[item] == step or table.fixed[item] or not table.linked
                if is_bound or (step == 0 and not clean[item]):
                    continue
                back = accesses.following[last_place[item]]
                if back >= 0 and force[accesses.entry[back]] == STAY:
                    continue
                then = accesses.clock[-1] if back < 0 else accesses.clock[accesses.step[back]]
                if (
                    held + work <= capacity
                    and then - accesses.clock[step] < table.out_cycles[item] + table.in_cycles[item]
                ):
                    continue
                cost = 0.0 if clean[item] else table.out_cycles[item]
                cost += 0.0 if back < 0 else table.in_cycles[item]
                if rule == LATEST:
                    score = then
                elif rule == LONGEST:
                    score = then - accesses.clock[accesses.step[last_place[item]] + 1] - cost
                else:
                    score = (then - accesses.clock[step] + 1.0) * table.size[item] / (cost + 1.0)
                if score > best:
                    best, chosen = score, item
            alive = kept
            if chosen < 0:
                break
            here[chosen], clean[chosen], leaves[last_place[chosen]] = False, True, step
            held -= table.size[chosen]
        if held + work > capacity:
            excess = held + work - capacity
            overflow += excess
            if excess > most:
                most, worst = excess, step
        load[step] = held + work
        # After the step, items leave that nothing reads before they are written again, or by decision.
        for place in range(lo, hi):
            entry = accesses.entry[place]
            item, back = table.item[entry], accesses.following[place]
            last_place[item] = place
            if not here[item]:
                leaves[place] = step + 1
                continue
            if table.writes[entry] and not directly[place]:
                clean[item] = False
            over = back < 0 and not (table.kept[item] and not clean[item])
            over = over or (back >= 0 and not table.reads[accesses.entry[back]])
            if over and not (table.fixed[item] and (back >= 0 or table.kept[item])):
                here[item], held = False, held - table.size[item]
                pinned -= table.size[item] * table.fixed[item]
                if back < 0 and table.kept[item]:
                    leaves[place] = step + 1
            elif table.linked and (
                (back < 0 and table.home[item])
                or (back >= 0 and force[accesses.entry[back]] == LEAVE and not table.fixed[item])
            ):
                here[item], clean[item], leaves[place], held = False, True, step + 1, held - table.size[item]
    return Choice(leaves, missing, directly, load, overflow, worst)
