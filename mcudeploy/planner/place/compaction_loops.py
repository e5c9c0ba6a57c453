"""The compiled inner loops of `compaction`: they place rectangles by birth and move others to make room.

`live`: the `count` live rectangles, by ascending offset `at`. Rectangles born at the current step have no
bytes yet, so moving them is free. Import this module lazily: numba is slow to load. It is one file, since
numba's cache does not see changes of other files.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Table = NDArray[np.int64]


class MoveTable(NamedTuple):
    """The rectangles, by number: births, deaths, bytes, alignments.

    They may move before the steps from `free` on, below `held`. Also the bytes of the arena, and the cost of
    a move: fixed, per piece that is copied at once, and per byte.
    """

    birth: Ints
    death: Ints
    size: Ints
    grain: Ints
    free: Ints
    held: Ints
    limit: int
    price: Floats


class Spare(NamedTuple):
    """Buffers for trials: live rectangles and their offsets, places and ranks, moves and costs."""

    live: Ints
    at: Ints
    place: Ints
    rank: Ints
    way: Table
    cost: Floats
    log: Table
    """An empty log: moves of trials are not recorded."""


DOWN, UP, JUMP = 0, 1, 2
"""Ways to make room for a rectangle: neighbours close up downwards, or upwards, or one moves elsewhere."""

BESIDE, BOTTOM, TOP, FULLEST = 1, 3, 4, 0
"""The preferred gap: next to what dies at about the same time, the lowest, the highest, or the smallest."""

_MEAN = 0.2
"""Weight of the mean cost over the placing rules, relative to the cost of the best of them."""

_STUCK = 1e9
"""Cost of a birth for which nothing makes room."""

_FAR = 1_000_000
"""A number of steps between two deaths that no plan exceeds; the factor ranks deaths before gaps."""

_MOST_MOVES = 4_096


@njit(cache=True)
def _alive(live: Ints, count: int, death: Ints, now: int) -> int:
    """Remove dead rectangles from `live` and return the number left."""
    left = 0
    for k in range(count):
        if death[live[k]] > now:
            live[left] = live[k]
            left += 1
    return left


@njit(cache=True)
def _put(u: int, live: Ints, count: int, at: Ints) -> None:
    """Insert rectangle u among the `count` of `live`."""
    while count > 0 and at[live[count - 1]] > at[u]:
        live[count] = live[count - 1]
        count -= 1
    live[count] = u


@njit(cache=True)
def _places(  # noqa: PLR0917
    u: int, live: Ints, count: int, at: Ints, scene: MoveTable, rule: int, place: Ints, rank: Ints
) -> int:
    """Return the number of places for rectangle u: both ends of each sufficient gap, with their rank."""
    death, size, grain = scene.death, scene.size, scene.grain
    found, low = 0, 0
    for k in range(count + 1):
        high = at[live[k]] if k < count else scene.limit
        first, last = -(-low // grain[u]) * grain[u], (high - size[u]) // grain[u] * grain[u]
        if first <= last:
            gap = high - low - size[u]
            below = abs(death[live[k - 1]] - death[u]) if k > 0 else _FAR
            above = abs(death[live[k]] - death[u]) if k < count else _FAR
            if gap == 0:
                below = above = min(below, above)
            for end in range(1 if first == last else 2):
                place[found] = first if end == 0 else last
                if rule == BESIDE:
                    rank[found] = (below if end == 0 else above) * _FAR + gap
                elif rule == BOTTOM:
                    rank[found] = place[found]
                elif rule == TOP:
                    rank[found] = -place[found]
                else:
                    rank[found] = gap
                found += 1
        if k < count:
            low = high + size[live[k]]
    return found


@njit(cache=True)
def _cost(v: int, to: int, at: Ints, scene: MoveTable, now: int) -> float:
    """Return the cost of moving rectangle v before step `now`; overlaps are copied in pieces of
    the distance.
    """
    way, size = abs(at[v] - to), scene.size[v]
    if way == 0 or scene.birth[v] == now:
        return 0.0
    pieces = 1 if way >= size else -(-size // way)
    return float(scene.price[0] + scene.price[1] * pieces + scene.price[2] * size)


@njit(cache=True)
def _moves(v: int, now: int, scene: MoveTable) -> bool:
    """Return whether rectangle v may move before step `now`; one that is born then has no bytes yet."""
    return bool((scene.free[v] <= now or scene.birth[v] == now) and now < scene.held[v])


@njit(cache=True)
def _ways(  # noqa: PLR0917
    u: int, live: Ints, count: int, at: Ints, scene: MoveTable, way: Table, cost: Floats
) -> int:
    """Return the number of ways to make room for u.

    A way is a kind, the first of `live`, the end, u's place, and a jump's target.
    """
    size, grain, limit = scene.size, scene.grain, scene.limit
    now, found = scene.birth[u], 0
    for a in range(count):
        v = live[a]
        below = at[live[a - 1]] + size[live[a - 1]] if a > 0 else 0
        above = at[live[a + 1]] if a + 1 < count else limit
        if at[v] > below:  # a gap below it: it and those above close up downwards
            end, total = below, 0.0
            for b in range(a, count):
                w = live[b]
                if not _moves(w, now, scene):
                    break
                to = -(-end // grain[w]) * grain[w]
                total += _cost(w, to, at, scene, now)
                end = to + size[w]
                place = -(-end // grain[u]) * grain[u]
                if place + size[u] <= (at[live[b + 1]] if b + 1 < count else limit):
                    way[found, 0], way[found, 1], way[found, 2], way[found, 3] = DOWN, a, b + 1, place
                    cost[found] = total
                    found += 1
                    break
        if at[v] + size[v] < above:  # a gap above it: it and those below close up upwards
            end, total = above, 0.0
            for b in range(a, -1, -1):
                w = live[b]
                if not _moves(w, now, scene):
                    break
                to = (end - size[w]) // grain[w] * grain[w]
                total += _cost(w, to, at, scene, now)
                end = to
                place = (end - size[u]) // grain[u] * grain[u]
                if place >= (at[live[b - 1]] + size[live[b - 1]] if b > 0 else 0):
                    way[found, 0], way[found, 1], way[found, 2], way[found, 3] = UP, b, a + 1, place
                    cost[found] = total
                    found += 1
                    break
        place = -(-below // grain[u]) * grain[u]
        if _moves(v, now, scene) and place + size[u] <= above:
            low, best, to = 0, limit + 1, -1
            for k in range(count + 1):
                high = at[live[k]] if k < count else limit
                first = -(-low // grain[v]) * grain[v]
                if k not in (a, a + 1) and first + size[v] <= high and high - low < best:
                    best, to = high - low, first
                if k < count:
                    low = high + size[live[k]]
            if to >= 0:
                way[found, 0], way[found, 1], way[found, 2], way[found, 3] = JUMP, a, a + 1, place
                way[found, 4] = to
                cost[found] = _cost(v, to, at, scene, now)
                found += 1
    return found


@njit(cache=True)
def _go(v: int, to: int, at: Ints, scene: MoveTable, now: int, log: Table, lines: int) -> int:  # noqa: PLR0917
    """Move rectangle v to another offset; return the new length of the log of moves."""
    if at[v] != to and scene.birth[v] != now and lines < len(log):
        log[lines, 0], log[lines, 1], log[lines, 2] = now, v, to
        lines += 1
    at[v] = to
    return lines


@njit(cache=True)
def _make_way(  # noqa: PLR0917
    way: Ints, live: Ints, count: int, at: Ints, scene: MoveTable, now: int, log: Table, lines: int
) -> int:
    """Make room as `way` says before step `now`; return the new length of the log of moves."""
    size, grain = scene.size, scene.grain
    first, end = way[1], way[2]
    if way[0] == DOWN:
        low = at[live[first - 1]] + size[live[first - 1]] if first > 0 else 0
        for k in range(first, end):
            v = live[k]
            low = -(-low // grain[v]) * grain[v]
            lines = _go(v, low, at, scene, now, log, lines)
            low += size[v]
    elif way[0] == UP:
        high = at[live[end]] if end < count else scene.limit
        for k in range(end - 1, first - 1, -1):
            v = live[k]
            high = (high - size[v]) // grain[v] * grain[v]
            lines = _go(v, high, at, scene, now, log, lines)
    else:
        v = live[first]
        lines = _go(v, way[4], at, scene, now, log, lines)
        for k in range(first, count - 1):
            live[k] = live[k + 1]
        _put(v, live, count - 1, at)
    return lines


@njit(cache=True)
def _copy(live: Ints, count: int, at: Ints, to_live: Ints, to_at: Ints) -> None:
    for k in range(count):
        to_live[k] = live[k]
        to_at[live[k]] = at[live[k]]


@njit(cache=True)
def _free_run(  # noqa: PLR0917
    order: Ints, start: int, live: Ints, count: int, at: Ints, scene: MoveTable, rule: int, place: Ints,
    rank: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Place births from `start` on by a rule until one finds no place; return its number, and the work."""
    work = 0
    for number in range(start, len(order)):
        u = order[number]
        count = _alive(live, count, scene.death, scene.birth[u])
        work += count + 1
        found = _places(u, live, count, at, scene, rule, place, rank)
        if found == 0:
            return number, work
        at[u] = place[np.argmin(rank[:found])]
        _put(u, live, count, at)
        count += 1
    return len(order), work


