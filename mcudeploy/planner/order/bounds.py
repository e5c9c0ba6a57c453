"""Lower bounds on the peak of every order: the minimum memory in use during a step."""

from __future__ import annotations

import numpy as np

from mcudeploy.common.effort import Effort
from mcudeploy.planner.order.closure import Closure
from mcudeploy.planner.order.max_flow import max_flow
from mcudeploy.planner.order.order_problem import OrderProblem

_ARC_UNITS = 0.5
"""Effort of a minimum cut per arc of its network."""


def sure_needs(problem: OrderProblem, closure: Closure) -> list[int]:
    """Return, for each step, bytes that are live during it in every order.

    A buffer is live during a step that comes after one of the steps that touch it, and before another.
    """
    loads = np.zeros(problem.steps, np.int64)
    everything = (1 << problem.steps) - 1
    for buffer in problem.buffers:
        if not buffer.touched_by and not buffer.kept:
            continue  # it ends with the first step, whichever that is
        begun = everything if buffer.initial or not buffer.touched_by else 0
        wanted = everything if buffer.kept else 0
        for step in buffer.touched_by:
            begun |= closure.descendants[step] | 1 << step
            wanted |= closure.ancestors[step] | 1 << step
        loads[places_of(begun & wanted, problem.steps)] += buffer.size_bytes
    return [load - problem.most_saved(step) for step, load in enumerate(loads.tolist())]


def places_of(steps: int, count: int) -> np.ndarray:
    """Return a set of steps as a Boolean array."""
    packed = np.frombuffer(steps.to_bytes((count + 7) // 8, "little"), np.uint8)
    return np.unpackbits(packed, bitorder="little", count=count).view(bool)


def least_needs(problem: OrderProblem, needs: list[int], effort: Effort, most: int) -> list[int]:
    """Return, for each step, bytes that every order needs during it.

    If the effort is spent, these are the certain `needs`. The steps completed before a step form a set that
    is closed under predecessors, contains the step's predecessors, and excludes the step. The live memory is
    a cut function of that set: a buffer counts if one of its steps is in the set and one is not. The minimum
    over all such sets is therefore a minimum cut. The computation stops as soon as one need reaches `most`.
    """
    network = NeedsNetwork(problem)
    least = list(needs)
    for step in sorted(range(problem.steps), key=lambda step: -needs[step]):
        if max(least) >= most or effort.is_spent():
            break
        effort.spend(_ARC_UNITS * len(network.arcs))
        least[step] = network.cut(step)
    return least


class NeedsNetwork:
    """A flow network: steps, two nodes for each buffer that can outlive a step, source and sink.

    A cut separates completed steps from others. The first node of a buffer is on the completed side if any of
    its steps is; the second is on the other side if any of its steps is.
    """

    def __init__(self, problem: OrderProblem) -> None:
        self.problem = problem
        self.source = problem.steps + 2 * len(problem.buffers)
        self.sink = self.source + 1
        self.unlimited = sum(buffer.size_bytes for buffer in problem.buffers) + 1
        self.base = sum(b.size_bytes for b in problem.buffers if b.kept and not b.touched_by)
        arcs = [(step, it, self.unlimited) for step, before in enumerate(problem.before) for it in before]
        for number, buffer in enumerate(problem.buffers):
            if not buffer.touched_by or buffer.is_scratch:
                continue
            begun, left = self._nodes(number)
            arcs.append((begun, left, buffer.size_bytes))
            arcs += ((step, begun, self.unlimited) for step in buffer.touched_by)
            arcs += ((left, step, self.unlimited) for step in buffer.touched_by)
            if buffer.initial:
                arcs.append((self.source, begun, self.unlimited))
            if buffer.kept:
                arcs.append((left, self.sink, self.unlimited))
        self.arcs = np.array(arcs, np.int64).reshape(-1, 3)

    def _nodes(self, buffer: int) -> tuple[int, int]:
        begun = self.problem.steps + 2 * buffer
        return begun, begun + 1

    def cut(self, step: int) -> int:
        """Return the minimum live bytes during a step."""
        fixed = self.base - self.problem.most_saved(step)
        arcs = [(step, self.sink)]
        arcs += ((self.source, other) for other in self.problem.before[step])
        for number in self.problem.touches[step]:
            buffer = self.problem.buffers[number]
            if buffer.is_scratch:
                fixed += buffer.size_bytes
            else:
                arcs.append((self.source, self._nodes(number)[0]))
        added = np.array([(*ends, self.unlimited) for ends in arcs], np.int64)
        return fixed + max_flow(np.concatenate([self.arcs, added]), self.source, self.sink)
