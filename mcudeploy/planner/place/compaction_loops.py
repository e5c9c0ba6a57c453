"""The inner loops of `compaction`: they place rectangles by birth and move others to make room.

`live`: the `count` live rectangles, by ascending offset `at`. Rectangles born at the current step have no
bytes yet, so moving them is free. Import this module lazily: numba is slow to load. It is one file, since
numba's cache does not see changes of other files. Tables are vectors, row after row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcudeploy.common.compiled import Floats, Ints, ascending, compiled, floats, ints, noise, seed_noise


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


class Occupancy(NamedTuple):
    """The live rectangles by ascending offset, the offset of every rectangle, and the moves in order.

    `counts`: the live rectangles, and the moves. A trial has no room for moves, so they are not recorded.
    """

    live: Ints
    at: Ints
    moves: Ints
    counts: Ints


class Openings(NamedTuple):
    """Buffers: places for a rectangle with their ranks, and ways to make room with their costs."""

    place: Ints
    rank: Ints
    way: Ints
    cost: Floats


class Pilot(NamedTuple):
    """The number of births that a choice foresees, the rules of these births, and the most work."""

    ahead: int
    rules: Ints
    most: int


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

_WAY_SIZE, _MOVE_SIZE = 5, 3
"""The numbers of a way (kind, first and end of `live`, place, target of a jump) and of a move."""


@compiled
def _bury(arena: Occupancy, scene: MoveTable, now: int) -> int:
    """Remove the rectangles that are dead at a step, and return the number of live ones."""
    left = 0
    for k in range(arena.counts[0]):
        if scene.death[arena.live[k]] > now:
            arena.live[left] = arena.live[k]
            left += 1
    arena.counts[0] = left
    return left


@compiled
def _put(rect: int, place: int, arena: Occupancy) -> None:
    """Insert a rectangle at an offset."""
    live, at, k = arena.live, arena.at, arena.counts[0]
    at[rect] = place
    while k > 0 and at[live[k - 1]] > place:
        live[k] = live[k - 1]
        k -= 1
    live[k] = rect
    arena.counts[0] += 1


@compiled
def _places(rect: int, arena: Occupancy, scene: MoveTable, rule: int, openings: Openings) -> int:
    """Return the number of places for a rectangle: both ends of each sufficient gap, with their rank."""
    live, at, count = arena.live, arena.at, arena.counts[0]
    death, size, grain = scene.death, scene.size, scene.grain
    place, rank = openings.place, openings.rank
    choices, low = 0, 0
    for k in range(count + 1):
        high = at[live[k]] if k < count else scene.limit
        first, last = -(-low // grain[rect]) * grain[rect], (high - size[rect]) // grain[rect] * grain[rect]
        if first <= last:
            gap = high - low - size[rect]
            below = abs(death[live[k - 1]] - death[rect]) if k > 0 else _FAR
            above = abs(death[live[k]] - death[rect]) if k < count else _FAR
            if gap == 0:
                below = above = min(below, above)
            for end in range(1 if first == last else 2):
                place[choices] = first if end == 0 else last
                if rule == BESIDE:
                    rank[choices] = (below if end == 0 else above) * _FAR + gap
                elif rule == BOTTOM:
                    rank[choices] = place[choices]
                elif rule == TOP:
                    rank[choices] = -place[choices]
                else:
                    rank[choices] = gap
                choices += 1
        if k < count:
            low = high + size[live[k]]
    return choices


@compiled
def _cost(mover: int, to: int, arena: Occupancy, scene: MoveTable, now: int) -> float:
    """Return the cost of a move before step `now`: if old and new place overlap, it has several pieces."""
    way, size = abs(arena.at[mover] - to), scene.size[mover]
    if way == 0 or scene.birth[mover] == now:
        return 0.0
    pieces = 1 if way >= size else -(-size // way)
    return float(scene.price[0] + scene.price[1] * pieces + scene.price[2] * size)


@compiled
def _may_move(mover: int, now: int, scene: MoveTable) -> bool:
    """Return whether a rectangle may move before step `now`; one that is born then has no bytes yet."""
    return bool((scene.free[mover] <= now or scene.birth[mover] == now) and now < scene.held[mover])


@compiled
def _add_way(openings: Openings, at: int, kind: int, way: tuple[int, int, int], cost: float) -> None:
    """Write a way and its cost. `way`: the first and the end of `live`, and the place."""
    first = at * _WAY_SIZE
    openings.way[first] = kind
    openings.way[first + 1], openings.way[first + 2], openings.way[first + 3] = way
    openings.cost[at] = cost


@compiled
def _way(openings: Openings, at: int) -> Ints:
    return openings.way[at * _WAY_SIZE : (at + 1) * _WAY_SIZE]


@compiled
def _least(values: Ints | Floats, count: int) -> int:
    """Return the place of the first least of some values."""
    best = 0
    for k in range(1, count):
        if values[k] < values[best]:
            best = k
    return best


@compiled
def _ways(rect: int, arena: Occupancy, scene: MoveTable, openings: Openings) -> int:
    """Return the number of ways to make room for a rectangle.

    A way is a kind, the first of `live`, the end, the place of `rect`, and a jump's target.
    """
    live, at, count = arena.live, arena.at, arena.counts[0]
    size, grain, limit = scene.size, scene.grain, scene.limit
    now, choices = scene.birth[rect], 0
    for origin in range(count):
        mover = live[origin]
        below = at[live[origin - 1]] + size[live[origin - 1]] if origin > 0 else 0
        above = at[live[origin + 1]] if origin + 1 < count else limit
        if at[mover] > below:  # a gap below it: it and those above close up downwards
            end, total = below, 0.0
            for reach in range(origin, count):
                moved = live[reach]
                if not _may_move(moved, now, scene):
                    break
                to = -(-end // grain[moved]) * grain[moved]
                total += _cost(moved, to, arena, scene, now)
                end = to + size[moved]
                place = -(-end // grain[rect]) * grain[rect]
                if place + size[rect] <= (at[live[reach + 1]] if reach + 1 < count else limit):
                    _add_way(openings, choices, DOWN, (origin, reach + 1, place), total)
                    choices += 1
                    break
        if at[mover] + size[mover] < above:  # a gap above it: it and those below close up upwards
            end, total = above, 0.0
            for reach in range(origin, -1, -1):
                moved = live[reach]
                if not _may_move(moved, now, scene):
                    break
                to = (end - size[moved]) // grain[moved] * grain[moved]
                total += _cost(moved, to, arena, scene, now)
                end = to
                place = (end - size[rect]) // grain[rect] * grain[rect]
                if place >= (at[live[reach - 1]] + size[live[reach - 1]] if reach > 0 else 0):
                    _add_way(openings, choices, UP, (reach, origin + 1, place), total)
                    choices += 1
                    break
        place = -(-below // grain[rect]) * grain[rect]
        if _may_move(mover, now, scene) and place + size[rect] <= above:
            low, best, to = 0, limit + 1, -1
            for k in range(count + 1):
                high = at[live[k]] if k < count else limit
                first = -(-low // grain[mover]) * grain[mover]
                if k not in (origin, origin + 1) and first + size[mover] <= high and high - low < best:
                    best, to = high - low, first
                if k < count:
                    low = high + size[live[k]]
            if to >= 0:
                cost = _cost(mover, to, arena, scene, now)
                _add_way(openings, choices, JUMP, (origin, origin + 1, place), cost)
                openings.way[choices * _WAY_SIZE + 4] = to
                choices += 1
    return choices


@compiled
def _move_to(mover: int, to: int, arena: Occupancy, scene: MoveTable, now: int) -> None:
    """Move a rectangle to another offset before step `now`."""
    line = arena.counts[1] * _MOVE_SIZE
    if arena.at[mover] != to and scene.birth[mover] != now and line < len(arena.moves):
        arena.moves[line], arena.moves[line + 1], arena.moves[line + 2] = now, mover, to
        arena.counts[1] += 1
    arena.at[mover] = to


@compiled
def _make_way(way: Ints, arena: Occupancy, scene: MoveTable, now: int) -> None:
    """Make room as `way` says before step `now`."""
    live, at, count = arena.live, arena.at, arena.counts[0]
    size, grain = scene.size, scene.grain
    first, end = way[1], way[2]
    if way[0] == DOWN:
        low = at[live[first - 1]] + size[live[first - 1]] if first > 0 else 0
        for k in range(first, end):
            mover = live[k]
            low = -(-low // grain[mover]) * grain[mover]
            _move_to(mover, low, arena, scene, now)
            low += size[mover]
    elif way[0] == UP:
        high = at[live[end]] if end < count else scene.limit
        for k in range(end - 1, first - 1, -1):
            mover = live[k]
            high = (high - size[mover]) // grain[mover] * grain[mover]
            _move_to(mover, high, arena, scene, now)
    else:
        mover = live[first]
        _move_to(mover, way[4], arena, scene, now)
        for k in range(first, count - 1):
            live[k] = live[k + 1]
        arena.counts[0] -= 1
        _put(mover, way[4], arena)


@compiled
def _copy(arena: Occupancy, to: Occupancy) -> None:
    to.counts[0] = arena.counts[0]
    for k in range(arena.counts[0]):
        to.live[k] = arena.live[k]
        to.at[arena.live[k]] = arena.at[arena.live[k]]


@compiled
def _free_run(
    births: Ints, arena: Occupancy, scene: MoveTable, rule: int, openings: Openings
) -> tuple[int, int]:
    """Place births by a rule until one finds no place; return how many have one, and the work."""
    work = 0
    for number, rect in enumerate(births):
        work += _bury(arena, scene, scene.birth[rect]) + 1
        choices = _places(rect, arena, scene, rule, openings)
        if choices == 0:
            return number, work
        _put(rect, openings.place[_least(openings.rank, choices)], arena)
    return len(births), work


@compiled
def _run(
    births: Ints, arena: Occupancy, scene: MoveTable, rule: int, openings: Openings
) -> tuple[float, int]:
    """Return the cost and work of placing births by a rule.

    If a birth has no place, the cheapest way makes room.
    """
    work, total = 0, 0.0
    for number, rect in enumerate(births):
        count = _bury(arena, scene, scene.birth[rect])
        work += count + 1
        choices = _places(rect, arena, scene, rule, openings)
        if choices > 0:
            _put(rect, openings.place[_least(openings.rank, choices)], arena)
            continue
        choices = _ways(rect, arena, scene, openings)
        work += 4 * count
        if choices == 0:
            return total + _STUCK * (len(births) - number), work
        best = _least(openings.cost, choices)
        total += openings.cost[best]
        _make_way(_way(openings, best), arena, scene, scene.birth[rect])
        _put(rect, openings.way[best * _WAY_SIZE + 3], arena)
    return total, work


@compiled
def _leap(
    births: Ints,
    arenas: tuple[Occupancy, Occupancy, Occupancy],
    scene: MoveTable,
    rules: Ints,
    openings: Openings,
) -> tuple[int, int]:
    """Return how far the best rule places births without a move, and the work.

    `arenas`: the one before, one for trials, and the one that receives the offsets.
    """
    arena, trial, furthest = arenas
    most, work = 0, 0
    for rule in rules:
        _copy(arena, trial)
        reached, done = _free_run(births, trial, scene, rule, openings)
        work += done
        if reached > most:
            most = reached
            for rect in births[:reached]:
                furthest.at[rect] = trial.at[rect]
    return most, work


@compiled
def _foreseen(
    births: Ints, arenas: tuple[Occupancy, Occupancy], scene: MoveTable, rules: Ints, openings: Openings
) -> tuple[float, int]:
    """Return the cost of births by the best rule, plus a part of the mean; and the work.

    `arenas`: the one before, and one for trials.
    """
    arena, trial = arenas
    after, mean, work = np.inf, 0.0, 0
    for rule in rules:
        _copy(arena, trial)
        spent, done = _run(births, trial, scene, rule, openings)
        work += done
        after, mean = min(after, spent), mean + spent / len(rules)
    return after + _MEAN * mean, work


@compiled
def _arena(base: Ints, most_moves: int) -> Occupancy:
    """Return an arena in which the rectangles have the offsets of `base`, and none is live."""
    return Occupancy(ints(len(base) + 1, 0), base.copy(), ints(most_moves * _MOVE_SIZE, 0), ints(2, 0))


@compiled
def _openings(n: int) -> Openings:
    ways = 3 * n + 3
    return Openings(ints(2 * n + 2, 0), ints(2 * n + 2, 0), ints(ways * _WAY_SIZE, 0), floats(ways, 0.0))


@compiled
def relocate(scene: MoveTable, order: Ints, base: Ints, pilot: Pilot) -> tuple[float, int, Ints, Ints]:
    """Place the births of `order` around the offsets of `base` (others: -1).

    Returns the cost of the moves, the work, the offsets at birth, and the moves: step, rectangle, new offset.
    The loop follows a rule as long as it places this birth, and those that the pilot foresees, without a
    move. Otherwise it takes a place, or makes room in a way: the one after which the next births cost least
    by the rules. Noise decides ties. The cost is infinite if nothing makes room, or if the work exceeds the
    pilot's.
    """
    seed_noise(0)
    total, work, number, born = 0.0, 0, 0, base.copy()
    arena, trial = _arena(base, _MOST_MOVES), _arena(base, 0)
    then, furthest = _arena(base, 0), _arena(base, 0)
    openings, tried = _openings(len(base)), _openings(len(base))
    for rect in ascending(base):
        if base[rect] >= 0:
            _put(rect, base[rect], arena)
    while number < len(order):
        reached, done = _leap(order[number:], (arena, trial, furthest), scene, pilot.rules, tried)
        work += done
        if number + reached < len(order):
            reached = max(0, reached - pilot.ahead)
        for rect in order[number : number + reached]:
            _bury(arena, scene, scene.birth[rect])
            born[rect] = furthest.at[rect]
            _put(rect, born[rect], arena)
            number += 1
        if number == len(order):
            break
        rect = order[number]
        now, later = scene.birth[rect], order[number + 1 : number + 1 + pilot.ahead]
        count = _bury(arena, scene, now)
        choices = _places(rect, arena, scene, FULLEST, openings)
        has_place = choices > 0
        if not has_place:
            choices = _ways(rect, arena, scene, openings)
        work += 5 * count
        best, least = -1, np.inf
        for k in range(choices):
            _copy(arena, then)
            if not has_place:
                _make_way(_way(openings, k), then, scene, now)
            _put(rect, openings.place[k] if has_place else openings.way[k * _WAY_SIZE + 3], then)
            after, done = _foreseen(later, (then, trial), scene, pilot.rules, tried)
            work += done
            score = (0.0 if has_place else openings.cost[k]) + after + 1e-3 * noise()
            if score < least:
                best, least = k, score
        if best < 0 or work > pilot.most or arena.counts[1] + count > _MOST_MOVES:
            return np.inf, work, born, trial.moves
        if not has_place:
            total += openings.cost[best]
            _make_way(_way(openings, best), arena, scene, now)
            for mover in arena.live[:count]:
                if scene.birth[mover] == now:
                    born[mover] = arena.at[mover]
        born[rect] = openings.place[best] if has_place else openings.way[best * _WAY_SIZE + 3]
        _put(rect, born[rect], arena)
        number += 1
    return total, work, born, arena.moves[: arena.counts[1] * _MOVE_SIZE].copy()
