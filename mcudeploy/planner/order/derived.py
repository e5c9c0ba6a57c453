"""Problems made of others: time run backwards, the first steps alone, and with more dependences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from graphlib import TopologicalSorter

from mcudeploy.planner.order.order_problem import InPlace, OrderProblem, StepBuffer

Pair = tuple[int, int]
"""A step, and one that comes after it."""


def reverse(problem: OrderProblem) -> OrderProblem:
    """The problem run backwards: step s becomes steps - 1 - s. The orders and their loads are the same, but
    for what is there at first and nobody touches.
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
    """An order of the problem run backwards as one of the problem."""
    return [len(order) - 1 - step for step in reversed(order)]


def restricted(problem: OrderProblem, steps: Sequence[int]) -> OrderProblem:
    """The problem of some steps, numbered anew in the order given, which is valid: all that they wait for are
    among them. Memory that only others touch is not in it.
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
    """The problem with pairs, which contradict nothing, as dependences; and its steps' numbers before."""
    needed = [set(before) for before in problem.before]
    for first, second in pairs:
        needed[second].add(first)
    extended = replace(problem, before=tuple(tuple(sorted(before)) for before in needed))
    order = list(TopologicalSorter(dict(enumerate(extended.before))).static_order())
    return restricted(extended, order), order
