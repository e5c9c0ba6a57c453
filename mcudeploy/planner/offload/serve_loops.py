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
def _item_at(table: TraceTable, accesses: Accesses, place: int) -> int:
    """Return the item of an access, or of a place that stands for an item before the first step."""
    count = accesses.start[-1]
    return int(place - count if place >= count else table.item[accesses.entry[place]])


@compiled
def _fits(load: Ints, lo: int, hi: int, size: int, capacity: int) -> bool:
    for k in range(lo, hi):  # noqa: SIM110  (numba has no all)
        if load[k] + size > capacity:
            return False
    return True


@compiled
def _leaving(table: TraceTable, accesses: Accesses, choice: Choice, place: int) -> int:
    """Return the place after which the bytes of a place leave; -1 if they change or are read directly."""
    while choice.leaves[place] < 0 or choice.direct[place]:
        place = accesses.following[place]
        if place < 0 or table.writes[accesses.entry[place]] or choice.direct[place]:
            return -1
    return place


@compiled
def serve(  # noqa: PLR0915  (one function of arrays, as numba wants it)
    table: TraceTable, accesses: Accesses, decisions: Decisions, choice: Choice, capacity: int
) -> Served:
    """Run the steps with the chosen evictions, and return the transfers."""
    sequence, outs_first = decisions.sequence, decisions.outs_first
    steps, items = len(sequence), len(table.size)
    count = accesses.start[steps]
    load, missing, leaves = choice.load.copy(), choice.missing.copy(), choice.leaves.copy()
    clean = table.given.copy()
    transfer_of = ints(count + items, -1)  # by place: out of or into the fast memory before it
    most = 3 * (count + items)
    # By transfer: item, whether inwards, place, first and last step, end in cycles.
    p_item, p_in = ints(most, 0), flags(most, False)
    p_place = ints(most, -1)
    p_start, p_end, p_done = ints(most, 0), ints(most, 0), floats(most, 0.0)
    pending = ints(count + items, 0)
    in_flight = ints(count + items, 0)
    wanted = ints(count + 1, 0)
    waits = floats(steps + 1, 0.0)
    waiting, flights, transfers, wants, next_want = 0, 0, 0, 0, 0
    for place in range(count):
        if missing[place]:
            wanted[wants] = place
            wants += 1
    now = free = 0.0
    for step in range(steps + 1):
        begin = now
        # Items of the accesses of the step before: gone at once, or waiting to be written out.
        first_place, end_place = count, count + items
        if step > 0:
            first_place, end_place = accesses.start[step - 1], accesses.start[step]
        for place in range(first_place, end_place):
            item = _item_at(table, accesses, place)
            if table.writes[accesses.entry[place]] if place < count else table.loaded[item]:
                clean[item] = choice.direct[place] if place < count else table.given[item]
                last = -1 if clean[item] or not table.linked else _leaving(table, accesses, choice, place)
                if last >= 0 and step < steps:
                    pending[waiting] = last
                    waiting += 1
            if leaves[place] >= 0 and not choice.direct[place] and clean[item] and transfer_of[place] < 0:
                _add(load, step, leaves[place], -table.size[item])
        # Items that should have left by now stay a step longer; items in use stay.
        left = 0
        for at in range(waiting):
            place = pending[at]
            item = _item_at(table, accesses, place)
            back = accesses.following[place]
            if back >= 0 and accesses.step[back] == step and not choice.direct[back]:
                _add(load, leaves[place], step, table.size[item])
                missing[back] = False
                place = -1 if table.writes[accesses.entry[back]] else _leaving(table, accesses, choice, back)
                if place < 0:
                    continue
            pending[left] = place
            left += 1
            if leaves[place] <= step < steps:
                _add(load, leaves[place], step + 1, table.size[item])
                leaves[place] = step + 1
        waiting = left
        if step == steps:
            for at in range(transfers):
                if not p_in[at] and p_end[at] >= steps:
                    now = max(now, p_done[at])
            waits[step] = now - begin
            break
        # What this step reads directly must have been written out; what does not fit must have left.
        urgent = accesses.start[step]
        while True:
            chosen = -1
            while urgent < accesses.start[step + 1]:
                item = table.item[accesses.entry[urgent]]
                if choice.direct[urgent] and table.reads[accesses.entry[urgent]]:
                    for at in range(waiting):
                        if pending[at] == accesses.before[urgent]:
                            chosen = at
                    if chosen < 0 and not clean[item]:  # it never left: it is written out, and stays
                        free = max(now, free) + table.out_cycles[item]
                        now = free
                        p_item[transfers], p_in[transfers], p_done[transfers] = item, False, free
                        p_start[transfers], p_end[transfers] = step, step
                        transfers += 1
                        clean[item] = True
                    for at in range(flights):
                        if p_item[in_flight[at]] == item and p_end[in_flight[at]] > step:
                            now = max(now, p_done[in_flight[at]])
                            _add(load, step, p_end[in_flight[at]], -table.size[p_item[in_flight[at]]])
                            p_end[in_flight[at]] = step
                if chosen >= 0:
                    break
                urgent += 1
            if chosen < 0 and load[step] <= capacity:
                break
            if chosen < 0:  # wait for the first of the transfers out, or else write out another item
                first = -1
                left = 0
                for at in range(flights):
                    sent = in_flight[at]
                    if p_end[sent] > step or accesses.step[p_place[sent]] >= step:
                        in_flight[left] = sent
                        left += 1
                        is_first = first < 0 or p_done[sent] < p_done[first]
                        if accesses.step[p_place[sent]] < step and is_first:
                            first = sent
                flights = left
                if first >= 0:
                    now = max(now, p_done[first])
                    _add(load, step, p_end[first], -table.size[p_item[first]])
                    p_end[first] = step
                    continue
                for at in range(waiting):
                    if accesses.step[pending[at]] < step and (
                        chosen < 0 or leaves[pending[at]] < leaves[pending[chosen]]
                    ):
                        chosen = at
                if chosen < 0:
                    break
            place = pending[chosen]
            waiting -= 1
            pending[chosen] = pending[waiting]
            item = _item_at(table, accesses, place)
            free = max(now, free) + table.out_cycles[item]
            now = free
            p_item[transfers], p_in[transfers], p_done[transfers] = item, False, free
            p_start[transfers], p_end[transfers] = step, step
            transfer_of[place] = transfers
            transfers += 1
            clean[item] = True
            _add(load, step, leaves[place], -table.size[item])
        # Wait for transfers inwards, then bring in what is still missing.
        for place in range(accesses.start[step], accesses.start[step + 1]):
            if missing[place] and transfer_of[place] >= 0:
                now = max(now, p_done[transfer_of[place]])
        for place in range(accesses.start[step], accesses.start[step + 1]):
            if not missing[place] or transfer_of[place] >= 0:
                continue
            item, sent = table.item[accesses.entry[place]], transfer_of[accesses.before[place]]
            if sent >= 0 and p_end[sent] > step:
                now = max(now, p_done[sent])
                _add(load, step, p_end[sent], -table.size[item])
                p_end[sent] = step
            free = max(now, free) + table.in_cycles[item]
            now = free
            p_item[transfers], p_in[transfers], p_done[transfers] = item, True, free
            p_start[transfers], p_end[transfers] = step, step
            transfer_of[place] = transfers
            transfers += 1
        # What returns to the slow memory begins to leave before the last step.
        left = 0
        for at in range(waiting):
            place = pending[at]
            item = _item_at(table, accesses, place)
            if step < steps - 1 or not table.home[item] or accesses.following[place] >= 0:
                pending[left] = place
                left += 1
                continue
            free = max(now, free) + table.out_cycles[item]
            p_item[transfers], p_in[transfers], p_done[transfers] = item, False, free
            p_start[transfers], p_end[transfers] = step, steps if table.overlapped else step
            if not table.overlapped:
                now = free
                _add(load, step, leaves[place], -table.size[item])
            transfer_of[place], p_place[transfers] = transfers, place
            transfers += 1
            clean[item] = True
        waiting = left
        waits[step] = now - begin
        # The step takes `spent` cycles, with its direct accesses.
        spent = table.cycles[sequence[step]]
        last = -1
        for place in range(accesses.start[step], accesses.start[step + 1]):
            if choice.direct[place] and table.operand[accesses.entry[place]] != last:
                last = table.operand[accesses.entry[place]]
                spent += table.direct[accesses.entry[place]]
        # Keep the engine busy while the step runs, by the most urgent transfer: out of the fast memory (at
        # `chosen` in `pending`), or into it (place `inward`).
        while table.overlapped and free - now < spent:
            best, chosen, inward = np.inf, -1, -1
            for at in range(waiting):
                place = pending[at]
                item = _item_at(table, accesses, place)
                back = accesses.following[place]
                if back >= 0 and not choice.direct[back]:
                    gap = accesses.clock[accesses.step[back]] - accesses.clock[step]
                    if gap < max(free - now, 0.0) + table.out_cycles[item] + table.in_cycles[item]:
                        continue  # if there is room it never leaves
                due = accesses.clock[leaves[place]] - table.out_cycles[item]
                if due < best:
                    best, chosen = due, at
            while next_want < wants:
                place = wanted[next_want]
                if accesses.step[place] > step and transfer_of[place] < 0:
                    break
                next_want += 1
            tried = 0
            at = next_want
            while at < wants and tried < _WINDOW and not (outs_first and chosen >= 0):
                place = wanted[at]
                at += 1
                before = accesses.before[place]
                used = before < count and accesses.step[before] >= step
                if transfer_of[place] >= 0 or used or not missing[place]:
                    continue
                tried += 1
                item, sent = table.item[accesses.entry[place]], transfer_of[before]
                leaves_now = sent >= 0 and (p_end[sent] > step or p_start[sent] == step)
                if not clean[item] or (step == 0 and table.loaded[item]) or leaves_now:
                    continue
                due = accesses.clock[accesses.step[place]] - table.in_cycles[item]
                if due < best and _fits(load, step, accesses.step[place], table.size[item], capacity):
                    best, inward = due, place
                    break
            if inward >= 0:
                item = table.item[accesses.entry[inward]]
                free = max(now, free) + table.in_cycles[item]
                p_item[transfers], p_in[transfers], p_done[transfers] = item, True, free
                p_start[transfers], p_end[transfers] = step, accesses.step[inward]
                transfer_of[inward] = transfers
                transfers += 1
                _add(load, step, accesses.step[inward], table.size[item])
            elif chosen >= 0:
                place = pending[chosen]
                waiting -= 1
                pending[chosen] = pending[waiting]
                item = _item_at(table, accesses, place)
                free = max(now, free) + table.out_cycles[item]
                end = step + 1
                late = now + spent - accesses.clock[step + 1]
                while end < steps and accesses.clock[end] + late < free:
                    end += 1
                p_item[transfers], p_in[transfers], p_done[transfers] = item, False, free
                p_start[transfers], p_end[transfers] = step, end
                transfer_of[place], p_place[transfers] = transfers, place
                in_flight[flights] = transfers
                flights += 1
                transfers += 1
                clean[item] = True
                gone = max(end, accesses.step[place] + 1)
                _add(load, gone, leaves[place], -table.size[item])
                _add(load, leaves[place], gone, table.size[item])
            else:
                break
        now += spent
    return Served(now, p_item[:transfers], p_in[:transfers], p_start[:transfers], p_end[:transfers], waits)
