"""The exact search against all orders of small problems."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import all_orders, least_peak, problems, without_chances

from mcudeploy.common.effort import Effort, endless
from mcudeploy.planner.order import max_flow
from mcudeploy.planner.order.bounds import least_needs, sure_needs
from mcudeploy.planner.order.closure import Closure
from mcudeploy.planner.order.contract import contracted
from mcudeploy.planner.order.exact import best_first
from mcudeploy.planner.order.order_problem import InPlace, OrderOutcome, OrderProblem, StepBuffer


@settings(max_examples=1000, deadline=None)
@given(problems(), st.integers(0, 3))
def test_finds_the_least_peak_of_all_orders(problem: OrderProblem, below: int) -> None:
    best = least_peak(problem)
    order = best_first(problem, max(0, best - below), best + 1, endless())
    assert order.order is not None and problem.is_valid(order.order)
    assert problem.peak(order.order) == order.bound_bytes == best
    assert best_first(problem, 0, best, endless()) == OrderOutcome(None, best)


def least(problem: OrderProblem) -> list[int]:
    """The minimum needs of a problem's steps."""
    return least_needs(problem, sure_needs(problem, Closure.of(problem)), endless(), 1 << 40)


@settings(max_examples=200, deadline=None)
@given(problems())
def test_no_step_can_run_with_less_than_its_least_need(problem: OrderProblem) -> None:
    needs = least(problem)
    for order in all_orders(problem):
        assert all(load >= needs[step] for step, load in zip(order, problem.loads(order), strict=True))


@given(problems().map(without_chances))
def test_some_order_runs_a_step_with_its_least_need(problem: OrderProblem) -> None:
    loads = [zip(order, problem.loads(order), strict=True) for order in all_orders(problem)]
    lowest = dict(sorted((pair for pairs in loads for pair in pairs), reverse=True))
    assert lowest == dict(enumerate(least(problem)))


def test_effort_runs_out_with_a_bound() -> None:
    steps = 40
    pairs = tuple(StepBuffer(3 + step % 7, (step, (step * 18 + 5) % steps)) for step in range(steps))
    problem = OrderProblem(((),) * steps, pairs)
    peak, effort = problem.peak(range(steps)), Effort(50_000)
    order = best_first(problem, 0, peak, effort)
    assert order.order is None and 0 < order.bound_bytes < peak
    assert effort.left == 0


def times_ten(problem: OrderProblem) -> OrderProblem:
    """All buffers ten times as large: peaks are multiples of ten, bounds need not be."""
    buffers = tuple(replace(buffer, size_bytes=10 * buffer.size_bytes) for buffer in problem.buffers)
    return replace(problem, buffers=buffers)


@settings(max_examples=200, deadline=None)
@given(problems().map(times_ten), st.integers(-30, 30))
def test_a_bound_of_another_component_is_not_a_proof_for_this_one(problem: OrderProblem, above: int) -> None:
    best = least_peak(problem)
    bound = max(0, best + above)
    order = best_first(problem, bound, best + 100, endless())
    assert order.order is not None
    assert problem.peak(order.order) <= max(bound, best) == order.bound_bytes


@settings(max_examples=200, deadline=None)
@given(problems())
def test_contraction_leaves_an_order_of_least_peak(problem: OrderProblem) -> None:
    smaller, numbers = contracted(problem, endless())
    left = [(smaller.peak(order), [numbers[step] for step in order]) for order in all_orders(smaller)]
    assert all(problem.is_valid(order) and problem.peak(order) == peak for peak, order in left)
    assert min(peak for peak, _ in left) == least_peak(problem)


def test_contraction_puts_a_copy_right_before_its_sum() -> None:
    # 0 writes a tensor; 1 and 2 copy it, 3 adds the copies; 4 is the last reader of the tensor.
    tensors = (
        StepBuffer(4, (0, 1, 2, 4)),
        StepBuffer(4, (1, 3)),
        StepBuffer(4, (2, 3)),
        StepBuffer(4, (3, 4)),
        StepBuffer(1, (4,)),
    )
    problem = OrderProblem(((), (0,), (0,), (1, 2), (0, 3)), tensors)
    smaller, _ = contracted(problem, endless())
    assert len(list(all_orders(problem))) == 2 and len(list(all_orders(smaller))) == 1


def test_a_step_that_frees_nothing_does_not_spoil_a_choice_in_place() -> None:
    # Once 0 has run, 1 writes its 10 bytes over the single byte: the first applicable candidate is used.
    tensors = (
        StepBuffer(1, (0, 1), initial=True),
        StepBuffer(10, (1,), initial=True),
        StepBuffer(10, (1,), kept=True),
    )
    problem = OrderProblem(((), ()), tensors, (InPlace(1, 0, 2), InPlace(1, 1, 2)))
    assert problem.peak([1, 0]) == 11 and problem.peak([0, 1]) == 20
    order = best_first(problem, 11, 20, endless())
    assert order.order == [1, 0] and order.bound_bytes == 11


def test_contraction_does_not_spoil_a_choice_in_place() -> None:
    # Step 0 could wait until right before 2; but then 1 is first to touch buffer 2 and saves one byte for 10.
    sources = StepBuffer(1, (1,), initial=True), StepBuffer(10, (1,), initial=True)
    buffers = (
        StepBuffer(1, (0, 1)),
        StepBuffer(10, (1,), kept=True),
        StepBuffer(1, (0, 2)),
        StepBuffer(3, (2,), kept=True),
    )
    chances = InPlace(1, 0, 2), InPlace(1, 1, 3)
    problem = OrderProblem(((), (), (0, 1)), (*sources, *buffers), chances)
    assert problem.peak([0, 1, 2]) == 14 and problem.peak([1, 0, 2]) == 21
    smaller, numbers = contracted(problem, endless())
    assert [0, 1, 2] in [[numbers[step] for step in order] for order in all_orders(smaller)]


def test_contraction_minds_what_the_next_step_saves_in_place() -> None:
    # 2 writes its scratch over 0's byte; right before it, 1 would add its byte while two others are live.
    buffers = (
        StepBuffer(1, (0, 2)),
        StepBuffer(1, (1, 2)),
        StepBuffer(1, (2,)),
        StepBuffer(1, (1, 3), initial=True),
    )
    problem = OrderProblem(((), (), (0, 1), ()), buffers, (InPlace(2, 0, 2),))
    smaller, _ = contracted(problem, endless())
    assert least_peak(smaller) == least_peak(problem) == problem.peak((1, 3, 0, 2)) == 2


@settings(max_examples=200, deadline=None)
@given(problems())
def test_minimum_cuts_are_the_same_without_ortools(problem: OrderProblem) -> None:
    needs = least(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(max_flow, "lacking", lambda: ("ortools",))
        assert least(problem) == needs
