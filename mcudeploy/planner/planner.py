"""From a model and a board to a plan: cut, ordered, placed, and passed by the checker."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from mcudeploy import __version__
from mcudeploy.boards.board import Board
from mcudeploy.checker.judge import PlanFaultError
from mcudeploy.checker.judge import check as check_plan
from mcudeploy.common.effort import ROUND_ENDS_S, Effort
from mcudeploy.common.errors import ConfigError, FitError, UsageError
from mcudeploy.common.fast import note_lacking
from mcudeploy.common.interrupts import despite_interrupt
from mcudeploy.common.progress import SILENT, Progress, Report, no_report
from mcudeploy.common.text import count_text
from mcudeploy.costs.estimate import TimeUnit, board_costs, estimated
from mcudeploy.costs.tiles import KnownSource, TileSource, move_price, nothing_known
from mcudeploy.extension import added
from mcudeploy.ir.graph import KeptRows
from mcudeploy.ir.plan import Plan, Rewrites, Schedule, Search
from mcudeploy.planner.cores.functions import assign
from mcudeploy.planner.cores.lanes import on_cores
from mcudeploy.planner.cut_bounds import CutBounds, cut_bounds
from mcudeploy.planner.files.plan_cache import PlanCache, StoredSearch
from mcudeploy.planner.files.stored_plan import StoredPlan, joined_plan, require_sound, stored_plan
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.order.order_file import stated_schedule
from mcudeploy.planner.place.arena import Budget
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.search.form_tasks import FormTasks
from mcudeploy.planner.search.fusing import chains
from mcudeploy.planner.search.kernels import alternatives, fastest, least_constants
from mcudeploy.planner.search.loading import loading_constants
from mcudeploy.planner.search.placing import (
    tagged_plan,
    timed,
    unsplit_plan,
    unsplit_schedule,
    with_estimates,
)
from mcudeploy.planner.search.splitting import split_plans, with_tighter
from mcudeploy.planner.search.tile_times import shared_costs
from mcudeploy.planner.tape import footprint
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.tiling.dataflow import Dataflow

_LOG = logging.getLogger(__name__)

_UNSPLIT_SHARE = 0.2
"""Share of the effort for the order of the unsplit plan, and the same for its moves; both need far less.

A search takes it from the effort of the first round, so it begins alike under every limit.
"""

_TRANSFERS_SHARE = 0.2
"""Effort for transfers of the unsplit plan between memories, as a share of the time limit, which excludes it.

