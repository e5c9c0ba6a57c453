"""Minimum cuts that force steps to one side, compiled: what else is sure while a step runs within a bound.

The network is that of `bounds.Network`, but what is known of the order makes it smaller: a buffer that one
step is sure to begin has no node of its own, nor has one that one step is sure to end. A cut with one step
more forced begins with the flow that was there without it. What a search from the forced nodes reached in
vain leads nowhere later either, so no node of it is looked at again (augmenting paths after Ford and
Fulkerson, shortest first after Edmonds and Karp).

Sides: 0 for what is done, 1 for what is left. All that calls each other is in one file: numba keeps compiled
code as long as its own file is the same, and sees no change in another.

Import only where it is needed: numba takes its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mcudeploy.scheduler.problem import Problem

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Bits = NDArray[np.uint64]

_ENDLESS = 1 << 60
_ONE = np.uint64(1)


class Given(NamedTuple):
    """A problem: which steps touch a buffer and which buffers a step touches, as rows one behind the other;
    by buffer its size, whether it is there before, stays, counts by a cut, or is there for one step alone;
    by step bytes that are there besides.
    """

    touched_at: Ints
    touched: Ints
    touches_at: Ints
    touches: Ints
    size: Ints
    initial: Flags
    kept: Flags
    inner: Flags
    alone: Flags
    fixed: Ints

    @classmethod
    def of(cls, problem: Problem) -> Given:
        """The arrays of a problem."""
        buffers = problem.buffers
        always = [b.kept and (b.initial or not b.touched_by) for b in buffers]
        alone = [len(b.touched_by) == 1 and not (b.initial or b.kept) for b in buffers]
        inner = [
            bool(b.touched_by) and not one and not each
            for b, one, each in zip(buffers, alone, always, strict=True)
        ]
        base = sum(b.size_bytes for b, each in zip(buffers, always, strict=True) if each)
        return cls(
            *rows([buffer.touched_by for buffer in buffers]),
            *rows(problem.touches),
            np.array([buffer.size_bytes for buffer in buffers], np.int64),
            np.array([buffer.initial for buffer in buffers], np.bool_),
            np.array([buffer.kept for buffer in buffers], np.bool_),
            np.array(inner, np.bool_),
            np.array(alone, np.bool_),
            np.array([base - problem.most_saved(step) for step in range(problem.steps)], np.int64),
        )


class Known(NamedTuple):
    """For each step, as a row of bits, the steps that come before it and those that come behind it."""

    before: Bits
    behind: Bits


class Arcs(NamedTuple):
    """Arcs by the node they leave, each with its opposite `back`. Nodes: the steps, then one for the begin of
    each buffer and one for its end; `begun` and `left` are the nodes that stand for these, -1 if none does.
    """

    at: Ints
    head: Ints
    room: Ints
    back: Ints
    begun: Ints
    left: Ints


def rows(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Where each list begins, and all of them in a row."""
    begin = np.cumsum([0, *map(len, lists)])
    return begin.astype(np.int64), np.array([one for row in lists for one in row], np.int64)


@njit(cache=True)
def _has(bits: Bits, row: int, column: int) -> bool:
    return bool(bits[row, column >> 6] >> np.uint64(column & 63) & _ONE)


@njit(cache=True)
def is_before(known: Known, first: int, second: int) -> bool:
    """Whether it is known that one step comes before another."""
    return _has(known.before, second, first)


@njit(cache=True)
def add_pair(known: Known, first: int, second: int) -> None:
    """`first` comes before `second`, and so does all before the one before all behind the other."""
    ahead, after = known.before[first].copy(), known.behind[second].copy()
    ahead[first >> 6] |= _ONE << np.uint64(first & 63)
    after[second >> 6] |= _ONE << np.uint64(second & 63)
    for step in range(len(known.before)):
        bit = np.uint64(step & 63)
        if after[step >> 6] >> bit & _ONE:
            known.before[step] |= ahead
        if ahead[step >> 6] >> bit & _ONE:
            known.behind[step] |= after


@njit(cache=True)
def needed_pairs(known: Known, first: Ints, second: Ints) -> Flags:
    """Which pairs do not follow from others by a step in between."""
    needed = np.ones(len(first), np.bool_)
    for pair in range(len(first)):
        needed[pair] = not np.any(known.behind[first[pair]] & known.before[second[pair]])
    return needed


