"""The portfolio: what it calls optimal is, and what it is given bounds what it returns."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import least_peak, problems

from mcudeploy.cli.schedule import _METHODS
from mcudeploy.ordering import AUTO
from mcudeploy.scheduler.portfolio import HEURISTICS, METHODS, best_order
from mcudeploy.scheduler.problem import Problem


@settings(max_examples=100, deadline=None)
@given(problem=problems(), exact=st.booleans(), aside=st.sets(st.integers(0, 6)))
def test_status_and_bound_are_right(problem: Problem, exact: bool, aside: set[int]) -> None:
    found = best_order(problem, 60, aside, METHODS if exact else HEURISTICS)
    best = least_peak(problem)
    assert problem.is_valid(found.order)
    assert problem.peak(found.order) == found.peak_bytes
    assert found.lower_bound_bytes <= best <= found.peak_bytes <= problem.peak(range(problem.steps))
    assert (found.status == "optimal") == (found.lower_bound_bytes == found.peak_bytes)
    if exact:
        assert (found.status, found.peak_bytes) == ("optimal", best)


@settings(max_examples=20, deadline=None)
@given(problem=problems(), method=st.sampled_from(METHODS))
def test_one_method_alone_is_never_worse_than_the_file(problem: Problem, method: str) -> None:
    found = best_order(problem, 60, methods=(method,))
    assert problem.is_valid(found.order)
    assert least_peak(problem) <= found.peak_bytes <= problem.peak(range(problem.steps))


@pytest.mark.parametrize("steps", [0, 1])
def test_nearly_nothing(steps: int) -> None:
    found = best_order(Problem(((),) * steps, ()), 1)
    assert (found.order, found.peak_bytes, found.status) == (tuple(range(steps)), 0, "optimal")


def test_without_time_the_order_of_the_numbers_is_left() -> None:
    problem = Problem(((), (), (0, 1)), ())
    assert best_order(problem, 0).order == (0, 1, 2)


def test_the_command_has_all_methods() -> None:
    assert (AUTO, *METHODS) == _METHODS
