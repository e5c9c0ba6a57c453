"""Split plans of a model: what the search finds gets kernels, offsets, other orders and moves.

Each stage reads the plans made so far and adds to them; the best are kept.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mcudeploy.boards.board import Board
from mcudeploy.common.effort import Effort
from mcudeploy.common.progress import SILENT, Progress, Report, no_report
from mcudeploy.common.text import count_text
from mcudeploy.ir.plan import Plan, Schedule, Search, Split
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES, Budget
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.planner.search import placing
from mcudeploy.planner.search.best_first import Candidate, OnGain, SearchResult, search
from mcudeploy.planner.search.cuts import Space
from mcudeploy.planner.search.kernels import choose_kernels
from mcudeploy.planner.search.recompute import recompute
from mcudeploy.planner.search.row_by_row import row_by_row
from mcudeploy.planner.search.segments import Segments
from mcudeploy.planner.search.task import SearchTask
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import live_peak

_LOG = logging.getLogger(__name__)

RUNGS = (0.005, 0.05)
"""Latency overheads, as fractions of the unsplit latency, that are tried before the user's, if lower."""

_SEARCH_SHARE = 0.5
"""Of the effort, for the search; the rest is for the later stages."""

_STAGE_SHARE = 0.3
"""Of the effort that is left, for one of these stages."""

_MADE_ANYWAY = 8
"""Plans built whatever their peak: on the device, smaller ones may miss the latency limit."""

_PACKING_SHARE = 0.05
"""Of the time, for arenas that are shown while the search goes on."""

_REORDERED = 6
"""Number of candidates that get other orders: all would take too long."""

_PLAN_UNITS = 150
"""Effort of a plan by first fit, for each of its steps."""


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """Plans that keep the limits, the search for them, and whether Ctrl-C stopped it. `points`: bytes of the
    arena and latency of every plan that was made, the others too.
    """

    plans: tuple[Plan, ...]
    search: Search
    interrupted: bool
    points: tuple[tuple[int, float], ...] = ()


def split_plans(
    task: SearchTask,
    effort: Effort,
    stored: Plan | None = None,
    *,
    told: Report = no_report,
    progress: Progress = SILENT,
) -> Splits:
    """Search, from a stored plan on if it has the model's form, and make plans of what was found."""
    if stored is not None and stored.form != task.model.form:
        stored = None  # it is not cut, or its cuts need other operators
    found = _searched(task, effort.part(_SEARCH_SHARE), stored, told)
    interrupted = found.interrupted
    if found.hurried and not interrupted:
        _LOG.warning(
            "warning: the search ended early, after %s: `plan` and `tune` with a higher --time-limit may "
            "find a smaller arena",
            count_text(found.search.candidates, "candidate"),
        )
    plans: list[Plan] = []
    if stored is not None:
        kernels = task.model.with_kernels(stored.kernels)
        plans.append(placing.timed(stored, kernels, task.board, task.tiles, task.price))
    try:
        if interrupted:
            plans += (_first_fit(task, candidate) for candidate in found.best[:_MADE_ANYWAY])
        else:
            plans.extend(_finished(task, found.best, tuple(plans), effort, progress))
    except KeyboardInterrupt:  # what there is by then is kept
        interrupted = True
        plans = plans or [_first_fit(task, found.best[0])]
    points = tuple({(plan.layout.arena_bytes, plan.estimate.ticks): None for plan in plans})
    kept = [plan for plan in plans if task.keeps(plan)]
    return Splits(front(kept, task.board), found.search, interrupted, points)


def _searched(task: SearchTask, effort: Effort, stored: Plan | None, told: Report) -> SearchResult:
    def fits(candidate: Candidate) -> bool:
        limit = task.enough_bytes
        if limit is None or candidate.peak_bytes > limit:
            return False
        return task.is_enough(_with_moves(task, _first_fit(task, candidate), effort.part(0.1)))

    space = task.space
    limits = [task.unsplit_ticks * (1 + rung) for rung in RUNGS]
    return search(
        space,
        task.costs,
        Segments(space.flow, space.order, task.lean.work),
        [*(limit for limit in limits if limit < task.most_ticks), task.most_ticks],
        effort,
        start=() if stored is None else (space.state(stored.splits),),
        report=_packing(task, told),
        enough=fits,
    )


def _packing(task: SearchTask, told: Report) -> OnGain:
    """Tells of the least arena that was packed so far: a peak may be what no arena can have. Packing takes a
    small share of the time.
    """
    least, packed, idle_until = None, None, 0.0

    def report(search: Search, best: Candidate) -> None:
        nonlocal least, packed, idle_until
        begun = time.monotonic()
        if least is None or (best.state != packed and begun >= idle_until):
            plan, packed = _first_fit(task, best), best.state
            if least is None or plan.layout.arena_bytes < least.layout.arena_bytes:
                least = plan
            idle_until = time.monotonic() + (time.monotonic() - begun) / _PACKING_SHARE
        told(search, least.layout.arena_bytes, 100 * (least.estimate.ticks / task.unsplit_ticks - 1))

    return report


