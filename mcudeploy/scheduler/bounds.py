"""A lower bound on the peak of every order: the least that memory can hold while some step runs."""

from __future__ import annotations

import numpy as np
from ortools.graph.python.max_flow import SimpleMaxFlow

from mcudeploy.scheduler.clock import Deadline
from mcudeploy.scheduler.problem import Problem
from mcudeploy.scheduler.slack import Slack, sure_needs


def least_needs(problem: Problem, deadline: Deadline, most: int) -> list[int]:
    """For each step bytes that every order needs while it runs; where time ran out, `sure_needs`.

    What is done before a step is a set that holds with every step also those before it, that has the
    step's predecessors and not the step. The memory in use is a cut function of that set (a buffer
    counts if one of its steps is done and one is not), so the least over all such sets is a minimum cut.
    Stops as soon as one need reaches `most`, or at `deadline`.
    """
    network = Network(problem)
    needs = sure_needs(problem, Slack.of(problem))
    for step in sorted(range(problem.steps), key=lambda step: -needs[step]):
        if max(needs) >= most or deadline.passed():
            break
        needs[step] = network.cut(step)
    return needs


class Network:
    """Nodes: the steps, then for each buffer that can outlive a step one that is on the side of what is done
    if any of its steps is, and one on the other side if any is not; then source and sink.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.source = problem.steps + 2 * len(problem.buffers)
        self.sink = self.source + 1
        self.endless = sum(buffer.size_bytes for buffer in problem.buffers) + 1
        self.base = sum(b.size_bytes for b in problem.buffers if b.kept and not b.touched_by)
        self.inner = [
            bool(buffer.touched_by) and (buffer.initial or buffer.kept or len(buffer.touched_by) > 1)
            for buffer in problem.buffers
        ]
        arcs: list[tuple[int, int, int]] = []
        for step, needed in enumerate(problem.before):
            arcs += ((step, other, self.endless) for other in needed)
        for number, buffer in enumerate(problem.buffers):
            if not self.inner[number]:
                continue
            begun, left = self._nodes(number)
            arcs.append((begun, left, buffer.size_bytes))
            arcs += ((step, begun, self.endless) for step in buffer.touched_by)
            arcs += ((left, step, self.endless) for step in buffer.touched_by)
            if buffer.initial:
                arcs.append((self.source, begun, self.endless))
            if buffer.kept:
                arcs.append((left, self.sink, self.endless))
        self.arcs = np.array(arcs, np.int64).reshape(-1, 3)

    def _nodes(self, buffer: int) -> tuple[int, int]:
        begun = self.problem.steps + 2 * buffer
        return begun, begun + 1

    def cut(self, step: int) -> int:
        """The least bytes in memory while a step runs."""
        fixed = self.base - self.problem.most_saved(step)
        arcs = [(step, self.sink)]
        arcs += ((self.source, other) for other in self.problem.before[step])
        for buffer in self.problem.touches[step]:
            if self.inner[buffer]:
                arcs.append((self.source, self._nodes(buffer)[0]))
            else:
                fixed += self.problem.buffers[buffer].size_bytes
        ends = np.array(arcs, np.int64)
        flow = SimpleMaxFlow()
        flow.add_arcs_with_capacity(
            np.concatenate([self.arcs[:, 0], ends[:, 0]]).astype(np.int32),
            np.concatenate([self.arcs[:, 1], ends[:, 1]]).astype(np.int32),
            np.concatenate([self.arcs[:, 2], np.full(len(ends), self.endless)]),
        )
        if flow.solve(self.source, self.sink) != SimpleMaxFlow.OPTIMAL:
            raise ArithmeticError("sizes add up to more bytes than a maximum flow can have")
        return fixed + int(flow.optimal_flow())
