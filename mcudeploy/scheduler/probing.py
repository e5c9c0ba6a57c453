"""What must come before what in every order that stays within a bound: learned by trying the contrary.

If while step s runs, with t done before it, memory cannot be within the bound (a minimum cut says so), then t
comes after s; if it cannot be with t still to come, t comes before s. What was learned makes more cuts fail.
A contradiction proves that no order stays within the bound; else the search has a smaller problem left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from graphlib import TopologicalSorter

from mcudeploy.scheduler.bounds import Network
from mcudeploy.scheduler.clock import Deadline
from mcudeploy.scheduler.pieces import restricted
from mcudeploy.scheduler.problem import Problem
from mcudeploy.scheduler.slack import Slack, members

Pair = tuple[int, int]
"""A step, and one that comes after it."""


def learn(problem: Problem, bound: int, most_cuts: float, deadline: Deadline) -> tuple[bool, list[Pair]]:
    """Whether an order within `bound` bytes is still thinkable, and pairs of steps that come in this order in
    all such orders. After `most_cuts`, or at `deadline`, what was learned so far.
    """
    probe = _Probe(problem, bound, most_cuts, deadline)
    return probe.run(), probe.pairs


class _Probe:
    def __init__(self, problem: Problem, bound: int, most_cuts: float, deadline: Deadline) -> None:
        self.problem, self.bound = problem, bound
        self.cuts, self.most_cuts, self.deadline = 0, most_cuts, deadline
        self.network = Network(problem)
        self.everything = (1 << problem.steps) - 1
        slack = Slack.of(problem)
        self.before, self.behind = list(slack.ancestors), list(slack.descendants)
        own = [
            sum(problem.buffers[number].size_bytes for number in touched) - problem.most_saved(step)
            for step, touched in enumerate(problem.touches)
        ]  # by all that is sure to be there the learning takes twice the time
        self.hungry = sorted(range(problem.steps), key=lambda step: -own[step])
        self.pairs: list[Pair] = []
        self.new: list[Pair] = []
        self.seen: list[list[int]] = [[] for _ in problem.before]
        """For each step sets of done steps with which it can run within the bound."""
        self.checked = [0] * problem.steps
        """For each step how many pairs its sets are known to respect."""

    def run(self) -> bool:
        """False if there is no order within the bound. Goes round until a round brings nothing."""
        learned = -1
        while learned < len(self.pairs):
            learned = len(self.pairs)
            for step in self.hungry:
                if self._is_over():
                    return True
                if not self._probe(step):
                    return False
        return True

    def _probe(self, step: int) -> bool:
        """Every other step, before and after this one. False if a contradiction shows."""
        self.network.add(self.new)
        self.new = []
        since = self.pairs[self.checked[step] :]
        self.checked[step] = len(self.pairs)
        self.seen[step] = [
            done
            for done in self.seen[step]
            if not any(done >> second & 1 and not done >> first & 1 for first, second in since)
            and not self.before[step] & ~done
            and not self.behind[step] & done
        ]
        if not self.seen[step] and not self._fits(step, None, None):
            return False
        for other in members(self._apart(step)):
            if self._is_over():
                return True
            if not self._apart(step) >> other & 1:
                continue  # follows from what was learned meanwhile
            seen = self.seen[step]
            earlier = any(done >> other & 1 for done in seen) or self._fits(step, other, None)
            later = any(not done >> other & 1 for done in seen) or self._fits(step, None, other)
            if not earlier and not self._add(step, other):
                return False
            if not later and not self._add(other, step):
                return False
        return True

    def _is_over(self) -> bool:
        return self.cuts > self.most_cuts or self.deadline.passed()

    def _apart(self, step: int) -> int:
        return self.everything & ~(self.before[step] | self.behind[step] | 1 << step)

    def _fits(self, step: int, done: int | None, left: int | None) -> bool:
        self.cuts += 1
        need, low, high = self.network.cut(step, done, left)
        if need <= self.bound:
            self.seen[step] += (low, high)
        return need <= self.bound

    def _add(self, first: int, second: int) -> bool:
        """`first` comes before `second`, and so does all before the one before all behind the other."""
        if self.before[first] >> second & 1:
            return False
        self.pairs.append((first, second))
        self.new.append((first, second))
        ahead, after = self.before[first] | 1 << first, self.behind[second] | 1 << second
        for step in members(after):
            self.before[step] |= ahead
        for step in members(ahead):
            self.behind[step] |= after
        return True


def with_pairs(problem: Problem, pairs: Sequence[Pair]) -> tuple[Problem, list[int]]:
    """The problem with pairs, which contradict nothing, as dependences; and its steps' numbers before."""
    needed = [set(before) for before in problem.before]
    for first, second in pairs:
        needed[second].add(first)
    extended = replace(problem, before=tuple(tuple(sorted(before)) for before in needed))
    order = list(TopologicalSorter(dict(enumerate(extended.before))).static_order())
    return restricted(extended, order), order
