"""Offsets for rectangles of few sizes that live at about the same time, or a proof of what they need at
least, on cells of so many bytes.

A few hundred row blocks that fill many steps to the last cell are placed in some seconds, or refuted in a
tenth of one, where constraints on byte offsets (`no_overlap_2d`) find neither.

Import only where it is needed: the solver takes its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import gcd, lcm

from mcudeploy.interval import Interval
from mcudeploy.layout.cellmodel import LEAST_S, CellModel, Spans, building, most_covered
from mcudeploy.layout.problem import Problem, Rectangle, align_up

_TIGHT, _FULLEST = 0.97, 8
"""A proof is tried with cells if so much of the part of bytes that is taken in one of the fullest steps is
left.
"""

_MOST_CELLS = 700
"""A proof is tried with so many cells at most, one above the other."""


def pack(
    problem: Problem,
    indices: Sequence[int],
    hung: Mapping[int, int],
    limit: int,
    *,
    seconds: float,
    brake: float,
    seed: int,
) -> tuple[dict[int, int] | None, float]:
    """Offsets with all ends within `limit` bytes for some rectangles of no stack, by index, below those that
    hang from the top, or None; and the effort in seconds, of `seconds`. The problem is one in one memory,
    without overlaps. Sizes are rounded up to cells, so nothing is proven. After `brake` seconds it stops in
    any case.
    """
    crowd = _Crowd.of(problem, indices, hung, limit)
    cell = crowd.cell()
    if cell == 0:
        return None, LEAST_S
    model, placed = CellModel(seconds), list[tuple[int, ...]]()
    for together, spans, steps in crowd.places(cell):
        model.add(spans, steps)
        placed.append(together)
        if model.too_large:
            return None, model.building_s
    rooms = {step: room // cell for step, room in crowd.room.items()}
    found = model.solve(rooms, brake, seed)
    if found.places is None:
        return None, found.seconds
    offsets: dict[int, int] = {}
    for together, at in zip(placed, found.places, strict=True):
        offsets |= crowd.behind(together, at)
    return offsets, found.seconds


def least(
    problem: Problem,
    steps: Interval,
    bound: int,
    *,
    enough: int,
    open_at: set[tuple[Interval, int, int]],
    each: float,
    seconds: float,
    brake: float,
    seed: int,
) -> tuple[int, float]:
    """The bytes that what lives at some steps needs at least, wherever stacks are, and the effort in seconds:
    so many for each try, and for all of them. At least `bound` are known to be needed, and more than `enough`
    have no use. `open_at`: what is known to fit, and grows here, as steps, bytes of a cell, and cells. The
    problem is one in one memory, without overlaps and fixed offsets.

    Sizes are rounded down to cells, which makes room only. Then, if anything fits, something does with all
    offsets at cells: of the fitting ones take those with the least sum, and if not all are at cells, all that
    are not can be lowered a little together, because they touch nothing that is.
    """
    stacks = [_shape(problem, stack, steps) for stack in problem.stacks]
    stacked = {index for stack in problem.stacks for index in stack}
    items = [
        (item.size_bytes, lives)
        for index, item in enumerate(problem.rectangles)
        if index not in stacked and (lives := _steps(item.lives, steps))
    ]
    spent = 0.0
    for cell in _cells_for_proof(items, stacks, bound, min(each, seconds)):
        while bound < enough and spent < seconds and (steps, cell, bound // cell) not in open_at:
            model, room = CellModel(min(each, seconds - spent)), bound // cell
            for size, lives in items:
                high = size // cell
                if high > 0:
                    model.add({low: (low, low + high) for low in range(room - high + 1)}, lives)
            for shape in stacks:
                model.add_shape({step: size // cell for step, size in shape.items()}, room)
            found = model.solve(dict.fromkeys(range(steps.lo, steps.hi), room), brake, seed)
            spent += found.seconds
            if found.places is not None:
                open_at.add((steps, cell, room))
            if not found.proven:
                break
            bound = (room + 1) * cell
    return bound, spent


def _cells_for_proof(
    items: Sequence[tuple[int, list[int]]], stacks: Sequence[Mapping[int, int]], limit: int, seconds: float
) -> list[int]:
    """Sizes of cells, in bytes, that leave hardly more room in the fullest step than bytes do, the largest
    first.
    """
    alive: dict[int, list[int]] = {}
    for size, steps in items:
        for step in steps:
            alive.setdefault(step, []).append(size)
    for shape in stacks:
        for step, size in shape.items():
            alive.setdefault(step, []).append(size)
    fullest = sorted(alive.values(), key=sum)[-_FULLEST:]

    def part(cell: int) -> float:
        return max((sum(size // cell for size in sizes) for sizes in fullest), default=0) / (limit // cell)

    def covered(cell: int) -> int:
        places = [(size // cell, (limit - size) // cell + 1) for size, _ in items]
        return sum(building(count, count * high) for high, count in places if high > 0)

    cells = [cell for cell in _common(chain(*fullest)) if cell <= limit <= _MOST_CELLS * cell]
    most = most_covered(seconds)
    return [cell for cell in cells if covered(cell) <= most and part(cell) >= _TIGHT * part(1)]


def _common(sizes: Iterable[int]) -> list[int]:
    """Common divisors of some sizes, the largest first."""
    found = {1}
    for size in set(sizes):
        found |= {gcd(size, one) for one in found} | {size}
    return sorted(found, reverse=True)


def _steps(lives: Iterable[Interval], within: Interval) -> list[int]:
    parts = (life.clip(within.lo, within.hi) for life in lives)
    return [step for part in parts for step in range(part.lo, part.hi)]


def _shape(problem: Problem, stack: Sequence[int], within: Interval) -> dict[int, int]:
    """By step the bytes at the end of a stack that are alive without a gap."""
    sizes: dict[int, int] = {}
    steps = set(range(within.lo, within.hi))
    for index in reversed(stack):
        steps &= set(_steps(problem.rectangles[index].lives, within))
        for step in steps:
            sizes[step] = sizes.get(step, 0) + problem.rectangles[index].size_bytes
    return sizes


@dataclass(frozen=True, slots=True, eq=False)
class _Crowd:
    """Rectangles to pack: by index those that live for several steps, with these steps; by step those that
    live in it alone (scratch), which lie one behind the other; and the bytes below what hangs from the top.
    """

    rectangles: tuple[Rectangle, ...]
    lasting: dict[int, list[int]]
    brief: dict[int, list[int]]
    room: dict[int, int]

    @classmethod
    def of(cls, problem: Problem, indices: Sequence[int], hung: Mapping[int, int], limit: int) -> _Crowd:
        lasting, brief = dict[int, list[int]](), dict[int, list[int]]()
        for index in indices:
            steps = [step for life in problem.rectangles[index].lives for step in range(life.lo, life.hi)]
            if len(steps) > 1:
                lasting[index] = steps
            else:
                brief.setdefault(steps[0], []).append(index)
        room = dict.fromkeys(chain(brief, *lasting.values()), limit)
        for index, at in hung.items():
            for life in problem.rectangles[index].lives:
                room.update((step, min(at, room[step])) for step in range(life.lo, life.hi) if step in room)
        return cls(problem.rectangles, lasting, brief, room)

    def cell(self) -> int:
        """The largest size of cells, in bytes, with which no step has more than its room; or 0."""
        alive: dict[int, list[int]] = {step: [] for step in self.room}
        for index, steps in self.lasting.items():
            for step in steps:
                alive[step].append(self.rectangles[index].size_bytes)
        scratch = {step: self._scratch(step)[1] for step in self.room}

        def suits(cell: int) -> bool:
            return all(
                sum(-(-size // cell) for size in alive[step])
                <= max((room - scratch[step]) // cell, room // cell - -(-scratch[step] // cell))
                for step, room in self.room.items()
            )

        sizes = (self.rectangles[index].size_bytes for index in self.lasting)
        return next((cell for cell in _common(sizes) if suits(cell)), 0)

    def places(self, cell: int) -> Iterator[tuple[tuple[int, ...], Spans, list[int]]]:
        """What is placed as one, by index; the cells that it takes by the offset of the first; its steps.

        Rectangles that last lie at multiples of `cell` bytes, and of what divides the sizes of all that they
        meet.
        """
        apart = dict.fromkeys(self.room, 0)
        for index, steps in self.lasting.items():
            for step in steps:
                apart[step] = gcd(apart[step], -(-self.rectangles[index].size_bytes // cell))
        for index, steps in self.lasting.items():
            item, top = self.rectangles[index], min(self.room[step] for step in steps) // cell
            cells, grain = -(-item.size_bytes // cell), item.alignment // gcd(item.alignment, cell)
            at = range(0, top - cells + 1, lcm(gcd(*(apart[step] for step in steps)), grain))
            yield (index,), {low * cell: (low, low + cells) for low in at}, steps
        for step, indices in self.brief.items():
            room = self.room[step]
            grain, size = self._scratch(step)
            highest = (room - size) // grain * grain
            lows = {*range(0, highest + 1, lcm(cell, grain)), highest} if highest >= 0 else set[int]()
            ends = {low: min(room // cell, -(-(low + size) // cell)) for low in lows}
            yield tuple(indices), {low: (low // cell, end) for low, end in ends.items()}, [step]

    def behind(self, indices: Sequence[int], offset: int) -> dict[int, int]:
        """Offsets of what lies one behind the other."""
        found: dict[int, int] = {}
        for index in indices:
            found[index] = align_up(offset, self.rectangles[index].alignment)
            offset = found[index] + self.rectangles[index].size_bytes
        return found

    def _scratch(self, step: int) -> tuple[int, int]:
        """Alignment and bytes of what lives in a step alone."""
        indices = self.brief.get(step, [])
        ends = (at + self.rectangles[index].size_bytes for index, at in self.behind(indices, 0).items())
        return lcm(*(self.rectangles[index].alignment for index in indices)), max(ends, default=0)
