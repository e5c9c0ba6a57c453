"""Offsets by a depth-first search over canonical placements, with its inner loop compiled.

Method: the idea of MiniMalloc (Moffitt, ASPLOS'23). Every packing can be pushed down until each rectangle
rests on another or on the ground, and then be told in the order of offsets. So rectangles are placed by
ascending offset, each on the skyline of its sections (the steps between two changes of who is alive). Cut off
is what cannot end well: a section whose floor plus what is still to come exceeds its capacity, a hole that
another rectangle would fit in whole, equal rectangles in another order. Sections that nothing crosses any
more part the rest in two that are solved alone. Orders among equals decide much, so several are tried, and
then orders with noise, each for a number of nodes that grows.

Stacks (inputs that die row by row, the lowest first) hang from the top: they lower the capacity of sections.
That is a choice, so with them nothing is proven.

Import only where it is needed: numba takes its time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mcudeploy.layout.problem import Problem, align_up, stacks_at_the_top

Ints = NDArray[np.int64]

_NODES = 40_000
"""Nodes of the first try of an order, some 0.1 s; from round to round they grow."""

_GROWTH = 4

_QUICK_NODES = 5_000
_QUICK_TRIES = 12
"""Per round this many orders with noise: a few nodes are often enough, or millions are not."""

_NOISE = 0.7
"""Keys of an order are multiplied by up to e to this."""

_MOST_RECTANGLES = 2_000
"""The search descends one level of the stack per rectangle."""

_FAR = 1 << 60


@dataclass(frozen=True, slots=True)
class Outcome:
    """Offsets within the capacity; none with `proven` says that there are none. `work` is what it took."""

    offsets: tuple[int, ...] | None
    proven: bool
    work: int


def applies(problem: Problem) -> bool:
    """True for rectangles of one alignment without overlaps and fixed offsets."""
    same = len({item.alignment for item in problem.rectangles}) == 1
    return same and not problem.overlaps and not problem.fixed and len(problem.rectangles) <= _MOST_RECTANGLES


def pack(
    problem: Problem, neighbours: list[list[int]], capacity: int, *, work: int, deadline: float, seed: int
) -> Outcome:
    """Offsets with all ends within `capacity` bytes, a proof that there are none, or neither after `work`:
    rectangles and sections that are looked at, in all nodes together. The result hangs on no clock, unless
    `deadline` (of `time.monotonic`) comes first. `problem` is one that the search `applies` to.
    """
    grain = problem.rectangles[0].alignment
    hung = stacks_at_the_top(problem, capacity)
    if any(offset < 0 for offset in hung.values()):
        return Outcome(None, proven=False, work=0)
    free = [index for index in range(len(problem.rectangles)) if index not in hung]
    sections = _Sections.of(problem, neighbours, free, hung, capacity)
    done = 0
    for order, nodes in _tries(sections, seed):
        if done >= work or time.monotonic() > deadline:
            break
        found, looked_at, offsets = sections.run(order, nodes, work - done)
        done += looked_at
        if found == 0:
            return Outcome(None, proven=not hung, work=done)
        if found == 1:
            placed = hung | {index: int(at) * grain for index, at in zip(free, offsets, strict=True)}
            fits = all(at + problem.rectangles[index].size_bytes <= capacity for index, at in placed.items())
            offsets_of = tuple(placed[i] for i in range(len(placed)))
            return Outcome(offsets_of if fits else None, proven=False, work=done)
    return Outcome(None, proven=False, work=done)


@dataclass(frozen=True, slots=True, eq=False)
class _Sections:
    """The problem as arrays. Rectangle u lives in sections [lo[k], hi[k]), k from life_at[u] on."""

    size: Ints
    life_at: Ints
    lo: Ints
    hi: Ints
    near_at: Ints
    near: Ints
    load: Ints
    room: Ints
    steps: Ints

    @classmethod
    def of(
        cls,
        problem: Problem,
        neighbours: list[list[int]],
        free: list[int],
        hung: Mapping[int, int],
        capacity: int,
    ) -> _Sections:
        """All but what is `hung`, which ends the room of its sections; bytes in units of the alignment."""
        grain = problem.rectangles[0].alignment
        items = [problem.rectangles[index] for index in free]
        every = [(life.lo, life.hi) for item in problem.rectangles for life in item.lives]
        times = np.unique(np.array(every, np.int64))
        lives = np.array([(life.lo, life.hi) for item in items for life in item.lives], np.int64)
        lo, hi = (np.searchsorted(times, lives.reshape(-1, 2)[:, end]).astype(np.int64) for end in (0, 1))
        counts = [len(item.lives) for item in items]
        size = np.array([align_up(item.size_bytes, grain) // grain for item in items], np.int64)
        load = np.zeros(len(times), np.int64)
        for a, b, height in zip(lo, hi, np.repeat(size, counts), strict=True):
            load[a:b] += height
        # The whole capacity is rounded up, so that a proof holds for the capacity itself.
        room = np.full(len(times), -(-capacity // grain), np.int64)
        for index, offset in hung.items():
            for life in problem.rectangles[index].lives:
                a, b = np.searchsorted(times, (life.lo, life.hi))
                room[a:b] = np.minimum(room[a:b], offset // grain)
        number = {index: at for at, index in enumerate(free)}
        nears = [[number[other] for other in neighbours[index] if other in number] for index in free]
        near = np.array([other for others in nears for other in others], np.int64)
        near_at = np.cumsum([0, *map(len, nears)], dtype=np.int64)
        steps = np.array([sum(map(len, item.lives)) for item in items], np.int64)
        return cls(size, np.cumsum([0, *counts], dtype=np.int64), lo, hi, near_at, near, load, room, steps)

    def run(self, order: Ints, nodes: int, work: int) -> tuple[int, int, Ints]:
        """1 found, 0 there are none, -1 out of nodes or work; the work done; the offsets."""
        count = len(self.size)
        rank = np.empty(count, np.int64)
        rank[order] = np.arange(count)
        offset, done = np.zeros(count, np.int64), np.zeros(count, np.int64)
        used = np.array([0, nodes, 0, work], np.int64)
        found = _search(
            order, self.size, self.life_at, self.lo, self.hi, self.near_at, self.near,
            rank, self._twins(order), np.zeros_like(self.load), self.load.copy(), np.zeros(count, np.int64),
            offset, done, self.room, -1, -1, used,
        )  # fmt: skip
        return found, int(used[2]), offset

    def _twins(self, order: Ints) -> Ints:
        """The rectangle before in order that is the same in all, or -1."""
        twins, last = np.full(len(order), -1, np.int64), dict[tuple[int, ...], int]()
        for u in order.tolist():
            k, end = self.life_at[u], self.life_at[u + 1]
            key = (int(self.size[u]), *self.lo[k:end].tolist(), *self.hi[k:end].tolist())
            twins[u] = last.get(key, -1)
            last[key] = u
        return twins


def _tries(sections: _Sections, seed: int) -> Iterator[tuple[Ints, int]]:
    """Orders by crowd (the largest load of its sections), life and area, and nodes for each; without end."""
    draw = np.random.default_rng(seed)
    starts = sections.life_at[:-1]
    # How full the fullest section is: against its room, which stacks make smaller.
    full = sections.load - sections.room
    loads = [full[a:b].max() for a, b in zip(sections.lo, sections.hi, strict=True)]
    crowd = -np.maximum.reduceat(np.array(loads, np.int64), starts)
    life = -np.log(sections.steps)
    area = life - np.log(sections.size)
    nodes = _NODES
    while True:
        for keys in ((crowd, life, area), (area, life, crowd), (life, area, crowd), (crowd, area, life)):
            yield np.lexsort(keys).astype(np.int64), nodes
        for number in range(_QUICK_TRIES):
            noise = draw.uniform(0, _NOISE, len(life))
            first = (life, area)[number % 2] - noise
            noisy = (first, crowd) if number % 4 < 2 else (first,)
            yield np.lexsort(noisy).astype(np.int64), _QUICK_NODES * nodes // _NODES
        nodes *= _GROWTH


_ARRAYS = ",".join(["int64[::1]"] * 15)


@njit(f"int64({_ARRAYS},int64,int64,int64[::1])", cache=True)
def _search(  # noqa: PLR0915, PLR0917  (one function of arrays, as numba wants it)
    items: Ints, size: Ints, life_at: Ints, lo: Ints, hi: Ints, near_at: Ints, near: Ints,
    rank: Ints, twin: Ints, floor: Ints, left: Ints, least: Ints, offset: Ints, done: Ints,
    room: Ints, last: int, last_rank: int, used: Ints,
) -> int:  # fmt: skip
    """Places `items`, none of them below (last, last_rank). `floor` and `left` are by section: the skyline,
    and the sum of what is not placed; `least` is the skyline under each rectangle. Restored on failure.
    """
    count = len(items)
    used[0] += 1
    used[2] += count + 1
    if used[0] > used[1] or used[2] > used[3]:
        return -1
    if count == 0:
        return 1
    begin, end, lowest_top = _FAR, 0, _FAR
    for u in items:
        begin = min(begin, lo[life_at[u]])
        end = max(end, hi[life_at[u + 1] - 1])
        lowest_top = min(lowest_top, least[u] + size[u])
    used[2] += end - begin
    # The lowest that anything of a section can still lie, and how many rectangles reach across its start.
    lowest = np.full(end - begin, _FAR, np.int64)
    crossing = np.zeros(end - begin + 1, np.int64)
    for u in items:
        at = least[u]
        if at < last or (at == last and rank[u] < last_rank):
            at = last + 1
        for k in range(life_at[u], life_at[u + 1]):
            for s in range(lo[k] - begin, hi[k] - begin):
                lowest[s] = min(lowest[s], at)
                if at + size[u] > room[begin + s]:
                    return 0
        crossing[lo[life_at[u]] - begin + 1] += 1
        crossing[hi[life_at[u + 1] - 1] - begin] -= 1
    part, reach = np.zeros(end - begin, np.int64), 0
    for s in range(end - begin):
        if left[begin + s] > 0 and max(floor[begin + s], lowest[s]) + left[begin + s] > room[begin + s]:
            return 0
        reach += crossing[s]
        part[s] = (part[s - 1] if s > 0 else -1) + (1 if reach == 0 else 0)
    if part[-1] > 0:
        members = np.zeros(part[-1] + 1, np.int64)
        for u in items:
            members[part[lo[life_at[u]] - begin]] += 1
        for number in np.argsort(members):  # small ones are soon refuted
            some = np.empty(members[number], np.int64)
            k = 0
            for u in items:
                if part[lo[life_at[u]] - begin] == number:
                    some[k] = u
                    k += 1
            found = _search(
                some, size, life_at, lo, hi, near_at, near, rank, twin,
                floor, left, least, offset, done, room, last, last_rank, used,
            )  # fmt: skip
            if found != 1:
                return found
        return 1
    candidates, keys, k = np.empty(count, np.int64), np.empty(count, np.int64), 0
    for u in items:
        at = least[u]
        if at >= lowest_top or at < last or (at == last and rank[u] < last_rank):
            continue
        if twin[u] >= 0 and done[twin[u]] == 0:
            continue
        candidates[k], keys[k] = u, at * len(rank) + rank[u]
        k += 1
    rest = np.empty(count - 1, np.int64)
    for choice in np.argsort(keys[:k]):
        u = candidates[choice]
        k = 0
        for other in items:
            if other != u:
                rest[k] = other
                k += 1
        at, top = least[u], least[u] + size[u]
        begin, end = lo[life_at[u]], hi[life_at[u + 1] - 1]
        old_floor = floor[begin:end].copy()
        for k in range(life_at[u], life_at[u + 1]):
            for s in range(lo[k], hi[k]):
                floor[s] = top
                left[s] -= size[u]
        old_least = np.empty(near_at[u + 1] - near_at[u], np.int64)
        for k in range(len(old_least)):
            other = near[near_at[u] + k]
            old_least[k] = least[other]
            least[other] = max(least[other], top)
        offset[u], done[u] = at, 1
        found = _search(
            rest, size, life_at, lo, hi, near_at, near, rank, twin,
            floor, left, least, offset, done, room, at, rank[u], used,
        )  # fmt: skip
        if found != 0:
            return found
        done[u] = 0
        for k in range(len(old_least)):
            least[near[near_at[u] + k]] = old_least[k]
        for k in range(life_at[u], life_at[u + 1]):
            for s in range(lo[k], hi[k]):
                left[s] += size[u]
        floor[begin:end] = old_floor
    return 0
