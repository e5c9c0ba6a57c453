"""The central count of live bytes against the lives of buffers."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from problems import all_orders, any_order, loads_by_lives, problems

from mcudeploy.planner.order.order_problem import OrderProblem


@settings(deadline=None)
@given(problem=problems(5))
def test_loads_are_those_of_the_lives(problem: OrderProblem) -> None:
    for order in all_orders(problem):
        assert problem.loads(order) == loads_by_lives(problem, order)


@given(problem=problems(12), seed=st.integers(0, 99))
def test_memory_depends_on_the_set_of_done_steps_alone(problem: OrderProblem, seed: int) -> None:
    done, live = 0, problem.live(0)
    ready = {step: problem.change(step, 0) for step in problem.ready()}
    for step in any_order(problem, Random(seed)):
        live += ready.pop(step)[1]
        done |= 1 << step
        assert live == problem.live(done)
        near = [other for other in problem.changed(step, done) if other in ready]
        for other in (*near, *problem.freed(step, done)):
            ready[other] = problem.change(other, done)
        waiting = (other for other in range(problem.steps) if not done >> other & 1)
        free = {other for other in waiting if not problem.needs[other] & ~done}
        assert ready == {other: problem.change(other, done) for other in free}
