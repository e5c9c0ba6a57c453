"""Problems made of others: the pieces that every order falls into, some steps alone, time run backwards, and
with more dependences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from graphlib import TopologicalSorter
from itertools import accumulate

import numpy as np

from mcudeploy.scheduler.problem import Buffer, InPlace, Problem
from mcudeploy.scheduler.slack import Slack

Pair = tuple[int, int]
"""A step, and one that comes after it."""


def in_pieces(problem: Problem) -> list[tuple[list[int], Problem]]:
    """Every order falls into these pieces, one after the other: a step without slack ends one.

    For each its steps, ascending, and the problem of ordering them: its step i is steps[i]. Loads are those
    of the whole problem: what lives before and after a piece is there in it all the time.
    """
    slack = Slack.of(problem)
    ends = sorted(place for place, last in zip(slack.asap, slack.alap, strict=True) if place == last)
    found = np.searchsorted(np.asarray(ends, np.int64), np.asarray(slack.asap, np.int64), side="left")
    numbering = {piece: place for place, piece in enumerate(sorted(set(found.tolist())))}
    piece_of = [numbering[piece] for piece in found.tolist()]
    steps: list[list[int]] = [[] for _ in numbering]
    number = [0] * problem.steps
    for step, piece in enumerate(piece_of):
        number[step] = len(steps[piece])
        steps[piece].append(step)
    buffers: list[list[Buffer]] = [[] for _ in steps]
    renamed: dict[tuple[int, int], int] = {}
    always = [0] * (len(steps) + 1)
    for name, buffer in enumerate(problem.buffers):
        touched: dict[int, list[int]] = {}
        for step in buffer.touched_by:
            touched.setdefault(piece_of[step], []).append(number[step])
        begin = 0 if buffer.initial else min(touched, default=0)
        end = len(steps) - 1 if buffer.kept else max(touched, default=0 if buffer.initial else -1)
        always[begin] += buffer.size_bytes
        always[end + 1] -= buffer.size_bytes
        for piece in {begin, end, *touched} if begin <= end else ():
            own = Buffer(
                buffer.size_bytes,
                tuple(touched.get(piece, ())),
                initial=piece > begin or buffer.initial,
                kept=piece < end or buffer.kept,
            )
            if not (own.kept and (own.initial or not own.touched_by)):
                always[piece] -= buffer.size_bytes
                always[piece + 1] += buffer.size_bytes
                renamed[piece, name] = len(buffers[piece])
                buffers[piece].append(own)
    for inside, constant in zip(buffers, accumulate(always), strict=False):
        inside.append(Buffer(constant, (), initial=True, kept=True))
    chances: list[list[InPlace]] = [[] for _ in steps]
    for chance in problem.chances:
        piece = piece_of[chance.step]
        before, after = renamed.get((piece, chance.input)), renamed.get((piece, chance.output))
        if before is not None and after is not None:
            chances[piece].append(InPlace(number[chance.step], before, after))
    return [
        (
            own,
            Problem(
                tuple(
                    tuple(number[other] for other in problem.before[step] if piece_of[other] == piece)
                    for step in own
                ),
                tuple(buffers[piece]),
                tuple(chances[piece]),
            ),
        )
        for piece, own in enumerate(steps)
    ]


def reverse(problem: Problem) -> Problem:
    """The problem run backwards: step s becomes steps - 1 - s. The orders and their loads are the same, but
    for what is there at first and nobody touches.
    """
    last = problem.steps - 1
    return Problem(
        tuple(tuple(last - other for other in problem.after[last - step]) for step in range(problem.steps)),
        tuple(
            Buffer(
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


def restricted(problem: Problem, steps: Sequence[int]) -> Problem:
    """The problem of some steps, numbered anew in the order given, which is valid: all that they wait for are
    among them. Memory that only others touch is not in it.
    """
    number = {step: place for place, step in enumerate(steps)}
    buffers: list[Buffer] = []
    renamed: dict[int, int] = {}
    for name, buffer in enumerate(problem.buffers):
        touched = tuple(number[step] for step in buffer.touched_by if step in number)
        if touched or not buffer.touched_by:
            renamed[name] = len(buffers)
            buffers.append(replace(buffer, touched_by=touched))
    return Problem(
        tuple(tuple(number[other] for other in problem.before[step]) for step in steps),
        tuple(buffers),
        tuple(
            InPlace(number[chance.step], renamed[chance.input], renamed[chance.output])
            for chance in problem.chances
            if chance.step in number
        ),
    )


def with_pairs(problem: Problem, pairs: Sequence[Pair]) -> tuple[Problem, list[int]]:
    """The problem with pairs, which contradict nothing, as dependences; and its steps' numbers before."""
    needed = [set(before) for before in problem.before]
    for first, second in pairs:
        needed[second].add(first)
    extended = replace(problem, before=tuple(tuple(sorted(before)) for before in needed))
    order = list(TopologicalSorter(dict(enumerate(extended.before))).static_order())
    return restricted(extended, order), order
