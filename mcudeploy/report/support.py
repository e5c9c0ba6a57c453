"""The JSON object of `check`: whether a model is supported, its sizes, and whether it fits a board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from mcudeploy.boards.board import Board
from mcudeploy.execution.results import Checked
from mcudeploy.ir.graph import Graph
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.tape.footprint import missing, weights_bytes

JsonObject = dict[str, Any]


def check(found: Checked) -> JsonObject:
    """Return the object of `check`."""
    model = found.model
    if model is None:
        problems = [asdict(problem) for problem in found.problems]
        sizes = dict.fromkeys(("parameters", "macs", "weights_bytes"))
        return {"supported": False, "problems": problems, "notes": [], **sizes}
    report = {
        "supported": True,
        "problems": [],
        "notes": list(model.graph.notes),
        "parameters": found.parameters,
        "macs": model.macs,
        "constant_channels": removed_channels(model.graph),
        "weights_bytes": weights_bytes(model.calls),
        "arena_bytes": found.arena_bytes,
        "operators": len(model.calls),
        "states": states_of(model.graph),
    }
    return report if found.board is None else report | _fits(found.board, found.plans)


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


def _fits(board: Board, plans: Mapping[str, tuple[Plan, Model]]) -> JsonObject:
    """Return the arena of each plan, and whether it fits the board.

    If none fits, `missing` lists the shortage of the plan with the least arena.
    """
    short = {name: missing(plan, model.calls, board, None) for name, (plan, model) in plans.items()}
    arenas = {name: plan.layout.arena_bytes for name, (plan, _) in plans.items()}
    some = not all(short.values())
    return {
        "board": board.name,
        "fits": some,
        "missing": [] if some else short[min(arenas, key=arenas.__getitem__)],
        "plans": {name: {"arena_bytes": arenas[name], "fits": not short[name]} for name in plans},
    }