Rounds therefore are the same under every limit.
"""

_TRIAL_S = 5.0
"""Seconds of an ordinary PC in which a plan is built, and run in an emulator."""


@dataclass(frozen=True, slots=True)
class HopPoint:
    """A plan that keeps rows of these tensors beside the input: its bytes, and the work of a run."""

    keeping: tuple[tuple[str, KeptRows], ...]
    state_bytes: int
    arena_bytes: int
    macs: int
    ticks: float


@dataclass(frozen=True, slots=True)
class HopCurve:
    """Plans of a moving window that keep different rows, those with the least work first; and `whole`, the
    unsplit plan that computes whole windows.
    """

    points: tuple[HopPoint, ...]
    whole: HopPoint


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """Plans of a model that fit the board.

    `candidates`: cut or stored plans, smallest arena first, each faster than the previous one. `baseline`:
    the unsplit plan, which is the last choice if `offers_baseline`: it fits, and no plan was given.
    `costs_of`: the core whose kernel costs give the estimated times; None if the times were measured.
    `interrupted`: Ctrl-C ended the search or a later stage. `limits`: the maximum arena sizes in bytes, by
    memory. `objective`: the unit of times. `points`: arena (bytes) and latency of every split plan built.
    """

    models: Mapping[Rewrites, Model]
    candidates: tuple[Plan, ...]
    baseline: Plan
    search: Search
    costs_of: str | None = None
    interrupted: bool = False
    limits: Mapping[str, int] = field(default_factory=dict)
    objective: TimeUnit = "instructions"
    points: tuple[tuple[int, float], ...] = ()
    offers_baseline: bool = True
    hop_curve: HopCurve | None = None
    """Other choices of kept rows, if a window moves and its rows were chosen."""
    own_overhead: float | None = None
    """The latency limit of these plans, in percent over the baseline, if it is not that of the options."""
    cut_bounds: CutBounds | None = None
    """The lower bounds over all cuts, if cuts were searched."""

    @property
    def choices(self) -> tuple[Plan, ...]:
        """The candidates, and the baseline if it is offered."""
        return (*self.candidates, self.baseline) if self.offers_baseline else self.candidates

    def limit(self, max_overhead: float) -> float:
        """Return the latency limit in percent over the baseline: `own_overhead`, or that of the options."""
        return max_overhead if self.own_overhead is None else self.own_overhead

    def with_rows_of(self, first: Planned) -> Planned:
        """Return these plans with the latency limit and the curve of the search that chose their rows."""
        return replace(self, own_overhead=first.own_overhead, hop_curve=first.hop_curve)

    def smaller_than(self, chosen: Plan, first: Planned) -> Planned:
        """Return the plans that are smaller than `chosen`, a plan of `first`, and then `chosen`."""
        smaller = [it for it in self.candidates if it.layout.arena_bytes < chosen.layout.arena_bytes]
        last = () if chosen is first.baseline else (chosen,)
        models = {**first.models, **self.models}
        return replace(self.with_rows_of(first), candidates=(*smaller, *last), models=models)

    def model_of(self, plan: Plan) -> Model:
        """Return the model in the form of a plan, with its kernels."""
        return self.models[plan.form].with_kernels(plan.kernels)


def find_plans(
    model: Model,
    board: Board,
    options: Options,
    tiles: TileSource | None = None,
    *,
    start: Plan | None = None,
    report: Report = no_report,
    progress: Progress = SILENT,
    known: KnownSource = nothing_known,
) -> Planned:
    """Return plans of a model on a board: searched, or the stored plan of `options.plan_file`.

    A search may continue from a stored plan, or from `start`. Without `tiles`, times are estimated from
    the costs of the board's core, and `known` times choose the kernels if there are any. A stored plan
    states whether inputs are streamed. If a peak keeps the RAM limit but no arena does, a second search
    looks for the least RAM, in as much time. Every returned plan passed the checker. A plan that fails it
    is a bug: it is dropped with a warning. Raises FitError if even the smallest arena is too large, and
    PlanFaultError if the unsplit plan fails the check.
    """
    board = options.limited(board)
    search = partial(search_plans, tiles=tiles, start=start, report=report, progress=progress, known=known)
    planned = search(model, board, options)
    if not planned.interrupted and _nearly_fits(planned, options.ram_limit):
        planned = search(model, board, replace(options, ram_limit=None))
    if planned.interrupted:
        _LOG.warning("interrupted: the search ends with the best plan so far")
    planned = replace(planned, limits=dict(options.memory_limits))
    planned = _changed(planned, _settled) if model.isa.unit else planned
    planned = _changed(planned, _on_cores)
    if tiles is None and options.load_constants != "never" and (options.plan_file is None or options.resume):
        planned = _loading(planned, board, options)
    planned = despite_interrupt(lambda: _without_faults(_fitting(planned, board, options.ram_limit), board))
    return replace(planned, candidates=_few_enough(planned.candidates, options.time_limit))


def _few_enough(plans: tuple[Plan, ...], time_limit: float) -> tuple[Plan, ...]:
    """Return the plans that can be tried in `time_limit` seconds, at least two: the first, and the fastest.

    The number does not depend on the time that trials take, so all commands choose from the same plans.
    """
    most = max(2, int(time_limit / _TRIAL_S))
    return plans if len(plans) <= most else (*plans[: most - 1], plans[-1])


def find_or_recall(
    model: Model,
    board: Board,
    options: Options,
    *,
    report: Report = no_report,
    progress: Progress = SILENT,
) -> Planned:
    """Return the plans that an earlier search with the same choices has found, else those of `find_plans`.

    Times are estimated. The plans of an earlier search pass the checker again.
    """
    cache = PlanCache.of(model, options.limited(board), options)
    recalled = _recalled(cache, model, options.limited(board), options)
    if recalled is not None:
        progress.stage("planned before: --fresh searches again")
        return recalled
    planned = find_plans(model, board, options, report=report, progress=progress)
    if planned.costs_of is not None and not planned.interrupted:
        stored = StoredSearch(
            planned.candidates, planned.baseline, planned.search, planned.points, planned.costs_of,
            planned.cut_bounds,
        )  # fmt: skip
        despite_interrupt(lambda: cache.store(stored, model))
    return planned


def _recalled(cache: PlanCache, model: Model, board: Board, options: Options) -> Planned | None:
    """Return the plans of an earlier search that fit the board; the checker accepts all of them."""
    unit = options.unit_on(board, _cores(board, options))
    costs = board_costs(board, unit)
    source = estimated(costs, model.in_ram)
    models: dict[Rewrites, Model] = {}

    def read(path: Path) -> Plan:
        known = joined_plan(model, board, path, options.assign)
        own, plan = known.model, known.plan
        if plan.form not in models:
            models[plan.form] = fastest_model(own, board, options, source)
        if not footprint.missing(PlanView(plan, own.calls), board, None):
            require_sound(plan, own, board, path)
        return with_estimates(plan, own, board, costs)

    stored = cache.load(model, read)
    if stored is None:
        return None
    planned = Planned(
        models, stored.candidates, stored.baseline, stored.search, stored.costs_of,
        limits=dict(options.memory_limits), objective=unit, points=stored.points,
        cut_bounds=stored.cut_bounds,
    )  # fmt: skip
    return _fitting(planned, board, options.ram_limit)


def fastest_model(
    model: Model, board: Board, options: Options, source: TileSource, known: KnownSource = nothing_known
) -> Model:
    """Return a model in its form, with the fastest kernels that are worth their flash and have room."""
    times = source(model.graph, alternatives(model))
    return fastest(model, times, known(model.graph), board.constants_room, options.flash_percent)


def _cores(board: Board, options: Options) -> int:
    """Return the number of cores that run a plan. Raises UsageError if that is impossible."""
    cores = 1 if options.cores is None else options.cores
    if cores == 0:
        cores = min(board.cores, os.cpu_count() or 1) if board.is_host else board.cores
    if cores > board.cores:
        has = count_text(board.cores, "core")
        raise UsageError(f"--parallel {cores}: {board.name} has {has} for one program")
    if cores > 1 and options.objective == "cycles":
        raise UsageError("--objective cycles counts what one core does: leave it out, or add --parallel 1")
    if cores > 1 and (options.assign or options.placement == "tags"):
        raise UsageError("--parallel cannot be combined with --assign or --placement tags")
    return cores


def _shared_by_cores(board: Board, options: Options) -> Board:
    """Return the board with the memories that all cores reach. Raises UsageError if a limit names another."""
    shared = board.shared_by_cores()
    first = shared.memories[0]
    if options.replaceable and not shared.room(first) and board.room(first):
        raise UsageError(
            f"--replaceable: not all cores reach {first.name}, where parameters are; plan with --parallel 1"
        )
    for name, size in options.memory_limits:
        if size and not shared.room(shared.memory(name)):
            raise UsageError(
                f"--memory {name}: not all cores reach it; leave it out, or plan with --parallel 1"
            )
    return shared


def _changed(planned: Planned, change: Callable[[Plan, Model], Plan]) -> Planned:
    """Return the plans, each changed with its model."""
    plans = [change(it, planned.model_of(it)) for it in (*planned.candidates, planned.baseline)]
    return replace(planned, candidates=tuple(plans[:-1]), baseline=plans[-1])


def _settled(plan: Plan, model: Model) -> Plan:
    """Return the plan with the variants that the places of its rows need."""
    for unit in added("unit"):
        plan = replace(plan, kernels=unit.settled(plan, model))
    return plan


def _loading(planned: Planned, board: Board, options: Options) -> Planned:
    """Return the plans with constants loaded where that saves time; the unsplit plan with loads comes last.

    The baseline loads none, so that the choice of cuts, and with it the arena, stays the same.
    """
    costs, unsplit = board_costs(board, planned.objective), planned.baseline
    plans = (*planned.candidates, unsplit) if planned.offers_baseline else planned.candidates
    loading = [loading_constants(it, planned.model_of(it), board, costs, options) for it in plans]
    return replace(planned, candidates=tuple(it for it in loading if it is not unsplit))


def _on_cores(plan: Plan, model: Model) -> Plan:
    """Return the plan with a tape for each core of its model."""
    return plan if plan.lanes else on_cores(plan, model.calls, model.cores)


def search_plans(
    model: Model,
    board: Board,
    options: Options,
    tiles: TileSource | None = None,
    *,
    start: Plan | None = None,
    report: Report = no_report,
    progress: Progress = SILENT,
    known: KnownSource = nothing_known,
) -> Planned:
    """Return the plans that `find_plans` chooses from: they may not fit, and are not checked yet."""
    _require_compatible(model, options)
    model, from_file = _on_units(model, board, options)
    stored = None if from_file is None else from_file.plan
    models = {} if from_file is None else {from_file.model.form: from_file.model}
    options = options if stored is None else replace(options, stream_input=stored.form.streamed)
    if model.cores > 1:
        board = _shared_by_cores(board, options)
    unit = options.unit_on(board, model.cores)
    costs = board_costs(board, unit)
    estimates = estimated(costs, model.in_ram)
    source, costs_of = tiles or estimates, None if tiles else costs.core

    def fastest_in(form: Rewrites) -> Model:
        models[form] = fastest_model(model.in_form(form), board, options, source, known)
        return models[form]

    base = fastest_in(Rewrites(streamed=options.stream_input))
    board = board.reserving(base.parameters.ram_bytes)
    searching = _searches(base, board, options)
    note_lacking()
    effort = Effort.of(options.time_limit)
    begin = effort.within(ROUND_ENDS_S[0]) if searching else effort
    unsplit = _unsplit(base, board, options, begin, estimates)
    if not searching:  # so that no tile is measured in vain
        if costs_of:
            unsplit = with_estimates(unsplit, base, board, costs)
        if costs_of and stored is not None:
            kernels = models[stored.form].with_kernels(stored.kernels)
            stored = with_estimates(stored, kernels, board, costs)
        plans = () if stored is None else (stored,)
        return Planned(models, plans, unsplit, Search(), costs_of, objective=unit, offers_baseline=not plans)
    unsplit = timed(unsplit, base, board, source, move_price(source))
    cut = fastest_in(Rewrites(options.stream_input, accumulating=True))
    board = board.reserving(cut.parameters.ram_bytes)
    fusible = tuple(chains(cut.graph)) if model.may_fuse else ()
    guess = None if costs_of else estimates
    tasks = FormTasks(cut, fusible, fastest_in, board, source, guess, unsplit, options)
    rounds = effort.rounds(options.time_limit)
    split = split_plans(tasks, rounds, stored or start, report=report, progress=progress)
    split = with_tighter(split, tasks, effort, progress)
    planned = Planned(
        models, split.plans, unsplit, split.search, costs_of, split.interrupted, objective=unit,
        points=split.points,
    )  # fmt: skip
    return planned if split.interrupted else _bounded(planned, cut)


def _bounded(planned: Planned, cut: Model) -> Planned:
    """Return the plans with lower bounds of their memory, unless Ctrl-C interrupts their computation."""
    try:
        bounds = cut_bounds(cut).at_most(planned.baseline.layout.arena_bytes)
    except KeyboardInterrupt:
        return replace(planned, interrupted=True)
    return replace(planned, cut_bounds=bounds)


def _on_units(model: Model, board: Board, options: Options) -> tuple[Model, StoredPlan | None]:
    """Return the model on its compute units and cores, and the stored plan that names them, if any."""
    if options.plan_file is None:
        model = model.on_units(board, assign(model.graph, board, options.assign))
        return replace(model, cores=_cores(board, options)), None
    stored = stored_plan(model, board, options.plan_file, options.assign)
    if options.cores is not None and _cores(board, options) != stored.base.cores:
        raise ConfigError(
            f"{options.plan_file} is for {count_text(stored.base.cores, 'core')}, --parallel asks for "
            f"{_cores(board, options)}: leave --parallel out, or make a new plan"
        )
    if options.load_constants != "never":
        return stored.base, stored
    return stored.base, replace(stored, plan=replace(stored.plan, layout=stored.plan.layout.without_loads()))


def _require_compatible(model: Model, options: Options) -> None:
    if options.order_file and (options.plan_file or options.placement == "tags" or model.window is not None):
        raise UsageError("--order cannot be combined with --plan, --placement tags or --hop")
    if options.stream_input and model.window is not None:
        raise UsageError("--stream-input cannot be combined with --hop: all new rows come in one call")


def _searches(model: Model, board: Board, options: Options) -> bool:
    """Return whether cuts are searched: they are wanted, and the weights fit, which no cut can shrink."""
    is_stated = options.order_file is not None or (options.plan_file is not None and not options.resume)
    return options.split and not is_stated and footprint.weights_bytes(model.calls) <= board.flash_room


def _unsplit(model: Model, board: Board, options: Options, effort: Effort, estimates: TileSource) -> Plan:
    """Return the unsplit plan, by tags or in the best order found; estimated times decide what moves."""
    if options.placement == "tags":
        return tagged_plan(model, board)
    schedule = _unsplit_order(model, options, effort)
    times = shared_costs(model, Dataflow.of(model.graph), estimates(model.graph, ()))
    budget = Budget(move_price(estimates), effort.part(_UNSPLIT_SHARE), times)
    transfers = Effort.of(_TRANSFERS_SHARE * options.time_limit)
    is_fixed = options.order_file is not None
    return unsplit_plan(model, board, schedule, budget, transfers, fixed=is_fixed)


def _unsplit_order(model: Model, options: Options, effort: Effort) -> Schedule:
    """Return the order of the unsplit plan: that of the user's file, or the best found."""
    if options.order_file is not None:
        return stated_schedule(model.graph, options.order_file)
    return unsplit_schedule(model, effort.part(_UNSPLIT_SHARE))


