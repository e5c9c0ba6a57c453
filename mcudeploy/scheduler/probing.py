"""What must come before what in every order that stays within a bound: learned by trying the contrary.

If while step s runs, with t done before it, memory cannot be within the bound (a minimum cut says so), then t
comes after s; if it cannot be with t still to come, t comes before s. What was learned makes more cuts fail.
A contradiction proves that no order stays within the bound; else the search has a smaller problem left.

Import only where it is needed: numba takes its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from mcudeploy.scheduler import flow
from mcudeploy.scheduler.clock import Deadline
from mcudeploy.scheduler.pieces import Pair
from mcudeploy.scheduler.problem import Problem
from mcudeploy.scheduler.slack import Slack

_SETS, _SETS_BYTES = 200, 64_000_000
"""How many sets of done steps are kept for each step, and the memory for all of them."""


_REFRESHED = 30
"""Of so many steps that need the most it is worked out anew what they need, after each success."""


def learn(problem: Problem, bound: int, most_cuts: float, deadline: Deadline) -> tuple[bool, list[Pair]]:
    """Whether an order within `bound` bytes is still thinkable, and pairs of steps that come in this order in
    all such orders. After `most_cuts`, or at `deadline`, what was learned so far.
    """
    probe = Probe(problem, bound, most_cuts, deadline)
    return probe.run(), [(first, second) for first, second in probe.pairs.tolist()]


class Probe:
    """What is known of the orders within a bound. `pairs`: what was learned; `needs`: for each step the least
    bytes while it runs, as far as they were worked out.
    """

    def __init__(self, problem: Problem, bound: int, most_cuts: float, deadline: Deadline) -> None:
        self.bound, self.cuts, self.most_cuts, self.deadline = bound, 0, most_cuts, deadline
        steps, slack = problem.steps, Slack.of(problem)
        self.given = flow.Given.of(problem)
        self.known = flow.Known(_bits(slack.ancestors), _bits(slack.descendants))
        direct = [(other, step) for step, needed in enumerate(problem.before) for other in needed]
        self.direct = np.array(direct, np.int64).reshape(-1, 2)
        self.pairs = np.empty((0, 2), np.int64)
        self.sets = list(np.zeros((steps, min(_SETS, _SETS_BYTES // steps**2), steps), np.bool_))
        self.counts = [0] * steps
        """For each step how many sets of done steps with which it can run within the bound are kept."""
        self.checked = [-1] * steps
        """For each step how many pairs were known when it was probed last."""
        self._connect(self.direct)
        self.needs = np.zeros(steps, np.int64)
        self._work_out(np.arange(steps))

    def run(self) -> bool:
        """False if there is no order within the bound.

        The step that needs the most is probed first, and after every success all begins anew: nearly always
        a few steps decide.
        """
        while max(self.needs, default=0) <= self.bound:
            if self._is_over():
                return True
            order = np.argsort(-self.needs, kind="stable")
            known = len(self.pairs)
            for step in order.tolist():
                if self.checked[step] == known:
                    continue
                if self._is_over():
                    return True
                if not self._probe(step):
                    return False
                if len(self.pairs) > known:
                    break
            else:
                return True
            self._work_out(order[:_REFRESHED])
        return False

    def supposing(self, first: int, second: int) -> Probe:
        """A copy that knows one pair more, whose order was open."""
        more = copy(self)
        more.known = flow.Known(self.known.before.copy(), self.known.behind.copy())
        more.needs, more.sets = self.needs.copy(), self.sets.copy()
        more.counts, more.checked = self.counts.copy(), self.checked.copy()
        more.add(first, second)
        return more

    def decided(self, first: int, second: int) -> bool:
        """Whether it is known which of two steps comes before the other."""
        return flow.is_before(self.known, first, second) or flow.is_before(self.known, second, first)

    def leaves_open(self, step: int) -> bool:
        """Whether there is a step of which it is not known if it comes before this one."""
        decided = self.known.before[step] | self.known.behind[step]
        return int(np.unpackbits(decided.view(np.uint8)).sum()) < len(self.counts) - 1

    def add(self, first: int, second: int) -> None:
        """Know from elsewhere that one step comes before another; their order was open."""
        flow.add_pair(self.known, first, second)
        self._take(np.array([[first, second]], np.int64))
        tightest = np.argsort(-self.needs, kind="stable")[:_REFRESHED]
        self._work_out(np.unique([*tightest.tolist(), first, second]))

    def _work_out(self, steps: flow.Ints) -> None:
        self.needs[steps] = flow.needs(self.given, self.known, self.arcs, steps)
        self.cuts += len(steps)

    def _is_over(self) -> bool:
        return self.cuts > self.most_cuts or self.deadline.passed()

    def _probe(self, step: int) -> bool:
        """Every other step, before and after this one. False if a contradiction shows."""
        since = self.pairs[max(0, self.checked[step]) :]
        self.checked[step] = len(self.pairs)
        sets = self.sets[step] = self.sets[step].copy()  # a supposition shares those that it did not probe
        count = flow.still_good(self.known, step, sets, self.counts[step], since)
        fits, self.counts[step], cuts, learned = flow.probe(
            self.given, self.known, self.arcs, step, self.bound, sets, count
        )
        self.cuts += cuts
        if len(learned):
            self._take(learned)
        return fits

    def _take(self, learned: flow.Ints) -> None:
        self.pairs = np.concatenate([self.pairs, learned])
        self._connect(np.concatenate([self.direct, learned]))

    def _connect(self, pairs: flow.Ints) -> None:
        """The network with these pairs, which are all that are known or follow from them."""
        self.direct = pairs[flow.needed_pairs(self.known, pairs[:, 0], pairs[:, 1])]
        self.arcs = flow.arcs_of(self.given, self.known, self.direct[:, 0], self.direct[:, 1])


def _bits(sets: Sequence[int]) -> flow.Bits:
    """Sets of steps as rows of 64 bits each."""
    words = (len(sets) + 63) // 64
    raw = b"".join(each.to_bytes(8 * words, "little") for each in sets)
    return np.frombuffer(raw, "<u8").astype(np.uint64).reshape(-1, words)
