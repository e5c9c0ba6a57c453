"""Compiled cuts against those of another solver, and against all sets of done steps of small problems."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import problems, without_chances

from mcudeploy.scheduler import flow
from mcudeploy.scheduler.arrays import Given, Known
from mcudeploy.scheduler.beam import beam
from mcudeploy.scheduler.bounds import least_needs
from mcudeploy.scheduler.clock import NEVER
from mcudeploy.scheduler.moves import Moves
from mcudeploy.scheduler.pieces import with_pairs
from mcudeploy.scheduler.probing import Probe, learn
from mcudeploy.scheduler.problem import Buffer, Problem
from mcudeploy.scheduler.slack import Slack


def test_compiled_code_is_written_anew_with_its_fields() -> None:
    assert tuple(" ".join(kind._fields) for kind in (Given, Known)) == flow.FIELDS


@settings(max_examples=200, deadline=None)
@given(problems(most_steps=10))
def test_needs_are_those_of_another_solver(problem: Problem) -> None:
    assert _needs(problem) == least_needs(problem, NEVER, 1 << 40)


@settings(max_examples=200, deadline=None)
@given(problems(most_steps=8).map(without_chances), st.data())
def test_all_is_learned_that_cuts_can_tell(problem: Problem, data: st.DataObject) -> None:
    bound = data.draw(st.integers(0, problem.peak(range(problem.steps))))
    thinkable, pairs = learn(problem, bound, inf, NEVER)
    if not thinkable:
        return
    smaller, _ = with_pairs(problem, pairs)
    slack, moves = Slack.of(smaller), Moves(smaller)
    for step in range(smaller.steps):
        sets = [done for done in _sets_before(smaller, step) if _need(moves, step, done) <= bound]
        known = slack.ancestors[step] | slack.descendants[step] | 1 << step
        for other in range(smaller.steps):
            if not known >> other & 1:
                assert {done >> other & 1 for done in sets} == {0, 1}


def test_a_second_word_of_bits_is_read_too() -> None:
    # Sets of more than 64 steps take two words.
    random = Random(1)
    before = tuple(
        tuple(sorted({random.randrange(step) for _ in range(2)} if step else ())) for step in range(90)
    )
    after = Problem(before, ()).after
    problem = Problem(before, tuple(Buffer(random.randint(1, 9), (step, *after[step])) for step in range(90)))
    assert _needs(problem) == least_needs(problem, NEVER, 1 << 40)
    order = beam(problem, 20, 0, NEVER)
    assert order is not None
    thinkable, pairs = learn(problem, problem.peak(order), inf, NEVER)
    assert thinkable and pairs
    assert all(order.index(first) < order.index(second) for first, second in pairs)


def _needs(problem: Problem) -> list[int]:
    probe = Probe(problem, 1 << 40, inf, NEVER)
    assert flow.work_out(probe.given, probe.known, np.arange(problem.steps), probe.bound)
    return probe.known.needs.tolist()


def _sets_before(problem: Problem, step: int) -> Iterator[int]:
    """All sets that hold with every step also those before it, after which a step can run."""
    needs = Moves(problem).needs
    for done in range(1 << problem.steps):
        missing = (need & ~done for other, need in enumerate(needs) if done >> other & 1 or other == step)
        if not done >> step & 1 and not any(missing):
            yield done


def _need(moves: Moves, step: int, done: int) -> int:
    return moves.memory(done) + moves.effect(step, done)[0]
