"""Cycles of steps of a unit beside the core: estimated, since the emulator runs a model of the unit."""

from __future__ import annotations

from collections.abc import Sequence

from mcudeploy.boards.board import Board
from mcudeploy.costs.estimate import board_costs, estimated
from mcudeploy.ir.plan import Plan, Run
from mcudeploy.planner.model.model import Model


def with_unit_cycles(cycles: Sequence[float], model: Model, plan: Plan, board: Board) -> list[float]:
    """Return the cycles of tape entries, in which steps of the unit have their estimate."""
    time = estimated(board_costs(board, "cycles"))(plan.graph, ())
    result = []
    for entry, counted in zip(plan.tape, cycles, strict=True):
        call = model.calls.get(plan.graph.operators[entry.operator].name) if isinstance(entry, Run) else None
        if not isinstance(entry, Run) or call is None or not call.isa.unit:
            result.append(counted)
            continue
        operator = plan.graph.operators[entry.operator]
        total = plan.graph.tensors[operator.output].shape[0]
        result.append(time(operator, call, plan.rows_of(operator.name).interval(entry.block, total)))
    return result
