"""Offsets by a depth-first search over canonical placements, with an inner loop for `compiled`.

Method: the idea of MiniMalloc (Moffitt, ASPLOS'23). Every packing can be pushed down until each rectangle
rests on another or on the ground, and then described in the order of offsets. The search therefore places
rectangles by ascending offset, each on the skyline of its sections (the steps between two changes of the live
set). It prunes three dead ends: a section whose floor plus remaining bytes exceeds its capacity, a hole into
which another rectangle would fit completely, and equal rectangles in another order. Sections that no unplaced
rectangle crosses split the rest into two independent problems, each with its own order: what was crowded at
first may not be any more. The order among equals matters, so the search tries several orders, also with
noise, each for a growing number of nodes.

Stacks (inputs that die row by row, the lowest first) hang from the top: they lower the capacity of sections.
This is a heuristic, so with stacks nothing is proven.

Import this module lazily: numba is slow to load.
"""

from __future__ import annotations

import numpy as np

from mcudeploy.common.compiled import ascending, compiled_as, floats, ints, recursion_of, vector
from mcudeploy.common.effort import Effort
from mcudeploy.ir.rectangles import PlacementProblem
from mcudeploy.planner.place.placement_problem import PlacementOutcome, stacks_at_the_top
from mcudeploy.planner.place.sections import Floats, Ints, Sections, tries

_MOST_RECTANGLES = 2_000
"""The search descends one level of the stack per rectangle."""

_CELLS = 4
"""The number of sections in a rectangle's life that costs as much as examining another object."""

_FAR = 1 << 60


def applies(problem: PlacementProblem) -> bool:
    """Return True for up to the maximum number of rectangles."""
    return len(problem.rectangles) <= _MOST_RECTANGLES


def pack(
    problem: PlacementProblem,
    neighbours: list[list[int]],
    capacity: int,
    effort: Effort,
    *,
    work: int,
    seed: int,
) -> PlacementOutcome:
    """Return offsets with all ends within `capacity` bytes, a proof that there are none, or neither.

    `work` limits the rectangles and sections examined, over all nodes; the clock may end the effort earlier.
    `problem` must satisfy `applies`.
    """
    anchored = stacks_at_the_top(problem, capacity)
    if any(offset < 0 for offset in anchored.values()):
        return PlacementOutcome(None)
    free = [index for index in range(len(problem.rectangles)) if index not in anchored]
    sections = Sections.of(problem, neighbours, free, anchored, capacity)
    done = 0
    for keys, crowd, nodes in tries(sections, seed):
        if done >= work or effort.is_spent():
            break
        outcome, looked_at, offsets = _run(sections, keys, crowd, nodes, work - done)
        done += looked_at
        if outcome == 0:
            return PlacementOutcome(None, not anchored, done)
        if outcome == 1:
            at = {index: int(low) * sections.grain for index, low in zip(free, offsets, strict=True)}
            placed = {**anchored, **at}
            fits = all(low + problem.rectangles[i].size_bytes <= capacity for i, low in placed.items())
            offsets_of = tuple(placed[i] for i in range(len(placed)))
            return PlacementOutcome(offsets_of if fits else None, work=done)
    return PlacementOutcome(None, work=done)


def _run(sections: Sections, keys: Floats, crowd: int, nodes: int, work: int) -> tuple[int, int, Ints]:
    """Return 1 (success), 0 (infeasible) or -1 (out of nodes or work); the work done; the offsets."""
    count = len(sections.size)
    lids = [sections.room[a:b].min() for a, b in zip(sections.lo, sections.hi, strict=True)]
    size, lo, hi, near_at, near, room, lid, multiple, left = map(
        vector,
        (
            sections.size, sections.lo, sections.hi, sections.near_at, sections.near, sections.room,
            np.array(lids, np.int64), sections.multiple, sections.load.copy(),
        ),
    )  # fmt: skip
    ranking = vector(keys.copy()), crowd
    order = _ranked(vector(np.arange(count)), ranking, (lo, hi, room), left)
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    twin = vector(sections.twins(order))
    fixed = (size, lo, hi, near_at, near, room, lid, twin, multiple)
    nothing = np.zeros(count, np.int64)
    floor, used = vector(np.zeros(len(left), np.int64)), vector(np.array([nodes, work], np.int64))
    least, offset, done = vector(nothing), vector(nothing.copy()), vector(nothing.copy())
    state = (vector(rank), floor, left, least, offset, done, used)
    with recursion_of(2 * count + 2):
        outcome = _search(order, (-1, -1), fixed, ranking, state)
    return outcome, work - int(used[1]), np.array(offset, np.int64)


