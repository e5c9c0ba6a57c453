"""Orders by simulated annealing, compiled: for wide graphs whose sets of done steps nobody can follow.

A move takes a step some places earlier, with all on the way that it waits for, or later with all that waits
for it, so every order on the way is valid. What is lowered is the sum of the bytes above a target a little
below the best peak: the peak alone would not tell most moves apart. The moves are random from a fixed seed,
and their number is given by the size, so that a problem has the same order on every machine, unless the
deadline comes first.

Import only where it is needed: numba takes its time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mcudeploy.scheduler.clock import Deadline
from mcudeploy.scheduler.problem import Problem

Ints = NDArray[np.int64]
Arrays = tuple[Ints, ...]

_TARGET = 0.95
"""Of the best peak so far: what is above counts."""

_HOT, _COLD = 10.0, 0.2
"""Temperature at the first and the last move, in mean buffers."""

_MOVES, _WORK = 600_000, 1_100_000_000
"""The most moves, and the most work (moves times what one of them looks at): some 4 s."""

_FARTHEST = 0.2
"""Of all steps: so many places a step moves at most. Longer moves are hardly ever taken and take longest."""

_CHUNK = 3_000_000
"""Work between two looks at the clock."""


def anneal(
    problem: Problem, order: Sequence[int], seed: int, floor: int, deadline: Deadline
) -> tuple[int, ...]:
    """A valid order with a peak no higher; stops at `floor` bytes, or at `deadline`."""
    sizes = [buffer.size_bytes for buffer in problem.buffers if buffer.size_bytes]
    if problem.steps < 2 or not sizes:
        return tuple(order)
    arrays = _arrays(problem)
    now, best = np.array(order, np.int64), np.array(order, np.int64)
    looked_at = problem.steps + sum(map(len, problem.touches))
    moves, chunk = min(_MOVES, _WORK // looked_at), max(1, _CHUNK // looked_at)
    cooling = (_COLD / _HOT) ** (1 / moves)
    temperature = _HOT * sum(sizes) / len(sizes)
    for begin in range(0, moves, chunk):
        count = min(chunk, moves - begin)
        peak = _anneal(arrays, now, best, count, temperature, cooling, seed * moves + begin, _TARGET)
        temperature *= cooling**count
        if peak <= floor or deadline.passed():
            break
    return tuple(best.tolist())


def loads_of(problem: Problem, order: Sequence[int]) -> list[int]:
    """`Problem.loads`, by the compiled count."""
    loads = np.zeros(problem.steps + 1, np.int64)
    count = len(problem.buffers)
    _loads(
        _arrays(problem), np.array(order, np.int64), np.empty(problem.steps, np.int64), loads,
        np.empty(count, np.int64), np.empty(count, np.int64),
    )  # fmt: skip
    return [int(load) for load in loads[:-1]]


def _arrays(problem: Problem) -> Arrays:
    """before, after, chances and touched_by as pairs (where each begins, all in a row), then by buffer its
    size, whether it is there before and stays, by chance its input, its output and what it saves, and touches
    as a pair.
    """
    chances = [(step, chance) for step, some in sorted(problem.chances_of.items()) for chance in some]
    begin = np.searchsorted([step for step, _ in chances], np.arange(problem.steps + 1))
    buffers = problem.buffers
    rows = (
        *_rows(problem.before),
        *_rows(problem.after),
        begin,
        np.array([problem.saving(chance) for _, chance in chances]),
        *_rows([buffer.touched_by for buffer in buffers]),
        np.array([buffer.size_bytes for buffer in buffers]),
        np.array([buffer.initial for buffer in buffers]),
        np.array([buffer.kept for buffer in buffers]),
        np.array([chance.input for _, chance in chances]),
        np.array([chance.output for _, chance in chances]),
        *_rows(problem.touches),
    )
    return tuple(row.astype(np.int64) for row in rows)


def _rows(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    begin = np.cumsum([0, *map(len, lists)])
    return begin.astype(np.int64), np.array([one for row in lists for one in row], np.int64)


@njit(cache=True)
def _life(arrays: Arrays, b: int, place: Ints) -> tuple[int, int]:
    """The first and the last place of a buffer."""
    _, _, _, _, _, _, touch_at, touched, _, initial, kept, _, _, _, _ = arrays
    begin, end = len(place), -1
    for k in range(touch_at[b], touch_at[b + 1]):
        p = place[touched[k]]
        begin, end = min(begin, p), max(end, p)
    if end < 0:  # nobody touches it: there during the first step, or all the time, or never
        begin, end = 0, 0 if initial[b] else -1
    return 0 if initial[b] else begin, len(place) - 1 if kept[b] else end


@njit(cache=True)
def _loads(arrays: Arrays, order: Ints, place: Ints, load: Ints, first: Ints, last: Ints) -> None:  # noqa: PLR0917
    """Bytes during each step of an order into `load`, which has one entry more; the rest is work space."""
    _, _, _, _, chance_at, saving, _, _, size, _, _, source, target, _, _ = arrays
    steps = len(order)
    for p in range(steps):
        place[order[p]] = p
    load[:] = 0
    for b in range(len(size)):
        begin, end = first[b], last[b] = _life(arrays, b, place)
        if begin <= end:
            load[begin] += size[b]
            load[end + 1] -= size[b]
    for p in range(1, steps):
        load[p] += load[p - 1]
    if len(saving) == 0:
        return
    for p in range(steps):
        for k in range(chance_at[order[p]], chance_at[order[p] + 1]):
            if last[source[k]] == p and first[target[k]] == p:
                load[p] -= saving[k]
                break


@njit(cache=True)
def _moved(arrays: Arrays, order: Ints, at: int, distance: int, new: Ints, along: Ints, move: int) -> int:  # noqa: PLR0917
    """Into `new`, between two places, the order with the step at one of them moved by up to a distance,
    earlier where negative. Returns the other place, or -1 if nothing changes. `along` says of the steps when
    they were moved last.
    """
    steps = len(order)
    back = distance < 0
    near_at, near = (arrays[0], arrays[1]) if back else (arrays[2], arrays[3])
    end = max(0, at + distance) if back else min(steps - 1, at + distance)
    way = -1 if back else 1
    along[order[at]] = move
    count = 0
    for p in range(at, end + way, way):
        step = order[p]
        if along[step] == move:
            count += 1
            for k in range(near_at[step], near_at[step + 1]):
                along[near[k]] = move
    length = abs(end - at) + 1
    if count == length:
        return -1
    low, high = min(at, end), max(at, end)
    left, right = low, low + (count if back else length - count)
    for p in range(low, high + 1):
        step = order[p]
        if (along[step] == move) == back:
            new[left] = step
            left += 1
        else:
            new[right] = step
            right += 1
    return end


@njit(cache=True)
def _saved(arrays: Arrays, step: int, p: int, first: Ints, last: Ints) -> int:
    """Bytes that a step at a place takes over."""
    for k in range(arrays[4][step], arrays[4][step + 1]):
        if last[arrays[11][k]] == p and first[arrays[12][k]] == p:
            return int(arrays[5][k])
    return 0


@njit(cache=True)
def _anneal(  # noqa: PLR0917
    arrays: Arrays, now: Ints, best: Ints, moves: int, temperature: float, cooling: float, seed: int,
    target: float,
) -> int:  # fmt: skip
    """So many moves from the order `now`, which is the last one then; the best is kept. Returns its peak.

    Outside the places that a move passes nothing changes; inside, only lives of buffers touched there.
    """
    np.random.seed(seed)
    steps, buffers, size, touches_at, touches = len(now), len(arrays[8]), arrays[8], arrays[13], arrays[14]
    new, along = now.copy(), np.full(steps, -1)
    place, load, change = (
        np.empty(steps, np.int64),
        np.empty(steps + 1, np.int64),
        np.zeros(steps + 1, np.int64),
    )
    first, last = np.empty(buffers, np.int64), np.empty(buffers, np.int64)
    changed, was, since = np.empty(buffers, np.int64), np.empty((2, buffers), np.int64), np.full(buffers, -1)
    _loads(arrays, best, place, load, first, last)
    peak = load[:steps].max()
    _loads(arrays, now, place, load, first, last)
    then = load.copy()
    for move in range(moves):
        temperature *= cooling
        # Most moves are short; the logarithm of the distance is even.
        distance = 1 + int(np.exp(np.random.random() * np.log(_FARTHEST * steps + 1)))
        if np.random.random() < 0.5:
            distance = -distance
        at = np.random.randint(steps)
        end = _moved(arrays, now, at, distance, new, along, move)
        if end < 0:
            continue
        low, high, count = min(at, end), max(at, end), 0
        for p in range(low, high + 1):
            change[p] = _saved(arrays, now[p], p, first, last)
            place[new[p]] = p
        for p in range(high, low, -1):
            change[p] -= change[p - 1]
        for p in range(low, high + 1):
            for k in range(touches_at[new[p]], touches_at[new[p] + 1]):
                b = touches[k]
                if since[b] < move:
                    since[b], changed[count], was[0, count], was[1, count] = move, b, first[b], last[b]
                    count += 1
                    first[b], last[b] = _life(arrays, b, place)
        for k in range(count):
            b = changed[k]
            change[max(low, was[0, k])] -= size[b]
            change[max(low, first[b])] += size[b]
            if was[1, k] < high:
                change[was[1, k] + 1] += size[b]
            if last[b] < high:
                change[last[b] + 1] -= size[b]
        difference, running, limit = 0.0, 0, target * peak
        for p in range(low, high + 1):
            running += change[p]
            then[p] = load[p] + running - _saved(arrays, new[p], p, first, last)
            difference += max(0.0, then[p] - limit) - max(0.0, load[p] - limit)
        if difference <= 0 or np.random.random() < np.exp(-difference / temperature):
            now[low : high + 1], load[low : high + 1] = new[low : high + 1], then[low : high + 1]
            if load[low : high + 1].max() < peak and load[:steps].max() < peak:
                peak = load[:steps].max()
                best[:] = now
        else:
            for p in range(low, high + 1):
                place[now[p]] = p
            for k in range(count):
                first[changed[k]], last[changed[k]] = was[0, k], was[1, k]
    return int(peak)
