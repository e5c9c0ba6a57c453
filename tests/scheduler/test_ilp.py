"""The integer program against brute force."""

from __future__ import annotations

from math import inf

from hypothesis import given, settings
from problems import least_peak, problems, without_chances

from mcudeploy.scheduler.clock import NEVER, Deadline
from mcudeploy.scheduler.ilp import solve
from mcudeploy.scheduler.problem import Buffer, InPlace, Problem


@settings(max_examples=40, deadline=None)
@given(problem=problems())
def test_equals_brute_force(problem: Problem) -> None:
    plain = without_chances(problem)
    found = solve(plain, range(plain.steps), 0, NEVER)
    assert plain.is_valid(found.order)
    assert plain.peak(found.order) == found.lower_bound_bytes == least_peak(plain)


@settings(max_examples=40, deadline=None)
@given(problem=problems())
def test_in_place_the_bound_holds_and_the_order_is_no_worse(problem: Problem) -> None:
    found = solve(problem, range(problem.steps), 0, NEVER)
    assert problem.is_valid(found.order)
    assert found.lower_bound_bytes <= least_peak(problem) <= problem.peak(found.order)
    assert problem.peak(found.order) <= problem.peak(range(problem.steps))


def test_a_chance_in_place_decides_the_order() -> None:
    # Steps 1 and 2 read 0's tensor; 1 may write over it, if it comes last.
    buffers = (Buffer(64, (0, 1, 2)), Buffer(64, (1, 3)), Buffer(8, (2, 3)))
    problem = Problem(((), (0,), (0,), (1, 2)), buffers, (InPlace(1, 0, 1),))
    found = solve(problem, (0, 1, 2, 3), 0, NEVER)
    assert found.order == (0, 2, 1, 3)
    assert problem.peak(found.order) == found.lower_bound_bytes == 72


def test_without_time_the_warm_start_comes_back() -> None:
    buffers = (Buffer(64, (0, 3)), Buffer(64, (1, 2)), Buffer(8, (2, 3)))
    problem = Problem(((), (), (1,), (0, 2)), buffers)
    found = solve(problem, (0, 1, 2, 3), 8, Deadline.after(0, inf))
    assert found.order == (0, 1, 2, 3)
    assert found.lower_bound_bytes == 8
