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

_MOVES, _WORK = 400_000, 700_000_000
"""The most moves, and the most work (moves times what one of them looks at): some 4 s."""

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
    size, whether it is there before and stays, and by chance its input, its output and what it saves.
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
    )
    return tuple(row.astype(np.int64) for row in rows)


def _rows(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    begin = np.cumsum([0, *map(len, lists)])
    return begin.astype(np.int64), np.array([one for row in lists for one in row], np.int64)


@njit(cache=True)
def _loads(arrays: Arrays, order: Ints, place: Ints, load: Ints, first: Ints, last: Ints) -> None:  # noqa: PLR0917
    """Bytes during each step of an order into `load`, which has one entry more; the rest is work space."""
    _, _, _, _, chance_at, saving, touch_at, touched, size, initial, kept, source, target = arrays
    steps = len(order)
    for p in range(steps):
        place[order[p]] = p
    load[:] = 0
    for b in range(len(size)):
        begin, end = steps, -1
        for k in range(touch_at[b], touch_at[b + 1]):
            p = place[touched[k]]
            begin, end = min(begin, p), max(end, p)
        if end < 0:  # nobody touches it: there during the first step, or all the time, or never
            begin, end = 0, 0 if initial[b] else -1
        if initial[b]:
            begin = 0
        if kept[b]:
            end = steps - 1
        first[b], last[b] = begin, end
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
def _moved(arrays: Arrays, order: Ints, at: int, distance: int, new: Ints, along: NDArray[np.bool_]) -> bool:  # noqa: PLR0917
    """Into `new` the order with the step at a place moved by up to a distance, earlier where negative. False
    if nothing changes.
    """
    steps = len(order)
    back = distance < 0
    near_at, near = (arrays[0], arrays[1]) if back else (arrays[2], arrays[3])
    end = max(0, at + distance) if back else min(steps - 1, at + distance)
    way = -1 if back else 1
    along[:] = False
    along[order[at]] = True
    count = 0
    for p in range(at, end + way, way):
        step = order[p]
        if along[step]:
            count += 1
            for k in range(near_at[step], near_at[step + 1]):
                along[near[k]] = True
    length = abs(end - at) + 1
    if count == length:
        return False
    new[:] = order
    low, high = min(at, end), max(at, end)
    left, right = low, low + (count if back else length - count)
    for p in range(low, high + 1):
        step = order[p]
        if along[step] == back:
            new[left] = step
            left += 1
        else:
            new[right] = step
            right += 1
    return True


@njit(cache=True)
def _anneal(  # noqa: PLR0917
    arrays: Arrays, now: Ints, best: Ints, moves: int, temperature: float, cooling: float, seed: int,
    target: float,
) -> int:  # fmt: skip
    """So many moves from the order `now`, which is the last one then; the best is kept. Returns its peak."""
    np.random.seed(seed)
    steps, buffers = len(now), len(arrays[8])
    order, new, along = now.copy(), now.copy(), np.empty(steps, np.bool_)
    place, load = np.empty(steps, np.int64), np.empty(steps + 1, np.int64)
    first, last = np.empty(buffers, np.int64), np.empty(buffers, np.int64)
    _loads(arrays, best, place, load, first, last)
    peak = load[:steps].max()
    _loads(arrays, order, place, load, first, last)
    energy = _above(load, target * peak)
    for _ in range(moves):
        temperature *= cooling
        # Most moves are short; the logarithm of the distance is even.
        distance = 1 + int(np.exp(np.random.random() * np.log(steps)))
        if np.random.random() < 0.5:
            distance = -distance
        if not _moved(arrays, order, np.random.randint(steps), distance, new, along):
            continue
        _loads(arrays, new, place, load, first, last)
        changed = _above(load, target * peak)
        if changed <= energy or np.random.random() < np.exp((energy - changed) / temperature):
            order, new, energy = new, order, changed
            highest = load[:steps].max()
            if highest < peak:
                peak = highest
                best[:] = order
                energy = _above(load, target * peak)
    now[:] = order
    return int(peak)


@njit(cache=True)
def _above(load: Ints, limit: float) -> float:
    """The sum of what lies above a limit."""
    total = 0.0
    for each in load[:-1]:
        if each > limit:
            total += each - limit
    return total
