"""Derived problems have the loads of their source, for every order."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from problems import all_orders, problems

from mcudeploy.planner.order.derived import restricted, reverse, turned
from mcudeploy.planner.order.order_problem import OrderProblem, StepBuffer
from mcudeploy.planner.order.series import in_series


@given(problem=problems())
def test_loads_of_components_are_those_of_the_whole(problem: OrderProblem) -> None:
    components = in_series(problem)
    assert sorted(step for steps, _ in components for step in steps) == list(range(problem.steps))
    for order in all_orders(problem):
        loads: list[int] = []
        start = 0
        for steps, component in components:
            inside = [steps.index(step) for step in order[start : start + len(steps)]]
            assert component.is_valid(inside)
            loads += component.loads(inside)
            start += len(steps)
        assert loads == problem.loads(order)


@given(problem=problems())
def test_backwards_every_order_has_the_same_loads(problem: OrderProblem) -> None:
    gone = StepBuffer(0, ())  # for initial memory that no step touches
    buffers = tuple(b if b.touched_by or b.kept else gone for b in problem.buffers)
    problem = replace(problem, buffers=buffers)
    backwards = reverse(problem)
    for order in all_orders(problem):
        back = turned(order)
        assert backwards.is_valid(back)
        assert backwards.loads(back) == problem.loads(order)[::-1]


@given(problem=problems(), data=st.data())
def test_renumbered_every_order_has_the_same_loads(problem: OrderProblem, data: st.DataObject) -> None:
    numbering = data.draw(st.sampled_from(list(all_orders(problem))))
    renumbered = restricted(problem, numbering)
    for order in all_orders(renumbered):
        assert renumbered.loads(order) == problem.loads([numbering[step] for step in order])


@given(problem=problems(), data=st.data())
def test_the_first_steps_alone_are_a_problem(problem: OrderProblem, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, problem.steps))
    alone = restricted(problem, range(count))
    assert alone.before == problem.before[:count]
    touched = {buffer for buffer in problem.buffers if any(step < count for step in buffer.touched_by)}
    assert len(alone.buffers) == len(touched) + sum(not buffer.touched_by for buffer in problem.buffers)


def test_a_cut_at_a_step_without_freedom() -> None:
    # 0 forks to 1 and 2, which 3 joins; 4 and 5 follow in any order.
    problem = OrderProblem(((), (0,), (0,), (1, 2), (3,), (3,)), (StepBuffer(4, (0, 1, 2)),))
    assert [steps for steps, _ in in_series(problem)] == [[0], [1, 2, 3], [4, 5]]
