"""The JSON object of `fit`."""

from __future__ import annotations

from typing import Any

from mcudeploy.boards.board import Board
from mcudeploy.codegen.header import entries_of
from mcudeploy.execution.results import Fitted
from mcudeploy.ir.clock import latency_object
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.fit import Fit, Latency
from mcudeploy.planner.flash_curve import flash_curve
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.tape.plan_view import PlanView

JsonObject = dict[str, Any]


def fits(fitted: Fitted) -> JsonObject:
    """Report how a model fits boards, in the order of `rank_boards`.

    Free bytes are negative if they are missing; `flash_bytes` does not include code.
    """
    return {"boards": [_fit(fit) for fit in fitted.fits]}


def _fit(fit: Fit) -> JsonObject:
    board, way = fit.board, fit.chosen
    return {
        "board": board.name,
        "core": board.core,
        "fits": fit.fits,
        "way": way.name,
        "options": way.options,
        "overhead_percent": way.overhead,
        "arena_bytes": way.plan.layout.arena_bytes,
        "arenas": dict(way.plan.layout.arenas),
        "ram_bytes": fit.ram_bytes,
        "board_ram_bytes": fit.board_ram_bytes,
        "ram_free_bytes": fit.board_ram_bytes - fit.ram_bytes,
        "flash_bytes": fit.flash_bytes,
        "board_flash_bytes": board.flash_bytes,
        "flash_free_bytes": board.flash_bytes - fit.flash_bytes,
        "excess_bytes": fit.excess_bytes,
        "latency": latency(fit.latency),
        "missing": list(way.missing),
        "ways": {
            each.name: {"arena_bytes": each.plan.layout.arena_bytes, "fits": not each.missing}
            for each in fit.ways
        },
    }


def latency(estimate: Latency | None) -> JsonObject | None:
    """Report a plan's latency, its waits for flash, and the core whose costs it uses; None on the host."""
    if estimate is None:
        return None
    ticks = latency_object(round(estimate.ticks), estimate.unit, estimate.clock_hz)
    waits = None if estimate.flash_ticks is None else round(estimate.flash_ticks)
    return ticks | {"flash_stalls": waits, "costs_of": estimate.costs_of}


def modelled_latency(plan: Plan, model: Model, board: Board) -> JsonObject:
    """Report the latency of a plan by its core's costs, even if it was measured; null on the host.

    `flash_curve`: for other kernels of the same schedule, their constants and tables in bytes, the
    --flash-limit under which the planner chooses them, and the latency.
    """
    curve = flash_curve(plan, model, board)
    if curve is None:
        return {"estimated_latency": None, "flash_curve": None}
    unit, clock_hz = curve.latency.unit, curve.latency.clock_hz
    points = [
        {
            "flash_bytes": point[0],
            "flash_limit": curve.flash_limit(point),
            "latency": latency_object(round(point[1]), unit, clock_hz),
        }
        for point in curve.points
    ]
    return {"estimated_latency": latency(curve.latency), "flash_curve": points}


def longest_step(view: PlanView, row: tuple[int, Latency] | None) -> JsonObject | None:
    """Report the longest step of the program, with its operator."""
    if row is None:
        return None
    step, time = row
    operator = view.plan.graph.operators[view.plan.schedule.steps[step].operator].name
    return {"step": entries_of(view)[step], "operator": operator, "time": latency(time)}
