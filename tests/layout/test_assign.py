"""Memories and offsets of small random problems, against brute force and the judge."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import lcm

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcudeploy.interval import Interval
from mcudeploy.layout.assign import assign
from mcudeploy.layout.banks import Assigned, Bank, Group, Task
from mcudeploy.layout.judge import PlacementFaultError, judge
from mcudeploy.layout.problem import Overlap, Problem, Rectangle

QUICK = settings(max_examples=40, deadline=None)


def rectangle(size: int, *lives: tuple[int, int], alignment: int = 1) -> Rectangle:
    return Rectangle(size, tuple(Interval(*life) for life in lives), alignment)


@st.composite
def tasks(draw: st.DrawFn, most: int) -> Task:
    """Rectangles of one or two lives, some in a stack, in groups, each with some of the banks."""
    life = st.sets(st.integers(0, 6), min_size=2, max_size=4).map(lambda at: sorted(at)[: len(at) // 2 * 2])
    items = draw(
        st.lists(
            st.builds(
                lambda size, at, alignment: Rectangle(
                    size, tuple(map(Interval, at[::2], at[1::2])), alignment
                ),
                st.integers(1, 4),
                life,
                st.sampled_from([1, 1, 2]),
            ),
            min_size=1,
            max_size=most,
        )
    )
    banks = [
        Bank(
            f"m{at}",
            draw(st.integers(0, 7)),
            draw(st.sampled_from([1, 1, 1.5, 3])),
            draw(st.sampled_from([1, 2])),
        )
        for at in range(draw(st.integers(1, 3)))
    ]
    stacks = ((0, 1),) if len(items) > 1 and draw(st.booleans()) else ()
    of = [draw(st.integers(0, len(items) - 1)) for _ in items]
    if stacks:
        of[1] = of[0]
    groups = [
        Group(
            tuple(index for index, one in enumerate(of) if one == number),
            tuple(sorted(draw(st.sets(st.sampled_from(range(len(banks))), min_size=1)))),
            draw(st.integers(0, 9)),
        )
        for number in sorted(set(of))
    ]
    return Task.of(Problem(tuple(items), stacks=stacks), groups, banks, 1)


def in_banks(task: Task, banks: tuple[int, ...]) -> Problem:
    """The problem with memories, alignments and capacities: written out here once more."""
    items = list(task.problem.rectangles)
    for group, bank in zip(task.groups, banks, strict=True):
        where = task.banks[bank]
        for index in group.rectangles:
            alignment = lcm(items[index].alignment, where.alignment)
            items[index] = replace(items[index], memory=where.name, alignment=alignment)
    capacities = {bank.name: bank.capacity_bytes for bank in task.banks}
    return replace(task.problem, rectangles=tuple(items), capacities=capacities)


def packs(problem: Problem, offsets: tuple[int, ...] = ()) -> bool:
    """Whether there are offsets that begin with these, by trying all."""
    number, items = len(offsets), problem.rectangles
    if number == len(items):
        try:
            judge(problem, offsets)
        except PlacementFaultError:
            return False
        return True
    item = items[number]
    return any(
        packs(problem, (*offsets, at))
        for at in range(problem.capacities[item.memory] - item.size_bytes + 1)
        if not any(
            items[other].memory == item.memory
            and items[other].meets(item)
            and at < offset + items[other].size_bytes
            and offset < at + item.size_bytes
            for other, offset in enumerate(offsets)
        )
    )


def costs(task: Task, banks: tuple[int, ...]) -> tuple[float, int]:
    at = list(zip(task.groups, banks, strict=True))
    cost = sum(group.accessed_bytes * task.banks[bank].cost for group, bank in at)
    return cost, sum(max(1, group.accessed_bytes) * bank for group, bank in at)


def solve(task: Task, seconds: float) -> Assigned:
    found = assign(task.problem, task.groups, task.banks, seconds)
    problem = in_banks(task, found.banks)
    judge(problem if found.fits else replace(problem, capacities={}), found.placed.offsets)
    assert all(bank in group.banks for group, bank in zip(task.groups, found.banks, strict=True))
    for memory, used in found.placed.used_bytes.items():
        ends = [
            offset + item.size_bytes
            for item, offset in zip(problem.rectangles, found.placed.offsets, strict=True)
            if item.memory == memory
        ]
        assert used == max(ends)
        assert not found.fits or used <= problem.capacities[memory]
    return found


@QUICK
@given(tasks(most=4))
def test_small_problems_have_the_least_cost_and_refusals_are_right(task: Task) -> None:
    found = solve(task, 5.0)
    choices = sorted(product(*(group.banks for group in task.groups)), key=lambda banks: costs(task, banks))
    least = next((costs(task, banks) for banks in choices if packs(in_banks(task, banks))), None)
    assert found.proven
    assert (costs(task, found.banks) if found.fits else None) == least


@settings(max_examples=200, deadline=None)
@given(tasks(most=9))
def test_first_fit_keeps_every_rule(task: Task) -> None:
    found = solve(task, 0.0)
    if found.fits and found.proven:
        assert costs(task, found.banks) <= costs(task, solve(task, 1.0).banks)


def test_what_is_read_most_lies_where_it_costs_least() -> None:
    items = (rectangle(8, (0, 4)), rectangle(8, (0, 4)), rectangle(8, (2, 6)))
    groups = [Group((0,), (0, 1), 16), Group((1,), (0, 1), 80), Group((2,), (0, 1), 40)]
    found = assign(Problem(items), groups, [Bank("fast", 16), Bank("slow", 64, cost=4)], 1.0)
    assert (found.banks, found.fits, found.proven) == ((1, 0, 0), True, True)


def test_what_packs_nowhere_although_there_are_bytes_enough_is_refused_with_proof() -> None:
    items = (rectangle(3, (0, 2), alignment=4), rectangle(3, (1, 3), alignment=4))
    groups = [Group((index,), (0, 1), 1) for index in range(2)]
    found = assign(Problem(items), groups, [Bank("one", 6), Bank("two", 2)], 1.0)
    assert (found.fits, found.proven) == (False, True)


def test_thousands_of_blocks_are_put_into_two_memories() -> None:
    """A chain of 60 tensors in 50 blocks each; most pairs that overlap are too much for the fast memory."""
    items = tuple(
        rectangle(64 + 8 * (tensor % 5), (50 * tensor + block, 50 * tensor + block + 60), alignment=4)
        for tensor in range(60)
        for block in range(50)
    )
    groups = [Group(tuple(range(50 * t, 50 * t + 50)), (0, 1), 1000 * (t % 7)) for t in range(60)]
    banks = [Bank("fast", 5200, alignment=4), Bank("slow", 1 << 20, cost=3, alignment=4)]
    for seconds in (0.0, 1.0):
        found = assign(Problem(items), groups, banks, seconds)
        assert found.fits
        assert found.placed.used_bytes["fast"] <= 5200
        assert 0 < sum(found.banks) < 60


def test_a_group_without_a_memory_and_an_allowed_overlap_are_refused() -> None:
    problem = Problem((rectangle(8, (0, 2)), rectangle(8, (0, 2))))
    with pytest.raises(ValueError, match="no bank"):
        assign(problem, [Group((0, 1), (), 1)], [Bank("one", 64)], 0.0)
    with pytest.raises(ValueError, match="overlap"):
        shared = replace(problem, overlaps=(Overlap(0, 1, Interval(0, 1)),))
        assign(shared, [Group((0, 1), (0,), 1)], [Bank("one", 64)], 0.0)
