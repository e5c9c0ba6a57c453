"""From a model and a board to a plan: cut, ordered, placed, and passed by the checker."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mcudeploy import planfile, report
from mcudeploy.board import Board
from mcudeploy.errors import ConfigError, ModelError, Problem
from mcudeploy.frontend import load
from mcudeploy.graph import Graph
from mcudeploy.layout.check import check as check_plan
from mcudeploy.layout.solve import lay_out
from mcudeploy.ops.opdef import KernelCall
from mcudeploy.optimizer.apply import in_form
from mcudeploy.optimizer.cuts import Space
from mcudeploy.optimizer.recompute import recompute, schedule_ticks
from mcudeploy.optimizer.search import Budget, Candidate, Report, search
from mcudeploy.plan import Form, Plan, Schedule, Search, Split
from mcudeploy.scheduler.rpo import reverse_post_order
from mcudeploy.simulator.blocks import TiledGraph, whole
from mcudeploy.simulator.cost import Costs, TileTime, estimated_tile_time
from mcudeploy.simulator.flow import Flow
from mcudeploy.simulator.live import WorkBytes, work_bytes

_PACKED_WELL, _PACKING_S = 3, 2.0
"""So many candidates are packed with care, for so long each; all of them took longer than the search."""

TileSource = Callable[[Flow], TileTime]
"""Where the search has the times of tiles from: a device, the database, or an estimate."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the user may choose. `plan_file` replaces the search; with `resume` the search begins there."""

    max_overhead: float = 5.0
    time_limit: float = 60.0
    ram_limit: int | None = None
    split: bool = True
    stream_input: bool = False
    float_io: bool = False
    seed: int = 0
    name: str | None = None
    plan_file: Path | None = None
    resume: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A model file that can be deployed: its graph in some form, and the kernel call of every operator."""

    path: Path
    sha256: str
    graph: Graph
    form: Form
    calls: Mapping[str, KernelCall]
    vectors: bool = False
    """Whether the calls are for a core with vectors."""

    @property
    def work(self) -> WorkBytes:
        """Scratch and state of every operator, in bytes."""
        return work_bytes(self.calls)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference."""
        return sum(self.graph.loops(operator).macs() for operator in self.graph.operators)

    def in_form(self, form: Form) -> Model:
        """The same model, rewritten."""
        graph = in_form(self.graph, self.form, form)
        return replace(self, graph=graph, form=form, calls=kernel_calls(graph, self.vectors))


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """Plans of a model, the least arena first; the unsplit one is the yardstick and among them."""

    models: Mapping[Form, Model]
    plans: tuple[Plan, ...]
    unsplit: Plan
    search: Search
    unsplit_ticks: float = 0.0


def load_model(path: Path, float_io: bool = False, *, vectors: bool = False) -> Model:
    """Read a model and choose its kernels, `vectors`: for a core with them.

    Raises ModelError with all problems at once.
    """
    graph = load(path, float_io=float_io)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    calls = kernel_calls(graph, vectors)
    if not calls:
        raise ModelError(f"{path.name} computes nothing: its outputs are rearranged inputs or constants")
    return Model(path, sha256, graph, Form(), calls, vectors)


def kernel_calls(graph: Graph, vectors: bool) -> dict[str, KernelCall]:
    """The kernel call of every operator that has one. Raises ModelError with all problems at once."""
    calls: dict[str, KernelCall] = {}
    problems: list[Problem] = []
    for operator in graph.operators:
        if operator.op.is_view:
            continue
        try:
            inputs, output = graph.input_tensors(operator), graph.tensors[operator.output]
            calls[operator.name] = operator.op.kernel(operator, inputs, output).on(vectors=vectors)
        except ValueError as error:
            node = operator.onnx_nodes[0] if operator.onnx_nodes else operator.name
            problems.append(Problem(node, operator.op.kind, str(error)))
    if problems:
        raise ModelError.unsupported(tuple(problems))
    return calls


