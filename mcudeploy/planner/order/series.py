"""Series decomposition: the components that every order runs in sequence."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

import numpy as np

from mcudeploy.planner.order.closure import Closure
from mcudeploy.planner.order.order_problem import InPlace, OrderProblem, StepBuffer


def in_series(problem: OrderProblem) -> list[tuple[list[int], OrderProblem]]:
    """Return the components of a problem: a step that has the same place in every order ends a component.

    Each comes with its steps, ascending, and the problem of ordering them, whose step i is steps[i]. Loads
    are those of the whole problem: a buffer that is live before and after a component is live throughout it.
    """
    component_of = _component_of(problem)
    steps: list[list[int]] = [[] for _ in range(max(component_of, default=-1) + 1)]
    number = [0] * problem.steps
    for step, component in enumerate(component_of):
        number[step] = len(steps[component])
        steps[component].append(step)
    buffers: list[list[StepBuffer]] = [[] for _ in steps]
    renamed: dict[tuple[int, int], int] = {}
    always = [0] * (len(steps) + 1)
    for name, buffer in enumerate(problem.buffers):
        touched: dict[int, list[int]] = {}
        for step in buffer.touched_by:
            touched.setdefault(component_of[step], []).append(number[step])
        for first, last, part in _parts(buffer, touched, len(steps)):
            if part.kept and (part.initial or not part.touched_by):
                always[first] += part.size_bytes
                always[last + 1] -= part.size_bytes
            else:
                renamed[first, name] = len(buffers[first])
                buffers[first].append(part)
    for inside, constant in zip(buffers, accumulate(always), strict=False):
        inside.append(StepBuffer(constant, (), initial=True, kept=True))
    chances: list[list[InPlace]] = [[] for _ in steps]
    for chance in problem.chances:
        component = component_of[chance.step]
        source, target = renamed.get((component, chance.input)), renamed.get((component, chance.output))
        if source is not None and target is not None:
            chances[component].append(InPlace(number[chance.step], source, target))
    before = [
        tuple(number[other] for other in needed if component_of[other] == component_of[step])
        for step, needed in enumerate(problem.before)
    ]
    return [
        (own, OrderProblem(tuple(before[step] for step in own), tuple(buffers[each]), tuple(chances[each])))
        for each, own in enumerate(steps)
    ]


def _component_of(problem: OrderProblem) -> list[int]:
    """Return, for each step, the number of its component."""
    closure = Closure.of(problem)
    ends = sorted(place for place, last in zip(closure.asap, closure.alap, strict=True) if place == last)
    numbers = np.searchsorted(np.asarray(ends, np.int64), np.asarray(closure.asap, np.int64), side="left")
    return np.unique(numbers, return_inverse=True)[1].tolist()  # type: ignore[no-any-return]


def _parts(
    buffer: StepBuffer, touched: dict[int, list[int]], components: int
) -> Iterator[tuple[int, int, StepBuffer]]:
    """Yield a buffer as the components [first, last] see it.

    Components that touch it, or in which it begins or ends, have a separate part; in between it is live
    throughout.
    """
    begin = 0 if buffer.initial else min(touched, default=0)
    end = components - 1 if buffer.kept else max(touched, default=0 if buffer.initial else -1)
    if begin > end:
        return
    own = sorted({begin, end, *touched})
    for at, following in zip(own, (*own[1:], end + 1), strict=True):
        initial, kept = at > begin or buffer.initial, at < end or buffer.kept
        yield at, at, StepBuffer(buffer.size_bytes, tuple(touched.get(at, ())), initial, kept)
        if at + 1 < following:
            yield at + 1, following - 1, StepBuffer(buffer.size_bytes, (), initial=True, kept=True)
