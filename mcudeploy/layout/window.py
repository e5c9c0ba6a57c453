"""Offsets for a few of the rectangles by constraints on byte offsets (OR-Tools CP-SAT): some hundred that
live at about the same time are filled to the last byte in a second or so. Where sizes have no large divisor
this does what `cells` cannot. Import only where it is needed: the solver takes its time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from mcudeploy.interval import Interval
from mcudeploy.layout.problem import Problem
from mcudeploy.solver import cp_solver


@dataclass(frozen=True, slots=True)
class Packed:
    """Offsets by index, or None; then `proven` says that there are none. `effort`: what it took, in the
    solver's deterministic time.
    """

    offsets: dict[int, int] | None
    proven: bool
    effort: float


def pack(
    problem: Problem,
    indices: Sequence[int],
    given: Mapping[int, int],
    limit: int,
    *,
    effort: float,
    brake: float,
    seed: int,
) -> Packed:
    """Offsets with all ends within `limit` bytes for some rectangles of no stack, by index, around those that
    are given. The problem is one in one memory, without overlaps.

    `effort` is in the solver's deterministic time; after `brake` seconds it stops in any case.
    """
    boxes, rectangles = _Boxes(limit), problem.rectangles
    for index, at in given.items():
        boxes.take(at, rectangles[index].size_bytes, rectangles[index].lives)
    offsets = {
        index: boxes.add(item.size_bytes, item.alignment, item.lives)
        for index, item in ((index, rectangles[index]) for index in indices)
    }
    return boxes.solve(offsets, effort, brake, seed)


class _Boxes:
    """Rectangles that must not share bytes in the steps in which both live, as a model."""

    def __init__(self, limit: int) -> None:
        self._model, self._limit, self._fits = cp_model.CpModel(), limit, True
        self._twins: dict[object, cp_model.LinearExprT] = {}
        self._steps: list[cp_model.IntervalVar] = []
        self._spans: list[cp_model.IntervalVar] = []

    def offset(self, size: int, grain: int) -> cp_model.LinearExprT:
        """Anywhere with so many bytes below the limit, in bytes."""
        self._fits &= size <= self._limit
        return self._model.new_int_var(0, max(0, self._limit - size) // grain, "") * grain

    def add(self, size: int, grain: int, lives: tuple[Interval, ...]) -> cp_model.LinearExprT:
        """A rectangle; which one of two with equal size and lives is the lower one makes no difference."""
        offset, kind = self.offset(size, grain), (size, grain, lives)
        if kind in self._twins:
            self._model.add(offset >= self._twins[kind] + size)
        self._twins[kind] = offset
        self.take(offset, size, lives)
        return offset

    def take(self, offset: cp_model.LinearExprT, size: int, lives: Sequence[Interval]) -> None:
        """These bytes, in these steps."""
        span = self._model.new_fixed_size_interval_var(offset, size, "")
        for life in lives:
            self._steps.append(self._model.new_fixed_size_interval_var(life.lo, len(life), ""))
            self._spans.append(span)

    def solve(
        self, wanted: Mapping[int, cp_model.LinearExprT], effort: float, brake: float, seed: int
    ) -> Packed:
        """The values of some offsets."""
        if not self._fits:
            return Packed(None, True, 0.0)
        self._model.add_no_overlap_2d(self._steps, self._spans)
        solver = cp_solver(brake, effort=effort, seed=seed)
        solver.parameters.use_timetabling_in_no_overlap_2d = True
        solver.parameters.use_energetic_reasoning_in_no_overlap_2d = True
        status = solver.solve(self._model)
        spent = solver.response_proto.deterministic_time
        if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
            return Packed(None, status == cp_model.INFEASIBLE, spent)
        return Packed({index: int(solver.value(offset)) for index, offset in wanted.items()}, False, spent)