@njit(cache=True)
def arcs_of(given: Given, known: Known, first: Ints, second: Ints) -> Arcs:
    """The network; `first` and `second`: the pairs of steps in this order that all others follow from."""
    steps, buffers = len(known.before), len(given.size)
    most = len(first) + buffers + 2 * len(given.touched)
    tails, heads, rooms = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    count = len(first)
    tails[:count], heads[:count], rooms[:count] = second, first, _ENDLESS
    begun, left = np.full(buffers, -1), np.full(buffers, -1)
    for b in range(buffers):
        if not given.inner[b]:
            continue
        touched = given.touched[given.touched_at[b] : given.touched_at[b + 1]]
        earliest, latest = np.ones(len(touched), np.bool_), np.ones(len(touched), np.bool_)
        for k in range(len(touched)):
            for other in touched:
                earliest[k] &= not _has(known.before, touched[k], other)
                latest[k] &= not _has(known.behind, touched[k], other)
        one_begins = not given.initial[b] and earliest.sum() == 1
        one_ends = not given.kept[b] and latest.sum() == 1
        begun[b] = touched[np.argmax(earliest)] if one_begins else steps + b
        left[b] = touched[np.argmax(latest)] if one_ends else steps + buffers + b
        tails[count], heads[count], rooms[count] = begun[b], left[b], given.size[b]
        count += 1
        for k in range(len(touched)):
            if earliest[k] and not one_begins:
                tails[count], heads[count], rooms[count] = touched[k], begun[b], _ENDLESS
                count += 1
            if latest[k] and not one_ends:
                tails[count], heads[count], rooms[count] = left[b], touched[k], _ENDLESS
                count += 1
    at = np.zeros(steps + 2 * buffers + 1, np.int64)
    for arc in range(count):
        at[tails[arc] + 1] += 1
        at[heads[arc] + 1] += 1
    at = np.cumsum(at)
    free = at.copy()
    head, room, back = (
        np.empty(2 * count, np.int64),
        np.zeros(2 * count, np.int64),
        np.empty(2 * count, np.int64),
    )
    for arc in range(count):
        one, other = free[tails[arc]], free[heads[arc]]
        free[tails[arc]] += 1
        free[heads[arc]] += 1
        head[one], head[other], room[one] = heads[arc], tails[arc], rooms[arc]
        back[one], back[other] = other, one
    return Arcs(at, head, room, back, begun, left)


@njit(cache=True)
def _press(arcs: Arcs, room: Ints, node: int, side: int, closed: Flags, goals: Flags, most: int) -> int:  # noqa: PLR0917
    """Flow from a node to `goals`, for side 1 from them to it: all there is, or more than `most`.

    `closed`: nodes from which no goal is reached; those found join them.
    """
    parent, queue = np.empty(len(closed), np.int64), np.empty(len(closed), np.int64)
    flow = 0
    while not closed[node]:
        queue[0], found, begin, end = node, -1, 0, 1
        closed[node] = True
        while begin < end and found < 0:
            here = queue[begin]
            begin += 1
            for arc in range(arcs.at[here], arcs.at[here + 1]):
                there = arcs.head[arc]
                if closed[there] or room[arcs.back[arc] if side else arc] == 0:
                    continue
                parent[there] = arc
                if goals[there]:
                    found = there
                    break
                closed[there] = True
                queue[end] = there
                end += 1
        if found < 0:
            break
        closed[queue[:end]] = False
        amount, here = _ENDLESS, found
        while here != node:
            arc = parent[here]
            amount = min(amount, room[arcs.back[arc] if side else arc])
            here = arcs.head[arcs.back[arc]]
        here = found
        while here != node:
            arc = parent[here]
            here = arcs.head[arcs.back[arc]]
            room[arc] += amount if side else -amount
            room[arcs.back[arc]] += -amount if side else amount
        flow += amount
        if flow > most:
            break
    return flow


@njit(cache=True)
def _reach(arcs: Arcs, room: Ints, side: int, ends: Flags, reached: Flags) -> None:
    """Into `reached` the nodes where more could flow to from `ends`, for side 1 from where it could."""
    queue = np.empty(len(ends), np.int64)
    reached[:] = ends
    begin, end = 0, 0
    for node in range(len(ends)):
        if ends[node]:
            queue[end] = node
            end += 1
    while begin < end:
        here = queue[begin]
        begin += 1
        for arc in range(arcs.at[here], arcs.at[here + 1]):
            there = arcs.head[arc]
            if not reached[there] and room[arcs.back[arc] if side else arc] > 0:
                reached[there] = True
                queue[end] = there
                end += 1


@njit(cache=True)
def _cut(  # noqa: PLR0917
    given: Given, known: Known, arcs: Arcs, step: int, room: Ints, ends: Flags, closed: Flags, bound: int
) -> int:
    """The least bytes while a step runs, or some above the bound; `room` is what the flow leaves then, `ends`
    for either side what is sure to be on it, and `closed` what is on it in the smallest set.
    """
    need = int(given.fixed[step])
    for b in range(len(given.size)):
        if given.inner[b]:
            ends[0, arcs.begun[b]] |= given.initial[b]
            ends[1, arcs.left[b]] |= given.kept[b]
    for k in range(given.touches_at[step], given.touches_at[step + 1]):
        b = given.touches[k]
        if given.alone[b] or arcs.begun[b] == step:
            need += given.size[b]
        elif given.inner[b]:
            ends[0, arcs.begun[b]] = True
    for other in range(len(known.before)):
        ends[0, other] |= _has(known.before, step, other)
        ends[1, other] |= other == step or _has(known.behind, step, other)
    for node in range(len(ends[0])):
        if ends[0, node] and need <= bound:
            need += _press(arcs, room, node, 0, closed[0], ends[1], bound - need)
    if need <= bound:
        _reach(arcs, room, 1, ends[1], closed[1])
    return need


