"""What turns of chosen steps tell, against all orders of small problems."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import all_orders, least_peak, problems, without_chances

from mcudeploy.scheduler import flow, turns
from mcudeploy.scheduler.clock import NEVER, Deadline
from mcudeploy.scheduler.moves import Moves
from mcudeploy.scheduler.pieces import with_pairs
from mcudeploy.scheduler.probing import Probe, learn
from mcudeploy.scheduler.problem import Buffer, Problem
from mcudeploy.scheduler.turns import Search, explore

_EFFORTS = (0, 10, 100, inf)


@settings(max_examples=500, deadline=None)
@given(problems(), st.data())
def test_every_order_within_a_bound_has_what_was_learned(problem: Problem, data: st.DataObject) -> None:
    bound, within = _within_a_bound(problem, data)
    thinkable, pairs = explore(problem, bound, data.draw(st.sampled_from(_EFFORTS)), NEVER)
    assert thinkable or not within
    for order in within:
        assert all(order.index(first) < order.index(second) for first, second in pairs)
    if thinkable:
        smaller, numbers = with_pairs(problem, pairs)
        assert all(problem.is_valid([numbers[step] for step in order]) for order in all_orders(smaller))


@settings(max_examples=500, deadline=None)
@given(problems(), st.data())
def test_the_turns_of_every_order_within_a_bound_stay(problem: Problem, data: st.DataObject) -> None:
    bound, within = _within_a_bound(problem, data)
    probe = Probe(problem, bound, data.draw(st.sampled_from(_EFFORTS)), NEVER)
    thinkable = probe.run()
    probe.deadline = _Looks(data.draw(st.sampled_from((1, 3, 10, 1000))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turns, "_CANDIDATES", data.draw(st.sampled_from((1, 30))))
        patch.setattr(turns, "_CHUNK", data.draw(st.sampled_from((1, 2, 100))))
        patch.setattr(turns, "_SAMPLE", data.draw(st.sampled_from((1, 30))))
        search = Search(probe)
        thinkable = thinkable and search.run(data.draw(st.sampled_from(_EFFORTS)))
    assert thinkable or not within
    chosen = search.chosen.tolist()
    kept = set(zip(search.turns.done.tolist(), search.turns.place.tolist(), strict=True))
    for order in within:
        done = 0
        for place in (chosen.index(step) for step in order if step in chosen):
            assert (done, place) in kept
            done |= 1 << place


@settings(max_examples=500, deadline=None)
@given(problems(), st.data())
def test_sets_of_a_turn_are_done_before_it_and_fit(any_problem: Problem, data: st.DataObject) -> None:
    problem = without_chances(any_problem)  # what a chance saves, a cut takes for granted
    bound, _ = _within_a_bound(problem, data)
    probe = Probe(problem, bound, 0, NEVER)
    search = Search(probe)
    if not probe.run() or not search.run(inf):
        return
    moves, chosen = Moves(problem), search.chosen.tolist()
    for done, place, need, *sets in zip(*search.turns, strict=True):
        step = chosen[place]
        for words in sets:
            made = int(words[0])  # small problems have one word
            assert all(made >> other & 1 == int(done) >> k & 1 for k, other in enumerate(chosen))
            assert not any(
                needs & ~made for other, needs in enumerate(moves.needs) if made >> other & 1 or other == step
            )
            assert moves.memory(made) + moves.effect(step, made)[0] == need <= bound


class _Looks(Deadline):
    """Passes after so many looks at the clock."""

    def __init__(self, looks: int) -> None:
        super().__init__(inf, inf)
        object.__setattr__(self, "looks", iter(range(looks)))

    def passed(self) -> bool:
        return next(self.looks, None) is None


def _within_a_bound(problem: Problem, data: st.DataObject) -> tuple[int, list[tuple[int, ...]]]:
    """A bound that some orders just meet, or miss by one, and all orders within it."""
    peaks = [(problem.peak(order), order) for order in all_orders(problem)]
    bound = data.draw(st.sampled_from(sorted({peak for peak, _ in peaks}))) - data.draw(st.integers(0, 1))
    return bound, [order for peak, order in peaks if peak <= bound]


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


def test_turns_refute_what_one_step_at_a_time_does_not() -> None:
    problem, bound = _REFUTED
    assert learn(problem, bound, inf, NEVER)[0]
    assert not explore(problem, bound, inf, NEVER)[0]
    assert bound < least_peak(problem)


def test_a_limit_that_is_no_whole_number_of_cuts_ends_it() -> None:
    problem, bound = _REFUTED
    probe = Probe(problem, bound, 0, NEVER)
    work = next(work for work in range(1, 1000) if int(work / flow.WORTH * flow.WORTH) < work)
    probe.known.counts[flow.WORK], probe.most_cuts = work, work / flow.WORTH
    assert probe.run()


def test_at_the_deadline_it_ends_with_what_was_learned() -> None:
    problem, bound = _REFUTED
    thinkable, pairs = explore(problem, bound, inf, Deadline(0, 0))
    assert thinkable and all(first in problem.before[second] for first, second in pairs)
