"""The exact partition of a line of groups by CP-SAT: one choice for each stretch and number of units.

It checks `best`, with which it shares only the costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from mcudeploy.common.solver import cp_solver, require_solver
from mcudeploy.extensions.several_boards.pipeline.group_line import GroupLine
from mcudeploy.extensions.several_boards.pipeline.unit_regions import Objective, Region, worth

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

_STEPS = 1_000_000
"""The solver computes with integers: the whole line on one unit takes this number of steps."""
_MOST_CHOICES = 60_000


@dataclass(frozen=True, slots=True)
class Exact:
    """The best partition of the solver, and whether it is proven to be optimal."""

    regions: tuple[Region, ...]
    optimal: bool


def exact(line: GroupLine, objective: Objective, seconds: float) -> Exact | None:
    """Return the partition with the least objective that the solver finds in about these seconds.

    None if it finds none, if none fits, or if the line has too many stretches. Raises UsageError without
    OR-Tools.
    """
    require_solver("--mode exact")
    choices = _choices(line)
    if not choices or len(choices) > _MOST_CHOICES:
        return None
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    is_chosen = {region: model.new_bool_var("") for region in choices}
    for group in range(len(line.groups)):
        model.add_exactly_one(var for it, var in is_chosen.items() if it.first <= group < it.end)
    model.add(sum(it.units * var for it, var in is_chosen.items()) <= line.units.count)
    step = max(line.work(0, len(line.groups)), 1.0) / _STEPS
    _minimise(model, line, is_chosen, (objective, step))
    solver = cp_solver(4 * seconds + 1, effort=seconds)
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    regions = tuple(
        sorted((it for it, var in is_chosen.items() if solver.value(var)), key=lambda it: it.first)
    )
    return Exact(regions, status == cp_model.OPTIMAL and isfinite(worth(line, regions, objective)))


def _choices(line: GroupLine) -> list[Region]:
    """Return the regions that fit and are faster than the same groups on fewer units."""
    regions = []
    for first in range(len(line.groups)):
        for end in range(first + 1, len(line.groups) + 1):
            least = float("inf")
            for units in range(1, line.units.count + 1):
                ticks = float(line.stages[first, end, units])
                if ticks < least:
                    least = ticks
                    regions.append(Region(first, end, units))
    return regions


def _minimise(
    model: cp_model.CpModel, line: GroupLine, is_chosen: dict[Region, Any], goal: tuple[Objective, float]
) -> None:
    """Add the objective to the model; `goal`: the objective, and the ticks of one of the solver's steps."""
    objective, step = goal
    costs = {it: round(float(line.stages[it.first, it.end, it.units]) / step) for it in is_chosen}
    arrivals = {it: round(float(line.transfers[it.first]) / step) for it in is_chosen}
    if objective == "latency":
        model.minimize(sum((costs[it] + arrivals[it]) * var for it, var in is_chosen.items()))
        return
    longest = model.new_int_var(0, max(*costs.values(), *arrivals.values()), "longest")
    for group in range(len(line.groups)):  # exactly one stretch contains this group
        within = [(it, var) for it, var in is_chosen.items() if it.first <= group < it.end]
        model.add(longest >= sum(costs[it] * var for it, var in within))
        model.add(longest >= sum(arrivals[it] * var for it, var in within))
    model.minimize(longest)
