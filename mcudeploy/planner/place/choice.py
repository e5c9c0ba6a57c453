"""The choice of a memory for each group under the live bytes of every step: OR-Tools CP-SAT.

Import this module lazily: the solver is slow to load.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ortools.sat.python import cp_model

from mcudeploy.common.effort import UNITS_PER_SECOND, Effort
from mcudeploy.common.solver import cp_solver
from mcudeploy.planner.place.memory_assignment import MemoryAssignment, Table

_MOST = 0.3
"""Deterministic time of the solver for one choice."""

_UNITS = 5 * UNITS_PER_SECOND
"""Effort of a deterministic second of the solver."""


def cheapest_memories(
    task: MemoryAssignment, limits: Sequence[int], hint: Sequence[int], effort: Effort
) -> tuple[tuple[int, ...] | None, bool]:
    """Return the memory of each group at the least cost, under `limits` of live bytes per memory, or None.

    The second value is whether optimality is proven; for None, whether it is proven that there is none.
    """
    model = cp_model.CpModel()
    inside: Inside = []
    for number, group in enumerate(task.groups):
        inside.append({memory: model.new_bool_var("") for memory in group.memories})
        model.add_exactly_one(inside[number].values())
        for memory, chosen in inside[number].items():
            model.add_hint(chosen, memory == hint[number])
    for memory, limit in enumerate(limits):
        for row in _rows(task, memory):
            there = [(size, inside[group][memory]) for group, size in row if memory in inside[group]]
            if sum(size for size, _ in there) > limit:
                model.add(sum(size * chosen for size, chosen in there) <= limit)
    return _solve(model, task, inside, effort)


Inside = list[dict[int, cp_model.IntVar]]
"""For each group, whether it lies in a memory, by allowed memory."""


def _rows(task: MemoryAssignment, memory: int) -> list[tuple[tuple[int, int], ...]]:
    """Return the live groups with their bytes in a memory, for each step that matters.

    A step is dropped if nothing dies before the next birth: the later step then contains all of its groups.
    """
    events = sorted(
        event
        for number, group in enumerate(task.groups)
        for index in group.rectangles
        for life in (task.problem.rectangles[index].life,)
        for event in (
            (life.lo, 1, number, task.padded_bytes(index, memory)),
            (life.hi, 0, number, -task.padded_bytes(index, memory)),
        )
    )
    alive: dict[int, int] = {}
    rows: dict[tuple[tuple[int, int], ...], None] = {}
    grown = False
    for _, born, number, size in events:
        if not born and grown:
            rows[tuple(sorted(alive.items()))] = None
        grown = bool(born)
        alive[number] = alive.get(number, 0) + size
        if alive[number] == 0:
            del alive[number]
    return list(rows)


def _solve(
    model: cp_model.CpModel, task: MemoryAssignment, inside: Inside, effort: Effort
) -> tuple[tuple[int, ...] | None, bool]:
    """Return the assignment of least cost and, among those, of least rank; as `cheapest_memories`."""
    best: tuple[int, ...] | None = None
    left = min(_MOST, effort.left / _UNITS)
    for table in (task.costs, task.ranks):
        total = _sum(table, inside)
        model.minimize(total)
        solver = cp_solver(math.inf, effort=left)
        status = solver.solve(model)
        left = max(0.0, left - solver.response_proto.deterministic_time)
        effort.spend(_UNITS * solver.response_proto.deterministic_time)
        if status == cp_model.INFEASIBLE:
            return None, True
        if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
            return best, False
        best = tuple(
            next(memory for memory, chosen in of_group.items() if solver.boolean_value(chosen))
            for of_group in inside
        )
        if status != cp_model.OPTIMAL:
            return best, False
        model.add(total == round(solver.objective_value))
        model.clear_hints()  # type: ignore[no-untyped-call]
        for number, value in enumerate(solver.response_proto.solution):
            model.add_hint(model.get_int_var_from_proto_index(number), value)
    return best, True


def _sum(table: Table, inside: Inside) -> cp_model.LinearExprT:
    """Return the sum of the chosen entries, each less the minimum of its group, which keeps numbers small."""
    return cp_model.LinearExpr.sum(
        [
            (row[memory] - min(row[it] for it in group)) * chosen
            for row, group in zip(table, inside, strict=True)
            for memory, chosen in group.items()
        ]
    )
