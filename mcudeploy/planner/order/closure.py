"""The precedence closure: all ancestors and descendants of each step, and its possible places.

Sets of steps are integers, one bit per step: for 10,000 steps all ancestors and descendants take 12 MB.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcudeploy.planner.order.order_problem import OrderProblem


@dataclass(frozen=True, eq=False)
class Closure:
    """The ancestors and descendants of each step (without itself), and its first and last possible place,
    `asap` and `alap`.
    """

    ancestors: tuple[int, ...]
    descendants: tuple[int, ...]
    asap: tuple[int, ...]
    alap: tuple[int, ...]

    @classmethod
    def of(cls, problem: OrderProblem) -> Closure:
        """Compute the closure, in time linear in the edges, times steps / 64."""
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