def _finished(
    task: SearchTask,
    candidates: Sequence[Candidate],
    known: Sequence[Plan],
    effort: Effort,
    progress: Progress,
) -> Iterator[Plan]:
    """Plans within the latency limit, each as soon as it is made, until one has an arena that is enough."""
    plans = [plan for plan in known if task.keeps(plan)]
    for name, stage in _STAGES:
        if name:
            progress.stage(name)
        for plan in stage(task, candidates, plans, effort.part(_STAGE_SHARE)):
            if task.keeps(plan):
                plans.append(plan)
                yield plan
                if task.is_enough(plan):
                    return


# Each stage receives the live list of plans, which grows while it runs.


def _made(
    task: SearchTask, candidates: Sequence[Candidate], plans: Sequence[Plan], effort: Effort
) -> Iterator[Plan]:
    """First fit: the best candidates, and all others that could win; where the core would have to wait for a
    slow memory, operators row by row as well.
    """
    effort.spend(_PLAN_UNITS * len(candidates[0].schedule.steps))
    best = _first_fit(task, candidates[0])
    yield best
    rows = _row_by_row(task) if best.estimate.exposed_ticks else ()
    for number, candidate in enumerate((*rows, *candidates[1:]), 1):
        could = number < _MADE_ANYWAY or _worth_packing(task, candidate.peak_bytes, plans)
        if could and not effort.is_spent():
            effort.spend(_PLAN_UNITS * len(candidate.schedule.steps))
            yield _first_fit(task, candidate)


def _row_by_row(task: SearchTask) -> Iterator[Candidate]:
    """Candidates that take operators one by one, within the latency limit."""
    segments = Segments(task.space.flow, task.space.order, task.lean.work)
    room = sum(task.board.room(memory) for memory in task.board.memories if memory.is_fast)
    for state in row_by_row(task.space, task.lean.work, room):
        rows = task.space.block_rows(state)
        ticks = task.costs.ticks(rows)
        if ticks <= task.most_ticks:
            names = (operator.name for operator in task.space.flow.graph.operators)
            tiled = TiledGraph(task.space.flow, dict(zip(names, rows, strict=True)))
            steps = segments.steps(task.space.sections(state))
            peak_bytes, peak_step = live_peak(tiled, steps, task.lean.work)
            yield Candidate(state, tiled, Schedule(steps, "feasible"), peak_bytes, peak_step, ticks)


def _recomputed(
    task: SearchTask, candidates: Sequence[Candidate], _: Sequence[Plan], effort: Effort
) -> Iterator[Plan]:
    """Halos computed twice, where that lowers the peak."""
    for candidate in candidates[:_MADE_ANYWAY]:
        again = recompute(candidate, task.costs, task.lean.work, task.most_ticks, effort)
        if again is not candidate:
            yield _first_fit(task, again)


def _reordered(
    task: SearchTask, _: Sequence[Candidate], plans: Sequence[Plan], effort: Effort
) -> Iterator[Plan]:
    """Plans in orders of lower peaks that are found soon."""
    for plan in _by_peak(plans)[:_REORDERED]:
        if not _has_repeated(plan) and not effort.is_spent():
            tiled = task.tiled(plan)
            found = placing.reordered(task.lean, tiled, plan.schedule, effort.part(0.5), placing.QUICK)
            if live_peak(tiled, found.steps, task.lean.work)[0] < plan.estimate.peak_bytes:
                yield _placed(task, tiled, replace(found, status="feasible"), plan.splits)


def _relocated(
    task: SearchTask, _: Sequence[Candidate], plans: Sequence[Plan], effort: Effort
) -> Iterator[Plan]:
    """Blocks that move, or leave the fast memory for a time, where a plan could win with that."""
    for plan in sorted(_by_peak(plans), key=lambda one: placing.latency_bound(one, task.model, task.board)):
        if effort.is_spent():
            return
        if _worth_moving(task, plan, plans):
            yield _with_moves(task, plan, effort.part(0.4 if plan.estimate.exposed_ticks else 0.2))


def _perfected(
    task: SearchTask, _: Sequence[Candidate], plans: Sequence[Plan], effort: Effort
) -> Iterator[Plan]:
    """The best plan in a proven or better order, with cheaper moves; and moves for those that are faster."""
    if not plans:
        return
    best = min(plans, key=lambda plan: sort_key(plan, task.board))
    if not _has_repeated(best) and not best.estimate.exposed_ticks:
        best = _in_proven_order(task, best, effort.part(0.5))
        yield best
    yield _with_moves(task, best, effort.part(0.8))
    for plan in front(plans, task.board):
        if plan is not best and not effort.is_spent():
            yield _with_moves(task, plan, effort.part(0.2))


