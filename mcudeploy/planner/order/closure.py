"""The precedence closure: all steps before and behind each step, and the places it can have.

Sets of steps are integers, one bit per step: of 10,000 steps all ancestors and descendants take 12 MB.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcudeploy.planner.order.order_problem import OrderProblem


@dataclass(frozen=True, eq=False)
class Closure:
    """For each step the set of its ancestors and of its descendants (without itself), and the first and last
    place it can have in any order: `asap` and `alap`.
    """

    ancestors: tuple[int, ...]
    descendants: tuple[int, ...]
    asap: tuple[int, ...]
    alap: tuple[int, ...]

    @classmethod
    def of(cls, problem: OrderProblem) -> Closure:
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