@njit(cache=True)
def needs(given: Given, known: Known, arcs: Arcs, steps: Ints) -> Ints:
    """For each of some steps the least bytes in memory while it runs, with what is known."""
    found = np.empty(len(steps), np.int64)
    for place in range(len(steps)):
        ends, closed = np.zeros((2, len(arcs.at) - 1), np.bool_), np.zeros((2, len(arcs.at) - 1), np.bool_)
        room = arcs.room.copy()
        found[place] = _cut(given, known, arcs, steps[place], room, ends, closed, _ENDLESS)
    return found


@njit(cache=True)
def _note(seen: Flags, done: Flags, left: Flags) -> None:
    """Steps that are on a side in the smallest set of done steps, or in the largest, are seen there."""
    for step in range(len(seen[0])):
        seen[0, step] |= done[step] or not left[step]
        seen[1, step] |= left[step] or not done[step]


@njit(cache=True)
def probe(  # noqa: PLR0917
    given: Given, known: Known, arcs: Arcs, step: int, bound: int, sets: Flags, count: int
) -> tuple[bool, int, int, Ints]:
    """Try every other step before and behind this one.

    `sets`: `count` sets of done steps with which it can run within the bound; found ones are added while
    there is room. Returns whether it can run at all, how many sets there are then, how many cuts were made,
    and the pairs learned, which are also added to what is known.
    """
    steps, nodes = len(known.before), len(arcs.at) - 1
    pairs, learned, cuts = np.empty((steps, 2), np.int64), 0, 1
    room, ends, closed = arcs.room.copy(), np.zeros((2, nodes), np.bool_), np.zeros((2, nodes), np.bool_)
    need = _cut(given, known, arcs, step, room, ends, closed, bound)
    if need > bound:
        return False, count, cuts, pairs[:0]
    seen = np.zeros((2, steps), np.bool_)
    _note(seen, closed[0], closed[1])
    for number in range(count):
        _note(seen, sets[number], ~sets[number])
    tried, then = room.copy(), closed.copy()
    for other in range(steps):
        for side in range(2):
            if other == step or _has(known.before, step, other) or _has(known.behind, step, other):
                break
            if seen[side, other]:
                continue
            cuts += 1
            tried[:], then[:] = room, closed
            more = _press(arcs, tried, other, side, then[side], ends[1 - side], bound - need)
            if need + more <= bound:
                _reach(arcs, tried, 1 - side, ends[1 - side], then[1 - side])
                _note(seen, then[0], then[1])
                if count + 2 <= len(sets):
                    sets[count], sets[count + 1] = then[0, :steps], ~then[1, :steps]
                    count += 2
                continue
            first, second = (other, step) if side else (step, other)
            add_pair(known, first, second)
            pairs[learned] = first, second
            learned += 1
            # From now on the other step is sure to be on the other side.
            ends[1 - side, other] = True
            need += _press(arcs, room, other, 1 - side, closed[1 - side], ends[side], bound - need)
            if need > bound:
                return False, count, cuts, pairs[:learned]
            _reach(arcs, room, side, ends[side], closed[side])
            kept = 0
            seen[:] = False
            _note(seen, closed[0], closed[1])
            for number in range(count):
                if sets[number, other] == (side == 1):
                    sets[kept] = sets[number]
                    kept += 1
                    _note(seen, sets[number], ~sets[number])
            count = kept
            break
    return True, count, cuts, pairs[:learned]


@njit(cache=True)
def needs_with(given: Given, known: Known, arcs: Arcs, step: int, bound: int) -> Ints:
    """The least bytes while a step runs with each other step done (row 0), and left (row 1), or some above
    the bound; 0 where that is known already, and everywhere if the step cannot run within the bound.
    """
    steps, nodes = len(known.before), len(arcs.at) - 1
    found = np.zeros((2, steps), np.int64)
    room, ends, closed = arcs.room.copy(), np.zeros((2, nodes), np.bool_), np.zeros((2, nodes), np.bool_)
    need = _cut(given, known, arcs, step, room, ends, closed, bound)
    tried, then = room.copy(), closed.copy()
    for other in range(steps) if need <= bound else range(0):
        if other == step or _has(known.before, step, other) or _has(known.behind, step, other):
            continue
        for side in range(2):
            tried[:], then[:] = room, closed
            found[side, other] = need + _press(
                arcs, tried, other, side, then[side], ends[1 - side], bound - need
            )
    return found


@njit(cache=True)
def still_good(known: Known, step: int, sets: Flags, count: int, since: Ints) -> int:
    """How many sets respect the pairs learned `since` and what must come before and behind; they go first."""
    kept = 0
    for number in range(count):
        one = sets[number]
        good = True
        for pair in range(len(since)):
            if one[since[pair, 1]] and not one[since[pair, 0]]:
                good = False
                break
        for other in range(len(one)) if good else range(0):
            if _has(known.behind if one[other] else known.before, step, other):
                good = False
                break
        if good:
            sets[kept] = one
            kept += 1
    return kept
