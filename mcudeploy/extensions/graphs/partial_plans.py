"""Partial plans: cuts that the planner orders and places, and offsets for the rectangles of a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from pydantic import BaseModel, Field, StrictBool

from mcudeploy.boards.board import Board
from mcudeploy.checker.judge import PlanFaultError
from mcudeploy.checker.judge import check as check_plan
from mcudeploy.common.effort import Effort
from mcudeploy.common.errors import ConfigError, ModelError, UsageError
from mcudeploy.common.json_file import read_json
from mcudeploy.common.progress import Progress
from mcudeploy.costs.estimate import board_costs, estimated
from mcudeploy.costs.tiles import move_price
from mcudeploy.extensions.graphs.rectfile import NamedRectangle, read_rectangles
from mcudeploy.ir.plan import Plan, Residence, Rewrites, Split
from mcudeploy.ir.rectangles import Rectangle
from mcudeploy.planner import planner
from mcudeploy.planner.files.planfile import SplitEntry
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.planner.place.residences import Draft, reside
from mcudeploy.planner.place.solve import estimate, placement_of
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.search.cuts import Space, State
from mcudeploy.planner.search.form_tasks import FormTasks
from mcudeploy.planner.search.placing import timed, unsplit_plan, unsplit_schedule
from mcudeploy.planner.search.ranking import sort_key
from mcudeploy.planner.search.row_by_row import candidate_of
from mcudeploy.planner.search.segments import Segments
from mcudeploy.planner.search.stages import Round, run_stages
from mcudeploy.planner.search.task import SearchTask
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import Buffer

_SPARE_PERCENT = 1.0
"""The overhead that moves may add to cuts that miss the latency limit even with the fastest kernels."""


class _CutsFile(BaseModel):
    """Cuts as plan files state them; other keys of a plan file are ignored."""

    splits: tuple[SplitEntry, ...]
    streamed: StrictBool = False
    fused: tuple[tuple[str, ...], ...] = Field(default=())


def plan_of_cuts(model: Model, board: Board, options: Options, path: Path, progress: Progress) -> Plan:
    """Return the best plan with the cuts and fused chains of a file.

    The planner chooses order, kernels and offsets. If no such plan keeps the latency limit, return one near
    it. Raises ConfigError for cuts that the model cannot have.
    """
    content = read_json(path, _CutsFile, "a file of cuts")
    options = replace(options, stream_input=options.stream_input or content.streamed)
    board = options.limited(board)
    times = estimated(board_costs(board, options.unit_on(board, 1)), model.in_ram)

    def in_form(form: Rewrites) -> Model:
        try:
            return planner.fastest_model(model.in_form(form), board, options, times)
        except ModelError as error:
            raise ConfigError(f"{path}: its fused chains are not chains of the model: {error}") from error

    effort = Effort.of(options.time_limit)
    base = in_form(Rewrites(streamed=options.stream_input))
    unsplit = unsplit_plan(base, board, unsplit_schedule(base, effort.part(0.2)))
    unsplit = timed(unsplit, base, board, times, move_price(times))
    plain = in_form(Rewrites(options.stream_input, accumulating=True))
    tasks = FormTasks(plain, (), in_form, board, times, None, unsplit, options)

    def task(max_overhead: float) -> SearchTask:
        return replace(tasks, options=replace(options, max_overhead=max_overhead)).of(content.fused)

    unlimited = task(inf)
    state = _state(unlimited.space, content, path)
    segments = Segments(unlimited.space.flow, unlimited.space.order, unlimited.min_scratch.work)
    cut = candidate_of(unlimited, segments, state)
    own_overhead = 100 * (cut.ticks / unsplit.estimate.ticks - 1)
    for max_overhead in (options.overhead_limit, max(own_overhead, 0.0) + _SPARE_PERCENT, inf):
        current = Round([cut], [])
        run_stages(task(max_overhead), current, effort.part(0.5), progress)
        if current.plans:
            break
    return min(current.plans, key=lambda plan: sort_key(plan, board, unlimited.ram_limit))


def _state(space: Space, content: _CutsFile, path: Path) -> State:
    """Return the cuts of a file. Raises ConfigError for those that the space does not have."""
    operators = space.flow.graph.operators
    places = {operators[at].name: place for place, at in enumerate(space.order)}
    for number, split in enumerate(content.splits):
        where = f"{path}: splits.{number}"
        for name in split.operators:
            if name not in places:
                raise ConfigError(
                    f"{where}: {name!r} is not an operator; names are in mcudeploy plan MODEL --explain"
                )
            most = space.most_rows[space.order[places[name]]]
            if split.rows >= most:
                has = f"has {most} rows: parts have at most {most - 1}" if most > 1 else "cannot be cut"
                raise ConfigError(f"{where}: {name!r} {has}; see mcudeploy plan MODEL --explain")
        named = {places[name] for name in split.operators}
        inside = (operators[space.order[at]].name for at in range(min(named), max(named)) if at not in named)
        between = [name for name in inside if split.rows < space.most_rows[space.order[places[name]]]]
        if between:
            raise ConfigError(f"{where}: {between[0]!r} runs between its operators: name it as well")
    state = space.state(
        tuple(Split(tuple(s.operators), s.axis, s.rows, s.apart, s.staggered) for s in content.splits)
    )
    if len(state) < len(content.splits):
        raise ConfigError(f"{path}: two splits overlap: an operator belongs to one of them")
    return state


@dataclass(frozen=True, slots=True)
class Rectangles:
    """The buffers of a plan in one memory, and the rectangle of each."""

    plan: Plan
    memory: str
    items: tuple[Buffer, ...]
    named: tuple[NamedRectangle, ...]

    @classmethod
    def of(cls, plan: Plan, model: Model, board: Board) -> Rectangles:
        """Return the rectangles of a plan with its offsets, for a buffer that moves its first offset.

        Raises UsageError for a plan in several memories, or for several cores.
        """
        used = [name for name, size in plan.layout.arenas.items() if size]
        if len(used) > 1 or plan.lanes:
            what = "cores" if plan.lanes else "memories"
            way = "plan without --parallel" if plan.lanes else f"plan with --memory {used[-1]}=0"
            raise UsageError(f"the plan is one for several {what}, rectangles are for one: {way}")
        items, problem = placement_of(plan, model.work, board)
        stack_of = {at: f"stack {n}" for n, stack in enumerate(problem.stacks) for at in stack}
        places = zip(items, problem.rectangles, _ids(items), strict=True)
        named = tuple(
            NamedRectangle(name, rectangle, stack_of.get(at, ""), _offset(plan, item))
            for at, (item, rectangle, name) in enumerate(places)
        )
        return cls(plan, used[0] if used else next(iter(plan.layout.arenas)), items, named)

    def placed(self, model: Model, board: Board, path: Path) -> Plan:
        """Return the plan with the offsets of a file, without moves; the checker accepts it.

        Raises ConfigError for a file with other rectangles, and for offsets that the checker refuses.
        """
        given = {named.name: named for named in read_rectangles(path)}
        other = min(given.keys() ^ {named.name for named in self.named}, default=None)
        if other is not None:
            state = "is not a rectangle of the plan" if other in given else "is missing"
            raise _fault(path, f"{other!r} {state}")
        offsets = []
        for name, rectangle in ((named.name, named.rectangle) for named in self.named):
            stated, offset = given[name].rectangle, given[name].offset
            if (rectangle.size_bytes, rectangle.life) != (stated.size_bytes, stated.life):
                raise _fault(path, f"{name!r} is {_text(stated)}, in the plan {_text(rectangle)}")
            if offset is None:
                raise _fault(path, f"{name!r} has no offset")
            offsets.append(offset)
        return self._at(offsets, model, board, path)

    def _at(self, offsets: Sequence[int], model: Model, board: Board, path: Path) -> Plan:
        plan, tiled = self.plan, TiledGraph.of(self.plan)
        residences = [
            [Residence(it.life, self.memory, at)] for it, at in zip(self.items, offsets, strict=True)
        ]
        end = max((at + it.size_bytes for it, at in zip(self.items, offsets, strict=True)), default=0)
        arenas = dict.fromkeys(plan.layout.arenas, 0) | {self.memory: align_up(end, ARENA_GRAIN_BYTES)}
        layout = reside(Draft(tiled, plan.schedule.steps, self.items, model.work), residences, arenas, ())
        predicted = estimate(tiled, plan.schedule.steps, model.work, layout)
        placed = replace(plan, layout=layout, estimate=predicted)
        try:
            check_plan(placed, model.work, board)
        except PlanFaultError as error:
            raise _fault(path, f"the checker refuses these offsets: {error}") from error
        return placed


def _text(rectangle: Rectangle) -> str:
    return f"size {rectangle.size_bytes} from {rectangle.life.lo} to {rectangle.life.hi}"


def _ids(items: Sequence[Buffer]) -> Iterator[str]:
    """Yield an id for each buffer: its first block or its operator, and a number if it lives again."""
    counts = Counter[str]()
    for item in items:
        name, block = item.scratch_of or item.members[0]
        text = f"{'scratch of ' if item.scratch_of else ''}{name}[{block}]"
        counts[text] += 1
        yield text if counts[text] == 1 else f"{text} again {counts[text] - 1}"


def _offset(plan: Plan, item: Buffer) -> int:
    """Return the offset of a buffer when its life begins."""
    table, (name, block) = (
        (plan.layout.scratch, item.scratch_of) if item.scratch_of else (plan.layout.blocks, item.members[0])
    )
    return next(
        it.offset for it in table[name][block] if it.life.lo <= item.life.lo < max(it.life.hi, it.life.lo + 1)
    )


def _fault(path: Path, fault: str) -> ConfigError:
    return ConfigError(
        f"{path}: {fault}. Rectangles come from mcudeploy graph export MODEL --plan PLAN -o {path}"
    )
