"""Plans from files, joined with their model: in its form, on its units, with its kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.checker.judge import PlanFaultError
from mcudeploy.checker.judge import check as check_plan
from mcudeploy.common.errors import ConfigError, FitError, ModelError
from mcudeploy.ir.constant_block import ConstantBlock, is_loadable
from mcudeploy.ir.graph import Graph, KeptRows
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import LoadedConstants, Plan, Run, WorkSlice
from mcudeploy.ops.move.constant_pieces import PieceLoads, channels_unit
from mcudeploy.planner.cores.functions import Assignment, assign
from mcudeploy.planner.cores.parts import WorkSharing
from mcudeploy.planner.files import planfile
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.search.kernels import least_constants
from mcudeploy.planner.tape import footprint
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.tiling.dataflow import Dataflow


@dataclass(frozen=True, slots=True, eq=False)
class StoredPlan:
    """A plan from a file, and its model: `base` on its units, `model` also in its form, with its kernels."""

    base: Model
    model: Model
    plan: Plan


def stored_plan(model: Model, board: Board, path: Path, rules: tuple[str, ...]) -> StoredPlan:
    """Return the checked plan of a file, joined with its model.

    `rules`: the rules of `--assign`; if there are any, the plan must agree with them.
    """
    stored = joined_plan(model, board, path, rules)
    view = PlanView(stored.plan, stored.model.calls)
    if footprint.missing(view, board, None):
        short = footprint.missing(view, board, None, least_constants(stored.model))
        raise FitError(" ".join(short))
    require_sound(stored.plan, stored.model, board, path)
    return stored


def require_sound(plan: Plan, model: Model, board: Board, path: Path) -> None:
    """Raise ConfigError if the checker refuses a stored plan."""
    try:
        check_plan(plan, model.work, board)
    except PlanFaultError as error:
        raise planfile.wrong_plan(path, error) from error


def joined_plan(model: Model, board: Board, path: Path, rules: tuple[str, ...]) -> StoredPlan:
    """Return the result of `stored_plan`, without checking the plan and its fit on the board."""
    content = planfile.read_plan(path, model.sha256, board.name)
    hop = None if model.window is None else model.window.hop
    keeping = planfile.kept_rows(content, path, hop)
    if keeping is not None:
        model = _with_rows(model, keeping, path)
    model = replace(model, cores=content.cores)
    asked = model.on_units(board, assign(model.graph, board, rules)).functions if rules else None
    model = model.on_units(board, Assignment.of(content.by_unit, board.units[0].name))
    if rules and model.functions != asked:
        raise ConfigError(f"{path} has other functions than --assign asks for")
    try:
        plan_model = model.in_form(content.form).with_kernels(content.kernels)
    except ModelError as error:
        raise ConfigError(f"{path} has a form that the model cannot take: {error}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not a plan of this model for {board.name}: {error}") from error
    plan = planfile.plan_of(content, path, plan_model.graph, plan_model.work)
    plan = replace(plan, parameters=plan_model.parameters)
    if plan.functions != plan_model.functions:
        raise ConfigError(f"{path} is not a plan of this model: its functions do not fit their operators")
    _require_columns(plan, plan_model, path)
    for name, it in plan.layout.constants.items():
        call = plan_model.calls.get(name)
        if call is None or not is_loadable(call) or not _has_constants(plan_model.graph, name, call, it):
            raise planfile.wrong_plan(path, f"it loads other constants than those of {name}")
    for name in plan.layout.arenas:
        board.memory(name)  # raises an error if the board has no such memory
    return StoredPlan(model, plan_model, plan)


def _has_constants(graph: Graph, name: str, call: KernelCall, loaded: LoadedConstants) -> bool:
    """Return whether a place has room for the constants of a call, and its pieces are those of the call."""
    if loaded.pieces is None:
        return loaded.size_bytes >= ConstantBlock.of(call).size_bytes
    output = next(graph.tensors[it.output] for it in graph.operators if it.name == name)
    unit, channels = channels_unit(call, output), loaded.pieces.channels
    if unit == 0 or channels % unit or not 0 < channels < output.shape[2]:
        return False
    loads = PieceLoads.of(call, output, channels)
    return loads.pieces(loaded.pieces.engine) == loaded.pieces and loaded.size_bytes >= 2 * loads.half_bytes


def _with_rows(model: Model, keeping: Mapping[str, KeptRows], path: Path) -> Model:
    """Return the model that keeps the rows of a stored plan. Raises ConfigError for rows it does not have."""
    possible = () if model.window is None else model.window.steady.tensors
    unknown = next((name for name in keeping if name not in possible), None)
    if unknown is not None:
        raise planfile.wrong_plan(path, f"it keeps rows of {unknown}")
    return model.keeping(keeping)


def _require_columns(plan: Plan, model: Model, path: Path) -> None:
    """Raise ConfigError if a part of a stored plan has columns that no kernel computes."""
    sharing = WorkSharing.of(Dataflow.of(plan.graph), model.calls, model.cores)
    for part in (each for lane in plan.lanes for each in lane if isinstance(each, WorkSlice)):
        entry, columns = plan.tape[part.entry], part.columns
        if columns is None:
            continue
        operator = plan.graph.operators[entry.operator] if isinstance(entry, Run) else None
        if operator is None or not sharing.takes(operator, columns):
            raise planfile.wrong_plan(path, f"lanes: columns {columns} of entry {part.entry}")
