"""The inner loops of `moving`, compiled: rectangles placed by birth, and others that move to make room.

`items`: births, deaths, sizes, alignments and kinds by rectangle; `meets`: who must not share bytes with
whom; `price`: what a move costs for itself, for each piece that is copied at once, and for each byte. `live`
are `count` rectangles by ascending offset `at`; those that are born at the step at hand have no bytes yet,
and another place costs them nothing.
Import only where it is needed: numba takes its time.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mcudeploy.layout.beam import Flags, Ints, alive, put, spots

Table = NDArray[np.int64]
Costs = NDArray[np.float64]

DOWN, UP, JUMP = 0, 1, 2
"""Ways to make room for a rectangle: neighbours close ranks downwards, or upwards, or one goes elsewhere."""

_MEAN = 0.2
"""What the mean of the quick ways counts for, beside the best of them."""

_MOST_MOVES = 4_096
"""More of them are no plan."""

_STUCK = 1e9
"""What a birth costs for which a quick way has no room."""

_INTS = "int64[::1]"
_TABLE = "int64[:, ::1]"
_FLOATS = "float64[::1]"
_FLAGS = "boolean[::1]"
_ITEMS = f"UniTuple({_INTS}, 5)"
_STATE = f"{_INTS}, int64, {_INTS}"


@njit(f"float64(int64, int64, {_INTS}, {_INTS}, {_FLOATS}, int64)", cache=True)
def _cost(v: int, to: int, at: Ints, size: Ints, price: Costs, born_now: int) -> float:  # noqa: PLR0917
    """Of a move of rectangle v: bytes that lie in both places are copied in pieces as long as the way."""
    way = abs(at[v] - to)
    if way == 0 or born_now:
        return 0.0
    pieces = 1 if way >= size[v] else -(-size[v] // way)
    return float(price[0] + price[1] * pieces + price[2] * size[v])


@njit(
    f"int64(int64, {_STATE}, {_ITEMS}, {_FLAGS}, int64, {_FLOATS}, {_TABLE}, {_FLOATS})",
    cache=True,
)
def _ways(  # noqa: PLR0917
    u: int, live: Ints, count: int, at: Ints, items: tuple[Ints, ...], movable: Flags, limit: int,
    price: Costs, way: Table, cost: Costs,
) -> int:  # fmt: skip
    """Ways to make room for u, and how many: kind, first of `live`, end, where u goes, where one jumps to."""
    birth, _, size, grain, _ = items
    now, found = birth[u], 0
    for a in range(count):
        v = live[a]
        below = at[live[a - 1]] + size[live[a - 1]] if a > 0 else 0
        above = at[live[a + 1]] if a + 1 < count else limit
        if at[v] > below:  # a gap under it: it and those above close ranks downwards
            end, total = below, 0.0
            for b in range(a, count):
                w = live[b]
                if not movable[w]:
                    break
                to = -(-end // grain[w]) * grain[w]
                total += _cost(w, to, at, size, price, birth[w] == now)
                end = to + size[w]
                place = -(-end // grain[u]) * grain[u]
                if place + size[u] <= (at[live[b + 1]] if b + 1 < count else limit):
                    way[found, 0], way[found, 1], way[found, 2], way[found, 3] = DOWN, a, b + 1, place
                    cost[found] = total
                    found += 1
                    break
        if at[v] + size[v] < above:  # a gap over it: it and those below close ranks upwards
            end, total = above, 0.0
            for b in range(a, -1, -1):
                w = live[b]
                if not movable[w]:
                    break
                to = (end - size[w]) // grain[w] * grain[w]
                total += _cost(w, to, at, size, price, birth[w] == now)
                end = to
                place = (end - size[u]) // grain[u] * grain[u]
                if place >= (at[live[b - 1]] + size[live[b - 1]] if b > 0 else 0):
                    way[found, 0], way[found, 1], way[found, 2], way[found, 3] = UP, b, a + 1, place
                    cost[found] = total
                    found += 1
                    break
        place = -(-below // grain[u]) * grain[u]
        if movable[v] and place + size[u] <= above:
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
                cost[found] = _cost(v, to, at, size, price, birth[v] == now)
                found += 1
    return found


@njit(f"int64(int64, int64, {_INTS}, {_ITEMS}, int64, {_TABLE}, int64)", cache=True)
def _go(v: int, to: int, at: Ints, items: tuple[Ints, ...], now: int, log: Table, lines: int) -> int:  # noqa: PLR0917
    """Rectangle v goes to another offset. The log has a line for each move; how many there are then."""
    birth = items[0]
    if at[v] != to and birth[v] != now and lines < len(log):
        log[lines, 0], log[lines, 1], log[lines, 2] = now, v, to
        lines += 1
    at[v] = to
    return lines


@njit(f"int64({_INTS}, {_STATE}, {_ITEMS}, int64, int64, {_TABLE}, int64)", cache=True)
def _make_way(  # noqa: PLR0917
    way: Ints, live: Ints, count: int, at: Ints, items: tuple[Ints, ...], limit: int, now: int, log: Table,
    lines: int,
) -> int:  # fmt: skip
    """Does what a way says before step `now`; how many lines the log has then."""
    _, _, size, grain, _ = items
    first, end = way[1], way[2]
    if way[0] == DOWN:
        low = at[live[first - 1]] + size[live[first - 1]] if first > 0 else 0
        for k in range(first, end):
            v = live[k]
            low = -(-low // grain[v]) * grain[v]
            lines = _go(v, low, at, items, now, log, lines)
            low += size[v]
    elif way[0] == UP:
        high = at[live[end]] if end < count else limit
        for k in range(end - 1, first - 1, -1):
            v = live[k]
            high = (high - size[v]) // grain[v] * grain[v]
            lines = _go(v, high, at, items, now, log, lines)
    else:
        v = live[first]
        lines = _go(v, way[4], at, items, now, log, lines)
        for k in range(first, count - 1):
            live[k] = live[k + 1]
        put(v, live, count - 1, at)
    return lines


@njit(
    f"UniTuple(float64, 2)({_INTS}, int64, int64, {_STATE}, {_ITEMS}, {_FLAGS}, boolean[:, ::1], int64,"
    f" {_FLOATS}, int64, {_INTS}, {_INTS}, {_TABLE}, {_FLOATS}, {_TABLE})",
    cache=True,
)
def _quick(  # noqa: PLR0917
    order: Ints, start: int, stop: int, live: Ints, count: int, at: Ints, items: tuple[Ints, ...],
    movable: Flags, meets: Flags, limit: int, price: Costs, taste: int, spot: Ints, worth: Ints, way: Table,
    cost: Costs, nothing: Table,
) -> tuple[float, float]:  # fmt: skip
    """What it costs to place the births from `start` to `stop`, each at the cheapest spot, or where the
    cheapest way makes room; and the work. Where none does it ends, and what is left costs a lot.
    """
    work, total = 0.0, 0.0
    for place in range(start, stop):
        u = order[place]
        count = alive(live, count, items[1], items[0][u])
        work += count + 1
        found = spots(u, live, count, at, items, meets, limit, taste, spot, worth)
        if found > 0:
            at[u] = spot[np.argmin(worth[:found])]
        else:
            found = _ways(u, live, count, at, items, movable, limit, price, way, cost)
            work += 4 * count
            if found == 0:
                return total + _STUCK * (stop - place), work
            best = np.argmin(cost[:found])
            total += cost[best]
            _make_way(way[best], live, count, at, items, limit, items[0][u], nothing, 0)
            at[u] = way[best, 3]
        put(u, live, count, at)
        count += 1
    return total, work


@njit(
    f"Tuple((float64, int64, {_INTS}, {_TABLE}))({_ITEMS}, {_FLAGS}, boolean[:, ::1], {_INTS}, {_INTS},"
    f" int64, {_FLOATS}, int64, {_INTS}, float64)",
    cache=True,
)
def go_on(  # noqa: PLR0917
    items: tuple[Ints, ...], movable: Flags, meets: Flags, order: Ints, base: Ints, limit: int, price: Costs,
    sight: int, tastes: Ints, most: float,
) -> tuple[float, int, Ints, Table]:  # fmt: skip
    """Places the births of `order` around what `base` has offsets for: what the moves cost, the work, the
    offsets at birth, and the moves: step, rectangle, new offset.

    Of all spots, or ways where there is none, that is taken after which the next `sight` births cost least
    by the quick ways; their mean and some noise decide between equals. The cost is infinite where nothing
    makes room, the work is more than `most`, or there are too many moves.
    """
    np.random.seed(0)
    n, total, work, count, lines = len(base), 0.0, 0.0, 0, 0
    at, live, born = base.copy(), np.empty(n, np.int64), base.copy()
    for u in np.argsort(base):
        if base[u] >= 0:
            live[count] = u
            count += 1
    log, nothing = np.empty((_MOST_MOVES, 3), np.int64), np.empty((0, 3), np.int64)
    spot, worth = np.empty(2 * n + 2, np.int64), np.empty(2 * n + 2, np.int64)
    way, cost = np.empty((3 * n + 3, 5), np.int64), np.empty(3 * n + 3, np.float64)
    quick_spot, quick_way, quick_cost = spot.copy(), way.copy(), cost.copy()
    then, then_at = live.copy(), at.copy()
    for place in range(len(order)):
        u = order[place]
        now, stop = items[0][u], min(len(order), place + 1 + sight)
        count = alive(live, count, items[1], now)
        found = spots(u, live, count, at, items, meets, limit, 0, spot, worth)
        has_room = found > 0
        if not has_room:
            found = _ways(u, live, count, at, items, movable, limit, price, way, cost)
        work += 5 * count
        best, least = -1, np.inf
        for k in range(found):
            then[:count], then_at[:] = live[:count], at
            if not has_room:
                _make_way(way[k], then, count, then_at, items, limit, now, nothing, 0)
            then_at[u] = spot[k] if has_room else way[k, 3]
            put(u, then, count, then_at)
            after, mean = np.inf, 0.0
            for taste in tastes:
                quick, quick_at = then.copy(), then_at.copy()
                spent, done = _quick(
                    order, place + 1, stop, quick, count + 1, quick_at, items, movable, meets, limit, price,
                    taste, quick_spot, worth, quick_way, quick_cost, nothing,
                )  # fmt: skip
                work += done
                after, mean = min(after, spent), mean + spent / len(tastes)
            score = (0.0 if has_room else cost[k]) + after + _MEAN * mean + 1e-3 * np.random.random()
            if score < least:
                best, least = k, score
        if best < 0 or work > most or (not has_room and lines + count > _MOST_MOVES):
            return np.inf, int(work), born, nothing
        if not has_room:
            total += cost[best]
            lines = _make_way(way[best], live, count, at, items, limit, now, log, lines)
            for k in range(count):
                if items[0][live[k]] == now:
                    born[live[k]] = at[live[k]]
        born[u] = at[u] = spot[best] if has_room else way[best, 3]
        put(u, live, count, at)
        count += 1
    return total, int(work), born, log[:lines].copy()