def find_plans(
    model: Model,
    board: Board,
    options: Options,
    tiles: TileSource = estimated_tile_time,
    told: Report = lambda *_: None,
) -> Planned:
    """Search for plans of a model on a board, take the one of `options.plan_file`, or search on from it.

    A stored plan says whether inputs are streamed. Every plan has passed the checker. Raises FitError where
    even the least arena is too large.
    """
    models: dict[Form, Model] = {}
    stored = None
    if options.plan_file is not None:
        made, stored = _stored_plan(model, board, options.plan_file)
        models[made.form] = made
        options = replace(options, stream_input=stored.form.streamed)
    base = model.in_form(Form(streamed=options.stream_input))
    models[base.form] = base
    unsplit = unsplit_plan(base, board)
    if report.weights_bytes(base.calls) > board.flash_bytes:  # no search helps
        report.require_fit(unsplit, base.calls, board, options.ram_limit)
    plans, searched, ticks = [stored or unsplit], Search(), 0.0
    if options.split and (stored is None or options.resume):
        cut = model.in_form(Form(options.stream_input, accumulating=True))
        models[cut.form] = cut
        split, searched, ticks = _search((cut, base), board, options, tiles, told, stored=stored)
        plans = sorted([*split, unsplit], key=lambda plan: plan.layout.arena_bytes)
    for plan in plans:
        if plan.layout.arena_bytes <= board.memories[0].bytes:  # else it ends in FitError
            _check(plan, models[plan.form], board)
    report.require_fit(plans[0], models[plans[0].form].calls, board, options.ram_limit)
    return Planned(models, tuple(plans), unsplit, searched, ticks)


def _stored_plan(model: Model, board: Board, path: Path) -> tuple[Model, Plan]:
    """The plan of a file, which has passed the checker, and the model in its form."""
    form = planfile.load_form(path)
    try:
        made = model.in_form(form)
    except ModelError as error:
        raise ConfigError(f"{path} has a form that the model cannot take: {error}") from error
    plan = planfile.load_plan(path, made.graph, model.sha256, board.name, made.work)
    _check(plan, made, board)
    return made, plan


def _check(plan: Plan, model: Model, board: Board) -> None:
    capacities = {memory.name: memory.bytes for memory in board.memories}
    check_plan(plan, model.work, board.memories[0].alignment, capacities)


def unsplit_plan(model: Model, board: Board) -> Plan:
    """The unsplit plan with the smaller arena of two depth-first orders."""
    tiled = whole(model.graph)
    schedules = (reverse_post_order(tiled, first_input_first) for first_input_first in (True, False))
    plans = (_placed(model, board, tiled, schedule) for schedule in schedules)
    return min(plans, key=lambda plan: plan.layout.arena_bytes)


def _placed(
    model: Model,
    board: Board,
    tiled: TiledGraph,
    schedule: Schedule,
    *,
    splits: tuple[Split, ...] = (),
    seconds: float = _PACKING_S,
) -> Plan:
    memory = board.memories[0]
    layout, estimate = lay_out(tiled, schedule, model.work, memory.name, memory.alignment, seconds=seconds)
    return Plan(model.graph, board.name, tiled.block_rows, schedule, layout, estimate, model.form, splits)


