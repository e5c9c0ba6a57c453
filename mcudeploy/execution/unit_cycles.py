"""Cycles of steps of a unit beside the core: estimated, since the emulator runs a model of the unit."""

from __future__ import annotations

from collections.abc import Sequence

from mcudeploy.boards.board import Board
from mcudeploy.costs.estimate import board_costs, estimated
from mcudeploy.ir.plan import Entry, Plan, Run
from mcudeploy.planner.model.model import Model


def with_unit_cycles(cycles: Sequence[float], model: Model, plan: Plan, board: Board) -> list[float]:
    """Return the cycles of tape entries, in which steps of the unit have their estimate."""
    time = estimated(board_costs(board, "cycles"))(plan.graph, ())

    def cycles_of(entry: Entry, counted: float) -> float:
        if not isinstance(entry, Run):
            return counted
        operator = plan.graph.operators[entry.operator]
        call = model.calls.get(operator.name)
        if call is None or not call.isa.unit:
            return counted
        walked = operator.inputs[0] if operator.op.accumulates else operator.output
        total = plan.graph.tensors[walked].shape[0]
        return time(operator, call, plan.rows_of(operator.name).interval(entry.block, total))

    return [cycles_of(*each) for each in zip(plan.tape, cycles, strict=True)]
