"""What suppositions teach, against all orders of small problems."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import all_orders, least_peak, problems

from mcudeploy.scheduler import flow, shaving
from mcudeploy.scheduler.arrays import WORK
from mcudeploy.scheduler.clock import NEVER, Deadline
from mcudeploy.scheduler.pieces import with_pairs
from mcudeploy.scheduler.probing import Probe, learn
from mcudeploy.scheduler.problem import Buffer, Problem
from mcudeploy.scheduler.shaving import shave


@settings(max_examples=500, deadline=None)
@given(problems(), st.data())
def test_every_order_within_a_bound_has_what_was_learned(problem: Problem, data: st.DataObject) -> None:
    peaks = [(problem.peak(order), order) for order in all_orders(problem)]
    bound = data.draw(st.sampled_from(sorted({peak for peak, _ in peaks}))) - data.draw(st.integers(0, 1))
    most_cuts = data.draw(st.sampled_from((0, 10, 100, inf)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shaving, "SUPPOSED_SHARE", data.draw(st.sampled_from((0.01, 0.1, 1.0))))
        patch.setattr(shaving, "_ROUND", data.draw(st.sampled_from((1, 8))))
        thinkable, pairs = shave(problem, bound, most_cuts, NEVER)
    within = [order for peak, order in peaks if peak <= bound]
    assert thinkable or not within
    for order in within:
        assert all(order.index(first) < order.index(second) for first, second in pairs)
    if thinkable:
        smaller, numbers = with_pairs(problem, pairs)
        assert all(problem.is_valid([numbers[step] for step in order]) for order in all_orders(smaller))


@settings(max_examples=500, deadline=None)
@given(problems(), st.data())
def test_a_supposition_leaves_what_was_known(problem: Problem, data: st.DataObject) -> None:
    bound = least_peak(problem) + data.draw(st.integers(0, 5))
    probe = Probe(problem, bound, inf, NEVER)
    assert probe.run()
    steps = range(problem.steps)
    open_pairs = [(a, b) for a in steps for b in steps if a != b and not probe.decided(a, b)]
    assert any(probe.leaves_open(step) for step in steps) == bool(open_pairs)
    if not open_pairs:
        return
    first, second = data.draw(st.sampled_from(open_pairs))
    before = _state(probe)
    within = [order for order in all_orders(problem) if problem.peak(order) <= bound]
    supposed = probe.supposing(first, second, inf)
    thinkable = supposed.run()
    assert _state(probe) == before
    agreeing = [order for order in within if order.index(first) < order.index(second)]
    assert thinkable or not agreeing
    if thinkable:
        for order in agreeing:
            assert all(order.index(a) < order.index(b) for a, b in supposed.pairs())


def _state(probe: Probe) -> object:
    return [array.tobytes() for array in probe.known]


_TENSORS = (
    Buffer(4, (0, 1, 2, 3, 5)),
    Buffer(5, (1, 4)),
    Buffer(5, (2, 4)),
    Buffer(2, (3, 4)),
    Buffer(1, (4,)),
    Buffer(5, (5,)),
    Buffer(2, (6,)),
)
_REFUTED = Problem(((), (0,), (0,), (0,), (1, 2, 3), (0,), ()), _TENSORS), 15


def test_a_supposition_refutes_what_one_step_at_a_time_does_not() -> None:
    problem, bound = _REFUTED
    assert learn(problem, bound, inf, NEVER)[0]
    assert not shave(problem, bound, inf, NEVER)[0]
    assert bound < least_peak(problem)


def test_a_limit_that_is_no_whole_number_of_cuts_ends_it() -> None:
    problem, bound = _REFUTED
    probe = Probe(problem, bound, 0, NEVER)
    work = next(work for work in range(1, 1000) if int(work / flow.WORTH * flow.WORTH) < work)
    probe.known.counts[WORK], probe.most_cuts = work, work / flow.WORTH
    assert probe.run()


def test_at_the_deadline_it_ends_with_what_was_learned() -> None:
    problem, bound = _REFUTED
    thinkable, pairs = shave(problem, bound, inf, Deadline(0, 0))
    assert thinkable and all(first in problem.before[second] for first, second in pairs)