def _search(
    models: tuple[Model, Model],
    board: Board,
    options: Options,
    tiles: TileSource,
    told: Report,
    *,
    stored: Plan | None,
) -> tuple[list[Plan], Search, float]:
    """Plans of the first of `models`, the search, and the time of the unsplit plan, which is the second's.

    A stored plan of the first one's form is where it begins. Tiles that `tiles` times in advance are part of
    the time limit.
    """
    deadline = time.monotonic() + options.time_limit
    model, base = models
    flow, base_flow = Flow.of(model.graph), Flow.of(base.graph)
    order = tuple(step.operator for step in reverse_post_order(whole(model.graph)).steps)
    space = Space.of(flow, order)
    limit = options.ram_limit or 0

    def fits(candidate: Candidate) -> bool:
        if candidate.peak_bytes > limit:
            return False
        return _placed(model, board, candidate.tiled, candidate.schedule).layout.arena_bytes <= limit

    costs = Costs(flow, tiles(flow))
    unsplit_ticks = Costs(base_flow, tiles(base_flow)).ticks(base_flow.iteration_rows)
    uncut_ticks = costs.ticks(flow.iteration_rows)
    most_ticks = unsplit_ticks * (1 + options.max_overhead / 100)

    def told_of_unsplit(found: Search, peak_bytes: int, overhead: float) -> None:
        told(found, peak_bytes, 100 * (uncut_ticks * (1 + overhead / 100) / unsplit_ticks - 1))

    # the search compares with the graph that it cuts, uncut: running sums take other kernels than the base
    most_overhead = 100 * (most_ticks / uncut_ticks - 1)
    budget = Budget(max(0.0, deadline - time.monotonic()), most_overhead, fits)
    if stored is not None and stored.form != model.form:
        stored = None  # it is not cut, or cut in a way that has operators of its own
    start = () if stored is None else (space.state(stored.splits),)
    found = search(space, costs, model.work, budget, told_of_unsplit, start=start)
    plans = [] if stored is None else [_timed(stored, flow, costs)]
    candidates = found.best
    if not found.interrupted and not any(fits(candidate) for candidate in candidates):
        candidates += _recomputed(found.best, costs, model.work, most_ticks, deadline)
    for candidate in _by_first_fit(model, board, tuple(dict.fromkeys(candidates))):
        seconds = _PACKING_S if len(plans) < _PACKED_WELL else 0.0
        splits = _splits(space, candidate)
        plan = _placed(model, board, candidate.tiled, candidate.schedule, splits=splits, seconds=seconds)
        plans.append(replace(plan, estimate=replace(plan.estimate, ticks=candidate.ticks)))
    return [plan for plan in plans if plan.estimate.ticks <= most_ticks], found.search, unsplit_ticks


def _by_first_fit(model: Model, board: Board, candidates: tuple[Candidate, ...]) -> list[Candidate]:
    """Candidates by the arena that they need where no time is spent on packing; the least first."""

    def arena_bytes(candidate: Candidate) -> int:
        plan = _placed(model, board, candidate.tiled, candidate.schedule, seconds=0.0)
        return plan.layout.arena_bytes

    return sorted(candidates, key=arena_bytes)


def _recomputed(
    candidates: tuple[Candidate, ...], costs: Costs, work: WorkBytes, most_ticks: float, deadline: float
) -> tuple[Candidate, ...]:
    """The candidates with halos computed again, as far as the time, or an interrupt, allows."""
    found: list[Candidate] = []
    try:
        for candidate in candidates:
            found.append(recompute(candidate, costs, work, most_ticks, lambda: time.monotonic() > deadline))
    except KeyboardInterrupt:
        pass
    return tuple(found)


def _timed(plan: Plan, flow: Flow, costs: Costs) -> Plan:
    """A plan with the time that it takes by these costs."""
    steps, tiled = plan.schedule.steps, TiledGraph(flow, plan.block_rows)
    rows = [plan.block_rows[operator.name] for operator in flow.graph.operators]
    once = schedule_ticks(tiled, tuple(dict.fromkeys(steps)), costs)
    ticks = costs.ticks(rows) + schedule_ticks(tiled, steps, costs) - once
    return replace(plan, estimate=replace(plan.estimate, ticks=ticks))


def _splits(space: Space, candidate: Candidate) -> tuple[Split, ...]:
    """The cuts of a candidate by operator names, without the operators that stay whole."""
    operators = space.flow.graph.operators
    splits = []
    for cut in candidate.state:
        positions = (space.order[place] for place in range(cut.first, cut.last + 1))
        names = tuple(
            operators[position].name for position in positions if candidate.tiled.step_counts[position] > 1
        )
        if names:
            splits.append(Split(names, "row", cut.rows))
    return tuple(splits)
