"""The integer program against brute force."""

from __future__ import annotations

from hypothesis import given, settings
from problems import least_peak, problems, without_chances

from mcudeploy.common.effort import Effort, endless
from mcudeploy.planner.order.order_problem import InPlace, OrderOutcome, OrderProblem, StepBuffer
from mcudeploy.planner.order.published.ilp import solve


@settings(max_examples=40, deadline=None)
@given(problem=problems())
def test_equals_brute_force(problem: OrderProblem) -> None:
    plain = without_chances(problem)
    solution = solve(plain, range(plain.steps), 0, endless())
    order = solution.order or range(plain.steps)
    assert plain.is_valid(order)
    assert plain.peak(order) == solution.bound_bytes == least_peak(plain)


@settings(max_examples=40, deadline=None)
@given(problem=problems())
def test_in_place_the_bound_holds_and_the_order_is_no_worse(problem: OrderProblem) -> None:
    solution = solve(problem, range(problem.steps), 0, endless())
    order = solution.order or range(problem.steps)
    assert problem.is_valid(order)
    assert solution.bound_bytes <= least_peak(problem) <= problem.peak(order)
    assert problem.peak(order) <= problem.peak(range(problem.steps))


def test_a_chance_in_place_decides_the_order() -> None:
    # Steps 1 and 2 read 0's tensor; 1 may write over it, if it comes last.
    buffers = (StepBuffer(64, (0, 1, 2)), StepBuffer(64, (1, 3)), StepBuffer(8, (2, 3)))
    problem = OrderProblem(((), (0,), (0,), (1, 2)), buffers, (InPlace(1, 0, 1),))
    assert solve(problem, (0, 1, 2, 3), 0, endless()) == OrderOutcome([0, 2, 1, 3], 72)


def test_without_effort_the_bound_comes_back() -> None:
    buffers = (StepBuffer(64, (0, 3)), StepBuffer(64, (1, 2)), StepBuffer(8, (2, 3)))
    problem = OrderProblem(((), (), (1,), (0, 2)), buffers)
    assert solve(problem, (0, 1, 2, 3), 8, Effort(0)) == OrderOutcome(None, 8)


def test_the_solver_spends_its_own_measure() -> None:
    # Pairs of tensors: 40 steps take far more than the effort, and the same effort gives the same order.
    steps = 40
    pairs = tuple(StepBuffer(3 + step % 7, (step, (step * 18 + 5) % steps)) for step in range(steps))
    problem = OrderProblem(((),) * steps, pairs)
    one, other = Effort(500_000), Effort(500_000)
    assert solve(problem, range(steps), 0, one) == solve(problem, range(steps), 0, other)
    assert one.left == other.left < 50_000
