"""A model of rectangles on a grid of cells: a Boolean says whether a rectangle lies at a place, and in each
step every cell is taken at most once; in a step that is full, exactly once. CP-SAT learns clauses from that.

After the position-indexed models of two-dimensional packing (Beasley 1985, "An exact two-dimensional
non-guillotine cutting tree search procedure"). Import only where it is needed: the solver takes its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from mcudeploy.layout import effort
from mcudeploy.solver import cp_solver

_MOST_COVERED = 10_000_000
"""What building may take at most (see `building`), and the literals of all constraints."""

_LITERAL = 25
"""To make a literal takes as long as so many cells."""

_BUILDING_SHARE = 0.5
"""Of the effort, at most."""

_NEAR = 4
"""A step needs no constraints where one of so many on either side has all its rectangles and no more room."""

LEAST_S = 1e-3
"""What a try costs at least."""

Spans = Mapping[int, tuple[int, int]]
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


class CellModel:
    """Rectangles at one of some places each. In each step no cell is taken twice."""

    def __init__(self, seconds: float) -> None:
        self._model, self._seconds = cp_model.CpModel(), seconds
        self._claims: dict[int, list[_Claim]] = {}
        self._literals: list[dict[int, cp_model.IntVar]] = []
        self._fits, self._covered = True, 0

    @property
    def too_large(self) -> bool:
        """Whether it takes too long to build."""
        return self._covered > most_covered(self._seconds)

    @property
    def building_s(self) -> float:
        """The effort of building it."""
        return min(self._covered, most_covered(self._seconds)) / effort.CELLS_COVERED

    def add(self, spans: Spans, steps: Iterable[int]) -> None:
        """A rectangle that takes the cells of one span in all of its steps."""
        self._covered += building(len(spans), sum(end - low for low, end in spans.values()))
        literals = self._one_of(spans)
        if literals:
            claim = _Claim.of((spans[at], literal) for at, literal in literals.items())
            for step in steps:
                self._claims.setdefault(step, []).append(claim)

    def add_shape(self, cells: Mapping[int, int], top: int) -> None:
        """Something with one upper end, so many cells high in each step."""
        highest = max(cells.values(), default=0)
        places = top - highest + 1
        self._covered += building(places, sum(set(cells.values())) * places)
        literals, claims = self._one_of(range(highest, top + 1)), dict[int, _Claim]()
        for step, high in cells.items():
            if literals and high > 0:
                if high not in claims:
                    claims[high] = _Claim.of(((end - high, end), of) for end, of in literals.items())
                self._claims.setdefault(step, []).append(claims[high])

    def solve(self, room: Mapping[int, int], brake: float, seed: int) -> Filled:
        """Places by number of what was added, with so many cells in each step."""
        needed = self._needed(room)
        if not self._fits or any(sum(it.cells for it in self._claims[step]) > room[step] for step in needed):
            return Filled(None, True, LEAST_S)
        for step in needed:
            self._covered += self._fill(self._claims[step], room[step])
            if self.too_large:
                return Filled(None, False, self.building_s)
        spent = self.building_s
        solver = cp_solver(brake, effort=max(0.0, self._seconds - spent) * effort.CLAUSES, seed=seed)
        solver.parameters.cp_model_presolve = False  # takes longer than all the rest
        solver.parameters.linearization_level = 0
        status = solver.solve(self._model)
        spent += max(LEAST_S, solver.response_proto.deterministic_time / effort.CLAUSES)
        if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
            return Filled(None, status == cp_model.INFEASIBLE, spent)
        places = [next(at for at, of in some.items() if solver.value(of)) for some in self._literals]
        return Filled(places, False, spent)

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
class Filled:
    """Places in the order of what was added, or None; then `proven` says that there are none."""

    places: list[int] | None
    proven: bool
    seconds: float


def building(places: int, covered: int) -> int:
    """What it takes to build something with so many places, which cover so many cells, in cells."""
    return _LITERAL * places + covered


def most_covered(seconds: float) -> int:
    """How large a model may be for so much effort: to build it shall not take all of it."""
    return min(_MOST_COVERED, int(_BUILDING_SHARE * seconds * effort.CELLS_COVERED))
