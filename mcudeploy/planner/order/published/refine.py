"""Local refinement at the peak: buffers that are live but idle there are read earlier or written later.

Source: the published patent on exact, then heuristic, then tuned execution orders, third stage.

1. Choose a place with the peak load, and the buffers that are live across it but not touched there.
2. For each, the largest first, try two moves. Either the steps that touch it later move before the peak,
   with their ancestors. Or the steps that wrote it move after the peak, with their descendants.
3. Accept a move that lowers the peak, or the number of places that have it. Repeat to a fixpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mcudeploy.common.effort import Effort
from mcudeploy.planner.order.order_problem import OrderProblem

_MAX_MOVED = 200
"""The maximum number of steps that one move may carry along."""

_STEP_UNITS, _BUFFER_UNITS = 2.5, 0.4
"""Effort of a step of a tried stretch, and of a buffer that may live across the peak."""


class _Line:
    """An order with the completed steps, live buffers and load of each place.

    A stretch of it can be reordered and measured.
    """

    def __init__(self, problem: OrderProblem, order: Sequence[int]) -> None:
        self.problem = problem
        self.order = list(order)
        self.place = problem.places(self.order)
        self.done, self.live, self.loads = [0], [problem.live(0)], problem.loads(order)
        for step in order:
            self.live.append(self.live[-1] + problem.change(step, self.done[-1])[1])
            self.done.append(self.done[-1] | 1 << step)

    def try_stretch(self, start: int, steps: list[int]) -> bool:
        """Reorder the steps from place `start` on if that lowers the peak, or the count of places with it."""
        stop = start + len(steps)
        old = self.loads[start:stop]
        highest = max(old)
        done, live, loads = [self.done[start]], [self.live[start]], []
        for step in steps:
            rise, net = self.problem.change(step, done[-1])
            if live[-1] + rise > highest:
                return False
            loads.append(live[-1] + rise)
            live.append(live[-1] + net)
            done.append(done[-1] | 1 << step)
        if loads.count(highest) >= old.count(highest):
            return False
        self.order[start:stop], self.loads[start:stop] = steps, loads
        self.done[start:stop], self.live[start:stop] = done[:-1], live[:-1]
        for place, step in enumerate(steps, start):
            self.place[step] = place
        return True


def refine(problem: OrderProblem, order: Sequence[int], effort: Effort, floor: int = 0) -> tuple[int, ...]:
    """Return a valid order with no higher peak. Stops at `floor` bytes, or with the effort."""
    line = _Line(problem, order)
    while line.loads and not effort.is_spent():
        peak = max(line.loads)
        if peak <= floor:
            break
        places = [place for place, load in enumerate(line.loads) if load == peak]
        if not any(_lower(line, place, effort) for place in (places[0], places[-1])):
            break
    return tuple(line.order)


def _lower(line: _Line, place: int, effort: Effort) -> bool:
    """Return whether some move lowers the load at a place."""
    problem, done = line.problem, line.done[place]
    effort.spend(_BUFFER_UNITS * len(problem.buffers))
    here = 1 << line.order[place]
    idle = [
        number
        for number, buffer in enumerate(problem.buffers)
        if (touching := problem.touching[number])
        and not touching & here
        and (buffer.initial or touching & done)
        and (buffer.kept or touching & ~done)
    ]
    idle.sort(key=lambda number: -problem.buffers[number].size_bytes)
    for number in idle:
        for start, steps in _moves(line, number, place):
            effort.spend(_STEP_UNITS * len(steps))
            if line.try_stretch(start, steps):
                return True
        if effort.is_spent():
            break
    return False


def _moves(line: _Line, number: int, place: int) -> Iterator[tuple[int, list[int]]]:
    """Yield reordered stretches after which a buffer is not live across a place, or less is."""
    buffer = line.problem.buffers[number]
    late = [step for step in buffer.touched_by if line.place[step] > place]
    if late and not buffer.kept:
        yield from _earlier(line, late, place)
    early = [step for step in buffer.touched_by if line.place[step] < place]
    if early and not buffer.initial:
        yield from _later(line, early, place)


def _earlier(line: _Line, steps: list[int], place: int) -> Iterator[tuple[int, list[int]]]:
    """Move steps after `place`, with the ancestors they need from there on, before it.

    They go right before it, or to the beginning of the stretch.
    """
    moved = _reached(steps, line.problem.before, lambda step: line.place[step] >= place)
    if moved is None or line.order[place] in moved:
        return
    stop = max(line.place[step] for step in moved) + 1
    group = sorted(moved, key=line.place.__getitem__)
    needed = (other for step in moved for other in line.problem.before[step] if other not in moved)
    ready = max((line.place[other] + 1 for other in needed), default=0)
    for start in dict.fromkeys((place, ready)):
        rest = [step for step in line.order[start:stop] if step not in moved]
        yield start, group + rest


def _later(line: _Line, steps: list[int], place: int) -> Iterator[tuple[int, list[int]]]:
    """Move steps before `place`, with their descendants up to it, right after it or as late as they can."""
    moved = _reached(steps, line.problem.after, lambda step: line.place[step] <= place)
    if moved is None or line.order[place] in moved:
        return
    start = min(line.place[step] for step in moved)
    group = sorted(moved, key=line.place.__getitem__)
    waiting = (other for step in moved for other in line.problem.after[step] if other not in moved)
    wanted = min((line.place[other] for other in waiting), default=len(line.order))
    for stop in dict.fromkeys((place + 1, wanted)):
        rest = [step for step in line.order[start:stop] if step not in moved]
        yield start, rest + group


def _reached(
    steps: Sequence[int], near: Sequence[Sequence[int]], inside: Callable[[int], bool]
) -> set[int] | None:
    """Return some steps, and all inside a stretch that follow from them by `near`; None if too many."""
    reached = set(steps)
    pending = list(steps)
    while pending:
        for other in near[pending.pop()]:
            if other not in reached and inside(other):
                reached.add(other)
                pending.append(other)
        if len(reached) > _MAX_MOVED:
            return None
    return reached