def _nearly_fits(planned: Planned, ram_limit: int | None) -> bool:
    """Return whether no arena keeps a limit though a peak does: a search for the least RAM may find one."""
    plans = planned.choices
    return (
        ram_limit is not None
        and min(plan.layout.arena_bytes for plan in plans) > ram_limit
        and min(plan.estimate.peak_bytes for plan in plans) <= ram_limit
    )


def _fitting(planned: Planned, board: Board, ram_limit: int | None) -> Planned:
    """Return the plans that fit. Raises FitError if none does."""

    def missing(plan: Plan) -> list[str]:
        return footprint.missing(PlanView(plan, planned.model_of(plan).calls), board, ram_limit)

    candidates = tuple(plan for plan in planned.candidates if not missing(plan))
    offers_baseline = planned.offers_baseline and not missing(planned.baseline)
    if not candidates and not offers_baseline:
        plan = planned.choices[0]
        model = planned.model_of(plan)
        short = footprint.missing(PlanView(plan, model.calls), board, ram_limit, least_constants(model))
        raise FitError(" ".join(short))
    return replace(planned, candidates=candidates, offers_baseline=offers_baseline)


def _without_faults(planned: Planned, board: Board) -> Planned:
    """Return the plans that the checker accepts. Raises PlanFaultError if it refuses the unsplit plan."""
    request = f"Please report this with the model, the command line, and mcudeploy {__version__}"

    def fault(plan: Plan) -> PlanFaultError | None:
        try:
            model = planned.model_of(plan)
            check_plan(plan, model.work, board)
            for unit in added("unit") if model.isa.unit else ():
                unit.check(plan, model)
        except PlanFaultError as error:
            arena = f"{plan.layout.arena_bytes:,} B"
            return PlanFaultError(f"defect: the checker refuses a plan with an arena of {arena}: {error}")
        return None

    sound: list[Plan] = []
    for plan in planned.candidates:
        error = fault(plan)
        if error is None:
            sound.append(plan)
        else:
            _LOG.warning("warning: %s. It is passed over. %s", error, request)
    error = fault(planned.baseline) if planned.offers_baseline else None
    if error is not None:
        raise PlanFaultError(f"{error}. It is the unsplit one. {request}")
    return replace(planned, candidates=tuple(sound))
