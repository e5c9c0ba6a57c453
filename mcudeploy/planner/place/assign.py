"""Memory and offset for every rectangle: hot ones in cheap memories, within each memory's capacity.

The cost of an assignment is the sum over groups of accessed bytes times the cost of their memory; ties prefer
earlier memories. Without conflicts each group lies in its cheapest memory. Otherwise memories are chosen
under the live bytes of each step, which bounds the cost from below, and are packed one by one. A memory that
does not pack gets a lower limit, and the choice is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mcudeploy.common.fast import lacking
from mcudeploy.planner.place.arena import Budget
from mcudeploy.planner.place.memory_assignment import Assigned, MemoryAssignment

_TURNS = 6
"""Maximum retries if a memory cannot be packed. First fit lowers its limit by at least the capacity divided
by this.
"""


def assign(task: MemoryAssignment, budget: Budget | None) -> Assigned:
    """Return memory and offset of every rectangle.

    Without a budget, first fit chooses memories group by group. Rectangles that do not fit get offsets beyond
    a capacity. Raises ValueError for a group without any allowed memory.
    """
    if not all(group.memories for group in task.groups):
        raise ValueError("a rectangle may lie in no memory")
    cheapest = tuple(
        min(group.memories, key=lambda memory: (costs[memory], memory))
        for group, costs in zip(task.groups, task.costs, strict=True)
    )
    packed = task.packed(cheapest, budget)
    if packed.fits:
        return replace(packed, proven=True)
    if all(len(group.memories) == 1 for group in task.groups):
        return replace(packed, proven=bool(task.excess(packed.bound_bytes)))
    return _first_fit(task, None) if budget is None else _cheapest(task, budget)


def _cheapest(task: MemoryAssignment, budget: Budget) -> Assigned:
    """Return the cheapest assignment that packs; first fit is the fallback, also without OR-Tools."""
    if "ortools" in lacking():
        return _first_fit(task, budget)
    from mcudeploy.planner.place.choice import cheapest_memories  # noqa: PLC0415 - the solver's import is slow

    limits = _capacities(task)
    filled = _filled(task, limits)
    for turn in range(_TURNS):
        memories, proven = cheapest_memories(task, limits, filled, budget.effort)
        if memories is None:
            return replace(_first_fit(task, budget), proven=turn == 0 and proven)
        packed = task.packed(memories, budget)
        if packed.fits:
            return replace(packed, proven=turn == 0 and proven)
        for memory, missing in task.excess(packed.used_bytes).items():
            limits[memory] -= missing
    return _first_fit(task, budget)


def _first_fit(task: MemoryAssignment, budget: Budget | None) -> Assigned:
    """Return the groups in the memories that `_filled` chooses, with offsets.

    If they never fit, those with the least overflow.
    """
    limits, tried = _capacities(task), dict[tuple[int, ...], Assigned]()
    while (memories := _filled(task, limits)) not in tried and len(tried) < 2 * _TURNS:
        tried[memories] = packed = task.packed(memories, budget)
        if packed.fits:
            return packed
        for memory, missing in task.excess(packed.used_bytes).items():
            limits[memory] -= max(missing, task.memories[memory].capacity_bytes // _TURNS)
    return min(tried.values(), key=lambda one: sum(task.excess(one.used_bytes).values()))


def _capacities(task: MemoryAssignment) -> list[int]:
    return [memory.capacity_bytes for memory in task.memories]


def _filled(task: MemoryAssignment, limits: Sequence[int]) -> tuple[int, ...]:
    """Return every group in the cheapest memory with room for its live bytes, in the better of two orders.

    A group that fits nowhere goes to the memory with the least overflow of its limit.
    """
    ways = (_fill(task, order, limits) for order in _orders(task))
    return min(ways, key=lambda way: (way[0], task.expense(way[1])))[1]


def _orders(task: MemoryAssignment) -> tuple[Sequence[int], Sequence[int]]:
    """Return two orders of groups: by extra cost per byte and step in another memory; and by size."""
    gains, sizes = [], []
    for group, costs, ranks in zip(task.groups, task.costs, task.ranks, strict=True):
        items = [task.problem.rectangles[index] for index in group.rectangles]
        area = max(1, sum(item.size_bytes * len(item.life) for item in items))
        there = [[row[memory] for memory in group.memories] for row in (costs, ranks)]
        gains.append(tuple((max(row) - min(row)) / area for row in there))
        sizes.append(max((item.size_bytes for item in items), default=0))
    numbers = range(len(gains))
    return sorted(numbers, key=lambda g: gains[g], reverse=True), sorted(numbers, key=lambda g: -sizes[g])


def _fill(task: MemoryAssignment, order: Sequence[int], limits: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    """Return the bytes beyond the limits, and the memory of each group."""
    steps = max((item.life.hi for item in task.problem.rectangles), default=0)
    loads = [np.zeros(steps + 1, np.int64) for _ in task.memories]
    memories, beyond = [0] * len(task.groups), 0
    for number in order:
        group = task.groups[number]
        least: tuple[int, int] | None = None
        for memory in sorted(group.memories, key=lambda it: (task.costs[number][it], it)):
            peak = int(_with(task, number, memory, loads[memory]).max())
            missing = max(0, peak - limits[memory])
            if least is None or missing < least[0]:
                least = missing, memory
            if not missing:
                break
        assert least is not None
        beyond, memories[number] = beyond + least[0], least[1]
        loads[least[1]] = _with(task, number, least[1], loads[least[1]])
    return beyond, tuple(memories)


def _with(task: MemoryAssignment, number: int, memory: int, load: np.ndarray) -> np.ndarray:
    """Return the live bytes of a memory by step, including those of a group."""
    load = load.copy()
    for index in task.groups[number].rectangles:
        life = task.problem.rectangles[index].life
        load[life.lo : life.hi] += task.padded_bytes(index, memory)
    return load