@njit(cache=True)
def _run(  # noqa: PLR0917
    order: Ints, start: int, stop: int, count: int, scene: MoveTable, rule: int, spare: Spare
) -> tuple[float, int]:
    """Return the cost and work of placing the births `start` to `stop` in the trial buffers by a rule.

    If a birth has no place, the cheapest way makes room.
    """
    live, at, place, rank, way, cost, log = spare
    work, total = 0, 0.0
    for number in range(start, stop):
        u = order[number]
        count = _alive(live, count, scene.death, scene.birth[u])
        work += count + 1
        found = _places(u, live, count, at, scene, rule, place, rank)
        if found > 0:
            at[u] = place[np.argmin(rank[:found])]
        else:
            found = _ways(u, live, count, at, scene, way, cost)
            work += 4 * count
            if found == 0:
                return total + _STUCK * (stop - number), work
            best = np.argmin(cost[:found])
            total += cost[best]
            _make_way(way[best], live, count, at, scene, scene.birth[u], log, 0)
            at[u] = way[best, 3]
        _put(u, live, count, at)
        count += 1
    return total, work


@njit(cache=True)
def _leap(  # noqa: PLR0917
    order: Ints, number: int, live: Ints, count: int, at: Ints, scene: MoveTable, rules: Ints, spare: Spare,
    leap_at: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Return how far the best rule places the births from `number` on without a move, and the work.

    `leap_at` receives their offsets.
    """
    furthest, work = number, 0
    for rule in rules:
        _copy(live, count, at, spare.live, spare.at)
        reached, done = _free_run(
            order, number, spare.live, count, spare.at, scene, rule, spare.place, spare.rank
        )
        work += done
        if reached > furthest:
            furthest = reached
            for k in range(number, reached):
                leap_at[order[k]] = spare.at[order[k]]
    return furthest, work


@njit(cache=True)
def _foreseen(  # noqa: PLR0917
    order: Ints, start: int, stop: int, live: Ints, count: int, at: Ints, scene: MoveTable, rules: Ints,
    spare: Spare,
) -> tuple[float, int]:  # fmt: skip
    """Return the cost of births `start` to `stop` by the best rule, plus a part of the mean; and the work."""
    after, mean, work = np.inf, 0.0, 0
    for rule in rules:
        _copy(live, count, at, spare.live, spare.at)
        spent, done = _run(order, start, stop, count, scene, rule, spare)
        work += done
        after, mean = min(after, spent), mean + spent / len(rules)
    return after + _MEAN * mean, work


@njit(cache=True)
def relocate(  # noqa: PLR0915, PLR0917  (one function of arrays, as numba wants them)
    scene: MoveTable, order: Ints, base: Ints, lookahead: int, rules: Ints, most: int
) -> tuple[float, int, Ints, Table]:
    """Place the births of `order` around the offsets of `base` (others: -1).

    Returns the cost of the moves, the work, the offsets at birth, and the moves: step, rectangle, new offset.
    While a rule places births without a move, and still does `lookahead` births later, the loop follows it.
    Otherwise it takes the place, or without one the way, after which the next `lookahead` births cost least
    by the rules; noise decides ties. The cost is infinite if nothing makes room or the work exceeds `most`.
    """
    np.random.seed(0)
    n, total, work, count, lines, number = len(base), 0.0, 0, 0, 0, 0
    at, live, born = base.copy(), np.empty(n + 1, np.int64), base.copy()
    for u in np.argsort(base):
        if base[u] >= 0:
            live[count] = u
            count += 1
    log, nothing = np.empty((_MOST_MOVES, 3), np.int64), np.empty((0, 3), np.int64)
    place, rank = np.empty(2 * n + 2, np.int64), np.empty(2 * n + 2, np.int64)
    way, cost = np.empty((3 * n + 3, 5), np.int64), np.empty(3 * n + 3, np.float64)
    spare = Spare(live.copy(), at.copy(), place.copy(), rank.copy(), way.copy(), cost.copy(), nothing)
    then, then_at, leap_at = live.copy(), at.copy(), at.copy()
    while number < len(order):
        furthest, done = _leap(order, number, live, count, at, scene, rules, spare, leap_at)
        work += done
        for k in range(number, furthest if furthest == len(order) else furthest - lookahead):
            u = order[k]
            count = _alive(live, count, scene.death, scene.birth[u])
            at[u] = born[u] = leap_at[u]
            _put(u, live, count, at)
            count += 1
            number = k + 1
        if number == len(order):
            break
        u = order[number]
        now, stop = scene.birth[u], min(len(order), number + 1 + lookahead)
        count = _alive(live, count, scene.death, now)
        found = _places(u, live, count, at, scene, FULLEST, place, rank)
        has_place = found > 0
        if not has_place:
            found = _ways(u, live, count, at, scene, way, cost)
        work += 5 * count
        best, least = -1, np.inf
        for k in range(found):
            _copy(live, count, at, then, then_at)
            if not has_place:
                _make_way(way[k], then, count, then_at, scene, now, nothing, 0)
            then_at[u] = place[k] if has_place else way[k, 3]
            _put(u, then, count, then_at)
            after, done = _foreseen(order, number + 1, stop, then, count + 1, then_at, scene, rules, spare)
            work += done
            score = (0.0 if has_place else cost[k]) + after + 1e-3 * np.random.random()
            if score < least:
                best, least = k, score
        if best < 0 or work > most or lines + count > _MOST_MOVES:
            return np.inf, work, born, nothing
        if not has_place:
            total += cost[best]
            lines = _make_way(way[best], live, count, at, scene, now, log, lines)
            for k in range(count):
                if scene.birth[live[k]] == now:
                    born[live[k]] = at[live[k]]
        born[u] = at[u] = place[best] if has_place else way[best, 3]
        _put(u, live, count, at)
        count += 1
        number += 1
    return total, work, born, log[:lines].copy()