_INTS = "int64[::1]"
_RANKING = "Tuple((float64[:, ::1], int64))"
_FIXED = f"UniTuple({_INTS}, 9)"
_STATE = f"UniTuple({_INTS}, 7)"


@compiled_as(f"{_INTS}({_INTS}, {_INTS})")
def _picked(values: Ints, places: Ints) -> Ints:
    result = ints(len(places), 0)
    for k in range(len(places)):
        result[k] = values[places[k]]
    return result


@compiled_as(f"{_INTS}({_INTS}, {_RANKING}, UniTuple({_INTS}, 3), {_INTS})")
def _ranked(items: Ints, ranking: tuple[Floats, int], spans: tuple[Ints, Ints, Ints], left: Ints) -> Ints:
    """Return `items` sorted by the keys of a ranking, stably.

    Row `crowd` of the keys is set to the remaining bytes of each item's fullest section, relative to its
    room, which stacks reduce. `spans`: the sections of each item, from and to, and the room of each section.
    """
    keys, crowd = ranking
    lo, hi, room = spans
    if crowd >= 0:
        for rect in items:
            most = -_FAR
            for section in range(lo[rect], hi[rect]):
                most = max(most, left[section] - room[section])
            keys[crowd][rect] = -most
    picked = floats(len(items), 0.0)
    for row in range(len(keys) - 1, -1, -1):
        for k in range(len(items)):
            picked[k] = keys[row][items[k]]
        items = _picked(items, ascending(picked))
    return items


@compiled_as(f"boolean(int64, int64, {_FIXED}, {_INTS}, {_INTS})")
def _too_high(rect: int, top: int, fixed: tuple[Ints, ...], left: Ints, done: Ints) -> bool:
    """Return True if the remaining bytes above a rectangle, in total or singly, exceed the room."""
    size, lo, hi, near_at, near, room, lid, _, _ = fixed
    for section in range(lo[rect], hi[rect]):
        if top + left[section] - size[rect] > room[section]:
            return True
    for k in range(near_at[rect], near_at[rect + 1]):
        other = near[k]
        if done[other] == 0 and top + size[other] > lid[other]:
            return True
    return False


