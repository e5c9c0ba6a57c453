"""Memories and offsets of small random problems, against brute force and the checker."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from math import lcm

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcudeploy.checker.offsets import check_offsets
from mcudeploy.common.effort import Effort
from mcudeploy.costs.tiles import CopyCost
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.rectangles import PlacementProblem, Rectangle
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES, Budget
from mcudeploy.planner.place.assign import assign
from mcudeploy.planner.place.memory_assignment import ArenaMemory, Assigned, MemoryAssignment, RectangleGroup


def budget() -> Budget:
    return Budget(CopyCost(30.0, 60.0, 0.4), Effort(400_000))


def rectangle(size: int, life: tuple[int, int], alignment: int = 1) -> Rectangle:
    return Rectangle(size, Interval(*life), alignment)


@st.composite
def tasks(draw: st.DrawFn, most: int) -> MemoryAssignment:
    """Rectangles, some rematerialised or in a stack, in groups with allowed memories."""
    life = st.sets(st.integers(0, 6), min_size=2, max_size=4).map(lambda at: sorted(at)[: len(at) // 2 * 2])
    drawn = st.tuples(st.integers(1, 12), life, st.sampled_from([1, 1, 2]))
    items, again = [], list[tuple[int, ...]]()
    for size, at, alignment in draw(st.lists(drawn, min_size=1, max_size=most)):
        lives = [
            Rectangle(size, Interval(lo, hi), alignment) for lo, hi in zip(at[::2], at[1::2], strict=True)
        ]
        again.append(tuple(range(len(items), len(items) + len(lives))))
        items += lives
    memories = [
        ArenaMemory(
            f"m{at}",
            draw(st.sampled_from([0, 8, 16, 24])),
            draw(st.sampled_from([1, 1, 1.5, 3])),
            draw(st.sampled_from([1, 2])),
        )
        for at in range(draw(st.integers(1, 3)))
    ]
    of = [draw(st.integers(0, len(again) - 1)) for _ in again]
    stacks = ((0, 1),) if [len(lives) for lives in again[:2]] == [1, 1] and draw(st.booleans()) else ()
    if stacks:
        of[1] = of[0]
    groups = [
        RectangleGroup(
            tuple(index for lives, one in zip(again, of, strict=True) if one == number for index in lives),
            tuple(sorted(draw(st.sets(st.sampled_from(range(len(memories))), min_size=1)))),
            draw(st.integers(0, 9)),
        )
        for number in sorted(set(of))
    ]
    repeated = tuple(lives for lives in again if len(lives) > 1)
    return MemoryAssignment.of(PlacementProblem(tuple(items), stacks, repeated), groups, memories)


def costs(task: MemoryAssignment, memories: tuple[int, ...]) -> tuple[float, int]:
    at = list(zip(task.groups, memories, strict=True))
    cost = sum(group.accessed_bytes * task.memories[memory].cost for group, memory in at)
    return cost, sum(max(1, group.accessed_bytes) * memory for group, memory in at)


def solve(task: MemoryAssignment, budget: Budget | None) -> Assigned:
    """The assignment, checked against the rules; each memory is checked separately if nothing moves."""
    assignment = assign(task, budget)
    assert all(at in group.memories for group, at in zip(task.groups, assignment.memories, strict=True))
    for number, memory in enumerate(task.memories):
        groups = [group for group, at in zip(task.groups, assignment.memories, strict=True) if at == number]
        indices = sorted(index for group in groups for index in group.rectangles)
        if not indices:
            assert memory.name not in assignment.used_bytes
            continue
        used = assignment.used_bytes[memory.name]
        assert used % ARENA_GRAIN_BYTES == 0
        assert not assignment.fits or used <= memory.capacity_bytes
        if not assignment.moves:
            items = (task.problem.rectangles[index] for index in indices)
            aligned = (replace(item, alignment=lcm(item.alignment, memory.alignment)) for item in items)
            at = {index: place for place, index in enumerate(indices)}
            stacks = (stack for stack in task.problem.stacks if stack[0] in at)
            problem = PlacementProblem(tuple(aligned), tuple(tuple(at[i] for i in stack) for stack in stacks))
            check_offsets(problem, [assignment.offsets[index] for index in indices], used)
    return assignment


def loads_fit(task: MemoryAssignment, memories: tuple[int, ...]) -> bool:
    """Whether the live bytes keep the capacities at every step."""
    for number, memory in enumerate(task.memories):
        groups = [group for group, at in zip(task.groups, memories, strict=True) if at == number]
        alive = [0] * 8
        for index in (index for group in groups for index in group.rectangles):
            life = task.problem.rectangles[index].life
            for step in range(life.lo, life.hi):
                alive[step] += task.padded_bytes(index, number)
        if max(alive) > memory.capacity_bytes:
            return False
    return True


@settings(max_examples=100, deadline=None)
@given(tasks(most=6))
def test_a_proven_assignment_is_the_least_by_what_is_alive(task: MemoryAssignment) -> None:
    solution = solve(task, budget())
    choices = sorted(product(*(group.memories for group in task.groups)), key=lambda each: costs(task, each))
    least = next((costs(task, memories) for memories in choices if loads_fit(task, memories)), None)
    if solution.fits and solution.proven:
        assert least is None or costs(task, solution.memories) <= least
    if not solution.fits and solution.proven:
        assert least is None


@settings(max_examples=200, deadline=None)
@given(tasks(most=9))
def test_filling_keeps_every_rule(task: MemoryAssignment) -> None:
    solution = solve(task, None)
    if solution.fits and solution.proven:
        assert costs(task, solution.memories) <= costs(task, solve(task, budget()).memories)


def test_what_is_read_most_lies_where_it_costs_least() -> None:
    items = (rectangle(8, (0, 4)), rectangle(8, (0, 4)), rectangle(8, (2, 6)))
    groups = [
        RectangleGroup((0,), (0, 1), 16),
        RectangleGroup((1,), (0, 1), 80),
        RectangleGroup((2,), (0, 1), 40),
    ]
    task = MemoryAssignment.of(
        PlacementProblem(items), groups, [ArenaMemory("fast", 16), ArenaMemory("slow", 64, cost=4)]
    )
    assignment = assign(task, budget())
    assert (assignment.memories, assignment.fits, assignment.proven) == ((1, 0, 0), True, True)


def test_what_has_room_only_with_moves_lies_where_it_costs_least() -> None:
    """Two blocks die and leave two holes for a third one of their size."""
    items = tuple(rectangle(8, life) for life in ((0, 2), (0, 4), (0, 2), (0, 4)))
    wide = rectangle(16, (2, 4))
    problem = PlacementProblem((*items, wide))
    task = MemoryAssignment.of(
        problem,
        [RectangleGroup(tuple(range(5)), (0, 1), 10)],
        [ArenaMemory("fast", 32), ArenaMemory("slow", 64, cost=4)],
    )
    solution = solve(task, budget())
    assert (solution.memories, solution.used_bytes) == ((0,), {"fast": 32})


def test_what_is_alive_beyond_all_memories_is_refused_with_proof() -> None:
    items = (rectangle(12, (0, 2)), rectangle(12, (1, 3)))
    groups = [RectangleGroup((index,), (0, 1), 1) for index in range(2)]
    assignment = assign(
        MemoryAssignment.of(PlacementProblem(items), groups, [ArenaMemory("one", 16), ArenaMemory("two", 8)]),
        budget(),
    )
    assert (assignment.fits, assignment.proven) == (False, True)


def test_thousands_of_blocks_are_put_into_two_memories() -> None:
    """A chain of 60 tensors in 50 blocks each; most overlapping pairs exceed the fast memory."""
    items = tuple(
        rectangle(64 + 8 * (tensor % 5), (50 * tensor + block, 50 * tensor + block + 60), alignment=4)
        for tensor in range(60)
        for block in range(50)
    )
    groups = [RectangleGroup(tuple(range(50 * t, 50 * t + 50)), (0, 1), 1000 * (t % 7)) for t in range(60)]
    memories = [ArenaMemory("fast", 5200, alignment=4), ArenaMemory("slow", 1 << 20, cost=3, alignment=4)]
    assignment = assign(MemoryAssignment.of(PlacementProblem(items), groups, memories), budget())
    assert assignment.fits
    assert assignment.used_bytes["fast"] <= 5200
    assert 0 < sum(assignment.memories) < 60


def test_a_group_without_a_memory_is_refused() -> None:
    problem = PlacementProblem((rectangle(8, (0, 2)), rectangle(8, (0, 2))))
    with pytest.raises(ValueError, match="no memory"):
        assign(MemoryAssignment.of(problem, [RectangleGroup((0, 1), (), 1)], [ArenaMemory("one", 64)]), None)


@pytest.mark.parametrize("seed", range(12))
def test_what_fragments_a_memory_goes_to_one_with_room(seed: int) -> None:
    """By live bytes the first memory has room for more than packs there."""
    draw = random.Random(seed)
    items = []
    for _ in range(60):
        begin = draw.randrange(80)
        items.append(rectangle(8 * draw.randint(1, 60), (begin, begin + draw.randint(1, 25))))
    groups = [RectangleGroup((index,), (0, 1), draw.randint(1, 99)) for index in range(len(items))]
    memories = [ArenaMemory("fast", 1600, 0.0), ArenaMemory("large", 1 << 20, 1.0)]
    task = MemoryAssignment.of(PlacementProblem(tuple(items)), groups, memories)
    assert assign(task, None).fits
