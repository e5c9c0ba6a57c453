"""Lower bounds on the peak of every order: the least that memory can hold while some step runs."""

from __future__ import annotations

import numpy as np

from mcudeploy.common.effort import Effort
from mcudeploy.planner.order.closure import Closure
from mcudeploy.planner.order.order_problem import OrderProblem

_ARC_UNITS = 0.5
"""Effort of a minimum cut for each arc of its network."""


def sure_needs(problem: OrderProblem, closure: Closure) -> list[int]:
    """For each step bytes that are in memory while it runs, in every order.

    A buffer is alive during a step that comes after one of the steps that touch it, and before one of them.
    """
    loads = np.zeros(problem.steps, np.int64)
    everything = (1 << problem.steps) - 1
    for buffer in problem.buffers:
        if not buffer.touched_by and not buffer.kept:
            continue  # gone after the first step, whichever that is
        begun = everything if buffer.initial or not buffer.touched_by else 0
        wanted = everything if buffer.kept else 0
        for step in buffer.touched_by:
            begun |= closure.descendants[step] | 1 << step
            wanted |= closure.ancestors[step] | 1 << step
        loads[_places(begun & wanted, problem.steps)] += buffer.size_bytes
    return [load - problem.most_saved(step) for step, load in enumerate(loads.tolist())]


def _places(steps: int, count: int) -> np.ndarray:
    """A set of steps as a Boolean array."""
    packed = np.frombuffer(steps.to_bytes((count + 7) // 8, "little"), np.uint8)
    return np.unpackbits(packed, bitorder="little", count=count).view(bool)


def least_needs(problem: OrderProblem, needs: list[int], effort: Effort, most: int) -> list[int]:
    """For each step bytes that every order needs while it runs; where the effort is spent, those of `needs`,
    which are sure.

    What is done before a step is a set that holds with every step also those before it, that has the
    step's predecessors and not the step. The memory in use is a cut function of that set (a buffer
    counts if one of its steps is done and one is not), so the least over all such sets is a minimum cut.
    Stops as soon as one need reaches `most`.
    """
    network = _Network(problem)
    least = list(needs)
    for step in sorted(range(problem.steps), key=lambda step: -needs[step]):
        if max(least) >= most or effort.is_spent():
            break
        effort.spend(_ARC_UNITS * len(network.arcs))
        least[step] = network.cut(step)
    return least


class _Network:
    """Nodes: the steps, then for each buffer that can outlive a step one that is on the side of what is done
    if any of its steps is, and one on the other side if any is not; then source and sink.
    """

    def __init__(self, problem: OrderProblem) -> None:
        self.problem = problem
        self.source = problem.steps + 2 * len(problem.buffers)
        self.sink = self.source + 1
        self.endless = sum(buffer.size_bytes for buffer in problem.buffers) + 1
        self.base = sum(b.size_bytes for b in problem.buffers if b.kept and not b.touched_by)
        arcs = [(step, other, self.endless) for step, needed in enumerate(problem.before) for other in needed]
        for number, buffer in enumerate(problem.buffers):
            if not buffer.touched_by or buffer.is_scratch:
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
        for number in self.problem.touches[step]:
            buffer = self.problem.buffers[number]
            if buffer.is_scratch:
                fixed += buffer.size_bytes
            else:
                arcs.append((self.source, self._nodes(number)[0]))
        ends = np.array(arcs, np.int64)
        from ortools.graph.python.max_flow import SimpleMaxFlow  # noqa: PLC0415 - it takes long to import

        flow = SimpleMaxFlow()
        flow.add_arcs_with_capacity(
            np.concatenate([self.arcs[:, 0], ends[:, 0]]).astype(np.int32),
            np.concatenate([self.arcs[:, 1], ends[:, 1]]).astype(np.int32),
            np.concatenate([self.arcs[:, 2], np.full(len(ends), self.endless)]),
        )
        if flow.solve(self.source, self.sink) != SimpleMaxFlow.OPTIMAL:
            raise ArithmeticError("sizes add up to more bytes than a maximum flow can have")
        return fixed + int(flow.optimal_flow())
