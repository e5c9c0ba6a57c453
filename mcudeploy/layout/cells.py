"""Offsets for rectangles of few sizes that live at about the same time, or a proof that there are none: bytes
are cut into cells of one size, a Boolean says whether a rectangle lies at a place, and in each step every
cell is taken at most once; in a step that is full, exactly once. CP-SAT learns clauses from that.

A few hundred row blocks that fill many steps to the last cell are placed in some seconds, or refuted in a
tenth of one, where constraints on byte offsets (`no_overlap_2d`) find neither. After the position-indexed
models of two-dimensional packing (Beasley 1985, "An exact two-dimensional non-guillotine cutting tree search
procedure").

Import only where it is needed: the solver takes its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import gcd, lcm

from ortools.sat.python import cp_model

from mcudeploy.interval import Interval
from mcudeploy.layout import effort
from mcudeploy.layout.problem import Problem, Rectangle, align_up
from mcudeploy.solver import cp_solver

_MOST_COVERED = 3_000_000
"""Cells of all places, and literals of all constraints; a larger model takes too long to build."""

_BUILDING_SHARE = 0.5
"""Of the effort, at most."""

_TIGHT = 0.97
"""A proof is tried with cells if so much of the part of bytes that is taken in the fullest step is left."""

_MOST_CELLS = 700
"""A proof is tried with so many cells at most, one above the other."""

_LEAST_S = 1e-3
"""What a try costs at least."""

_NEAR = 4
"""A step needs no constraints where one of so many on either side has all its rectangles and no more room."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Offsets by index, or None. `seconds`: of effort."""

    offsets: dict[int, int] | None
    seconds: float


