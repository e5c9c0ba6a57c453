"""Dependences that cost nothing: some order of least peak has them, so that a search need not look elsewhere.

A step that all its followers reach through one, the next, and that never leaves less memory than it found,
may wait until right before the next: in between there is no more memory without it. So a scaled copy of a
tensor is made when it is added to the others, not before. Backwards in time the same holds of a step that
never leaves more than it found: it may follow right behind the one it waits for.
"""

from __future__ import annotations

import time
from dataclasses import replace

from mcudeploy.scheduler.moves import ancestors, choosers, mask_of
from mcudeploy.scheduler.probing import Pair, with_pairs
from mcudeploy.scheduler.problem import InPlace, Problem


def contracted(problem: Problem, deadline: float) -> tuple[Problem, list[int]]:
    """The problem with such dependences, its steps numbered anew; and for each the number it had.

    Its least peak is that of the problem, and its orders are orders of the problem. At `deadline`
    (time.monotonic) those that were found so far. Work: the square of the steps.
    """
    numbers = list(range(problem.steps))
    if any(buffer.initial and not buffer.kept and not buffer.touched_by for buffer in problem.buffers):
        return problem, numbers  # memory that the first step alone shares: places are not alike
    for _ in range(2):
        for turn in (_delayed, _hastened):
            problem, renumbered = turn(problem, deadline)
            numbers = [numbers[step] for step in renumbered]
    return problem, numbers


def _delayed(problem: Problem, deadline: float) -> tuple[Problem, list[int]]:
    numbers = list(range(problem.steps))
    before = ancestors(problem)
    for last in reversed(range(problem.steps)):
        if time.monotonic() > deadline:
            break
        step = numbers.index(last)  # what comes late first: what waits for it then has one next step less
        pairs = _delay(problem, before, step)
        if pairs:
            problem, renumbered = with_pairs(problem, pairs)
            numbers = [numbers[one] for one in renumbered]
            before = ancestors(problem)
    return problem, numbers


def _hastened(problem: Problem, deadline: float) -> tuple[Problem, list[int]]:
    backwards, numbers = _delayed(_backwards(problem), deadline)
    end = problem.steps - 1
    return _backwards(backwards), [end - step for step in reversed(numbers)]


def _backwards(problem: Problem) -> Problem:
    """The problem in reverse time; step s is numbered from the end."""
    end = problem.steps - 1
    buffers = (
        replace(
            buffer,
            touched_by=tuple(end - step for step in buffer.touched_by),
            initial=buffer.kept,
            kept=buffer.initial,
        )
        for buffer in problem.buffers
    )
    return Problem(
        tuple(tuple(sorted(end - other for other in after)) for after in reversed(problem.after)),
        tuple(buffers),
        tuple(InPlace(end - chance.step, chance.output, chance.input) for chance in problem.chances),
    )


def _delay(problem: Problem, before: list[int], step: int) -> list[Pair]:
    """The dependences that put a step right before the next, if that costs nothing."""
    if not problem.after[step]:
        return []
    behind = mask_of(other for other, mask in enumerate(before) if mask >> step & 1)
    following = min(problem.after[step])
    beyond = mask_of(other for other, mask in enumerate(before) if mask >> following & 1)
    if behind != beyond | 1 << following or _disturbs(problem, before, behind, step):
        return []
    made, freed = _change(problem, behind, step)
    begun, _ = _change(problem, beyond, following)
    begun += sum(problem.buffers[b].size_bytes for b in _own(problem, following))
    saved = [c for c in problem.chances if c.step == following]
    begun -= max((min(_size(problem, c.input), _size(problem, c.output)) for c in saved), default=0)
    own = sum(problem.buffers[b].size_bytes for b in _own(problem, step))
    if freed > made or freed + own > begun:
        return []
    needed = problem.before[following]
    return [(other, step) for other in needed if other != step and not before[step] >> other & 1]


def _change(problem: Problem, behind: int, step: int) -> tuple[int, int]:
    """Bytes that a step is sure to add to memory, and bytes that it may free of what was there before."""
    made = freed = 0
    for number in problem.touches[step]:
        buffer = problem.buffers[number]
        others = mask_of(buffer.touched_by) & ~(1 << step)
        first = not buffer.initial and not others & ~behind
        if first and (others or buffer.kept):
            made += buffer.size_bytes
        elif not first and not buffer.kept and not others & behind:
            freed += buffer.size_bytes
    return made, freed


def _own(problem: Problem, step: int) -> list[int]:
    """The scratch of a step."""
    return [
        number
        for number in problem.touches[step]
        if len(set(problem.buffers[number].touched_by)) == 1
        and not (problem.buffers[number].initial or problem.buffers[number].kept)
    ]


def _size(problem: Problem, buffer: int) -> int:
    return problem.buffers[buffer].size_bytes


def _disturbs(problem: Problem, before: list[int], behind: int, step: int) -> bool:
    """Whether another step may come to save less in place; see `Moves` for why it must have a choice."""
    related = before[step] | behind | 1 << step
    choices = choosers(problem)
    return any(
        not related >> other & 1 for buffer in problem.touches[step] for other in choices.get(buffer, ())
    )
