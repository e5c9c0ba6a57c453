"""What must come before what in every order that stays within a bound: learned by trying the contrary.

If while step s runs, with t done before it, memory cannot be within the bound (a minimum cut says so), then t
comes after s; if it cannot be with t still to come, t comes before s. What was learned makes more cuts fail.
A contradiction proves that no order stays within the bound; else the search has a smaller problem left.

Import only where it is needed: numba takes its time.
"""

from __future__ import annotations

import numpy as np

from mcudeploy.scheduler import flow
from mcudeploy.scheduler.arrays import Given, Known, counts
from mcudeploy.scheduler.clock import Deadline
from mcudeploy.scheduler.pieces import Pair
from mcudeploy.scheduler.problem import Problem

_WORK = 500 * flow.WORTH
"""Between two looks at the clock."""

_ENDLESS = 1 << 60


def learn(problem: Problem, bound: int, most_cuts: float, deadline: Deadline) -> tuple[bool, list[Pair]]:
    """Whether an order within `bound` bytes is still thinkable, and pairs of steps that come in this order in
    all such orders. After `most_cuts`, or at `deadline`, what was learned so far.
    """
    probe = Probe(problem, bound, most_cuts, deadline)
    return probe.run(), probe.pairs()


class Probe:
    """What is known of the orders within a bound. `most_cuts`: how many minimum cuts, or what takes as long,
    may have been made when `run` ends.
    """

    def __init__(self, problem: Problem, bound: int, most_cuts: float, deadline: Deadline) -> None:
        self.bound, self.most_cuts, self.deadline = bound, most_cuts, deadline
        self.given, self.known = Given.of(problem), Known.of(problem)
        flow.tidy(self.known)

    @property
    def cuts(self) -> float:
        """Minimum cuts so far; what else was done is counted as cuts that take as long."""
        return float(self.known.counts[flow.WORK] / flow.WORTH)

    @property
    def learned(self) -> int:
        """How many pairs were learned."""
        return int(self.known.counts[flow.LEARNED])

    def pairs(self) -> list[Pair]:
        """Pairs of steps in their order, from which all that is known follows."""
        return [
            (first, second) for first, second in self.known.direct[: self.known.counts[flow.DIRECT]].tolist()
        ]

    def run(self) -> bool:
        """False if there is no order within the bound."""
        if not self.known.needs.any() and not flow.work_out(
            self.given, self.known, np.arange(len(self.known.needs)), self.bound
        ):
            return False
        thinkable, all_learned = True, False
        limit = int(min(self.most_cuts * flow.WORTH, _ENDLESS))
        # Whole numbers on both sides: what compiled code takes for the end is the end here, too.
        while thinkable and not all_learned and self.known.counts[flow.WORK] <= limit:
            if self.deadline.passed():
                break
            self._make_room()
            most = min(int(self.known.counts[flow.WORK]) + _WORK, limit)
            thinkable, all_learned = flow.learn(self.given, self.known, self.bound, most)
        return thinkable

    def decided(self, first: int, second: int) -> bool:
        """Whether it is known which of two steps comes before the other."""
        return any(bool(flow.has(row[first], second)) for row in (self.known.before, self.known.behind))

    def leaves_open(self, step: int) -> bool:
        """Whether there is a step of which it is not known if it comes before this one."""
        decided = self.known.before[step] | self.known.behind[step]
        return int(counts(decided[None])[0]) < len(self.known.needs) - 1

    def add(self, first: int, second: int) -> None:
        """Know from elsewhere that one step comes before another; their order was open."""
        self._make_room()
        flow.add_pair(self.known, first, second)

    def _make_room(self) -> None:
        """For the pairs that one step can teach."""
        direct, steps = self.known.direct, len(self.known.needs)
        if self.known.counts[flow.DIRECT] + steps > len(direct):
            longer = np.concatenate([direct, np.zeros((8 * steps, 2), np.int64)])
            self.known = self.known._replace(direct=longer)
