"""Local tuning at the peak: what is alive there for nothing is read earlier or made later.

Method: the published patent on exact, then heuristic, then tuned execution orders. For each buffer that
lives over the peak and is not touched there, the steps that touch it afterwards move in front of the peak,
with what they need, or those that made it move behind it, with what needs them; what lowers the peak, or
the number of places that have it, stays. To a fixpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mcudeploy.scheduler.clock import Deadline
from mcudeploy.scheduler.problem import Problem

MAX_MOVED = 200  # steps that one move may take along
WORK_PER_STEP = 200
"""Steps in all stretches that are tried, for each step there is: beyond, an order is tuned no further."""


class _Line:
    """An order with the load at each place; a stretch of it can be put in another order and measured."""

    def __init__(self, problem: Problem, order: Sequence[int]) -> None:
        self.problem = problem
        self.order = list(order)
        self.time = problem.places(self.order)
        self.loads = problem.loads(self.order)
        self.lives = [problem.life(number, self.time) for number in range(len(problem.buffers))]
        self.work_left = WORK_PER_STEP * problem.steps

    def saved(self, step: int) -> int:
        """Bytes that a step takes over in place."""
        return self.problem.saved(step, self.time[step], self.lives)

    def try_stretch(self, start: int, steps: list[int]) -> bool:
        """Put the steps from place `start` on in this order if it has less peak, or has it less often."""
        self.work_left -= len(steps)
        stop = start + len(steps)
        old_steps, old_loads = self.order[start:stop], self.loads[start:stop]
        numbers = {number for step in steps for number in self.problem.touches[step]}
        old_lives = {number: self.lives[number] for number in numbers}
        change = [0] * (len(steps) + 1)
        for step in old_steps:
            change[self.time[step] - start] += self.saved(step)
            change[self.time[step] - start + 1] -= self.saved(step)
        self._count(numbers, start, stop, change, -1)
        self._place(start, steps, numbers)
        self._count(numbers, start, stop, change, 1)
        loads, more = [], 0
        for load, delta in zip(old_loads, change, strict=False):
            more += delta
            loads.append(load + more)
        for at, step in enumerate(steps):
            loads[at] -= self.saved(step)
        highest, before = max(loads), max(old_loads)
        if (highest, loads.count(highest)) < (before, old_loads.count(before)):
            self.loads[start:stop] = loads
            return True
        self._place(start, old_steps, ())
        for number, life in old_lives.items():
            self.lives[number] = life
        return False

    def _place(self, start: int, steps: list[int], numbers: set[int] | tuple[()]) -> None:
        self.order[start : start + len(steps)] = steps
        for place, step in enumerate(steps, start):
            self.time[step] = place
        for number in numbers:
            self.lives[number] = self.problem.life(number, self.time)

    def _count(self, numbers: set[int], start: int, stop: int, change: list[int], sign: int) -> None:
        for number in numbers:
            size = sign * self.problem.buffers[number].size_bytes
            first, last = self.lives[number]
            change[max(first, start) - start] += size
            change[min(last + 1, stop) - start] -= size


def refine(problem: Problem, order: Sequence[int], deadline: Deadline, floor: int = 0) -> tuple[int, ...]:
    """A valid order, its peak no higher. Stops at `floor` bytes, when `WORK_PER_STEP` is spent or at
    `deadline`.
    """
    line = _Line(problem, order)
    while line.loads and line.work_left > 0 and not deadline.passed():
        peak = max(line.loads)
        if peak <= floor:
            break
        places = [place for place, load in enumerate(line.loads) if load == peak]
        if not any(_lower(line, place, deadline) for place in (places[0], places[-1])):
            break
    return tuple(line.order)


def _lower(line: _Line, place: int, deadline: Deadline) -> bool:
    """Whether some move lowers the load at a place."""
    here = set(line.problem.touches[line.order[place]])
    over = [
        number
        for number, (first, last) in enumerate(line.lives)
        if first <= place <= last and number not in here and line.problem.buffers[number].touched_by
    ]
    over.sort(key=lambda number: -line.problem.buffers[number].size_bytes)
    return any(
        line.try_stretch(start, steps)
        for number in over
        if line.work_left > 0 and not deadline.passed()
        for start, steps in _moves(line, number, place)
    )


def _moves(line: _Line, number: int, place: int) -> Iterator[tuple[int, list[int]]]:
    """Stretches in a new order after which a buffer does not live over a place, or less does."""
    buffer = line.problem.buffers[number]
    late = [step for step in buffer.touched_by if line.time[step] > place]
    if late and not buffer.kept:
        yield from _earlier(line, late, place)
    early = [step for step in buffer.touched_by if line.time[step] < place]
    if early and not buffer.initial:
        yield from _later(line, early, place)


def _earlier(line: _Line, steps: list[int], place: int) -> Iterator[tuple[int, list[int]]]:
    """Move steps behind `place`, with all they need from there on, in front of it: just there, or at once."""
    moved = _closure(steps, line.problem.before, lambda step: line.time[step] >= place)
    if moved is None or line.order[place] in moved:
        return
    stop = max(line.time[step] for step in moved) + 1
    group = sorted(moved, key=line.time.__getitem__)
    ready = max(
        (line.time[other] + 1 for step in moved for other in line.problem.before[step] if other not in moved),
        default=0,
    )
    for start in dict.fromkeys((place, ready)):
        rest = [step for step in line.order[start:stop] if step not in moved]
        yield start, group + rest


def _later(line: _Line, steps: list[int], place: int) -> Iterator[tuple[int, list[int]]]:
    """Move steps in front of `place`, with all that need them up to there, behind it: just there, or last."""
    moved = _closure(steps, line.problem.after, lambda step: line.time[step] <= place)
    if moved is None or line.order[place] in moved:
        return
    start = min(line.time[step] for step in moved)
    group = sorted(moved, key=line.time.__getitem__)
    wanted = min(
        (line.time[other] for step in moved for other in line.problem.after[step] if other not in moved),
        default=len(line.order),
    )
    for stop in dict.fromkeys((place + 1, wanted)):
        rest = [step for step in line.order[start:stop] if step not in moved]
        yield start, rest + group


def _closure(
    steps: Sequence[int], near: Sequence[Sequence[int]], inside: Callable[[int], bool]
) -> set[int] | None:
    """Steps with all that hang on them inside a stretch; None if they are too many."""
    found = set(steps)
    pending = list(steps)
    while pending:
        for other in near[pending.pop()]:
            if other not in found and inside(other):
                found.add(other)
                pending.append(other)
        if len(found) > MAX_MOVED:
            return None
    return found
