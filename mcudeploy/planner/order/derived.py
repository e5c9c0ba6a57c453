"""Problems derived from others: reversed in time, restricted to the first steps, with more dependences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from graphlib import TopologicalSorter

from mcudeploy.planner.order.order_problem import InPlace, OrderProblem, StepBuffer, mask_of

Pair = tuple[int, int]
"""A step, and one that comes after it."""


def reverse(problem: OrderProblem) -> OrderProblem:
    """Return the problem in reverse: step s becomes steps - 1 - s.

    Orders and loads are the same, except for initial memory that no step touches.
    """
    last = problem.steps - 1
    return OrderProblem(
        tuple(tuple(last - other for other in problem.after[last - step]) for step in range(problem.steps)),
        tuple(
            StepBuffer(
                buffer.size_bytes,
                tuple(last - step for step in buffer.touched_by),
                initial=buffer.kept,
                kept=buffer.initial or (buffer.kept and not buffer.touched_by),
            )
            for buffer in problem.buffers
        ),
        tuple(InPlace(last - c.step, c.output, c.input) for c in problem.in_place),
    )


def turned(order: Sequence[int]) -> list[int]:
    """Convert an order of the reversed problem to one of the problem."""
    return [len(order) - 1 - step for step in reversed(order)]


def restricted(problem: OrderProblem, steps: Sequence[int]) -> OrderProblem:
    """Return the problem of some steps, renumbered in the given order, which must be valid.

    All predecessors of the steps must be among them. Memory that only other steps touch is excluded.
    """
    number = {step: place for place, step in enumerate(steps)}
    buffers: list[StepBuffer] = []
    renamed: dict[int, int] = {}
    for name, buffer in enumerate(problem.buffers):
        touched = tuple(number[step] for step in buffer.touched_by if step in number)
        if touched or not buffer.touched_by:
            renamed[name] = len(buffers)
            buffers.append(replace(buffer, touched_by=touched))
    return OrderProblem(
        tuple(tuple(number[other] for other in problem.before[step]) for step in steps),
        tuple(buffers),
        tuple(
            InPlace(number[chance.step], renamed[chance.input], renamed[chance.output])
            for chance in problem.chances
            if chance.step in number
        ),
    )


def with_pairs(problem: OrderProblem, pairs: Sequence[Pair]) -> tuple[OrderProblem, list[int]]:
    """Return the problem with consistent pairs as additional dependences; and its steps' previous numbers."""
    needed = [set(before) for before in problem.before]
    for first, second in pairs:
        needed[second].add(first)
    extended = replace(problem, before=tuple(tuple(sorted(before)) for before in needed))
    order = list(TopologicalSorter(dict(enumerate(extended.before))).static_order())
    return restricted(extended, order), order


def without_idle_memory(problem: OrderProblem, order: Sequence[int]) -> list[int]:
    """Return an order whose peak is no larger, with less memory live elsewhere: that leaves room for cuts.

    A step that begins more memory than it ends runs right before the first step that depends on it. One that
    ends more runs right after the last step that it depends on.
    """
    return turned(_postponed(reverse(problem), turned(_postponed(problem, order))))


def _postponed(problem: OrderProblem, order: Sequence[int]) -> list[int]:
    peak, result = problem.peak(order), list(order)
    for step in reversed(order):
        old, dependents = result.index(step), problem.after[step]
        new = next((at for at in range(old + 1, len(result)) if result[at] in dependents), old) - 1
        if new <= old:
            continue
        begun, ended = problem.begun_and_ended(step, mask_of(result[:old] + result[old + 1 : new + 1]))
        moved = [*result[:old], *result[old + 1 : new + 1], step, *result[new + 1 :]]
        if begun > ended and problem.peak(moved) <= peak:  # other steps may no longer write in place
            result = moved
    return result
