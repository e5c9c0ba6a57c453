"""Offsets for a few of the rectangles by constraints on intervals of bytes (OR-Tools CP-SAT): some hundred
that live at about the same time are filled to the last byte in a second or so. Where sizes have no large
divisor this does what `cells` cannot. Import only where it is needed: the solver takes its time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ortools.sat.python import cp_model

from mcudeploy.layout.effort import SOLVED
from mcudeploy.layout.problem import Problem
from mcudeploy.solver import cp_solver

_MOST_RECTANGLES = 400
"""With more it takes too long."""


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
    """As `cells.pack`, at any bytes."""
    items = [(index, problem.rectangles[index]) for index in indices]
    if len(items) > _MOST_RECTANGLES or any(item.size_bytes > limit for _, item in items):
        return None, 0.0
    model, twins = cp_model.CpModel(), dict[object, cp_model.LinearExprT]()
    offsets: dict[int, cp_model.LinearExprT] = dict(hung)
    for index, item in items:
        at = model.new_int_var(0, (limit - item.size_bytes) // item.alignment, "") * item.alignment
        kind = (item.size_bytes, item.alignment, item.lives)
        if kind in twins:  # which one is the lower one makes no difference
            model.add(at >= twins[kind] + item.size_bytes)
        offsets[index] = twins[kind] = at
    lives, spans = list[cp_model.IntervalVar](), list[cp_model.IntervalVar]()
    for index, offset in offsets.items():
        item = problem.rectangles[index]
        span = model.new_fixed_size_interval_var(offset, item.size_bytes, "")
        for life in item.lives:
            lives.append(model.new_fixed_size_interval_var(life.lo, len(life), ""))
            spans.append(span)
    model.add_no_overlap_2d(lives, spans)
    solver = cp_solver(brake, effort=seconds * SOLVED, seed=seed)
    solver.parameters.use_timetabling_in_no_overlap_2d = True
    solver.parameters.use_energetic_reasoning_in_no_overlap_2d = True
    status = solver.solve(model)
    spent = solver.response_proto.deterministic_time / SOLVED
    if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        return None, spent
    return {index: int(solver.value(offsets[index])) for index in indices}, spent
