"""Flash against latency: a plan by kernels with ever smaller constants."""

from __future__ import annotations

from dataclasses import dataclass

from mcudeploy.boards.board import CODE_BYTES, Board
from mcudeploy.costs.estimate import board_costs
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.fit import Latency, estimated_latency
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.search import kernels
from mcudeploy.planner.search.placing import estimates_of
from mcudeploy.planner.tape.footprint import tables_bytes, weights_bytes
from mcudeploy.planner.tape.plan_view import PlanView

Point = tuple[int, float]
"""Bytes of constants and tables in flash, and latency."""


@dataclass(frozen=True, slots=True)
class FlashCurve:
    """The same schedule by other kernels: the most flash first, each point slower than the one before.

    `chosen`: the plan's own kernels. `latency`: the unit of the points, and the plan's latency in it.
    `tables`: the bytes of tables in each point.
    """

    points: tuple[Point, ...]
    chosen: Point
    latency: Latency
    tables: int

    def flash_limit(self, point: Point) -> int:
        """Return the least limit of flash, code included, under which the planner takes these kernels."""
        return point[0] - self.tables + CODE_BYTES


def flash_curve(plan: Plan, model: Model, board: Board) -> FlashCurve | None:
    """Return the curve of a plan by the costs of its core. None on the host."""
    latency = estimated_latency(plan, model, board)
    if latency is None:
        return None
    view = PlanView(plan, model.calls)
    tables = tables_bytes(view, board)
    flash = weights_bytes(model.calls) + tables
    time = estimates_of(plan, model, board_costs(board))(plan.graph, ())
    points: list[Point] = []
    others = kernels.smaller_constants(model, view.tiled, plan.schedule.steps, time)
    for more_bytes, more_ticks in others:
        point = flash + round(more_bytes), latency.ticks + more_ticks
        while points and points[-1][1] >= point[1]:
            points.pop()
        points.append(point)
    return FlashCurve(tuple(points), (flash, latency.ticks), latency, tables)
