"""Rectangles on a grid of cells: proofs agree with brute force, and what is packed is sound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcudeploy.interval import Interval
from mcudeploy.layout import cells, intervals
from mcudeploy.layout.judge import judge
from mcudeploy.layout.problem import Problem, Rectangle, lower_bound, stacks_at_the_top
from tests.layout.some_rectangles import QUICK, brute_force, rectangle, rectangles

Pack = Callable[..., tuple[dict[int, int] | None, float]]
EFFORT = {"seconds": 100.0, "brake": 60.0, "seed": 0}


def proven(problem: Problem, steps: Interval) -> int:
    least = lower_bound(problem)
    bound, _ = cells.least(problem, steps, least, enough=1 << 40, open_at=set(), each=10.0, **EFFORT)
    return bound


def everything(problem: Problem) -> Interval:
    return Interval(0, max(item.lives[-1].hi for item in problem.rectangles))


@QUICK
@given(st.lists(rectangles(), min_size=2, max_size=4), st.booleans())
def test_what_is_needed_at_least_is_what_brute_force_finds(items: list[Rectangle], stacked: bool) -> None:
    problem = Problem(tuple(items), stacks=((0, 1),) if stacked else ())
    least, bound = brute_force(problem), proven(problem, everything(problem))
    assert bound <= least if stacked else bound == least  # of a stack only what is alive up to its end counts
    assert proven(problem, Interval(2, 5)) <= least  # what does not fit there does not fit at all


@QUICK
@given(st.lists(rectangles(), min_size=2, max_size=4), st.integers(2, 5))
def test_large_sizes_are_refuted_on_coarse_cells(items: list[Rectangle], by: int) -> None:
    fine = Problem(tuple(items))
    coarse = Problem(tuple(replace(item, size_bytes=by * item.size_bytes) for item in items))
    assert proven(coarse, everything(coarse)) == by * proven(fine, everything(fine))


@pytest.mark.parametrize("pack", [cells.pack, intervals.pack])
@QUICK
@given(
    st.lists(st.sampled_from([1, 2, 4]).flatmap(rectangles), min_size=1, max_size=8),
    st.booleans(),
    st.integers(0, 8),
)
def test_what_is_packed_is_sound(pack: Pack, items: list[Rectangle], stacked: bool, spare: int) -> None:
    stacked = stacked and len(items) > 2
    problem = Problem(tuple(items), stacks=((0, 1),) if stacked else ())
    limit = lower_bound(problem) + spare
    hung = stacks_at_the_top(problem, limit)
    if any(at < 0 for at in hung.values()):
        return
    free = [index for index in range(len(items)) if index not in hung]
    packed, _ = pack(problem, free, hung, limit, **EFFORT)
    if packed is not None:
        offsets = hung | packed
        judge(replace(problem, capacities={"": limit}), tuple(offsets[i] for i in range(len(items))))


@pytest.mark.parametrize("pack", [cells.pack, intervals.pack])
def test_rows_and_scratch_fill_every_step_to_the_last_byte(pack: Pack) -> None:
    # Two rows of 8 move up by one row of 4 in each turn; scratch of 3 fills what is left of 27.
    items = [rectangle(8, (step, step + 3)) for step in range(0, 12, 2)]
    items += [rectangle(4, (step, step + 4)) for step in range(1, 12, 4)]
    items += [rectangle(3, (step, step + 1)) for step in range(2, 11)]
    problem = Problem(tuple(items))
    least = proven(problem, everything(problem))
    packed, _ = pack(problem, range(len(items)), {}, least, **EFFORT)
    assert packed is not None
    judge(replace(problem, capacities={"": least}), tuple(packed[i] for i in range(len(items))))
    assert pack(problem, range(len(items)), {}, least - 1, **EFFORT)[0] is None


def test_less_than_rows_of_two_sizes_need_is_refuted() -> None:
    # At 0 a free place of two rows is open; a long row takes half of it, and no pair is left for the next.
    items = [
        rectangle(1024, (0, 9)), rectangle(2048, (0, 2)), rectangle(2048, (0, 4)),
        rectangle(1024, (2, 9)), rectangle(1024, (4, 9)), rectangle(2048, (5, 7)),
    ]  # fmt: skip
    problem = Problem(tuple(items))
    assert lower_bound(problem) == 5 * 1024
    assert proven(problem, everything(problem)) == brute_force_rows(problem) * 1024


def brute_force_rows(problem: Problem) -> int:
    rows = tuple(replace(item, size_bytes=item.size_bytes // 1024) for item in problem.rectangles)
    return brute_force(Problem(rows))
