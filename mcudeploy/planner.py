"""From a model and a board to a plan: cut, ordered, placed, and passed by the checker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mcudeploy import planfile, report
from mcudeploy.analyzer.functions import Assignment, assign
from mcudeploy.board import Board
from mcudeploy.choosing import KnownSource, alternatives, fastest, nothing_known
from mcudeploy.errors import ConfigError, ModelError
from mcudeploy.layout.check import PlanFaultError
from mcudeploy.layout.check import check as check_plan
from mcudeploy.model import Model
from mcudeploy.optimizer.search import Report
from mcudeploy.placing import demand, unsplit_plan
from mcudeploy.plan import Form, Plan, Search
from mcudeploy.progress import SILENT, Progress
from mcudeploy.simulator.cost import TileSource
from mcudeploy.simulator.estimate import estimated, load_costs
from mcudeploy.splitting import Limits, Splitting


@dataclass(frozen=True, slots=True)
class Options:
    """What the user may choose. `plan_file` replaces the search; with `resume` the search begins there.

    `assign` has the rules of `analyzer.functions.assign`, `memory_limits` the bytes that arenas may take in
    memories of the board, by name.
    """

    max_overhead: float = 5.0
    time_limit: float = 60.0
    ram_limit: int | None = None
    memory_limits: tuple[tuple[str, int], ...] = ()
    split: bool = True
    stream_input: bool = False
    float_io: bool = False
    seed: int = 0
    name: str | None = None
    plan_file: Path | None = None
    resume: bool = False
    assign: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """Plans of a model, the least arena first; the unsplit one is the yardstick and among them.

    `costs_of`: the core whose costs of kernels the times are estimated from; None where they were measured.
    """

    models: Mapping[Form, Model]
    plans: tuple[Plan, ...]
    unsplit: Plan
    search: Search
    unsplit_ticks: float = 0.0
    costs_of: str | None = None

    def model_of(self, plan: Plan) -> Model:
        """The model in the form of one of the plans, by its kernels."""
        return self.models[plan.form].with_kernels(plan.kernels)


def find_plans(
    model: Model,
    board: Board,
    options: Options,
    tiles: TileSource | None = None,
    *,
    told: Report = lambda *_: None,
    progress: Progress = SILENT,
    known: KnownSource = nothing_known,
) -> Planned:
    """Search for plans of a model on a board, take the one of `options.plan_file`, or search on from it.

    Without `tiles` times are estimated from the costs of the board's core, and kernels are chosen by times
    that are `known`, as far as they go. A stored plan says whether inputs are streamed. Every plan has passed
    the checker. Raises FitError where even the least arena is too large.
    """
    board = board.limited(dict(options.memory_limits))
    costs_of = None
    if tiles is None:
        costs = load_costs(board.core)
        tiles, costs_of = estimated(costs), costs.core
    source = tiles

    def chosen(form: Form) -> Model:
        made = model.in_form(form)
        return fastest(made, source(made.graph, alternatives(made)), known(made.graph))

    models: dict[Form, Model] = {}
    stored = None
    assignment = assign(model.graph, board, options.assign)
    if options.plan_file is not None:
        given, (model, made, stored) = model, _stored_plan(model, board, options.plan_file)
        if options.assign and model.functions != given.on_units(board, assignment).functions:
            raise ConfigError(f"{options.plan_file} has other functions than --assign asks for")
        models[made.form] = made
        options = replace(options, stream_input=stored.form.streamed)
    else:
        model = model.on_units(board, assignment)
    base = chosen(Form(streamed=options.stream_input))
    models[base.form] = base
    unsplit = unsplit_plan(base, board)
    if report.weights_bytes(base.calls) > board.flash_bytes:  # no search helps
        report.require_fit(unsplit, base.calls, board, options.ram_limit)
    plans, searched, ticks = [stored or unsplit], Search(), 0.0
    if options.split and (stored is None or options.resume):
        cut = chosen(Form(options.stream_input, accumulating=True))
        models[cut.form] = cut
        limits = Limits(options.max_overhead, options.time_limit, options.ram_limit or 0)
        splitting = Splitting(
            cut, base, board=board, limits=limits, tiles=source, told=told, progress=progress
        )
        split = splitting.plans(stored)
        searched, ticks = split.search, split.unsplit_ticks
        plans = sorted([*split.plans, unsplit], key=lambda plan: demand(plan, board))
    planned = Planned(models, tuple(plans), unsplit, searched, ticks, costs_of)
    for plan in plans:
        if demand(plan, board)[0] == 0:  # else it ends in FitError
            _check(plan, planned.model_of(plan), board)
    report.require_fit(plans[0], planned.model_of(plans[0]).calls, board, options.ram_limit)
    return planned


def _stored_plan(model: Model, board: Board, path: Path) -> tuple[Model, Model, Plan]:
    """The model on the units of a stored plan, the same in its form, and the plan, which has been checked."""
    form, functions, kernels = planfile.load_form(path, model.sha256, board.name)
    model = model.on_units(board, Assignment.of(functions, board.units[0].name))
    try:
        made = model.in_form(form).with_kernels(kernels)
    except ModelError as error:
        raise ConfigError(f"{path} has a form that the model cannot take: {error}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is no plan of this model for {board.name}: {error}") from error
    plan = planfile.load_plan(path, made.graph, model.sha256, board.name, made.work)
    if plan.functions != made.functions:
        raise ConfigError(f"{path} is no plan of this model: its functions are not those of their operators")
    for name in plan.layout.arenas:
        board.memory(name)  # or it is none of this board
    report.require_fit(plan, made.calls, board, None)
    try:
        _check(plan, made, board)
    except PlanFaultError as error:
        raise planfile.no_plan(path, error) from error
    return model, made, plan


def _check(plan: Plan, model: Model, board: Board) -> None:
    check_plan(plan, model.work, board)
