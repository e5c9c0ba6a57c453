"""JSON objects of windows that move by a hop."""

from __future__ import annotations

from typing import Any

from mcudeploy.costs.estimate import unit_of_estimates
from mcudeploy.execution.deployment import Deployment
from mcudeploy.ir.clock import latency_object
from mcudeploy.planner.hop_plans import hop_point
from mcudeploy.planner.planner import HopPoint

JsonObject = dict[str, Any]


def moving_window(deployment: Deployment) -> JsonObject | None:
    """Report what a run computes of a window and what it keeps; null if a run takes whole inputs.

    `whole`: the unsplit plan of whole windows. `curve`: a plan for each choice of rows to keep, among them
    the deployed one. Both are null for a stored plan. Latencies are estimates.
    """
    window, hop = deployment.model.window, deployment.plan.graph.hop
    if window is None or hop is None:
        return None
    tensors, curve = window.graph.tensors, deployment.planned.hop_curve
    own = hop_point(deployment.model, deployment.plan)
    points = None if curve is None else [own if it.keeping == own.keeping else it for it in curve.points]
    macs = {it.output: window.graph.loops(it).macs() for it in window.graph.operators}
    return {
        "hop": hop.new_rows,
        "rows": hop.window_rows,
        "runs_to_fill": hop.runs_to_fill,
        "macs": sum(macs.values()),
        "keeping": dict(hop.keeping),
        "operators": [
            {
                "name": it.name,
                "rows": tensors[it.output].shape[0],
                "computed_rows": window.rows[it.output].count,
                "kept_rows": len(window.rows[it.output].kept),
            }
            for it in window.graph.operators
            if it.output in window.rows
        ],
        "computed_whole": dict(window.steady.ends),
        "whole": None if curve is None else _point(deployment, curve.whole),
        "curve": None if points is None else [_point(deployment, it) for it in points],
    }


def _point(deployment: Deployment, point: HopPoint) -> JsonObject:
    unit = unit_of_estimates(deployment.board, deployment.planned.objective)
    return {
        "keeping": dict(point.keeping),
        "state_bytes": point.state_bytes,
        "arena_bytes": point.arena_bytes,
        "macs": point.macs,
        "latency": latency_object(round(point.ticks), unit, deployment.board.clock_hz),
    }
