"""Which memory for which group, by constraint programming (OR-Tools CP-SAT): under what is alive at every
step, or together with the offsets. Import only where it is needed: the solver takes its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from mcudeploy.layout.banks import Assigned, Table, Task
from mcudeploy.layout.effort import BRAKE
from mcudeploy.layout.greedy import Units
from mcudeploy.layout.problem import Problem
from mcudeploy.solver import cp_solver

_CHOSEN, _PLACED = 0.22, 0.11
"""Deterministic time of the solver in a second of a desktop computer: for memories, and with offsets."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The bank of each group, and offsets where they were asked for; None where none was found.

    `proven`: that nothing costs less, or that there is nothing.
    """

    banks: tuple[int, ...] | None
    proven: bool
    offsets: tuple[int, ...] = ()


def least_loads(task: Task, limits: Sequence[int], hint: Sequence[int] | None, seconds: float) -> Choice:
    """Banks at the least cost so that at no step more than `limits` bytes are alive in any of them."""
    model = cp_model.CpModel()
    inside = _inside(model, task, hint)
    for row in _rows(task.problem, [group.rectangles for group in task.groups]):
        for bank, limit in enumerate(limits):
            there = [(size, inside[group][bank]) for group, size in row if bank in inside[group]]
            if sum(size for size, _ in there) > limit:
                model.add(sum(size * chosen for size, chosen in there) <= limit)
    solver, proven = _solve(model, task, inside, seconds, _CHOSEN)
    return Choice(None if solver is None else _banks(solver, inside), proven)


def joint(task: Task, units: Units, hint: Assigned | None, seconds: float) -> Choice:
    """Banks and offsets at the least cost."""
    rectangles = task.problem.rectangles
    group_of = {index: number for number, group in enumerate(task.groups) for index in group.rectangles}
    model = cp_model.CpModel()
    inside = _inside(model, task, hint.banks if hint else None)
    offsets: dict[tuple[int, int], cp_model.LinearExprT] = {}
    boxes: list[tuple[list[cp_model.IntervalVar], list[cp_model.IntervalVar]]] = [
        ([], []) for _ in task.banks
    ]
    for part in units.parts:
        first, group = part[0][0], group_of[part[0][0]]
        extent = part[-1][1] + rectangles[part[-1][0]].size_bytes
        for bank, chosen in inside[group].items():
            room, grain = task.banks[bank].capacity_bytes - extent, task.alignment(first, bank)
            if room < 0:
                model.add(chosen == 0)
                continue
            base = model.new_int_var(0, room // grain, "")
            if hint is not None and hint.banks[group] == bank:
                model.add_hint(base, hint.placed.offsets[first] // grain)
            for index, distance in part:
                offsets[index, bank] = base * grain + distance
                size = rectangles[index].size_bytes
                span = model.new_optional_fixed_size_interval_var(offsets[index, bank], size, chosen, "")
                for life in rectangles[index].lives:
                    steps = model.new_optional_fixed_size_interval_var(life.lo, len(life), chosen, "")
                    boxes[bank][0].append(steps)
                    boxes[bank][1].append(span)
    for box in boxes:
        model.add_no_overlap_2d(*box)
    solver, proven = _solve(model, task, inside, seconds, _PLACED)
    if solver is None:
        return Choice(None, proven)
    banks = _banks(solver, inside)
    found = (int(solver.value(offsets[index, banks[group_of[index]]])) for index in range(len(rectangles)))
    return Choice(banks, proven, tuple(found))


Inside = list[dict[int, cp_model.IntVar]]
"""For each group whether it lies in a bank, for those that it may lie in."""


def _inside(model: cp_model.CpModel, task: Task, hint: Sequence[int] | None) -> Inside:
    inside: Inside = []
    for number, group in enumerate(task.groups):
        inside.append({bank: model.new_bool_var("") for bank in group.banks})
        model.add_exactly_one(inside[number].values())
        if hint is not None:
            for bank, chosen in inside[number].items():
                model.add_hint(chosen, bank == hint[number])
    return inside


def _rows(problem: Problem, groups: Sequence[Sequence[int]]) -> list[tuple[tuple[int, int], ...]]:
    """What is alive at each step that matters: groups with their bytes. Where nothing dies before something
    else is born, the later step has it all.
    """
    events = sorted(
        event
        for number, group in enumerate(groups)
        for index in group
        for life in problem.rectangles[index].lives
        for event in (
            (life.lo, 1, number, problem.rectangles[index].size_bytes),
            (life.hi, 0, number, -problem.rectangles[index].size_bytes),
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
    model: cp_model.CpModel, task: Task, inside: Inside, seconds: float, each: float
) -> tuple[cp_model.CpSolver | None, bool]:
    """The least cost, and of its solutions the least rank; whether that is proven, or that none exists.

    `each`: the effort in a second, in the solver's deterministic time.
    """
    best: cp_model.CpSolver | None = None
    left = seconds * each
    for table in (task.costs, task.ranks):
        total = _sum(table, inside)
        model.minimize(total)
        solver = cp_solver(seconds * BRAKE, effort=left)
        status = solver.solve(model)
        left = max(0.0, left - solver.response_proto.deterministic_time)
        if status == cp_model.INFEASIBLE:
            return None, True
        if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
            return best, False
        best = solver
        if status != cp_model.OPTIMAL:
            return best, False
        model.add(total == round(solver.objective_value))
        model.clear_hints()  # type: ignore[no-untyped-call]
        for number, value in enumerate(solver.response_proto.solution):
            model.add_hint(model.get_int_var_from_proto_index(number), value)
    return best, True


def _sum(table: Table, inside: Inside) -> cp_model.LinearExprT:
    """The entries of the chosen banks, less what every choice has: so they stay small."""
    return cp_model.LinearExpr.sum(
        [
            (row[bank] - min(row[b] for b in group)) * chosen
            for row, group in zip(table, inside, strict=True)
            for bank, chosen in group.items()
        ]
    )


def _banks(solver: cp_model.CpSolver, inside: Inside) -> tuple[int, ...]:
    return tuple(
        next(bank for bank, chosen in group.items() if solver.boolean_value(chosen)) for group in inside
    )
