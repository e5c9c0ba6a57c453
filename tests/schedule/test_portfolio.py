"""The portfolio: its `optimal` is true, and a given lower bound limits its result."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import least_peak, problems

from mcudeploy.common.effort import Effort, endless
from mcudeploy.extensions.graphs.order_command import _METHODS
from mcudeploy.extensions.graphs.ordering import AUTO
from mcudeploy.planner.order import portfolio
from mcudeploy.planner.order.order_problem import OrderOutcome, OrderProblem, StepBuffer
from mcudeploy.planner.order.portfolio import DEFAULT, METHODS, best_order


@settings(max_examples=100, deadline=None)
@given(problem=problems(), proofs=st.booleans(), updates=st.sets(st.integers(0, 6)))
def test_status_and_bound_are_right(problem: OrderProblem, proofs: bool, updates: set[int]) -> None:
    methods = set(DEFAULT) - ({"exact"} if not proofs else set())
    order = best_order(problem, endless(), methods, updates=updates)
    best = least_peak(problem)
    assert problem.is_valid(order.order)
    assert problem.peak(order.order) == order.peak_bytes
    assert order.lower_bound_bytes <= best <= order.peak_bytes <= problem.peak(range(problem.steps))
    assert (order.status == "optimal") == (order.lower_bound_bytes == order.peak_bytes)
    if proofs:
        assert (order.status, order.peak_bytes) == ("optimal", best)


@settings(max_examples=20, deadline=None)
@given(problem=problems(), method=st.sampled_from(METHODS))
def test_one_method_alone_is_never_worse_than_the_file(problem: OrderProblem, method: str) -> None:
    order = best_order(problem, endless(), (method,))
    assert problem.is_valid(order.order)
    assert least_peak(problem) <= order.peak_bytes <= problem.peak(range(problem.steps))


def one_after_the_other(first: OrderProblem, second: OrderProblem) -> OrderProblem:
    """Both, with a step between them that depends on all of the first and precedes all of the second."""
    middle, shift = first.steps, first.steps + 1
    before = (
        *first.before,
        tuple(range(middle)),
        *((middle, *(s + shift for s in b)) for b in second.before),
    )
    moved = (replace(b, touched_by=tuple(s + shift for s in b.touched_by)) for b in second.buffers)
    return OrderProblem(before, (*first.buffers, *moved))


def plain(problem: OrderProblem, factor: int) -> OrderProblem:
    """Buffers that some step touches and that are not kept, their sizes scaled; no in-place candidates."""
    buffers = (StepBuffer(factor * b.size_bytes, b.touched_by) for b in problem.buffers if b.touched_by)
    return OrderProblem(problem.before, tuple(buffers))


@pytest.mark.parametrize("method", ["exact", "ilp"])
@settings(max_examples=40, deadline=None)
@given(first=problems(5), second=problems(5), floor=st.integers(0, 60))
def test_the_bound_of_one_component_does_not_inflate_that_of_another(
    method: str, first: OrderProblem, second: OrderProblem, floor: int
) -> None:
    # Peaks of the second component are multiples of ten; those of the first, which sets the floor, are not.
    first = plain(first, 1)
    first = replace(first, buffers=(*first.buffers, StepBuffer(floor, (0,))))
    second = plain(second, 10)
    best = max(least_peak(first), least_peak(second))
    order = best_order(one_after_the_other(first, second), endless(), (method,))
    assert (order.peak_bytes, order.lower_bound_bytes) == (best, best)


def test_a_program_without_a_proof_falls_back_to_the_heuristics_of_its_source() -> None:
    # Pairs of tensors: far more than the effort of the program, and each pair is best made and read at once.
    pairs = 20
    buffers = tuple(StepBuffer(8, (pair, pairs + pair)) for pair in range(pairs))
    problem = OrderProblem((*((),) * pairs, *((pair,) for pair in range(pairs))), buffers)
    order = best_order(problem, Effort(1000), ("ilp",))
    assert (order.peak_bytes, order.method) == (8, "lifetime_bfs") and problem.peak(range(2 * pairs)) == 160


@pytest.mark.parametrize("steps", [0, 1])
def test_nearly_nothing(steps: int) -> None:
    order = best_order(OrderProblem(((),) * steps, ()), Effort(1))
    assert (order.order, order.peak_bytes, order.status) == (tuple(range(steps)), 0, "optimal")


def test_without_effort_the_order_of_the_numbers_is_left() -> None:
    problem = OrderProblem(((), (), (0, 1)), ())
    assert best_order(problem, Effort(0)).order == (0, 1, 2)


def test_the_command_has_all_methods() -> None:
    assert (AUTO, *METHODS) == _METHODS


def test_an_interrupt_keeps_the_best_order_and_what_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two tensors of 8 bytes that are written in sequence, and then read into one byte each.
    buffers = [StepBuffer(8, (0, 2)), StepBuffer(8, (1, 3)), StepBuffer(1, (2, 4)), StepBuffer(1, (3, 4))]
    problem = OrderProblem(((), (), (0,), (1,), (2, 3)), tuple(buffers))
    best = best_order(problem, endless())
    assert best.peak_bytes < problem.peak(range(5))
    asked = iter([OrderOutcome(list(best.order), best.lower_bound_bytes)])

    def search(*_: object) -> OrderOutcome:
        for outcome in asked:
            return outcome
        raise KeyboardInterrupt

    twice = one_after_the_other(problem, problem)
    monkeypatch.setattr(portfolio, "best_first", search)
    monkeypatch.setattr(portfolio, "least_needs", lambda *_: [0])
    monkeypatch.setattr(portfolio, "sure_needs", lambda *_: [0])
    order = best_order(twice, endless(), ("exact",), interruptible=True)
    assert order.order == (*best.order, *range(5, 11))
    assert order.lower_bound_bytes == best.lower_bound_bytes
    with pytest.raises(KeyboardInterrupt):
        best_order(twice, endless(), ("exact",))


def test_a_busy_machine_finds_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    # Pairs of tensors over 120 steps: no search completes within its effort.
    steps = 120
    pairs = tuple(StepBuffer(3 + step % 7, (step, (step * 46 + 5) % steps)) for step in range(steps))
    problem = OrderProblem(((),) * steps, pairs)
    quiet = best_order(problem, Effort.of(0.3))
    assert quiet.status == "feasible" and quiet.peak_bytes < problem.peak(range(steps))
    now = process_time()

    def slow() -> float:
        nonlocal now
        now += 1e-6
        return now

    monkeypatch.setattr("mcudeploy.common.effort.process_time", slow)
    assert best_order(problem, Effort.of(0.3)) == quiet
