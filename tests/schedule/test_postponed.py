"""Orders without idle memory."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from problems import any_order, problems, random_problem

from mcudeploy.planner.order.derived import without_idle_memory
from mcudeploy.planner.order.order_problem import OrderProblem, StepBuffer


@given(problems(7), st.randoms(use_true_random=False))
def test_the_peak_does_not_grow(problem: OrderProblem, random: Random) -> None:
    before = any_order(problem, random)
    after = without_idle_memory(problem, before)
    assert problem.is_valid(after)
    assert problem.peak(after) <= problem.peak(before)


def test_other_steps_still_write_in_place() -> None:
    problem, order = random_problem(4, 235), (0, 2, 3, 1)
    assert problem.peak(without_idle_memory(problem, order)) <= problem.peak(order)


def test_a_step_waits_for_its_reader() -> None:
    """Step 0 makes 1 byte, step 1 makes 4 of it, which step 3 reads; step 2 makes 8, which step 3 reads."""
    buffers = (
        StepBuffer(1, (0, 1, 2)),
        StepBuffer(4, (1, 3)),
        StepBuffer(8, (2, 3)),
    )
    problem = OrderProblem(((), (0,), (0,), (1, 2)), buffers)
    assert without_idle_memory(problem, (0, 2, 1, 3)) == [0, 1, 2, 3]


def test_a_step_frees_what_it_can() -> None:
    """Step 1 turns 8 bytes into 1, which step 3 reads; step 2 makes 2 for itself."""
    buffers = (StepBuffer(8, (0, 1)), StepBuffer(1, (1, 3)), StepBuffer(2, (2, 3)))
    problem = OrderProblem(((), (0,), (), (1, 2)), buffers)
    assert without_idle_memory(problem, (0, 2, 1, 3)) == [0, 1, 2, 3]
