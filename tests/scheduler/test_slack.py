"""Slack, pieces and the bound against every order of small problems."""

from __future__ import annotations

from hypothesis import given
from problems import all_orders, least_peak, problems

from mcudeploy.scheduler.problem import Buffer, Problem
from mcudeploy.scheduler.slack import Slack, in_pieces, lower_bound, reverse


@given(problem=problems(6))
def test_asap_and_alap_are_the_first_and_last_places_of_all_orders(problem: Problem) -> None:
    slack = Slack.of(problem)
    places = [{order.index(step) for order in all_orders(problem)} for step in range(problem.steps)]
    assert list(slack.asap) == [min(each) for each in places]
    assert list(slack.alap) == [max(each) for each in places]


@given(problem=problems())
def test_no_order_is_below_the_bound(problem: Problem) -> None:
    assert lower_bound(problem, Slack.of(problem)) <= least_peak(problem)


@given(problem=problems(6))
def test_loads_of_pieces_are_those_of_the_whole(problem: Problem) -> None:
    pieces = in_pieces(problem, Slack.of(problem))
    for order in all_orders(problem):
        loads: list[int] = []
        start = 0
        for steps, piece in pieces:
            inside = [steps.index(step) for step in order[start : start + len(steps)]]
            loads += piece.loads(inside)
            start += len(steps)
        assert loads == problem.loads(order)


@given(problem=problems(6))
def test_backwards_every_order_has_the_same_loads(problem: Problem) -> None:
    touched = tuple(buffer for buffer in problem.buffers if buffer.touched_by or buffer.kept)
    problem = Problem(problem.before, touched)
    turned = reverse(problem)
    for order in all_orders(problem):
        back = [problem.steps - 1 - step for step in reversed(order)]
        assert turned.is_valid(back)
        assert turned.loads(back) == problem.loads(order)[::-1]


def test_the_bound_counts_what_must_live_across_a_step() -> None:
    # 0 makes 100 bytes for 2; 1 lies between and makes 10: at 1 both are there in every order.
    chain = Problem(((), (0,), (1,)), (Buffer(100, (0, 2)), Buffer(10, (1, 2))))
    assert lower_bound(chain, Slack.of(chain)) == 110
