"""Searches for offsets within a limit, each alone."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcudeploy.layout import canonical, crowd
from mcudeploy.layout.ejection import Ejection
from mcudeploy.layout.greedy import Units
from mcudeploy.layout.judge import judge
from mcudeploy.layout.place import place
from mcudeploy.layout.problem import Problem, Rectangle, lower_bound
from mcudeploy.layout.sweep import Sweep
from tests.layout.some_rectangles import QUICK, by_permutations, problems, puzzle, rectangle, rectangles


@QUICK
@given(
    st.lists(rectangles(), min_size=1, max_size=6).map(lambda items: Problem(tuple(items))), st.integers(0, 9)
)
def test_canonical_search_agrees_with_all_orders(problem: Problem, seed: int) -> None:
    least, units = by_permutations(problem), Units.of(problem)
    limits = {"work": 10**9, "deadline": time.process_time() + 60, "seed": seed}
    outcome = canonical.pack(problem, units.neighbours, least, **limits)
    assert outcome.offsets is not None
    judge(replace(problem, capacities={"": least}), outcome.offsets)
    less = canonical.pack(problem, units.neighbours, least - 1, **limits)
    assert (less.offsets, less.proven) == (None, True)


@pytest.mark.parametrize(
    ("capacity", "items"),
    [
        (10, "1 3 4, 3 4 5, 1 5 7, 3 0 2, 4 1 3, 4 4 7, 2 3 5, 3 5 7, 5 2 4, 3 0 2"),
        (13, "5 4 6, 4 5 6, 6 1 5, 3 7 9, 4 5 7, 1 0 1, 3 2 3, 7 8 10, 3 8 10, 3 1 3, 6 6 8, 1 0 4"),
    ],
)
def test_canonical_search_forgets_the_parts_beside_one_that_fails(capacity: int, items: str) -> None:
    """Sizes, births and ends, for which a search that does not restore everything finds no offsets."""
    sizes = [[int(word) for word in item.split()] for item in items.split(",")]
    problem = Problem(tuple(rectangle(size, (lo, hi)) for size, lo, hi in sizes), {"": capacity})
    neighbours = Units.of(problem).neighbours
    deadline = time.process_time() + 60
    outcome = canonical.pack(problem, neighbours, capacity, work=10**6, deadline=deadline, seed=0)
    assert outcome.offsets is not None
    judge(problem, outcome.offsets)


@pytest.mark.parametrize("seed", range(8))
def test_canonical_search_puts_together_what_was_cut_up(seed: int) -> None:
    problem = puzzle(60, seed)
    neighbours = Units.of(problem).neighbours
    outcome = canonical.pack(problem, neighbours, 400, work=10**8, deadline=time.process_time() + 60, seed=0)
    assert not outcome.proven
    assert outcome.offsets is not None
    judge(problem, outcome.offsets)


@QUICK
@given(st.lists(rectangles(), min_size=1, max_size=6), st.booleans(), st.integers(0, 3))
def test_crowded_steps_first_ends_with_all_steps(items: list[Rectangle], stacked: bool, seed: int) -> None:
    problem = Problem(tuple(items), stacks=((0, 1),) if stacked and len(items) > 1 else ())
    ejection = Ejection.of(Units.of(problem))
    limits = {"seconds": 10.0, "deadline": time.process_time() + 60, "seed": seed}
    least = by_permutations(problem)
    found, _ = crowd.fit(ejection, least, **limits)
    assert found.offsets is not None or problem.stacks  # which hang from the top, for better or worse
    if found.offsets is not None:
        judge(replace(problem, capacities={"": least}), found.offsets)
    less, _ = crowd.fit(ejection, least - 1, **limits)
    assert less.offsets is None and less.proven != bool(problem.stacks)


@QUICK
@given(problems())
def test_compiled_first_fit_is_first_fit(problem: Problem) -> None:
    units = Units.of(problem)
    ejection = Ejection.of(units)
    lowest = units.first_fit(next(units.orders()))
    unstacked = set(range(len(lowest))) - {index for stack in problem.stacks for index in stack}
    some = {index: lowest[index] for index in sorted(unstacked)[::2]}
    for order in units.orders():
        for placed in (problem.fixed, problem.fixed | some):
            assert ejection.first_fit(order, placed) == units.first_fit(order, placed)


def test_a_bound_that_no_offsets_reach_is_proven_and_raised() -> None:
    """A network eats its image: rows of 112 bytes, of 56, and scratch. Step 5 is full to the last byte, and
    what dies then leaves a hole between two rows that stay.
    """
    image = (rectangle(42, (0, 1)), rectangle(84, (0, 2)), rectangle(84, (0, 5)), rectangle(84, (0, 8)))
    lives = ((0, 6), (1, 9), (2, 4), (4, 12), (5, 7), (7, 12), (8, 10))
    scratch = (30, 30, 11, 12, 30, 11, 12, 30, 11)
    problem = Problem(
        (
            *image,
            rectangle(300, (0, 12)),
            *(rectangle(112, life) for life in lives),
            rectangle(56, (3, 12)),
            rectangle(56, (6, 12)),
            *(rectangle(size, (step, step + 1)) for step, size in enumerate(scratch)),
        ),
        stacks=((0, 1, 2, 3, 4),),
    )
    placed = place(problem, 4.0)
    assert lower_bound(problem) < placed.used_bytes[""] == placed.lower_bound_bytes[""]
    assert placed.status == "optimal"
    judge(problem, placed.offsets)


def test_what_is_given_may_be_in_the_way_of_a_stack_at_the_top() -> None:
    items = tuple(rectangle(size, (0, 1)) for size in (1, 3, 1, 1, 1))
    problem = Problem(items, stacks=((0, 1),), fixed={4: 3})
    sweep = Sweep.of(Units.of(problem))
    assert sweep is not None
    assert sweep.fit(7, given={0: 3, 1: 4, 4: 3}, work=10**6, seed=0).offsets is None
    placed = place(problem, 0.5)  # nothing pushes away what is fixed
    judge(problem, placed.offsets)
    assert (placed.used_bytes[""], placed.status) == (8, "optimal")


@QUICK
@given(st.lists(rectangles(), min_size=2, max_size=8), st.booleans(), st.integers(0, 40), st.integers(0, 3))
def test_sweeps_keep_the_limit_and_what_is_given(
    items: list[Rectangle], is_given: bool, over: int, seed: int
) -> None:
    problem = Problem(tuple(items), fixed={0: 0} if is_given else {})
    limit = lower_bound(problem) + over
    sweep = Sweep.of(Units.of(problem))
    assert sweep is not None
    swept = sweep.fit(limit, given=problem.fixed, work=10**6, seed=seed)
    if swept.offsets is not None:
        judge(replace(problem, capacities={"": limit}), swept.offsets)
    if sum(item.size_bytes for item in items) <= limit:  # then the lowest gap always has room
        assert swept.offsets is not None


@pytest.mark.parametrize("seed", range(8))
def test_sweeps_put_together_what_was_cut_up(seed: int) -> None:
    problem = puzzle(24, seed)
    sweep = Sweep.of(Units.of(problem))
    assert sweep is not None
    swept = sweep.fit(400, given={}, work=10**7, seed=0)
    assert swept.offsets is not None
    judge(problem, swept.offsets)
    assert sweep.fit(399, given={}, work=10**5, seed=0).offsets is None
