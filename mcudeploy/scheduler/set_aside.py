"""Steps that hardly matter are taken out of a problem, and put back into the order where they cost least.

Method: the published patent on exact, then heuristic, then tuned execution orders. Meant for the operators
of a training step that update weights: they wait for gradients only, and nothing waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from mcudeploy.scheduler.memory import Memory
from mcudeploy.scheduler.pieces import restricted
from mcudeploy.scheduler.problem import Problem

Solve = Callable[[Problem], Sequence[int]]


def ordered_apart(problem: Problem, aside: Collection[int], solve: Solve) -> tuple[int, ...]:
    """A valid order: that which `solve` gives for the problem without the steps `aside`, with those put back.

    A step that something else waits for is not taken out.
    """
    out: set[int] = set()
    for step in sorted(aside, reverse=True):
        if all(other in out for other in problem.after[step]):
            out.add(step)
    core = [step for step in range(problem.steps) if step not in out]
    if not core:
        return _put_back(problem, [], out, 0)
    alone = restricted(problem, core)
    order = solve(alone)
    return _put_back(problem, [core[step] for step in order], out, alone.peak(order))


def _put_back(problem: Problem, core: list[int], out: set[int], peak: int) -> tuple[int, ...]:
    """Before each step of `core` run those of `out` that are ready, leave no more than they find, and fit
    into the peak there will be anyway; the rest at the end, those first that make the least.
    """
    memory = Memory(problem)
    order: list[int] = []
    ready = [step for step in out if not memory.waiting[step]]

    def run(step: int) -> None:
        ready.extend(other for other in memory.run(step) if other in out)
        order.append(step)

    for step in core:
        at = 0
        while at < len(ready):
            made, freed = memory.cost(ready[at])
            if made <= freed and memory.live + made <= max(peak, memory.live + memory.cost(step)[0]):
                run(ready.pop(at))
                at = 0
            else:
                at += 1
        peak = max(peak, memory.live + memory.cost(step)[0])
        run(step)
    while ready:
        step = min(ready, key=lambda other: (memory.cost(other)[0], other))
        ready.remove(step)
        run(step)
    return tuple(order)
