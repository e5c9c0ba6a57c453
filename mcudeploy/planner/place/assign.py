"""Memory and offset for every rectangle: hot ones where a byte costs least, none beyond a memory's capacity.

The cost of an assignment is the sum over groups of bytes accessed times the cost of their memory; where that
is equal, earlier memories are better. If nothing stands in the way, each group lies in its cheapest memory.
Else memories are chosen under what is alive in each at every step, which bounds the cost from below, and
packed one by one; a memory that does not pack gets less, and the choice is made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mcudeploy.planner.place.arena import Budget
from mcudeploy.planner.place.banks import Assigned, MemoryAssignment

_TURNS = 6
"""So often memories are chosen anew after one of them could not be packed."""


def assign(task: MemoryAssignment, relocation: Budget | None) -> Assigned:
    """Memory and offset of every rectangle.

    Without a relocation memories are chosen by first fit of groups, group by group. What does not fit has
    offsets nevertheless, beyond a capacity. Raises ValueError for a group that may lie nowhere.
    """
    if not all(group.banks for group in task.groups):
        raise ValueError("a rectangle may lie in no bank")
    cheapest = tuple(
        min(group.banks, key=lambda b: (costs[b], b))
        for group, costs in zip(task.groups, task.costs, strict=True)
    )
    found = task.packed(cheapest, relocation)
    if found.fits:
        return replace(found, proven=True)
    if all(len(group.banks) == 1 for group in task.groups):
        return replace(found, proven=bool(task.excess(found.bound_bytes)))
    filled = _filled(task)
    if relocation is None:
        return task.packed(filled, None)
    return _searched(task, filled, relocation)


def _searched(task: MemoryAssignment, filled: tuple[int, ...], relocation: Budget) -> Assigned:
    """The assignment of least cost that packs; `filled` is the last resort."""
    from mcudeploy.planner.place.choice import least_loads  # noqa: PLC0415 - the solver's import takes long

    limits = [bank.capacity_bytes for bank in task.banks]
    for turn in range(_TURNS):
        banks, proven = least_loads(task, limits, filled, relocation.effort)
        if banks is None:
            return replace(task.packed(filled, relocation), proven=turn == 0 and proven)
        found = task.packed(banks, relocation)
        if found.fits:
            return replace(found, proven=turn == 0 and proven)
        for bank, missing in task.excess(found.used_bytes).items():
            limits[bank] -= missing
    return task.packed(filled, relocation)


def _filled(task: MemoryAssignment) -> tuple[int, ...]:
    """Every group in the cheapest bank that has room for what is alive, in the better of two orders; where
    none has, in that where it goes least beyond.
    """
    ways = (_fill(task, order) for order in _orders(task))
    return min(ways, key=lambda way: (way[0], task.expense(way[1])))[1]


def _orders(task: MemoryAssignment) -> tuple[Sequence[int], Sequence[int]]:
    """Groups by what they cost elsewhere for the bytes that they take over the steps; and by size."""
    gains, sizes = [], []
    for group, costs, ranks in zip(task.groups, task.costs, task.ranks, strict=True):
        items = [task.problem.rectangles[index] for index in group.rectangles]
        area = max(1, sum(item.size_bytes * len(item.life) for item in items))
        there = [[row[bank] for bank in group.banks] for row in (costs, ranks)]
        gains.append(tuple((max(row) - min(row)) / area for row in there))
        sizes.append(max((item.size_bytes for item in items), default=0))
    numbers = range(len(gains))
    return sorted(numbers, key=lambda g: gains[g], reverse=True), sorted(numbers, key=lambda g: -sizes[g])


def _fill(task: MemoryAssignment, order: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    """Bytes beyond the capacities, and the bank of each group."""
    steps = max((item.life.hi for item in task.problem.rectangles), default=0)
    loads = [np.zeros(steps + 1, np.int64) for _ in task.banks]
    banks, beyond = [0] * len(task.groups), 0
    for number in order:
        group = task.groups[number]
        least: tuple[int, int] | None = None
        for bank in sorted(group.banks, key=lambda b: (task.costs[number][b], b)):
            peak = int(_with(task, number, bank, loads[bank]).max())
            missing = max(0, peak - task.banks[bank].capacity_bytes)
            if least is None or missing < least[0]:
                least = missing, bank
            if not missing:
                break
        assert least is not None
        beyond, banks[number] = beyond + least[0], least[1]
        loads[least[1]] = _with(task, number, least[1], loads[least[1]])
    return beyond, tuple(banks)


def _with(task: MemoryAssignment, number: int, bank: int, load: np.ndarray) -> np.ndarray:
    """The live bytes of a bank by step, with those of a group."""
    load = load.copy()
    for index in task.groups[number].rectangles:
        life = task.problem.rectangles[index].life
        load[life.lo : life.hi] += task.padded_bytes(index, bank)
    return load
