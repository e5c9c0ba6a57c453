"""Offsets by constraint programming (OR-Tools CP-SAT): for stacks, fixed offsets and allowed overlaps, which
the canonical search does not know. Import only where it is needed: the solver takes its time.
"""

from __future__ import annotations

from collections.abc import Sequence

from ortools.sat.python import cp_model

from mcudeploy.layout.greedy import Units, used_bytes
from mcudeploy.layout.problem import align_up
from mcudeploy.solver import cp_solver


def least_arena(
    units: Units, hint: Sequence[int], *, bound: int, effort: float, brake: float, seed: int
) -> tuple[tuple[int, ...] | None, int]:
    """Offsets with the least end, none higher than in `hint`, or None; and a proven bound, in bytes.

    `effort` is in the solver's deterministic time; after `brake` seconds it stops in any case.
    """
    problem = units.problem
    rectangles = problem.rectangles
    most = used_bytes(problem, hint)
    model = cp_model.CpModel()
    end = model.new_int_var(bound, most, "end")
    offsets: dict[int, cp_model.LinearExprT] = {}
    for part in units.parts:
        first = part[0][0]
        if first in problem.fixed:
            offsets[first] = problem.fixed[first]
            continue
        grain = rectangles[first].alignment
        base = model.new_int_var(0, align_up(most, grain) // grain, "")
        model.add_hint(base, hint[first] // grain)
        offsets |= {index: base * grain + distance for index, distance in part}
    for index, item in enumerate(rectangles):
        model.add(offsets[index] + item.size_bytes <= end)
    sharing = {index for overlap in problem.overlaps for index in (overlap.first, overlap.second)}
    steps, spans = [], []
    for index, item in enumerate(rectangles):
        if index in sharing:
            continue
        span = model.new_fixed_size_interval_var(offsets[index], item.size_bytes, "")
        for life in item.lives:
            steps.append(model.new_fixed_size_interval_var(life.lo, len(life), ""))
            spans.append(span)
    model.add_no_overlap_2d(steps, spans)
    for one in sharing:
        for two in units.neighbours[one]:
            if two in sharing and two < one:
                continue
            below = model.new_bool_var("")
            model.add(offsets[one] + rectangles[one].size_bytes <= offsets[two]).only_enforce_if(below)
            model.add(offsets[two] + rectangles[two].size_bytes <= offsets[one]).only_enforce_if(~below)
    model.minimize(end)
    solver = cp_solver(brake, effort=effort, seed=seed)
    status = solver.solve(model)
    if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        return None, bound
    found = tuple(int(solver.value(offsets[index])) for index in range(len(rectangles)))
    return found, max(bound, round(solver.best_objective_bound))
