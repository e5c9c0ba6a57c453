"""How far each step can move, where an order falls apart into pieces, and a bound that no order can beat.

Sets of steps are integers, one bit per step: of 10,000 steps all ancestors and descendants take 12 MB.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from mcudeploy.scheduler.problem import Buffer, InPlace, Problem


@dataclass(frozen=True, eq=False)
class Slack:
    """For each step the set of its ancestors and of its descendants (bit s is step s, itself not included),
    and the first and last place it can have in any order: `asap` and `alap`.
    """

    ancestors: tuple[int, ...]
    descendants: tuple[int, ...]
    asap: tuple[int, ...]
    alap: tuple[int, ...]

    @classmethod
    def of(cls, problem: Problem) -> Slack:
        """Linear in the edges, times the steps / 64."""
        ancestors, descendants = [0] * problem.steps, [0] * problem.steps
        for step, needed in enumerate(problem.before):
            for other in needed:
                ancestors[step] |= ancestors[other] | 1 << other
        for step in reversed(range(problem.steps)):
            for other in problem.after[step]:
                descendants[step] |= descendants[other] | 1 << other
        asap = tuple(each.bit_count() for each in ancestors)
        alap = tuple(problem.steps - 1 - each.bit_count() for each in descendants)
        return cls(tuple(ancestors), tuple(descendants), asap, alap)


def lower_bound(problem: Problem, slack: Slack) -> int:
    """Bytes that some step finds in memory in every order.

    A buffer is alive during a step that comes after one of the steps that touch it, and before one of them.
    """
    if not problem.steps:
        return 0
    loads = np.zeros(problem.steps, np.int64)
    everything = (1 << problem.steps) - 1
    for buffer in problem.buffers:
        if not buffer.touched_by and not buffer.kept:
            continue  # gone after the first step, whichever that is
        begun = everything if buffer.initial or not buffer.touched_by else 0
        wanted = everything if buffer.kept else 0
        for step in buffer.touched_by:
            begun |= slack.descendants[step] | 1 << step
            wanted |= slack.ancestors[step] | 1 << step
        loads[_places(begun & wanted, problem.steps)] += buffer.size_bytes
    saved = np.zeros(problem.steps, np.int64)
    for chance in problem.in_place:
        smaller = min(problem.buffers[chance.input].size_bytes, problem.buffers[chance.output].size_bytes)
        saved[chance.step] = max(saved[chance.step], smaller)
    return int((loads - saved).max())


def _places(steps: int, count: int) -> np.ndarray:
    """A set of steps as a Boolean array."""
    packed = np.frombuffer(steps.to_bytes((count + 7) // 8, "little"), np.uint8)
    return np.unpackbits(packed, bitorder="little", count=count).view(bool)


def in_pieces(problem: Problem, slack: Slack) -> list[tuple[list[int], Problem]]:
    """Every order falls into these pieces, one after the other: a step without slack ends one.

    For each its steps, ascending, and the problem of ordering them: its step i is steps[i]. Loads are those
    of the whole problem: what lives before and after a piece is there in it all the time.
    """
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
