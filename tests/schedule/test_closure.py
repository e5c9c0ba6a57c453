"""The precedence closure and certain needs against every order of small problems."""

from __future__ import annotations

from hypothesis import given
from problems import all_orders, problems

from mcudeploy.planner.order.bounds import sure_needs
from mcudeploy.planner.order.closure import Closure
from mcudeploy.planner.order.order_problem import OrderProblem, StepBuffer


@given(problem=problems())
def test_asap_and_alap_are_the_first_and_last_places_of_all_orders(problem: OrderProblem) -> None:
    closure = Closure.of(problem)
    places = [{order.index(step) for order in all_orders(problem)} for step in range(problem.steps)]
    assert list(closure.asap) == [min(each) for each in places]
    assert list(closure.alap) == [max(each) for each in places]


@given(problem=problems())
def test_no_step_runs_with_less_than_is_sure(problem: OrderProblem) -> None:
    needs = sure_needs(problem, Closure.of(problem))
    for order in all_orders(problem):
        assert all(load >= needs[step] for step, load in zip(order, problem.loads(order), strict=True))


def test_what_must_live_across_a_step() -> None:
    # 0 makes 100 bytes for 2; 1 lies between and makes 10: both are live at 1 in every order.
    chain = OrderProblem(((), (0,), (1,)), (StepBuffer(100, (0, 2)), StepBuffer(10, (1, 2))))
    assert sure_needs(chain, Closure.of(chain)) == [100, 110, 110]