def pack(
    problem: Problem,
    indices: Sequence[int],
    hung: Mapping[int, int],
    limit: int,
    *,
    seconds: float,
    brake: float,
    seed: int,
) -> Packed:
    """Offsets with all ends within `limit` bytes for some rectangles of no stack, by index, below those that
    hang from the top. The problem is one in one memory, without overlaps. Sizes are rounded up to cells, so
    nothing is proven. After `brake` seconds it stops in any case.
    """
    crowd = _Crowd.of(problem, indices, hung, limit)
    cell = crowd.cell()
    if cell == 0:
        return Packed(None, _LEAST_S)
    model, placed = _Model(seconds), list[tuple[int, ...]]()
    for together, spans, steps in crowd.places(cell):
        model.add(spans, steps)
        placed.append(together)
        if model.too_large:
            return Packed(None, _BUILDING_SHARE * seconds)
    rooms = {step: room // cell for step, room in crowd.room.items()}
    found = model.solve(rooms, brake, seed)
    if found.places is None:
        return Packed(None, found.seconds)
    offsets: dict[int, int] = {}
    for together, at in zip(placed, found.places, strict=True):
        offsets |= crowd.behind(together, at)
    return Packed(offsets, found.seconds)


def least(
    problem: Problem,
    steps: Interval,
    bound: int,
    *,
    enough: int,
    each: float,
    seconds: float,
    brake: float,
    seed: int,
) -> tuple[int, float]:
    """The bytes that what lives at some steps needs at least, wherever stacks are, and the effort in seconds:
    so many for each try, and for all of them. At least `bound` are known to be needed, and more than `enough`
    have no use. The problem is one in one memory, without overlaps and fixed offsets.

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
    for cell in _cells_for_proof(items, stacks, bound, each):
        while bound < enough and spent < seconds:
            model, room = _Model(min(each, seconds - spent)), bound // cell
            for size, lives in items:
                high = size // cell
                if high > 0:
                    model.add({low: (low, low + high) for low in range(room - high + 1)}, lives)
            for shape in stacks:
                model.add_shape({step: size // cell for step, size in shape.items()}, room)
            rooms = dict.fromkeys(range(steps.lo, steps.hi), room)
            found = model.solve(rooms, brake, seed)
            spent += found.seconds
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
    taken = [(size, step) for size, steps in items for step in steps]
    taken += [(size, step) for shape in stacks for step, size in shape.items()]

    def part(cell: int) -> float:
        load: dict[int, int] = {}
        for size, step in taken:
            load[step] = load.get(step, 0) + size // cell
        return max(load.values(), default=0) / (limit // cell)

    def covered(cell: int) -> int:
        return sum(size // cell * ((limit - size) // cell + 1) for size, _ in items)

    cells = [cell for cell in _common(size for size, _ in taken) if cell <= limit <= _MOST_CELLS * cell]
    most = _most_covered(seconds)
    return [cell for cell in cells if covered(cell) <= most and part(cell) >= _TIGHT * part(1)]


def _most_covered(seconds: float) -> int:
    """How large a model may be for so much effort: to build it shall not take all of it."""
    return min(_MOST_COVERED, int(_BUILDING_SHARE * seconds * effort.CELLS_COVERED))


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

    def places(self, cell: int) -> Iterator[tuple[tuple[int, ...], _Spans, list[int]]]:
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


_Spans = Mapping[int, tuple[int, int]]
"""First cell and end by offset."""


@dataclass(frozen=True, slots=True, eq=False)
class _Claim:
    """What a rectangle may take in a step: cells in all, and the literals of its places by cell. `starts`:
    the first cells of places.
    """

    cells: int
    starts: frozenset[int]
    covers: dict[int, list[cp_model.IntVar]]

    @classmethod
    def of(cls, spans: Iterable[tuple[tuple[int, int], cp_model.IntVar]]) -> _Claim:
        starts, lengths = set[int](), set[int]()
        covers: dict[int, list[cp_model.IntVar]] = {}
        for (low, end), literal in spans:
            lengths.add(end - low)
            if low < end:
                starts.add(low)
            for cell in range(low, end):
                covers.setdefault(cell, []).append(literal)
        return cls(min(lengths), frozenset(starts), covers)


class _Model:
    """Rectangles at one of some places each. In each step no cell is taken twice."""

    def __init__(self, seconds: float) -> None:
        self._model, self._seconds = cp_model.CpModel(), seconds
        self._claims: dict[int, list[_Claim]] = {}
        self._literals: list[dict[int, cp_model.IntVar]] = []
        self._fits, self._covered = True, 0

    @property
    def too_large(self) -> bool:
        """Whether it takes too long to build."""
        return self._covered > _most_covered(self._seconds)

    def add(self, spans: _Spans, steps: Iterable[int]) -> None:
        """A rectangle that takes the cells of one span in all of its steps."""
        self._covered += sum(end - low for low, end in spans.values())
        literals = self._one_of(spans)
        if literals:
            claim = _Claim.of((spans[at], literal) for at, literal in literals.items())
            for step in steps:
                self._claims.setdefault(step, []).append(claim)

    def add_shape(self, cells: Mapping[int, int], top: int) -> None:
        """Something with one upper end, so many cells high in each step."""
        highest = max(cells.values(), default=0)
        self._covered += sum(set(cells.values())) * (top - highest + 1)
        literals, claims = self._one_of(range(highest, top + 1)), dict[int, _Claim]()
        for step, high in cells.items():
            if literals and high > 0:
                if high not in claims:
                    claims[high] = _Claim.of(((end - high, end), of) for end, of in literals.items())
                self._claims.setdefault(step, []).append(claims[high])

    def solve(self, room: Mapping[int, int], brake: float, seed: int) -> _Filled:
        """Places by number of what was added, with so many cells in each step."""
        needed = self._needed(room)
        if not self._fits or any(sum(it.cells for it in self._claims[step]) > room[step] for step in needed):
            return _Filled(None, True, _LEAST_S)
        for step in needed:
            self._covered += self._fill(self._claims[step], room[step])
            if self.too_large:
                return _Filled(None, False, self._covered / effort.CELLS_COVERED)
        spent = self._covered / effort.CELLS_COVERED
        solver = cp_solver(brake, effort=max(0.0, self._seconds - spent) * effort.CLAUSES, seed=seed)
        solver.parameters.cp_model_presolve = False  # takes longer than all the rest
        solver.parameters.linearization_level = 0
        status = solver.solve(self._model)
        spent += max(_LEAST_S, solver.response_proto.deterministic_time / effort.CLAUSES)
        if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
            return _Filled(None, status == cp_model.INFEASIBLE, spent)
        places = [next(at for at, of in some.items() if solver.value(of)) for some in self._literals]
        return _Filled(places, False, spent)

    def _one_of(self, places: Iterable[int]) -> dict[int, cp_model.IntVar]:
        literals = {place: self._model.new_bool_var("") for place in places}
        self._literals.append(literals)
        self._fits = self._fits and bool(literals)
        self._model.add_exactly_one(literals.values())
        return literals

    def _needed(self, room: Mapping[int, int]) -> list[int]:
        """Steps without those that have another one near, with all of their rectangles and no more room."""
        steps = sorted(self._claims)
        alive = {step: frozenset(map(id, self._claims[step])) for step in steps}

        def covers(other: int, step: int) -> bool:
            if not (alive[step] <= alive[other] and room[other] <= room[step]):
                return False
            return alive[step] < alive[other] or room[other] < room[step] or other < step

        return [
            step
            for at, step in enumerate(steps)
            if not any(covers(o, step) for o in steps[max(0, at - _NEAR) : at + _NEAR + 1] if o != step)
        ]

    def _fill(self, claims: Sequence[_Claim], room: int) -> int:
        """Constraints for the cells of a step: where nothing starts, what covers a cell covers the one before
        as well. How many literals they have.
        """
        full = sum(claim.cells for claim in claims) == room
        count = 0
        for cell in sorted(frozenset[int]().union(*(claim.starts for claim in claims))):
            literals = [of for claim in claims for of in claim.covers.get(cell, ())]
            count += len(literals)
            if full:
                self._model.add_exactly_one(literals)
            elif len(literals) > 1:
                self._model.add_at_most_one(literals)
        return count


@dataclass(frozen=True, slots=True)
class _Filled:
    """Places in the order of what was added, or None; then `proven` says that there are none."""

    places: list[int] | None
    proven: bool
    seconds: float
