"""Flash and RAM against latency: a plan by kernels with ever smaller constants, or ever less scratch."""

from __future__ import annotations

from dataclasses import dataclass

from mcudeploy.boards.board import Board
from mcudeploy.cost.estimate import best_costs, estimated
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.fit import Latency, estimated_latency
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.search import kernels
from mcudeploy.planner.tape.footprint import tables_bytes, weights_bytes
from mcudeploy.tiling.blocks import TiledGraph

Point = tuple[int, float]
"""Bytes of constants and tables in flash, and latency."""


@dataclass(frozen=True, slots=True)
class FlashCurve:
    """The same schedule by other kernels: the most flash first, each point slower than the one before.

    `chosen`: the plan's own kernels. `latency`: the unit of the points, and the plan's latency in it.
    """

    points: tuple[Point, ...]
    chosen: Point
    latency: Latency


def flash_curve(plan: Plan, model: Model, board: Board) -> FlashCurve | None:
    """Return the curve of a plan by the costs of its core. None on the host."""
    latency = estimated_latency(plan, model, board)
    if latency is None:
        return None
    flash = weights_bytes(model.calls) + tables_bytes(plan, model.calls, board)
    time = estimated(best_costs(board.core))(plan.graph, ())
    points: list[Point] = []
    others = kernels.smaller_constants(
        model, TiledGraph.of(plan), plan.schedule.steps, time, board.constants_room
    )
    for more_bytes, more_ticks in others:
        point = flash + round(more_bytes), latency.ticks + more_ticks
        while points and points[-1][1] >= point[1]:
            points.pop()
        points.append(point)
    return FlashCurve(tuple(points), (flash, latency.ticks), latency)


def ram_curve(plan: Plan, model: Model, board: Board) -> tuple[Point, ...]:
    """Return arenas in bytes of a plan by kernels with ever less scratch, and latencies; () on the host.

    The first point is the plan's own arena. The schedule is the same, so a search may find a smaller one.
    """
    latency = estimated_latency(plan, model, board)
    if latency is None:
        return ()
    time = estimated(best_costs(board.core))(plan.graph, ())
    points = [(plan.layout.arena_bytes, latency.ticks)]
    for peak, more_ticks in kernels.smaller_scratch(model, TiledGraph.of(plan), plan.schedule.steps, time):
        if peak < points[-1][0] and latency.ticks + more_ticks > points[-1][1]:
            points.append((peak, latency.ticks + more_ticks))
    return tuple(points)
