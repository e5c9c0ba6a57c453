"""Dependences that cost nothing: some order of least peak satisfies them, so a search may assume them.

Consider a step that never reduces the live memory, and a *next* step: one that depends on it, and before all
others that do. The step can wait until right before the next, for until then it only adds memory. A scaled
copy of a tensor, for example, is computed when it is added to the others, not before. In reverse, a step that
never increases the live memory can follow right after its predecessor.
"""

from __future__ import annotations

from mcudeploy.common.effort import Effort
from mcudeploy.planner.order.closure import Closure
from mcudeploy.planner.order.derived import Pair, reverse, turned, with_pairs
from mcudeploy.planner.order.exact import Choosers
from mcudeploy.planner.order.order_problem import OrderProblem, members

_STEP_UNITS, _ANCESTOR_UNITS = 40.0, 0.5
"""Effort per step of the problem, and per step that gains a successor."""


def contracted(problem: OrderProblem, effort: Effort) -> tuple[OrderProblem, list[int]]:
    """Return the problem with such dependences and renumbered steps; and the old number of each step.

    Its least peak equals the problem's, and its orders are orders of the problem. When the effort is spent,
    it contains the dependences found until then.
    """
    numbers = list(range(problem.steps))
    if any(buffer.initial and not buffer.kept and not buffer.touched_by for buffer in problem.buffers):
        return problem, numbers  # memory used by the first step alone: places are not equivalent
    for _ in range(2):
        problem, renumbered = with_pairs(problem, _delays(problem, effort))
        numbers = [numbers[step] for step in renumbered]
        backwards, renumbered = with_pairs(reverse(problem), _delays(reverse(problem), effort))
        problem, numbers = reverse(backwards), [numbers[step] for step in turned(renumbered)]
    return problem, numbers


def _delays(problem: OrderProblem, effort: Effort) -> list[Pair]:
    """Return the dependences that put steps right before the next, if that costs nothing."""
    closure, choosers = Closure.of(problem), Choosers(problem)
    ancestors, descendants = list(closure.ancestors), list(closure.descendants)
    before, after = list(problem.needs), [list(each) for each in problem.after]
    pairs: list[Pair] = []
    # Late steps first: their new dependences leave some earlier steps with a single next step.
    for step in reversed(range(problem.steps)):
        effort.spend(_STEP_UNITS)
        if effort.is_spent():
            break
        later = descendants[step]
        following = next((other for other in after[step] if later == descendants[other] | 1 << other), None)
        if following is None or choosers.near(step) & ~(ancestors[step] | later | 1 << step):
            continue
        if not _can_wait(problem, step, following, later):
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


def _can_wait(problem: OrderProblem, step: int, following: int, later: int) -> bool:
    """Return whether running a step right before the next costs nothing; `later`: all its successors."""
    # With every possible predecessor completed, a step begins the fewest buffers and ends the most.
    others = (1 << problem.steps) - 1 & ~later
    begun, ended = problem.begun_and_ended(step, others & ~(1 << step))
    then, _ = problem.begun_and_ended(following, others)
    return ended <= begun and ended <= then - problem.most_saved(following)
