"""The portfolio: what it calls optimal is, and what it is given bounds what it returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import least_peak, problems

from mcudeploy.cli.schedule import _METHODS
from mcudeploy.ordering import AUTO
from mcudeploy.scheduler import anneal, bestfirst, exact
from mcudeploy.scheduler.portfolio import HEURISTICS, METHODS, best_order
from mcudeploy.scheduler.problem import Buffer, Problem, Solution


@settings(max_examples=100, deadline=None)
@given(problem=problems(), proofs=st.booleans(), wide=st.booleans(), aside=st.sets(st.integers(0, 6)))
def test_status_and_bound_are_right(problem: Problem, proofs: bool, wide: bool, aside: set[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "WIDE_STEPS", 0 if wide else 200)
        patch.setattr(anneal, "_MOVES", 50)
        found = best_order(problem, 60, aside, METHODS if proofs else HEURISTICS)
    best = least_peak(problem)
    assert problem.is_valid(found.order)
    assert problem.peak(found.order) == found.peak_bytes
    assert found.lower_bound_bytes <= best <= found.peak_bytes <= problem.peak(range(problem.steps))
    assert (found.status == "optimal") == (found.lower_bound_bytes == found.peak_bytes)
    if proofs:
        assert (found.status, found.peak_bytes) == ("optimal", best)


@settings(max_examples=20, deadline=None)
@given(problem=problems(), method=st.sampled_from(METHODS))
def test_one_method_alone_is_never_worse_than_the_file(problem: Problem, method: str) -> None:
    found = best_order(problem, 60, methods=(method,))
    assert problem.is_valid(found.order)
    assert least_peak(problem) <= found.peak_bytes <= problem.peak(range(problem.steps))


def one_after_the_other(first: Problem, second: Problem) -> Problem:
    """Both, with a step between them that waits for all of the first and that all of the second wait for."""
    middle, shift = first.steps, first.steps + 1
    before = (
        *first.before,
        tuple(range(middle)),
        *((middle, *(s + shift for s in b)) for b in second.before),
    )
    moved = (replace(b, touched_by=tuple(s + shift for s in b.touched_by)) for b in second.buffers)
    return Problem(before, (*first.buffers, *moved))


def plain(problem: Problem, factor: int) -> Problem:
    """Buffers that some step touches and that do not stay, so many times as large; nothing in place."""
    buffers = (Buffer(factor * b.size_bytes, b.touched_by) for b in problem.buffers if b.touched_by)
    return Problem(problem.before, tuple(buffers))


@pytest.mark.parametrize("method", ["exact", "ilp"])
@settings(max_examples=40, deadline=None)
@given(first=problems(5), second=problems(5), floor=st.integers(0, 60))
def test_the_bound_of_one_piece_does_not_inflate_that_of_another(
    method: str, first: Problem, second: Problem, floor: int
) -> None:
    # Peaks of the second piece are tens, those of the first, which gives the floor, are not.
    first = plain(first, 1)
    first = replace(first, buffers=(*first.buffers, Buffer(floor, (0,))))
    second = plain(second, 10)
    best = max(least_peak(first), least_peak(second))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "ANNEALINGS", 0)
        patch.setattr(exact, "QUICK_SETS", 0)
        patch.setattr(bestfirst, "_CLOCK_EVERY", 1)
        found = best_order(one_after_the_other(first, second), 60, methods=(method,))
    assert (found.peak_bytes, found.lower_bound_bytes) == (best, best)


@pytest.mark.parametrize("steps", [0, 1])
def test_nearly_nothing(steps: int) -> None:
    found = best_order(Problem(((),) * steps, ()), 1)
    assert (found.order, found.peak_bytes, found.status) == (tuple(range(steps)), 0, "optimal")


def test_without_time_the_order_of_the_numbers_is_left() -> None:
    problem = Problem(((), (), (0, 1)), ())
    assert best_order(problem, 0).order == (0, 1, 2)


def test_the_command_has_all_methods() -> None:
    assert (AUTO, *METHODS) == _METHODS


def test_an_interrupt_keeps_the_best_order_and_what_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two tensors of 8 bytes that are made one after the other, and then read into one of a byte each.
    buffers = [Buffer(8, (0, 2)), Buffer(8, (1, 3)), Buffer(1, (2, 4)), Buffer(1, (3, 4))]
    problem = Problem(((), (), (0,), (1,), (2, 3)), tuple(buffers))
    best = best_order(problem, 10)
    assert best.peak_bytes < problem.peak(range(5))

    def search(*_: object) -> Iterator[Solution]:
        yield Solution(best.order, best.lower_bound_bytes)
        raise KeyboardInterrupt

    monkeypatch.setattr(exact, "search", search)
    monkeypatch.setattr("mcudeploy.scheduler.portfolio.least_needs", lambda *_: [0])
    monkeypatch.setattr("mcudeploy.scheduler.portfolio.sure_needs", lambda *_: [0])
    assert best_order(problem, 10, methods=("exact", "ilp"), interruptible=True) == replace(
        best, method="exact"
    )
    with pytest.raises(KeyboardInterrupt):
        best_order(problem, 10, methods=("exact", "ilp"))