_STAGES = (
    ("", _made),
    ("", _recomputed),
    ("ordering the best plans", _reordered),
    ("packing the best plans", _relocated),
    ("ordering and packing the best plan", _perfected),
)


def front(plans: Sequence[Plan], board: Board) -> tuple[Plan, ...]:
    """The Pareto front of memory and latency, the least memory first."""
    chosen: list[Plan] = []
    for plan in sorted(plans, key=lambda plan: sort_key(plan, board)):
        if not chosen or plan.estimate.ticks < chosen[-1].estimate.ticks:
            chosen.append(plan)
    return tuple(chosen)


def sort_key(plan: Plan, board: Board) -> tuple[tuple[int, float, int], float, int, bool]:
    """The better a plan, the less: by RAM, then latency, then entries of its tape, which is in flash."""
    entries = len(plan.schedule.steps) + len(plan.layout.transfers)
    return placing.cost_key(plan, board), plan.estimate.ticks, entries, plan.schedule.status != "optimal"


def could_win(peak_bytes: int, best: tuple[int, float, int]) -> bool:
    """Whether a plan could demand less than `best` if it were packed better: with an arena as large as its
    peak, or where something of the best lies beyond a memory, or in one that costs more.
    """
    beyond, dearer, arena_bytes = best
    return bool(beyond or dearer) or align_up(peak_bytes, ARENA_GRAIN_BYTES) < arena_bytes


def _worth_packing(task: SearchTask, peak_bytes: int, plans: Sequence[Plan]) -> bool:
    demands = [placing.cost_key(plan, task.board) for plan in plans]
    return not demands or could_win(peak_bytes, min(demands))


def _worth_moving(task: SearchTask, plan: Plan, plans: Sequence[Plan]) -> bool:
    """Whether a plan could be the best with moves: by its peak, or where the core waits for slow memories, by
    its latency.
    """
    _, latency, _ = min(placing.cost_key(one, task.board) for one in plans)
    if plan.estimate.exposed_ticks and latency:
        return placing.latency_bound(plan, task.model, task.board) < latency
    return _worth_packing(task, plan.estimate.peak_bytes, plans)


def _by_peak(plans: Sequence[Plan]) -> list[Plan]:
    return sorted(plans, key=lambda plan: plan.estimate.peak_bytes)


def _first_fit(task: SearchTask, candidate: Candidate) -> Plan:
    """The plan of a candidate, whose blocks stay where they are made."""
    return _placed(task, candidate.tiled, candidate.schedule, _splits(task.space, candidate))


def _placed(task: SearchTask, tiled: TiledGraph, schedule: Schedule, splits: tuple[Split, ...]) -> Plan:
    """The plan of a schedule by the kernels that suit it."""
    model, ticks = choose_kernels(task.model, tiled, schedule.steps, task.time, task.most_ticks)
    plan = placing.placed(model, task.board, tiled, schedule, splits=splits)
    return replace(plan, estimate=replace(plan.estimate, ticks=ticks))


def _with_moves(task: SearchTask, plan: Plan, effort: Effort) -> Plan:
    """The plan with moves where they make its arena smaller."""
    tiled = task.tiled(plan)
    relocation = Budget(task.price, effort, task.costs)
    return placing.moved(plan, task.model.with_kernels(plan.kernels), task.board, tiled, relocation)


def _in_proven_order(task: SearchTask, plan: Plan, effort: Effort) -> Plan:
    """The plan in a better order if one packs no worse; else the plan, with what is proven of its order."""
    tiled = task.tiled(plan)
    found = placing.reordered(task.lean, tiled, plan.schedule, effort)
    if plan.estimate.peak_bytes > found.lower_bound_bytes and found.steps != plan.schedule.steps:
        other = _with_moves(task, _placed(task, tiled, found, plan.splits), effort)
        if sort_key(other, task.board)[0] <= sort_key(plan, task.board)[0]:
            plan = other
    # the order was found, and proven, for the leanest kernels
    proven = plan.estimate.peak_bytes <= found.lower_bound_bytes
    status = "optimal" if proven else "feasible"
    return replace(plan, schedule=replace(found, steps=plan.schedule.steps, status=status))


def _has_repeated(plan: Plan) -> bool:
    """Whether steps of a plan are repeated."""
    return len(set(plan.schedule.steps)) < len(plan.schedule.steps)


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
            splits.append(Split(names, "row", cut.rows, cut.apart))
    return tuple(splits)
