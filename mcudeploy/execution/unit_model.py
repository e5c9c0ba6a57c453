"""Units beside the core, such as NPUs. The emulator runs a functional model of a unit in software.

So programs have a note of that model, some commands refuse the board, and the unit's cycles are estimated.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import ConfigError
from mcudeploy.costs.estimate import board_costs, estimated
from mcudeploy.ir.plan import Entry, Run
from mcudeploy.planner.model.unit_support import start_ticks
from mcudeploy.planner.tape.plan_view import PlanView

_LOG = logging.getLogger(__name__)


def note_functional_model(board: Board) -> None:
    """Note, once for each board, that its programs contain a functional model of its unit, if they do."""
    if board.npu is not None and board.npu.base is None:
        _note_model(board.name, board.npu.kind)


@cache
def _note_model(board_name: str, kind: str) -> None:
    _LOG.warning(
        "note: the program for %s contains a functional model of the %s: code, static RAM and stack "
        "include it",
        board_name,
        kind,
    )


def require_no_unit(board: Board, what: str, way_out: str = "leave it out") -> None:
    """Raise ConfigError if a board has a unit: counts or times of the core do not contain its time."""
    if board.npu is not None:
        raise ConfigError(
            f"{what} counts or times what the core executes; the time of the {board.npu.kind} of "
            f"{board.name} is estimated: {way_out}"
        )


def with_unit_cycles(cycles: Sequence[float], view: PlanView, board: Board) -> list[float]:
    """Return the cycles of the tape's entries, with estimates for the steps of the unit.

    A step alone, and the first step of a stream, include the start of the unit.
    """
    plan, start = view.plan, start_ticks()
    entries = [it.entries for it in view.streams.streams] if view.streams else []
    further = {at for it in entries for at in range(it.lo + 1, it.hi)}
    time = estimated(board_costs(board, "cycles"))(plan.graph, ())

    def cycles_of(at: int, entry: Entry, counted: float) -> float:
        if not isinstance(entry, Run):
            return counted
        operator = plan.graph.operators[entry.operator]
        call = view.calls.get(operator.name)
        if call is None or not call.isa.unit:
            return counted
        walked = operator.inputs[0] if operator.op.accumulates else operator.output
        total = plan.graph.tensors[walked].shape[0]
        rows = plan.rows_of(operator.name).interval(entry.block, total)
        return time(operator, call, rows) + (0 if at in further else start)

    return [cycles_of(at, *each) for at, each in enumerate(zip(view.entries, cycles, strict=True))]
