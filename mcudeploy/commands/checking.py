"""`check` and `fit`: a model's sizes, and the boards with room for it.

`check` imports ONNX Runtime, which every later step needs, but no solver, toolchain or device. It imports the
search only if there is a board.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.effort import Effort
from mcudeploy.common.errors import ModelError
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.execution.results import Checked, Fitted
from mcudeploy.frontend.onnx.shapes import assumptions_named
from mcudeploy.frontend.parameters import parameter_count
from mcudeploy.ir.isa import Isa
from mcudeploy.planner.model.model import Model, read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.search.placing import unsplit_plan, unsplit_schedule
from mcudeploy.verify.reference import Reference

_CHECK_S = 3.0
"""Seconds that `check` searches for a split plan, and for one with streamed input."""


def check_model(path: Path, board: Board | None, options: Options, period_ms: float | None = None) -> Checked:
    """Return a model's sizes, or its unsupported nodes; with a board, the plans of short searches.

    `period_ms`: the milliseconds between runs.
    """
    try:
        model = read_model(path, options, isa=Isa.ANY if board is None else board.isa)
    except ModelError as error:
        if not error.problems:
            raise
        return Checked(problems=error.problems, assumed=error.assumed)
    parameters = parameter_count(path, model.choices.shapes)
    with assumptions_named(model.graph.notes):
        _require_reference(model)
    if board is None:
        schedule = unsplit_schedule(model, Effort.of(_CHECK_S))
        plan = unsplit_plan(model, load_board("host"), schedule)
        return Checked(model, parameters, plan.layout.arena_bytes, period_ms=period_ms)
    from mcudeploy.device.known import known_times  # noqa: PLC0415
    from mcudeploy.planner.planner import search_plans  # noqa: PLC0415

    options = replace(options, time_limit=_CHECK_S)
    known = known_times(board, options.unit_on(board))
    split = search_plans(model, board, options, known=known)
    plans = {"unsplit": (split.baseline, split.model_of(split.baseline))}
    if split.search.candidates:  # there are none if the weights alone are too large
        searches = {"split": split}
        if model.window is None:
            streaming = replace(options, stream_input=True)
            searches["streamed"] = search_plans(model, board, streaming, known=known)
        else:
            searches["input kept"] = search_plans(model.keeping({}), board, options, known=known)
        for name, planned in searches.items():
            plans[name] = planned.choices[0], planned.model_of(planned.choices[0])
    arena, unit = split.baseline.layout.arena_bytes, options.unit_on(board)
    return Checked(model, parameters, arena, board, plans, unit=unit, period_ms=period_ms)


def _require_reference(model: Model) -> None:
    """Raise ModelError for a model that ONNX Runtime does not load: no program of it could be verified."""
    graph = model.graph if model.window is None else model.window.graph
    states = [state.before.name for state in graph.states]
    Reference(model.path, [io.name for io in graph.outputs], model.choices, states)


def fit_model(path: Path, boards: Sequence[Board], options: Options, progress: Progress = SILENT) -> Fitted:
    """Return RAM, flash and latency on each of these boards, by short searches."""
    from mcudeploy.planner.fit import rank_boards  # noqa: PLC0415

    progress.stage(f"reading {path.name}")
    return Fitted(rank_boards(read_model(path, options), boards, options, progress))
