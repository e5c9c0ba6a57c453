"""Dependences that cost nothing: some order of least peak has them, so that a search need not look elsewhere.

A step that all its followers reach through one, the next, and that never leaves less memory than it found,
may wait until right before the next: in between there is no more memory without it. So a scaled copy of a
tensor is made when it is added to the others, not before. Backwards in time the same holds of a step that
never leaves more than it found: it may follow right behind the one it waits for.
"""

from __future__ import annotations

from mcudeploy.scheduler.clock import Deadline
from mcudeploy.scheduler.moves import movable
from mcudeploy.scheduler.pieces import Pair, reverse, turned, with_pairs
from mcudeploy.scheduler.problem import Problem
from mcudeploy.scheduler.slack import Slack, mask_of


def contracted(problem: Problem, deadline: Deadline) -> tuple[Problem, list[int]]:
    """The problem with such dependences, its steps numbered anew; and for each the number it had.

    Its least peak is that of the problem, and its orders are orders of the problem. At `deadline` those that
    were found so far. Work: the square of the steps.
    """
    numbers = list(range(problem.steps))
    if any(buffer.initial and not buffer.kept and not buffer.touched_by for buffer in problem.buffers):
        return problem, numbers  # memory that the first step alone shares: places are not alike
    for _ in range(2):
        for turn in (_delayed, _hastened):
            problem, renumbered = turn(problem, deadline)
            numbers = [numbers[step] for step in renumbered]
    return problem, numbers


def _delayed(problem: Problem, deadline: Deadline) -> tuple[Problem, list[int]]:
    numbers = list(range(problem.steps))
    slack = Slack.of(problem)
    free = movable(problem, slack)
    for last in reversed(range(problem.steps)):
        if deadline.passed():
            break
        step = numbers.index(last)  # what comes late first: what waits for it then has one next step less
        pairs = _delay(problem, slack, step) if free >> step & 1 else []
        if pairs:
            problem, renumbered = with_pairs(problem, pairs)
            numbers = [numbers[one] for one in renumbered]
            slack = Slack.of(problem)
            free = movable(problem, slack)
    return problem, numbers


def _hastened(problem: Problem, deadline: Deadline) -> tuple[Problem, list[int]]:
    backwards, numbers = _delayed(reverse(problem), deadline)
    return reverse(backwards), turned(numbers)


def _delay(problem: Problem, slack: Slack, step: int) -> list[Pair]:
    """The dependences that put a step right before the next, if that costs nothing."""
    if not problem.after[step]:
        return []
    following = min(problem.after[step])
    behind, beyond = slack.descendants[step], slack.descendants[following]
    if behind != beyond | 1 << following:
        return []
    made, freed = _change(problem, behind, step)
    begun, _ = _change(problem, beyond, following)
    begun += _scratch(problem, following) - problem.most_saved(following)
    if freed > made or freed + _scratch(problem, step) > begun:
        return []
    needed = problem.before[following]
    return [(other, step) for other in needed if other != step and not slack.ancestors[step] >> other & 1]


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


def _scratch(problem: Problem, step: int) -> int:
    """Bytes that are there for one step only."""
    buffers = (problem.buffers[number] for number in problem.touches[step])
    return sum(
        buffer.size_bytes
        for buffer in buffers
        if len(buffer.touched_by) == 1 and not (buffer.initial or buffer.kept)
    )
