"""The stages after the search of a round: candidates receive kernels, offsets, other orders and moves.

Each stage reads the plans made so far and adds to them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from mcudeploy.common.effort import Effort
from mcudeploy.common.progress import Progress
from mcudeploy.ir.plan import Plan, Schedule, Split
from mcudeploy.planner.place.arena import Budget
from mcudeploy.planner.search import placing
from mcudeploy.planner.search.best_first import Candidate
from mcudeploy.planner.search.cuts import Space
from mcudeploy.planner.search.kernels import KernelLimits, choose_kernels
from mcudeploy.planner.search.ranking import front, sort_key, worth_moving, worth_placing
from mcudeploy.planner.search.recompute import Recomputed, recompute
from mcudeploy.planner.search.row_by_row import row_by_row
from mcudeploy.planner.search.task import SearchTask
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import live_peak

BUILT_ANYWAY = 4
"""Number of plans built regardless of peak: on the device, smaller ones may miss the latency limit."""

_MOST_RECOMPUTED, _MOST_REORDERED = 2, 3
"""Number of new candidates with recomputed halos, and of plans in other orders; all would take too long."""

_MOVED_SHARE = 0.1
"""Share of the remaining effort for moves of a plan whose arena exceeds the RAM limit, but not its peak."""

_MOST_OFFLOADED, _OFFLOADING_SHARE, _PROMISES_SHARE = 3, 0.5, 0.3
"""Number of long searches for transfers in a round; the share of the remaining effort for each of them,
except the last, which gets the rest; the share for all short searches together.
"""

_MORE_EFFORT = 1.2
"""Least effort of another long search for a plan, as a multiple of the last: with less it finds the same."""

_ORDER_SHARE, _MOVES_SHARE, _FASTER_SHARE = 0.5, 0.7, 0.2
"""Shares of the effort left: for one order, for the moves of a plan, and for those of a faster plan."""

_PLAN_UNITS, _PACK_UNITS = 220, 120
"""Effort per step of a plan by first fit, with its kernels, and of offsets alone."""


@dataclass(slots=True, eq=False)
class Round:
    """The input of a stage: the new candidates of its round, and the plans of all rounds within the limit.

    `built`: all plans that were placed, including slower ones. `settled`: by stage, the plans on which it
    spent at most half of its effort; more effort would give the same result. `promised`: by plan whose core
    waits, the latency that a short search for transfers found. `offered`: by plan, the effort that its last
    long search had.
    """

    candidates: Sequence[Candidate]
    plans: list[Plan]
    number: int = 0
    built: list[Plan] = field(default_factory=list)
    recomputed: list[Recomputed] = field(default_factory=list)
    settled: dict[str, set[Plan]] = field(default_factory=lambda: defaultdict(set))
    promised: dict[Plan, float] = field(default_factory=dict)
    offered: dict[Plan, float] = field(default_factory=dict)

    def settle(self, stage: str, plan: Plan, effort: Effort) -> None:
        """Mark a plan as settled for a stage, if the stage spent at most half of its effort."""
        if effort.left > effort.spent:
            self.settled[stage].add(plan)

    def add(self, task: SearchTask, plans: Iterable[Plan]) -> None:
        """Add each plan as soon as it is built."""
        for plan in plans:
            self.built.append(plan)
            if task.keeps(plan):
                self.plans.append(plan)


def run_stages(task: SearchTask, current: Round, effort: Effort, progress: Progress) -> None:
    """Run all stages.

    If the core would wait for a slow memory, the search for transfers has as much effort again.
    """
    for number, (name, stage) in enumerate(STAGES):
        if name:
            progress.stage(name)
        for plan in stage(task, current, effort.part(1 / (len(STAGES) - number))):
            current.add(task, [plan])
    if _waits(task, current):
        progress.stage("planning transfers between memories")
        current.add(task, _offloading(task, current, effort.again()))


def _by_first_fit(task: SearchTask, current: Round, effort: Effort) -> Iterator[Plan]:
    """Yield plans by first fit: those of the best candidates, and of the others that could win.

    If the core would wait for a slow memory, plans that run operators row by row are added.
    """
    if not current.candidates:
        return
    best = first_fit(task, current.candidates[0], effort)
    yield best
    if task.nearly_fits(best):
        yield _with_moves(task, best, effort.part(_MOVED_SHARE))
    rows = tuple(row_by_row(task)) if best.estimate.avoidable_ticks and current.number == 1 else ()
    for number, candidate in enumerate((*rows, *current.candidates[1:]), 1):
        is_worth_it = number < BUILT_ANYWAY or worth_placing(task, candidate, current.plans)
        if is_worth_it and (number <= len(rows) or not effort.is_spent()):
            plan = first_fit(task, candidate, effort)
            yield plan
            if task.nearly_fits(plan):
                yield _with_moves(task, plan, effort.part(_MOVED_SHARE))


def _reordering(task: SearchTask, current: Round, effort: Effort) -> Iterator[Plan]:
    """Yield plans in orders with lower peaks, if a quick search finds them."""
    for plan in _by_peak(current.plans)[:_MOST_REORDERED]:
        if _has_repeated(plan) or plan in current.settled["order"] or effort.is_spent():
            continue
        part, tiled = effort.part(_ORDER_SHARE), task.tiled(plan)
        schedule = placing.reordered(task.min_scratch, tiled, plan.schedule, part, placing.QUICK)
        current.settle("order", plan, part)
        if live_peak(tiled, schedule.steps, task.min_scratch.work)[0] < plan.estimate.peak_bytes:
            yield _placed(task, tiled, replace(schedule, status="feasible"), plan.splits, effort)


def _relocating(task: SearchTask, current: Round, effort: Effort) -> Iterator[Plan]:
    """Yield plans whose blocks move, if such a plan could win."""
    plans = current.plans
    if _waits(task, current):
        return
    for plan in sorted(_by_peak(plans), key=lambda one: placing.latency_bound(one, task.model, task.board)):
        if worth_moving(task, plan, plans):
            yield from _moved(task, current, plan, effort.part(_MOVES_SHARE))


def _improving_the_best(task: SearchTask, current: Round, effort: Effort) -> Iterator[Plan]:
    """Yield the best plan with cheaper moves and a better or proven order, and faster plans with moves."""
    if not current.plans or _waits(task, current):
        return
    best, *faster = front(current.plans, task.board, task.ram_limit)
    yield from _moved(task, current, best, effort.part(_MOVES_SHARE))
    best = min(current.plans, key=lambda plan: sort_key(plan, task.board, task.ram_limit))
    is_settled = best in current.settled["proof"]
    if not _has_repeated(best) and not best.estimate.avoidable_ticks and not is_settled:
        part = effort.part(_ORDER_SHARE)
        given, best = best, _in_proven_order(task, best, part)
        current.settle("proof", given, part)
        current.settle("proof", best, part)
        yield best
    for plan in faster:
        yield from _moved(task, current, plan, effort.part(_FASTER_SHARE))


def _waits(task: SearchTask, current: Round) -> bool:
    """Return whether there are plans, and in each a core waits for a slow memory or something has no room."""
    return bool(current.plans) and all(placing.waits(plan, task.board) for plan in current.plans)


def _offloading(task: SearchTask, current: Round, effort: Effort) -> Iterator[Plan]:
    """Yield plans with offloading: after short searches, long ones for plans of least promised latency."""
    short = effort.part(_PROMISES_SHARE)
    for plan in sorted(
        (plan for plan in current.plans if not plan.layout.transfers and plan not in current.promised),
        key=lambda one: placing.latency_bound(one, task.model, task.board),
    ):
        if worth_moving(task, plan, current.plans) and not short.is_spent():
            tiled, model = task.tiled(plan), task.model.with_kernels(plan.kernels)
            budget = Budget(task.price, short, task.variants)
            current.promised[plan] = placing.promised_ticks(plan, model, task.board, tiled, budget)
    ranked = sorted(current.promised, key=lambda plan: current.promised[plan])
    for number, plan in enumerate(ranked[:_MOST_OFFLOADED], 1):
        part = effort.part(1.0 if number == _MOST_OFFLOADED else _OFFLOADING_SHARE)
        is_worth_it = worth_moving(task, plan, current.plans) and current.promised[plan] < inf
        if is_worth_it and part.left >= _MORE_EFFORT * current.offered.get(plan, 0.0):
            current.offered[plan] = part.left
            yield from _moved(task, current, plan, part)


def _moved(task: SearchTask, current: Round, plan: Plan, effort: Effort) -> Iterator[Plan]:
    """Yield the plan with moves, unless an earlier round settled its moves."""
    if plan not in current.settled["moves"] and not effort.is_spent():
        better = _with_moves(task, plan, effort)
        current.settle("moves", plan, effort)
        current.settle("moves", better, effort)
        yield better


def _recomputing(task: SearchTask, current: Round, effort: Effort) -> Iterator[Plan]:
    """Yield plans that recompute tensors, if that lowers the peak and no plan keeps the RAM limit yet."""
    if any(map(task.fits, current.plans)):
        return
    unfinished = [*current.recomputed, *map(Recomputed.of, current.candidates[:_MOST_RECOMPUTED])]
    unfinished.sort(key=lambda one: one.candidate.peak_bytes)
    current.recomputed = unfinished[_MOST_RECOMPUTED:]
    for number, before in enumerate(unfinished[:_MOST_RECOMPUTED]):
        own = effort.part(1 / (_MOST_RECOMPUTED - number))
        after = recompute(before, task.variants, task.min_scratch.work, task.most_ticks, own)
        if not after.is_final:
            current.recomputed.append(after)
        lowest = min((plan.estimate.peak_bytes for plan in current.plans), default=inf)
        if after.candidate is not before.candidate and after.candidate.peak_bytes < lowest:
            yield first_fit(task, after.candidate, effort)


STAGES = (
    ("", _by_first_fit),
    ("ordering the best plans", _reordering),
    ("recomputing halos", _recomputing),
    ("packing the best plans", _relocating),
    ("ordering and packing the best plan", _improving_the_best),
)


def _by_peak(plans: Sequence[Plan]) -> list[Plan]:
    return sorted(plans, key=lambda plan: plan.estimate.peak_bytes)


def first_fit(task: SearchTask, candidate: Candidate, effort: Effort) -> Plan:
    """Return the plan of a candidate, with one fixed offset for each block."""
    return _placed(task, candidate.tiled, candidate.schedule, _splits(task.space, candidate), effort)


def _placed(
    task: SearchTask, tiled: TiledGraph, schedule: Schedule, splits: tuple[Split, ...], effort: Effort
) -> Plan:
    """Return the plan of a schedule, with the kernels chosen for it."""
    effort.spend(_PLAN_UNITS * len(schedule.steps))
    limits = KernelLimits(task.most_ticks, task.board.constants_room, task.sufficient_bytes, task.fit_bytes)
    model, ticks = choose_kernels(task.model, tiled, schedule.steps, task.time, limits)
    return placing.placed(model, task.board, tiled, schedule, splits=splits, ticks=ticks)


def _with_moves(task: SearchTask, plan: Plan, effort: Effort) -> Plan:
    """Return the plan with moves if they reduce its arena."""
    tiled = task.tiled(plan)
    effort.spend(_PACK_UNITS * len(plan.schedule.steps))
    budget = Budget(task.price, effort, task.variants)
    return placing.moved(plan, task.model.with_kernels(plan.kernels), task.board, tiled, budget)


def _in_proven_order(task: SearchTask, plan: Plan, effort: Effort) -> Plan:
    """Return the plan in a better order that packs no worse, or as it is; its status says what is proven."""
    tiled = task.tiled(plan)
    schedule = placing.reordered(task.min_scratch, tiled, plan.schedule, effort)
    if plan.estimate.peak_bytes > schedule.lower_bound_bytes and schedule.steps != plan.schedule.steps:
        other = _with_moves(task, _placed(task, tiled, schedule, plan.splits, effort), effort)
        if placing.cost_key(other, task.board) <= placing.cost_key(plan, task.board):
            plan = other
    # the order and its proof are for the kernels with the least scratch
    proven = plan.estimate.peak_bytes <= schedule.lower_bound_bytes
    status = "optimal" if proven else "feasible"
    return replace(plan, schedule=replace(schedule, steps=plan.schedule.steps, status=status))


def _has_repeated(plan: Plan) -> bool:
    """Return whether a plan repeats a step."""
    return len(set(plan.schedule.steps)) < len(plan.schedule.steps)


def _splits(space: Space, candidate: Candidate) -> tuple[Split, ...]:
    """Return the cuts of a candidate by operator names, without the operators that stay whole."""
    operators = space.flow.graph.operators
    splits = []
    for cut in candidate.state:
        positions = (space.order[place] for place in range(cut.first, cut.last + 1))
        names = tuple(
            operators[position].name for position in positions if candidate.tiled.step_counts[position] > 1
        )
        if names:
            splits.append(Split(names, "row", cut.rows, cut.apart, cut.staggered))
    return tuple(splits)
