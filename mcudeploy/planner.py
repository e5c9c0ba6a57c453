"""From a model and a board to a plan: cut, ordered, placed, and passed by the checker."""

from __future__ import annotations

import hashlib
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
from mcudeploy.optimizer.search import Budget, Candidate, Report, search
from mcudeploy.plan import Form, Plan, Schedule, Search, Split
from mcudeploy.scheduler.rpo import reverse_post_order
from mcudeploy.simulator.blocks import TiledGraph, whole
from mcudeploy.simulator.cost import Costs, TileTime, estimated_tile_time
from mcudeploy.simulator.flow import Flow
from mcudeploy.simulator.live import WorkBytes, work_bytes

TileSource = Callable[[Flow], TileTime]
"""Where the search has the times of tiles from: a device, the database, or an estimate."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the user may choose. `plan_file` replaces the search by a stored plan."""

    max_overhead: float = 5.0
    time_limit: float = 60.0
    ram_limit: int | None = None
    split: bool = True
    stream_input: bool = False
    float_io: bool = False
    seed: int = 0
    name: str | None = None
    plan_file: Path | None = None


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


def load_model(path: Path, board: Board, float_io: bool = False) -> Model:
    """Read a model and choose its kernels for a board. Raises ModelError with all problems at once."""
    graph = load(path, float_io=float_io)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    calls = kernel_calls(graph, board.vectors)
    if not calls:
        raise ModelError(f"{path.name} computes nothing: its outputs are rearranged inputs or constants")
    return Model(path, sha256, graph, Form(), calls, board.vectors)


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
    """Search for plans of a model on a board, or take the one of `options.plan_file`.

    Every plan has passed the checker. Raises FitError where even the least arena is too large.
    """
    base = model.in_form(Form(streamed=options.stream_input))
    unsplit = unsplit_plan(base, board)
    models, plans, searched, ticks = {base.form: base}, [unsplit], Search(), 0.0
    if options.plan_file is not None:
        form = planfile.load_form(options.plan_file)
        try:
            models[form] = model.in_form(form)
        except ModelError as error:
            found = f"{options.plan_file} has a form that the model cannot take"
            raise ConfigError(f"{found}: {error}") from error
        made = models[form]
        plans = [planfile.load_plan(options.plan_file, made.graph, model.sha256, board.name, made.work)]
        base = model.in_form(Form(streamed=form.streamed))
        models[base.form] = base
        unsplit = unsplit_plan(base, board)
    elif options.split:
        cut = model.in_form(Form(options.stream_input, accumulating=True))
        models[cut.form] = cut
        split, searched, ticks = _search(cut, board, options, tiles, told)
        plans = sorted([*split, unsplit], key=lambda plan: plan.layout.arena_bytes)
    capacities = {memory.name: memory.bytes for memory in board.memories}
    for plan in plans:
        # A plan of ours that is too large ends in FitError below; one from a file must never have been so.
        if options.plan_file is not None or plan.layout.arena_bytes <= board.memories[0].bytes:
            check_plan(plan, models[plan.form].work, board.memories[0].alignment, capacities)
    report.require_fit(plans[0], models[plans[0].form].calls, board, options.ram_limit)
    return Planned(models, tuple(plans), unsplit, searched, ticks)


def unsplit_plan(model: Model, board: Board) -> Plan:
    """The unsplit plan with the smaller arena of two depth-first orders."""
    tiled = whole(model.graph)
    schedules = (reverse_post_order(tiled, first_input_first) for first_input_first in (True, False))
    plans = (_placed(model, board, tiled, schedule) for schedule in schedules)
    return min(plans, key=lambda plan: plan.layout.arena_bytes)


def _placed(
    model: Model, board: Board, tiled: TiledGraph, schedule: Schedule, splits: tuple[Split, ...] = ()
) -> Plan:
    memory = board.memories[0]
    layout, estimate = lay_out(tiled, schedule, model.work, memory.name, memory.alignment)
    return Plan(model.graph, board.name, tiled.block_rows, schedule, layout, estimate, model.form, splits)


def _search(
    model: Model, board: Board, options: Options, tiles: TileSource, told: Report
) -> tuple[list[Plan], Search, float]:
    flow = Flow.of(model.graph)
    order = tuple(step.operator for step in reverse_post_order(whole(model.graph)).steps)
    space = Space.of(flow, order)
    budget = Budget(options.time_limit, options.max_overhead, options.ram_limit or 0)
    found = search(space, Costs(flow, tiles(flow)), model.work, budget, told)
    plans = []
    for candidate in found.best:
        plan = _placed(model, board, candidate.tiled, candidate.schedule, _splits(space, candidate))
        plans.append(replace(plan, estimate=replace(plan.estimate, ticks=candidate.ticks)))
    return plans, found.search, found.unsplit.ticks


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
