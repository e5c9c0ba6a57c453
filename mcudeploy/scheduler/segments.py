"""Where every order has the same steps behind it: there a problem falls into parts that are solved apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mcudeploy.scheduler.moves import ancestors, mask_of, members
from mcudeploy.scheduler.problem import Buffer, InPlace, Problem


def segments(problem: Problem) -> list[tuple[int, ...]]:
    """The steps of each part, ascending. A part ends with a step that has no slack: each other step must come
    before it or after it. The peak of an order is the largest of its parts.
    """
    before = ancestors(problem)
    behind = [0] * problem.steps
    for step, mask in enumerate(before):
        for other in members(mask):
            behind[other] |= 1 << step
    everything = (1 << problem.steps) - 1
    ends = sorted(
        (
            before[step] | 1 << step
            for step in range(problem.steps)
            if _covers(before, behind, step, everything)
        ),
        key=int.bit_count,
    )
    parts, last = [], 0
    for end in [*ends, everything]:
        if end != last:
            parts.append(tuple(members(end ^ last)))
        last = end
    return parts


def part_of(problem: Problem, steps: Sequence[int], earlier: int) -> Problem:
    """The problem of some steps alone, numbered anew in the order given; `earlier`: the steps before them.

    What earlier steps have begun is there from the start, what later steps need stays to the end.
    """
    number = {step: place for place, step in enumerate(steps)}
    inside = mask_of(tuple(steps))
    later = ~(inside | earlier)
    buffers: list[Buffer] = []
    kept_number: dict[int, int] = {}
    chances: list[InPlace] = []
    for index, buffer in enumerate(problem.buffers):
        mask = mask_of(buffer.touched_by)
        begun = bool(mask & earlier) or (buffer.initial and (bool(mask) or not earlier))
        needed = bool(mask & later) or buffer.kept
        if not (mask & inside or (needed and (begun or not mask)) or (begun and not mask)):
            continue
        kept_number[index] = len(buffers)
        touched = tuple(number[step] for step in buffer.touched_by if step in number)
        buffers.append(replace(buffer, touched_by=touched, initial=begun, kept=needed))
    for chance in problem.chances:
        if chance.step in number:
            chances.append(
                InPlace(number[chance.step], kept_number[chance.input], kept_number[chance.output])
            )
    before = tuple(
        tuple(number[other] for other in problem.before[step] if other in number) for step in steps
    )
    return Problem(before, tuple(buffers), tuple(chances))


def _covers(before: list[int], behind: list[int], step: int, everything: int) -> bool:
    return before[step] | behind[step] | 1 << step == everything
