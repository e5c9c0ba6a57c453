"""Dependences that cost nothing: some order of least peak has them, so that a search need not look elsewhere.

A step that all its followers reach through one, the next, and that never leaves less memory than it found,
may wait until right before the next: in between there is no more memory without it. So a scaled copy of a
tensor is made when it is added to the others, not before. Backwards in time the same holds of a step that
never leaves more than it found: it may follow right behind the one it waits for.
"""

from __future__ import annotations

from mcudeploy.common.effort import Effort
from mcudeploy.planner.order.closure import Closure
from mcudeploy.planner.order.derived import Pair, reverse, turned, with_pairs
from mcudeploy.planner.order.exact import Choosers
from mcudeploy.planner.order.order_problem import OrderProblem, members

_STEP_UNITS, _ANCESTOR_UNITS = 40.0, 0.5
"""Effort for each step of the problem, and for each that comes before another now."""


def contracted(problem: OrderProblem, effort: Effort) -> tuple[OrderProblem, list[int]]:
    """The problem with such dependences, its steps numbered anew; and for each the number it had.

    Its least peak is that of the problem, and its orders are orders of the problem. With the effort it ends,
    with those that were found.
    """
    numbers = list(range(problem.steps))
    if any(buffer.initial and not buffer.kept and not buffer.touched_by for buffer in problem.buffers):
        return problem, numbers  # memory that the first step alone shares: places are not alike
    for _ in range(2):
        problem, renumbered = with_pairs(problem, _delays(problem, effort))
        numbers = [numbers[step] for step in renumbered]
        backwards, renumbered = with_pairs(reverse(problem), _delays(reverse(problem), effort))
        problem, numbers = reverse(backwards), [numbers[step] for step in turned(renumbered)]
    return problem, numbers


def _delays(problem: OrderProblem, effort: Effort) -> list[Pair]:
    """The dependences that put steps right before the next, where that costs nothing."""
    closure, choosers = Closure.of(problem), Choosers(problem)
    ancestors, descendants = list(closure.ancestors), list(closure.descendants)
    before, after = list(problem.needs), [list(each) for each in problem.after]
    pairs: list[Pair] = []
    for step in reversed(range(problem.steps)):  # late ones first: what waits for them has one next step less
        effort.spend(_STEP_UNITS)
        if effort.is_spent():
            break
        behind = descendants[step]
        following = next((other for other in after[step] if behind == descendants[other] | 1 << other), None)
        if following is None or choosers.near(step) & ~(ancestors[step] | behind | 1 << step):
            continue
        if not _can_wait(problem, step, following, behind):
            continue
        fresh = before[following] & ~(ancestors[step] | 1 << step)
        before[step] |= fresh
        for other in members(fresh):
            pairs.append((other, step))
            after[other].append(step)
            ancestors[step] |= ancestors[other] | 1 << other
        earlier = members(ancestors[step])
        effort.spend(_ANCESTOR_UNITS * len(earlier))
        for other in earlier:
            descendants[other] |= 1 << step
    return pairs


def _can_wait(problem: OrderProblem, step: int, following: int, behind: int) -> bool:
    """Whether it costs nothing to run a step right before the next; `behind`: all that come after it."""
    # With all that may come before it done, a step begins the least it can and ends the most.
    others = (1 << problem.steps) - 1 & ~behind
    begun, ended = problem.begun_and_ended(step, others & ~(1 << step))
    then, _ = problem.begun_and_ended(following, others)
    return ended <= begun and ended <= then - problem.most_saved(following)
