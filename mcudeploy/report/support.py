"""The JSON object of `check`: whether a model is supported, its sizes, and whether it fits a board."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mcudeploy.boards.board import Board
from mcudeploy.costs.estimate import unit_of_estimates
from mcudeploy.execution.results import Checked
from mcudeploy.ir.clock import latency_object
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.model.model import Model, on_core
from mcudeploy.planner.tape.footprint import missing, tables_bytes, weights_bytes
from mcudeploy.planner.tape.plan_view import PlanView

JsonObject = dict[str, Any]


def check(checked: Checked) -> JsonObject:
    """Return the object of `check`."""
    model = checked.model
    if model is None:
        problems = [asdict(problem) for problem in checked.problems]
        sizes = dict.fromkeys(("parameters", "macs", "weights_bytes"))
        return {"supported": False, "problems": problems, "notes": [*checked.assumed], **sizes}
    report = {
        "supported": True,
        "problems": [],
        "notes": [*model.graph.notes, *on_core(model)],
        "parameters": checked.parameters,
        "macs": model.macs,
        "constant_channels": removed_channels(model.graph),
        "weights_bytes": weights_bytes(model.calls),
        "arena_bytes": checked.arena_bytes,
        "operators": len(model.calls),
        "states": states_of(model.graph),
        "in_float": in_float(model),
    }
    if checked.period_ms is not None:
        report |= {"period_ms": checked.period_ms, "macs_per_second": model.macs * 1000 / checked.period_ms}
    return report if checked.board is None else report | _fits(checked.board, checked)


def states_of(graph: Graph) -> list[JsonObject]:
    """Return the states that stay from one run to the next, and their bytes."""
    return [
        {"name": state.before.name, "shape": list(state.before.shape), "type": state.before.dtype}
        | {"bytes": graph.tensors[state.tensor].size_bytes}
        for state in graph.states
    ]


def removed_channels(graph: Graph) -> JsonObject | None:
    """Return the channels that the front end removed from a model; None for none."""
    return None if graph.trimmed is None else asdict(graph.trimmed)


def _fits(board: Board, checked: Checked) -> JsonObject:
    """Return the arena of each plan, its constants and tables in flash, whether it fits, and its latency.

    If none fits, `missing` lists the shortage of the plan with the least arena. The curve is that of the
    plan that `run` would choose.
    """
    from mcudeploy.report.fits import modelled_latency  # noqa: PLC0415  (loads the planner)

    plans = checked.plans
    views = {name: PlanView(plan, model.calls) for name, (plan, model) in plans.items()}
    shortages = {name: missing(view, board, None) for name, view in views.items()}
    arenas = {name: view.plan.layout.arena_bytes for name, view in views.items()}
    fits = not all(shortages.values())
    default = plans.get("split", plans["unsplit"])
    return {
        "board": board.name,
        "fits": fits,
        "missing": [] if fits else shortages[min(arenas, key=arenas.__getitem__)],
        "plans": {
            name: {
                "arena_bytes": arenas[name],
                "fits": not shortages[name],
                "flash_bytes": weights_bytes(view.calls) + tables_bytes(view, board),
            }
            | _latency(board, checked, view.plan)
            for name, view in views.items()
        },
        **modelled_latency(*default, board),
    }


def _latency(board: Board, checked: Checked, plan: Plan) -> JsonObject:
    """Return the estimated latency of a plan; nothing on a host."""
    if board.is_host:
        return {}
    unit = unit_of_estimates(board, checked.unit)
    return {"latency": latency_object(round(plan.estimate.latency_ticks), unit, board.clock_hz)}


def in_float(model: Model) -> list[JsonObject]:
    """Return, for each cause, the operators, their constants and their largest result.

    `least_weights_bytes`: the constants if the kernels with the fewest run. Empty for a model that is not
    quantised.
    """
    graph = model.graph
    by_cause: dict[str, list[Operator]] = {}
    for operator in graph.operators:
        if operator.name in graph.float_causes:
            by_cause.setdefault(graph.float_causes[operator.name], []).append(operator)
    return [
        {"cause": cause, "operators": [_named(it) for it in operators]}
        | _weights(model, operators)
        | {"largest_result_bytes": _largest(graph, operators)}
        for cause, operators in by_cause.items()
    ]


def _named(operator: Operator) -> str:
    """Return the name of an operator's first node in the file."""
    return operator.onnx_nodes[0] if operator.onnx_nodes else operator.name


def _weights(model: Model, operators: list[Operator]) -> JsonObject:
    names = [operator.name for operator in operators if operator.name in model.calls]
    least = {name: min(model.variants[name], key=lambda call: weights_bytes({"": call})) for name in names}
    return {
        "weights_bytes": weights_bytes({name: model.calls[name] for name in names}),
        "least_weights_bytes": weights_bytes(least),
    }


def _largest(graph: Graph, operators: list[Operator]) -> int:
    return max(graph.tensors[operator.output].size_bytes for operator in operators)
