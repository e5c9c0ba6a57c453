"""The inner loops of sweeps, compiled: quick ways of placing rectangles by birth, and beams that they judge.

`items`: births, deaths, sizes, alignments and kinds by rectangle; `meets`: who must not share bytes with
whom.
Import only where it is needed: numba takes its time.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_ALL = 0.3
"""What the mean of the quick ways counts for, beside the best of them."""

_MORE = 1_000_000
_SOME = 50
"""What a step between two deaths counts for, against a byte of a gap, in the tastes 1 and 2."""

_INTS = "int64[::1]"
_TABLE = "int64[:, ::1]"
_PLACED = f"{_INTS}, int64, {_INTS}"
_ITEMS = f"UniTuple({_INTS}, 5), boolean[:, ::1]"


@njit(f"int64(int64, {_PLACED}, {_ITEMS}, int64, int64, {_INTS}, {_INTS})", cache=True)
def spots(  # noqa: PLR0917
    u: int, live: Ints, count: int, offset: Ints, items: tuple[Ints, ...], meets: Flags, limit: int,
    taste: int, spot: Ints, price: Ints,
) -> int:  # fmt: skip
    """Both ends of each gap that has room for rectangle u, and their prices in this taste; how many there
    are. `live` are `count` placed rectangles by ascending offset.

    What a taste likes best: 0 the smallest gap, 1 beside what dies at about the same time, 2 something of
    both, 3 the lowest, 4 the highest, 5 the lowest, but the highest for what lives for one step.
    """
    birth, death, size, grain, _ = items
    found, low, under = 0, 0, -1
    for k in range(count + 1):
        high, over = limit, -1
        if k < count:
            over = live[k]
            if not meets[u, over]:
                continue
            high = offset[over]
        gap = high - low - size[u]
        first, last = -(-low // grain[u]) * grain[u], (high - size[u]) // grain[u] * grain[u]
        if gap >= 0 and first <= last:
            below = abs(death[under] - death[u]) if under >= 0 else _MORE
            above = abs(death[over] - death[u]) if over >= 0 else _MORE
            if gap == 0:
                below = above = min(below, above)
            for end in range(1 if first == last else 2):
                at, apart = (first, below) if end == 0 else (last, above)
                spot[found] = at
                if taste == 0:
                    price[found] = gap
                elif taste == 1:
                    price[found] = apart * _MORE + gap
                elif taste == 2:
                    price[found] = apart * _SOME + gap
                elif taste == 4 or (taste == 5 and death[u] - birth[u] == 1):
                    price[found] = -at
                else:
                    price[found] = at
                found += 1
        if k < count and high + size[over] > low:
            low, under = high + size[over], over
    return found


@njit(f"int64({_INTS}, int64, {_INTS}, int64)", cache=True)
def alive(live: Ints, count: int, death: Ints, now: int) -> int:
    """Takes the dead out of `live`; how many are left."""
    left = 0
    for k in range(count):
        if death[live[k]] > now:
            live[left] = live[k]
            left += 1
    return left


@njit(f"void(int64, {_PLACED})", cache=True)
def put(u: int, live: Ints, count: int, offset: Ints) -> None:
    """Puts rectangle u among the `count` of `live`, by its offset."""
    while count > 0 and offset[live[count - 1]] > offset[u]:
        live[count] = live[count - 1]
        count -= 1
    live[count] = u


@njit(f"UniTuple(int64, 2)({_INTS}, int64, {_PLACED}, {_ITEMS}, int64, int64, {_INTS}, {_INTS})", cache=True)
def _quick(  # noqa: PLR0917
    order: Ints, start: int, live: Ints, count: int, offset: Ints, items: tuple[Ints, ...], meets: Flags,
    limit: int, taste: int, spot: Ints, price: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Places what is born from `start` on, each at the cheapest spot; how many of the order have a place
    then, and the work.
    """
    work = 0
    for place in range(start, len(order)):
        u = order[place]
        count = alive(live, count, items[1], items[0][u])
        work += count + 1
        found = spots(u, live, count, offset, items, meets, limit, taste, spot, price)
        if found == 0:
            return place, work
        offset[u] = spot[np.argmin(price[:found])]
        put(u, live, count, offset)
        count += 1
    return len(order), work


@njit(f"int64({_INTS}, int64, {_INTS}, {_INTS})", cache=True)
def _key(live: Ints, count: int, offset: Ints, kind: Ints) -> int:
    """Of a state: nearly always another one for another future."""
    key = np.int64(count)
    for k in range(count):
        key = (key ^ (offset[live[k]] * 1_000_003 + kind[live[k]])) * 1_099_511_628_211
        key ^= key >> 29
    return int(key)