@compiled_as(f"int64({_INTS}, UniTuple(int64, 2), {_FIXED}, {_RANKING}, {_STATE})")
def _search(  # noqa: PLR0915  (one function of arrays, as numba wants it)
    items: Ints, below: tuple[int, int], fixed: tuple[Ints, ...], ranking: tuple[Floats, int],
    state: tuple[Ints, ...],
) -> int:  # fmt: skip
    """Place `items`, in the order of their rank and none below an offset and rank.

    `floor` and `left` are by section: the skyline, and the sum of unplaced bytes. `least` is the skyline
    under each rectangle, up to its alignment, `lid` the least room above it. All are restored on failure.
    """
    size, lo, hi, near_at, near, room, lid, twin, multiple = fixed
    rank, floor, left, least, offset, done, used = state
    last, last_rank = below
    count = len(items)
    used[0] -= 1
    used[1] -= count + 1
    if used[0] < 0 or used[1] < 0:
        return -1
    if count == 0:
        return 1
    begin, end, lowest_top = _FAR, 0, _FAR
    for rect in items:
        begin = min(begin, lo[rect])
        end = max(end, hi[rect])
        lowest_top = min(lowest_top, least[rect] + size[rect])
    used[1] -= end - begin
    # The lowest possible offset in each section, and the number of rectangles that cross its start.
    lowest = ints(end - begin, _FAR)
    crossing = ints(end - begin + 1, 0)
    for rect in items:
        at = least[rect]
        if at < last or (at == last and rank[rect] < last_rank):
            at = last + 1
        if at + size[rect] > lid[rect]:
            return 0
        used[1] -= (hi[rect] - lo[rect]) // _CELLS
        for section in range(lo[rect] - begin, hi[rect] - begin):
            if at < lowest[section]:  # noqa: PLR1730 - without numba `min` takes twice as long
                lowest[section] = at
        crossing[lo[rect] - begin + 1] += 1
        crossing[hi[rect] - begin] -= 1
    part, reach, highest = ints(end - begin, 0), 0, _FAR
    for section in range(end - begin):
        if left[begin + section] > 0:
            spare = room[begin + section] - left[begin + section]
            if floor[begin + section] > spare or lowest[section] > spare:
                return 0
            highest = min(highest, spare)
        reach += crossing[section]
        part[section] = (part[section - 1] if section > 0 else -1) + (1 if reach == 0 else 0)
    if part[-1] > 0:
        old_floor, old_left = floor[begin:end].copy(), left[begin:end].copy()
        old_least, old_rank = _picked(least, items), _picked(rank, items)
        members = ints(part[-1] + 1, 0)
        for rect in items:
            members[part[lo[rect] - begin]] += 1
        outcome = 1
        for number in ascending(members):  # small ones are refuted soonest
            some = ints(members[number], 0)
            k = 0
            for rect in items:
                if part[lo[rect] - begin] == number:
                    some[k] = rect
                    k += 1
            some = _ranked(some, ranking, (lo, hi, room), left)
            for k in range(len(some)):
                rank[some[k]] = k
            # A literal -1 would crash when loaded from numba's cache (numba's issue 6061).
            outcome = _search(some, (last, -len(rank)), fixed, ranking, state)
            if outcome != 1:
                break
        if outcome != 1:  # others may have been placed before
            floor[begin:end], left[begin:end] = old_floor, old_left
            for k in range(count):
                least[items[k]], rank[items[k]], done[items[k]] = old_least[k], old_rank[k], 0
        return outcome
    candidates, places, k = ints(count, 0), ints(count, 0), 0
    for rect in items:
        at = least[rect]
        if at >= lowest_top or at > highest or at < last or (at == last and rank[rect] < last_rank):
            continue
        if twin[rect] >= 0 and done[twin[rect]] == 0:
            continue
        candidates[k], places[k] = rect, at * len(rank) + rank[rect]
        k += 1
    rest = ints(count - 1, 0)
    for choice in ascending(places[:k]):
        rect = candidates[choice]
        at, top = least[rect], least[rect] + size[rect]
        used[1] -= near_at[rect + 1] - near_at[rect]
        if _too_high(rect, top, fixed, left, done):
            continue
        k = 0
        for other in items:
            if other != rect:
                rest[k] = other
                k += 1
        begin, end = lo[rect], hi[rect]
        old_floor = floor[begin:end].copy()
        for section in range(begin, end):
            floor[section] = top
            left[section] -= size[rect]
        old_least = ints(near_at[rect + 1] - near_at[rect], 0)
        for k in range(len(old_least)):
            other = near[near_at[rect] + k]
            old_least[k] = least[other]
            if done[other] == 0:
                least[other] = max(least[other], -(-top // multiple[other]) * multiple[other])
        offset[rect], done[rect] = at, 1
        outcome = _search(rest, (at, rank[rect]), fixed, ranking, state)
        if outcome != 0:
            return outcome
        done[rect] = 0
        for k in range(len(old_least)):
            least[near[near_at[rect] + k]] = old_least[k]
        for section in range(begin, end):
            left[section] += size[rect]
        floor[begin:end] = old_floor
    return 0
