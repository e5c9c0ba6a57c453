"""The duration of each step of a plan: measured if its operators were, else estimated."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from mcudeploy.boards.board import Board
from mcudeploy.costs.estimate import board_costs
from mcudeploy.execution.deployment import Deployment
from mcudeploy.ir.clock import milliseconds, source_of, time_text
from mcudeploy.ir.plan import Measurement
from mcudeploy.planner.search.placing import estimated_steps


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Ticks of each step of the schedule. `measured`: the sums of operators were measured."""

    ticks: tuple[float, ...]
    unit: str
    measured: bool

    def milliseconds(self, board: Board) -> tuple[float, ...]:
        """Return milliseconds at the board's clock."""
        return tuple(milliseconds(each, self.unit, board.clock_hz) for each in self.ticks)


def latency_text(ticks: float, unit: str, board: Board) -> str:
    """Return milliseconds; a lower bound if only instructions are known, empty on the host's clock."""
    if board.is_host and unit != "us":
        return ""
    return time_text(milliseconds(ticks, unit, board.clock_hz), source_of(unit))


def step_times(deployment: Deployment, measured: Measurement | None) -> StepTimes:
    """Return the times of a plan's steps; a measured operator's time is divided by the estimates."""
    plan, costs = deployment.plan, board_costs(deployment.board)
    ticks = estimated_steps(plan, deployment.model, costs)
    if measured is None:
        return StepTimes(tuple(ticks), costs.unit, measured=False)
    names = [plan.graph.operators[step.operator].name for step in plan.schedule.steps]
    sums = defaultdict[str, float](float)
    for name, each in zip(names, ticks, strict=True):
        sums[name] += each
    ticks_of = {each.operator: each.ticks for each in measured.operators}
    scaled = (
        each * ticks_of.get(name, 0) / sums[name] if sums[name] else 0.0
        for name, each in zip(names, ticks, strict=True)
    )
    return StepTimes(tuple(scaled), measured.unit, measured=True)
