"""Heuristics: always valid, never below brute force, and the purpose of each on hand-made graphs."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import all_orders, any_order, least_peak, problems, without_chances

from mcudeploy.common.effort import Effort, endless
from mcudeploy.planner.order.beam import beam
from mcudeploy.planner.order.bounds import sure_needs
from mcudeploy.planner.order.closure import Closure
from mcudeploy.planner.order.order_problem import OrderProblem, StepBuffer, mask_of
from mcudeploy.planner.order.published import refine as refining
from mcudeploy.planner.order.published.chain_dfs import chain_dfs
from mcudeploy.planner.order.published.deferred_updates import with_deferred_updates
from mcudeploy.planner.order.published.lifetime_bfs import lifetime_bfs
from mcudeploy.planner.order.published.refine import refine
from mcudeploy.planner.order.rpo import reverse_post_order_of


@given(problem=problems())
def test_orders_are_valid_and_none_beats_brute_force(problem: OrderProblem) -> None:
    floor = max(sure_needs(problem, Closure.of(problem)))
    best = least_peak(problem)
    orders = [reverse_post_order_of(problem), lifetime_bfs(problem), chain_dfs(problem)]
    orders += [by_beam for width in (1, 4) if (by_beam := beam(problem, width, floor, endless()))]
    assert len(orders) == 5
    for order in orders:
        tuned = refine(problem, order, endless(), floor)
        assert problem.is_valid(order)
        assert problem.is_valid(tuned)
        assert best <= problem.peak(tuned) <= problem.peak(order)


@given(problem=problems())
def test_a_wide_beam_without_chances_in_place_is_exact(problem: OrderProblem) -> None:
    plain = without_chances(problem)
    order = beam(plain, 1000, 0, endless())
    assert order is not None
    assert plain.peak(order) == least_peak(plain)


@given(problem=problems(), data=st.data())
def test_refine_from_any_order(problem: OrderProblem, data: st.DataObject) -> None:
    order = data.draw(st.sampled_from(list(all_orders(problem))))
    tuned = refine(problem, order, endless())
    assert problem.is_valid(tuned)
    assert problem.peak(tuned) <= problem.peak(order)


@given(problem=problems(12), seed=st.integers(0, 99))
def test_a_stretch_in_another_order_is_counted_as_the_whole(problem: OrderProblem, seed: int) -> None:
    random = Random(seed)
    line = refining._Line(problem, any_order(problem, random))
    for _ in range(20):
        start, stop = sorted(random.choices(range(problem.steps + 1), k=2))
        inside = set(line.order[start:stop])
        new = [step for step in any_order(problem, random) if step in inside]
        order = [*line.order[:start], *new, *line.order[stop:]]
        before, fewer = problem.loads(line.order), problem.loads(order)
        if start == stop or not line.try_stretch(start, new):
            order = line.order
        assert line.order == order and problem.is_valid(order)
        assert line.place == problem.places(order)
        assert line.loads == problem.loads(order)
        assert line.done == [mask_of(order[:place]) for place in range(problem.steps + 1)]
        assert line.live == [problem.live(done) for done in line.done]
        assert max(line.loads) <= max(before)
        assert line.loads == before or max(fewer[start:stop]) <= max(before[start:stop])


@given(problem=problems(), data=st.data())
def test_deferred_updates_come_back(problem: OrderProblem, data: st.DataObject) -> None:
    aside = data.draw(st.sets(st.integers(0, problem.steps - 1)))
    order = with_deferred_updates(problem, aside, lambda core: range(core.steps))
    assert problem.is_valid(order)


def two_chains(length: int) -> OrderProblem:
    """A source, two chains of tensors of 50 that end in 1, and a sink: running them in sequence is best."""
    before: list[tuple[int, ...]] = [()]
    buffers = []
    ends = []
    for _ in range(2):
        last = 0
        for at in range(length):
            before.append((last,))
            step = len(before) - 1
            inside = at < length - 1
            buffers.append(StepBuffer(50, (step, step + 1)) if inside else StepBuffer(1, (step,)))
            last = step
        ends.append(last)
    before.append(tuple(ends))
    sink = len(before) - 1
    for end in ends:
        buffers.append(StepBuffer(1, (end, sink)))
    return OrderProblem(tuple(before), tuple(buffers))


@pytest.mark.parametrize("length", [2, 3, 6])
def test_chains_are_not_interleaved(length: int) -> None:
    problem = two_chains(length)
    interleaved = [0, *(1 + at + chain for at in range(length) for chain in (0, length)), problem.steps - 1]
    assert problem.is_valid(interleaved)
    best = problem.peak(chain_dfs(problem))
    assert best < problem.peak(interleaved)
    assert problem.peak(refine(problem, interleaved, endless())) == best


def test_the_reader_that_frees_most_comes_first() -> None:
    # After 0, step 1 frees 100 bytes and allocates 10; step 2 allocates 90 and frees nothing.
    before = ((), (0,), (0,), (1, 2))
    buffers = (StepBuffer(100, (0, 1)), StepBuffer(5, (0, 2)), StepBuffer(10, (1, 3)), StepBuffer(90, (2, 3)))
    problem = OrderProblem(before, buffers)
    assert lifetime_bfs(problem) == (0, 1, 2, 3)


def test_depth_first_finishes_a_branch_before_it_begins_the_next() -> None:
    problem = two_chains(3)
    assert reverse_post_order_of(problem) == tuple(range(8))
    apart = OrderProblem(((), (), (0,), (1,), (3, 2)), ())
    assert reverse_post_order_of(apart) == (1, 3, 0, 2, 4)


def test_refine_stops_at_the_floor_and_without_effort() -> None:
    problem = two_chains(6)
    order = [0, *(step for at in range(6) for step in (1 + at, 7 + at)), 13]
    assert refine(problem, order, endless(), floor=problem.peak(order)) == tuple(order)
    assert refine(problem, order, Effort(0)) == tuple(order)


def test_updates_go_where_there_is_room() -> None:
    # Gradients of 40 each from 0, 1, 2; their updates 3, 4, 5 scale them (40 more) and keep nothing.
    before = ((), (0,), (1,), (0,), (1,), (2,))
    gradients = (StepBuffer(40, (step, step + 3)) for step in range(3))
    scaled = (StepBuffer(40, (step,)) for step in range(3, 6))
    problem = OrderProblem(before, (*gradients, *scaled))
    order = with_deferred_updates(problem, {3, 4, 5}, lambda core: range(core.steps))
    assert order == (0, 3, 1, 4, 2, 5)
    assert problem.peak(order) == 80
    assert problem.peak(range(6)) == 160
