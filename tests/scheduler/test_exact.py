"""The exact search against all orders of small problems."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import all_orders, any_order, least_peak, problems, without_chances

from mcudeploy.scheduler import bestfirst, exact, turns
from mcudeploy.scheduler.bounds import least_needs
from mcudeploy.scheduler.clock import NEVER, Deadline
from mcudeploy.scheduler.contract import contracted
from mcudeploy.scheduler.exact import search
from mcudeploy.scheduler.moves import Moves
from mcudeploy.scheduler.pieces import with_pairs
from mcudeploy.scheduler.probing import Probe, learn
from mcudeploy.scheduler.problem import Buffer, InPlace, Problem
from mcudeploy.scheduler.slack import members


@settings(max_examples=2000, deadline=None)
@given(problems())
def test_finds_the_least_peak_of_all_orders(problem: Problem) -> None:
    best = least_peak(problem)
    upper = range(problem.steps)
    *_, found = search(problem, upper, 0, NEVER)
    assert problem.is_valid(found.order)
    assert problem.peak(found.order) == found.lower_bound_bytes == best
    if problem.peak(upper) == best:
        assert found.order == tuple(upper)


@settings(max_examples=200, deadline=None)
@given(problems())
def test_no_step_can_run_with_less_than_its_least_need(problem: Problem) -> None:
    needs = least_needs(problem, NEVER, 1 << 40)
    for order in all_orders(problem):
        assert all(load >= needs[step] for step, load in zip(order, problem.loads(order), strict=True))


@given(problems().map(without_chances))
def test_some_order_runs_a_step_with_its_least_need(problem: Problem) -> None:
    loads = [zip(order, problem.loads(order), strict=True) for order in all_orders(problem)]
    least = dict(sorted((pair for pairs in loads for pair in pairs), reverse=True))
    assert least == dict(enumerate(least_needs(problem, NEVER, 1 << 40)))


@settings(max_examples=200, deadline=None)
@given(problems(), st.randoms(use_true_random=False))
def test_memory_depends_on_the_set_of_done_steps_alone(problem: Problem, random: object) -> None:
    moves = Moves(problem)
    order, done, ready = [], 0, moves.ready(0)
    needs = []
    memory = moves.memory(0)
    while ready:
        step = random.choice(members(ready))  # type: ignore[attr-defined]
        rise, net = moves.effect(step, done)
        needs.append(memory + rise)
        done |= 1 << step
        memory += net
        assert memory == moves.memory(done)
        ready = moves.ready_after(step, ready, done)
        assert ready == moves.ready(done)
        order.append(step)
    assert problem.is_valid(order) and problem.loads(order) == needs


def test_time_runs_out_with_a_bound_and_the_order_given() -> None:
    steps = 40
    pairs = tuple(Buffer(3 + step % 7, (step, (step * 18 + 5) % steps)) for step in range(steps))
    problem = Problem(((),) * steps, pairs)
    *_, found = search(problem, range(steps), 0, Deadline.after(0.05, inf))
    assert problem.is_valid(found.order)
    assert 0 < found.lower_bound_bytes < problem.peak(found.order) <= problem.peak(range(steps))


@settings(max_examples=200, deadline=None)
@given(problems(), st.data())
def test_every_order_within_a_bound_has_what_was_learned(problem: Problem, data: st.DataObject) -> None:
    peaks = [(problem.peak(order), order) for order in all_orders(problem)]
    bound = data.draw(st.sampled_from(sorted({peak for peak, _ in peaks}))) - data.draw(st.integers(0, 1))
    within = [order for peak, order in peaks if peak <= bound]
    thinkable, pairs = learn(problem, bound, inf, NEVER)
    assert thinkable or not within
    for order in within:
        assert all(order.index(first) < order.index(second) for first, second in pairs)
    if thinkable:
        smaller, numbers = with_pairs(problem, pairs)
        again = Probe(smaller, bound, inf, NEVER)
        assert again.run() and not again.learned
        assert all(problem.is_valid([numbers[step] for step in order]) for order in all_orders(smaller))
        assert all(
            smaller.loads([numbers.index(step) for step in order]) == problem.loads(order) for order in within
        )


@given(problems())
def test_with_no_effort_left_a_bound_stays_open(problem: Problem) -> None:
    best = least_peak(problem)
    thinkable, pairs = learn(problem, best, 0, NEVER)
    assert thinkable
    within = [order for order in all_orders(problem) if problem.peak(order) <= best]
    assert all(order.index(first) < order.index(second) for order in within for first, second in pairs)


@settings(max_examples=200, deadline=None)
@given(problems())
def test_trying_bounds_alone_finds_it_too(problem: Problem) -> None:
    best = least_peak(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "ANNEALINGS", 0)
        patch.setattr(exact, "QUICK_SETS", 0)  # the plain search stops at once
        patch.setattr(bestfirst, "_CLOCK_EVERY", 1)
        patch.setattr(exact, "BEAM_WIDTH", 1)
        *_, found = search(problem, range(problem.steps), 0, NEVER)
    assert problem.peak(found.order) == found.lower_bound_bytes == best


def test_a_bound_that_stays_open_is_tried_again_with_more_effort_only() -> None:
    problem = Problem(((),) * 3, (Buffer(20, (0, 1)), Buffer(30, (1, 2)), Buffer(50, (2,))))
    tried: list[tuple[int, float]] = []

    def gives_up(problem: Problem, bound: int, most_cuts: float, deadline: Deadline) -> object:
        tried.append((bound, most_cuts))
        return True, []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "ANNEALINGS", 0)
        patch.setattr(exact, "best_first", lambda _, floor, *__: bestfirst.Outcome(None, floor))
        patch.setattr(turns, "explore", gives_up)
        patch.setattr(exact, "beam", lambda *_: None)
        *_, found = search(problem, range(3), 30, NEVER)
    assert (problem.peak(found.order), found.lower_bound_bytes) == (80, 30)
    assert len(set(tried)) == len(tried) and max(tried)[0] < 80
    efforts = [exact.TRIAL_CUTS << doublings for doublings in range(exact.MOST_DOUBLINGS + 1)]
    assert [cuts for bound, cuts in tried if bound == 30] == efforts


def times_ten(problem: Problem) -> Problem:
    """All buffers ten times as large: peaks are tens, bounds need not be."""
    buffers = tuple(replace(buffer, size_bytes=10 * buffer.size_bytes) for buffer in problem.buffers)
    return replace(problem, buffers=buffers)


@settings(max_examples=200, deadline=None)
@given(problems().map(times_ten), st.integers(-30, 30))
def test_a_bound_of_another_piece_is_no_proof_for_this_one(problem: Problem, above: int) -> None:
    best = least_peak(problem)
    bound = max(0, best + above)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "ANNEALINGS", 0)
        patch.setattr(exact, "QUICK_SETS", 0)
        patch.setattr(bestfirst, "_CLOCK_EVERY", 1)
        patch.setattr(exact, "BEAM_WIDTH", 1)
        *_, found = search(problem, range(problem.steps), bound, NEVER)
    assert problem.peak(found.order) <= max(bound, best)
    assert found.lower_bound_bytes <= max(bound, best)


@settings(max_examples=200, deadline=None)
@given(problems())
def test_contraction_leaves_an_order_of_least_peak(problem: Problem) -> None:
    smaller, numbers = contracted(problem, NEVER)
    left = [(smaller.peak(order), [numbers[step] for step in order]) for order in all_orders(smaller)]
    assert all(problem.is_valid(order) and problem.peak(order) == peak for peak, order in left)
    assert min(peak for peak, _ in left) == least_peak(problem)


@given(problems(), st.randoms(use_true_random=False))
def test_the_nearest_order_is_valid_and_a_valid_one_is_its_own(problem: Problem, random: Random) -> None:
    places = random.sample(range(problem.steps), problem.steps)
    assert problem.is_valid(exact.nearest(problem, places))
    order = any_order(problem, random)
    assert exact.nearest(problem, problem.places(order)) == order


def test_contraction_puts_a_copy_right_before_its_sum() -> None:
    # 0 makes a tensor; 1 and 2 make copies of it, 3 adds them up; 4 is the last to read the tensor.
    tensors = (
        Buffer(4, (0, 1, 2, 4)),
        Buffer(4, (1, 3)),
        Buffer(4, (2, 3)),
        Buffer(4, (3, 4)),
        Buffer(1, (4,)),
    )
    problem = Problem(((), (0,), (0,), (1, 2), (0, 3)), tensors)
    smaller, _ = contracted(problem, NEVER)
    assert len(list(all_orders(problem))) == 2 and len(list(all_orders(smaller))) == 1


def test_a_step_that_frees_nothing_does_not_spoil_a_choice_in_place() -> None:
    # Once 0 has run, 1 writes its 10 bytes over the single byte: the first chance that applies is taken.
    tensors = Buffer(1, (0, 1), initial=True), Buffer(10, (1,), initial=True), Buffer(10, (1,), kept=True)
    problem = Problem(((), ()), tensors, (InPlace(1, 0, 2), InPlace(1, 1, 2)))
    assert problem.peak([1, 0]) == 11 and problem.peak([0, 1]) == 20
    found = bestfirst.best_first(problem, 11, 20, NEVER, 1000)
    assert found.order == [1, 0] and found.bound_bytes == 11


def test_contraction_does_not_spoil_a_choice_in_place() -> None:
    # Step 0 could wait until right before 2; but then 1 is first to touch buffer 2 and saves one byte for 10.
    sources = Buffer(1, (1,), initial=True), Buffer(10, (1,), initial=True)
    made = Buffer(1, (0, 1)), Buffer(10, (1,), kept=True), Buffer(1, (0, 2)), Buffer(3, (2,), kept=True)
    chances = InPlace(1, 0, 2), InPlace(1, 1, 3)
    problem = Problem(((), (), (0, 1)), (*sources, *made), chances)
    assert problem.peak([0, 1, 2]) == 14 and problem.peak([1, 0, 2]) == 21
    smaller, numbers = contracted(problem, NEVER)
    assert [0, 1, 2] in [[numbers[step] for step in order] for order in all_orders(smaller)]


def test_contraction_minds_what_the_next_step_saves_in_place() -> None:
    # 2 writes its scratch over 0's byte; right before it, 1 would make its byte while two others are there.
    buffers = Buffer(1, (0, 2)), Buffer(1, (1, 2)), Buffer(1, (2,)), Buffer(1, (1, 3), initial=True)
    problem = Problem(((), (), (0, 1), ()), buffers, (InPlace(2, 0, 2),))
    smaller, _ = contracted(problem, NEVER)
    assert least_peak(smaller) == least_peak(problem) == problem.peak((1, 3, 0, 2)) == 2