@njit(
    f"Tuple(({_TABLE}, int64))(int64, {_TABLE}, {_INTS}, int64, {_TABLE}, {_ITEMS}, int64, {_INTS}, {_INTS})",
    cache=True,
)
def _children(  # noqa: PLR0917
    u: int, lives: NDArray[np.int64], counts: Ints, states: int, offsets: NDArray[np.int64],
    items: tuple[Ints, ...], meets: Flags, limit: int, spot: Ints, price: Ints,
) -> tuple[NDArray[np.int64], int]:  # fmt: skip
    """State and spot of all choices for rectangle u, one of those with the same future; and the work."""
    room, work = 0, 0
    for b in range(states):
        counts[b] = alive(lives[b], counts[b], items[1], items[0][u])
        work += counts[b] + 1
    children, keys = np.empty((2 * work, 2), np.int64), np.empty(2 * work, np.int64)
    live = np.empty(lives.shape[1], np.int64)
    for b in range(states):
        found = spots(u, lives[b], counts[b], offsets[b], items, meets, limit, 0, spot, price)
        for k in range(found):
            live[: counts[b]], offsets[b, u] = lives[b, : counts[b]], spot[k]
            put(u, live, counts[b], offsets[b])
            keys[room] = _key(live, counts[b] + 1, offsets[b], items[4])
            children[room] = b, spot[k]
            room += 1
    ranked, unique = np.argsort(keys[:room], kind="mergesort"), 0
    for k in range(room):
        if k == 0 or keys[ranked[k]] != keys[ranked[k - 1]]:
            ranked[unique] = ranked[k]
            unique += 1
    return children[ranked[:unique]], work


@njit(
    f"Tuple((int64, int64, {_INTS}))({_ITEMS}, {_INTS}, {_INTS}{4 * ', int64'}, {_INTS}, int64, int64)",
    cache=True,
)
def go_on(  # noqa: PLR0917
    items: tuple[Ints, ...], meets: Flags, order: Ints, base: Ints, start: int, beyond: int, limit: int,
    width: int, tastes: Ints, most: int, seed: int,
) -> tuple[int, int, Ints]:  # fmt: skip
    """From `base`, which places the first `beyond` of the order, without those from `start` on: how many have
    a place in the best that was found, the work, and its offsets. It ends where all have one, or no state is
    left, or the work is more than `most`.
    """
    np.random.seed(seed)
    n = len(base)
    offsets, lives = np.empty((width, n), np.int64), np.empty((width, n), np.int64)
    counts, old_counts = np.zeros(width, np.int64), np.zeros(width, np.int64)
    old_offsets, old_lives = offsets.copy(), lives.copy()
    offsets[0] = base
    offsets[0][order[start:]] = -1
    for u in np.argsort(offsets[0]):
        if offsets[0, u] >= 0:
            lives[0, counts[0]] = u
            counts[0] += 1
    best, best_offset, states, work = beyond, base.copy(), 1, 0
    spot, price = np.empty(2 * n + 2, np.int64), np.empty(2 * n + 2, np.int64)
    live, offset = np.empty(n, np.int64), np.empty(n, np.int64)
    for place in range(start, len(order)):
        u = order[place]
        children, done = _children(u, lives, counts, states, offsets, items, meets, limit, spot, price)
        work += done
        if len(children) == 0 or work > most:
            return best, work, best_offset
        score = np.empty(len(children), np.float64)
        for c in range(len(children)):
            b, at = children[c]
            furthest, total = 0, 0
            for taste in tastes:
                live[: counts[b]], offset[:] = lives[b, : counts[b]], offsets[b]
                offset[u] = at
                put(u, live, counts[b], offset)
                placed, done = _quick(
                    order, place + 1, live, counts[b] + 1, offset, items, meets, limit, taste, spot, price
                )
                work += done
                if placed > best:
                    best, best_offset[:] = placed, offset
                furthest, total = max(furthest, placed), total + placed
            if best == len(order):
                return best, work, best_offset
            score[c] = furthest + _ALL * total / len(tastes) + 0.01 * np.random.random()
        ranked = np.argsort(-score)
        offsets, old_offsets = old_offsets, offsets
        lives, old_lives = old_lives, lives
        old_counts[:] = counts
        states = min(width, len(children))
        for k in range(states):
            b, at = children[ranked[k]]
            offsets[k], lives[k, : old_counts[b]] = old_offsets[b], old_lives[b, : old_counts[b]]
            offsets[k, u] = at
            put(u, lives[k], old_counts[b], offsets[k])
            counts[k] = old_counts[b] + 1
    return best, work, best_offset
