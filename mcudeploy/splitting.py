"""Split plans of a model: searched, then ordered, recomputed and packed with care."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mcudeploy import placing
from mcudeploy.analyzer import components
from mcudeploy.board import Board
from mcudeploy.choosing import settled
from mcudeploy.layout.problem import align_up
from mcudeploy.layout.solve import ARENA_GRAIN_BYTES
from mcudeploy.model import Model
from mcudeploy.ops.opdef import KernelCall
from mcudeploy.optimizer.cuts import ROWS_TRIED, Space
from mcudeploy.optimizer.recompute import recompute, schedule_ticks
from mcudeploy.optimizer.search import Budget, Candidate, Found, Report, search
from mcudeploy.plan import Plan, Schedule, Search, Split
from mcudeploy.progress import SILENT, Progress
from mcudeploy.simulator.blocks import TiledGraph
from mcudeploy.simulator.cost import CallTile, Costs, TileSource, by_calls, move_price, timed_block
from mcudeploy.simulator.flow import Flow
from mcudeploy.simulator.live import live_peak

_MADE_ANYWAY = 8
"""Plans that are made in any case: the device may find that those with less memory take too long."""

_REORDERED = 6
"""So many candidates get other orders: all of them would take too long."""

_SOME_S, _BEST_S = 0.7, 15.0
"""For fixed offsets of a plan that could be the best, and of the best one."""

_FEW_MOVES_S, _MOVES_S = 0.5, 5.0
"""For moves in a plan, and in the best one."""

_QUICK, _QUICK_S = ("refine", "beam"), 3.0
"""How these are ordered, and how long it may take for each."""

_PROOF_SHARE = 0.1
"""Of the time limit, for a proof that no order of the best plan has a lower peak, or for a better order."""

_USUAL_S = 60.0
"""With another time limit packing has less or more in proportion, and with a shorter one all have less."""

_SEARCHED, _MADE, _PACKED = 0.5, 0.6, 0.75
"""Parts of the time, after which end the search, the making of plans from candidates, and other orders and
fixed offsets for several; then the best plan has what it must have. The nearer the limit is to the usual
one, the more of it has the search, and the more comes on top; from there on the search may take all of it.
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """Percent over the unsplit latency; seconds, of which timing tiles in advance is a part; and an arena in
    bytes that is small enough.
    """

    max_overhead: float
    seconds: float
    arena_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """Plans that keep the limits, the search for them, and the time of the unsplit plan."""

    plans: tuple[Plan, ...]
    search: Search
    unsplit_ticks: float


class Splitting:
    """One search and what comes after it, for a model in the form that can be cut; `base` has the form of the
    unsplit plan. Both have their fastest kernels.

    The search takes every operator to be as fast as that, and to have no more scratch than its leanest
    variant: scratch matters at the peak alone, which is one operator's as a rule. For what it finds `settled`
    chooses the variants.
    """

    def __init__(
        self,
        model: Model,
        base: Model,
        *,
        board: Board,
        limits: Limits,
        tiles: TileSource,
        told: Report,
        progress: Progress = SILENT,
    ) -> None:
        self._start = time.monotonic()
        self._effort = limits.seconds / _USUAL_S
        self._share = min(1.0, self._effort)
        self._model, self._board, self._limits, self._told = model, board, limits, told
        self._progress = progress
        self._lean = model.leanest
        flow, base_flow = Flow.of(model.graph), Flow.of(base.graph)
        order = tuple(step.operator for step in placing.unsplit_schedule(self._lean).steps)
        self._space = Space.of(flow, order)
        self._time = tiles(model.graph, tiles_tried(flow, model.calls))
        self._costs = Costs(flow, by_calls(self._time, model.calls))
        self._price = move_price(tiles)
        base_times = by_calls(tiles(base.graph, tiles_tried(base_flow, base.calls)), base.calls)
        self._unsplit_ticks = Costs(base_flow, base_times).ticks(base_flow.iteration_rows)
        self._most_ticks = self._unsplit_ticks * (1 + limits.max_overhead / 100)

    def plans(self, stored: Plan | None) -> Splits:
        """Search, from a stored plan on if it has the model's form, and make plans of what was found."""
        if stored is not None and stored.form != self._model.form:
            stored = None  # it is not cut, or cut in a way that has operators of its own
        found = self._search(stored)
        plans: list[Plan] = []
        if stored is not None:
            self._add(plans, self._timed(stored))
        try:
            for candidate in found.best[:_MADE_ANYWAY] if found.interrupted else found.best:
                if candidate is found.best[0] or self._has_use(candidate, plans):
                    self._add(plans, self._first_fit(candidate))
            if plans and not found.interrupted:
                self._finish(plans, found.best)
        except KeyboardInterrupt:  # what there is by then is kept
            if not plans:
                self._add(plans, self._first_fit(found.best[0]))
        return Splits(self._front(plans), found.search, self._unsplit_ticks)

    def _add(self, plans: list[Plan], plan: Plan) -> None:
        """Take a plan if it keeps the latency limit."""
        if plan.estimate.ticks <= self._most_ticks:
            plans.append(plan)

    def _front(self, plans: Sequence[Plan]) -> tuple[Plan, ...]:
        """Plans by what they demand, each faster than all that demand less: others have no use."""
        kept: list[Plan] = []
        for plan in sorted(plans, key=self._rank):
            if not kept or plan.estimate.ticks < kept[-1].estimate.ticks:
                kept.append(plan)
        return tuple(kept)

    def _finish(self, plans: list[Plan], candidates: tuple[Candidate, ...]) -> None:
        """Better plans in place of some, and others with halos computed again, or in other orders."""
        self._pack(plans, fixed=False)  # first of all: an interrupt keeps what there is
        if self._enough(plans):
            return
        for candidate in candidates[:_MADE_ANYWAY]:
            again = recompute(candidate, self._costs, self._lean.work, self._most_ticks, self._is_late)
            if again is not candidate:
                self._add(plans, self._first_fit(again))
        self._progress.stage("ordering the best plans")
        for plan in sorted(plans, key=lambda plan: plan.estimate.peak_bytes)[:_REORDERED]:
            other = self._in_better_order(plan)
            if other is not plan:
                self._add(plans, other)
        self._pack(plans, fixed=False)
        self._pack(plans, fixed=True)
        if self._enough(plans):
            return
        plans.sort(key=self._rank)
        self._progress.stage("ordering and packing the best plan")
        plans[0] = self._reordered(plans[0])
        plans[0] = best = self._packed(plans[0], _BEST_S, _MOVES_S)
        for plan in self._front(plans):
            if plan is not best and self._left(1.0) > 0:
                plans[plans.index(plan)] = self._with_moves(plan, _FEW_MOVES_S)

    def _enough(self, plans: Sequence[Plan]) -> bool:
        """Whether one has an arena that is small enough."""
        return any(plan.layout.arena_bytes <= self._limits.arena_bytes for plan in plans)

    def _has_use(self, candidate: Candidate, plans: Sequence[Plan]) -> bool:
        """Whether there are few plans yet, or the candidate could have a smaller arena than all of them; and
        there is time for it.
        """
        late = self._left(_MADE) == 0
        if len(plans) < _MADE_ANYWAY:
            return self._share == 1 or not late
        return not late and could_win(candidate.peak_bytes, min(map(self._demand, plans)))

    def _pack(self, plans: list[Plan], *, fixed: bool) -> None:
        """Smaller arenas for what could win with them, by peaks: with moves, or by better `fixed` offsets."""
        self._progress.stage("packing the best plans")
        for plan in sorted(plans, key=lambda plan: plan.estimate.peak_bytes):
            if self._enough(plans) or not self._left(_PACKED if fixed else 1.0):
                return
            if could_win(plan.estimate.peak_bytes, min(map(self._demand, plans))):
                packed = self._packed(plan, _SOME_S, _FEW_MOVES_S) if fixed else self._with_moves(plan, 0.0)
                plans[plans.index(plan)] = packed

    def _search(self, stored: Plan | None) -> Found:
        # The search compares with the graph that it cuts, uncut: running sums have kernels of their own.
        flow = self._space.flow
        uncut_ticks = self._costs.ticks(flow.iteration_rows)

        def told(found: Search, peak_bytes: int, overhead: float) -> None:
            ticks = uncut_ticks * (1 + overhead / 100)
            self._told(found, peak_bytes, 100 * (ticks / self._unsplit_ticks - 1))

        budget = Budget(self._left(_SEARCHED), 100 * (self._most_ticks / uncut_ticks - 1), self._fits)
        start = () if stored is None else (self._space.state(stored.splits),)
        return search(self._space, self._costs, self._lean.work, budget, told, start=start)

    def _fits(self, candidate: Candidate) -> bool:
        limit = self._limits.arena_bytes
        if candidate.peak_bytes > limit:
            return False
        plan = self._made(candidate.tiled, candidate.schedule, (), placing.PACKING_S)
        return self._with_moves(plan, _FEW_MOVES_S).layout.arena_bytes <= limit

    def _rank(self, plan: Plan) -> tuple[tuple[int, float, int], float]:
        """The better a plan, the less."""
        return self._demand(plan), plan.estimate.ticks

    def _demand(self, plan: Plan) -> tuple[int, float, int]:
        return placing.demand(plan, self._board)

    def _is_late(self) -> bool:
        return self._left(_SEARCHED) <= 0

    def _left(self, part: float) -> float:
        """Seconds until this part has passed."""
        seconds = part * (1 + self._share) * self._limits.seconds
        return max(0.0, self._start + seconds - time.monotonic())

    def _first_fit(self, candidate: Candidate) -> Plan:
        """The plan of a candidate, packed in no time."""
        return self._made(candidate.tiled, candidate.schedule, _splits(self._space, candidate), 0.0)

    def _made(
        self, tiled: TiledGraph, schedule: Schedule, splits: tuple[Split, ...], seconds: float
    ) -> Plan:  # fmt: skip
        """The plan of a schedule by the kernels that suit it."""
        model, ticks = settled(self._model, tiled, schedule.steps, self._time, self._most_ticks)
        plan = placing.placed(
            model, self._board, tiled, schedule, splits=splits, seconds=self._share * seconds
        )
        return replace(plan, estimate=replace(plan.estimate, ticks=ticks))

    def _packed(self, plan: Plan, seconds: float, moves_seconds: float) -> Plan:
        """The plan packed with care, with moves where fixed offsets do not nearly reach its peak. Those that
        are proven the least of fixed ones stay.
        """
        beyond, dearer, _ = self._demand(plan)
        moves = len(plan.layout.moves)
        least = plan.layout.status == "optimal" and len(plan.layout.arenas) == 1 and not moves
        made = plan
        if beyond or dearer or not least:
            tiled, model = self._cut(plan)
            fixed = placing.placed(
                model, self._board, tiled, plan.schedule, splits=plan.splits, seconds=self._effort * seconds
            )  # fmt: skip
            ticks = placing.still_ticks(plan, tiled, self._price)
            made = replace(fixed, estimate=replace(fixed.estimate, ticks=ticks))
        made = self._with_moves(made, moves_seconds)
        saved = made.layout.arena_bytes - plan.layout.arena_bytes
        if moves and not made.layout.moves and not placing.worth_moving(saved, moves):
            return made
        return min(plan, made, key=self._rank)

    def _with_moves(self, plan: Plan, seconds: float) -> Plan:
        """The plan with moves, if they bring its arena down to its peak within the latency limit."""
        tiled, model = self._cut(plan)
        made = placing.moved(plan, model, self._board, tiled, self._price, seconds=self._effort * seconds)
        return made if made.estimate.ticks <= self._most_ticks else plan

    def _cut(self, plan: Plan) -> tuple[TiledGraph, Model]:
        return TiledGraph(self._space.flow, plan.block_rows), self._model.with_kernels(plan.kernels)

    def _reordered(self, plan: Plan) -> Plan:
        """The plan in a better order if one is found and packs no worse; repeated steps stay."""
        steps = plan.schedule.steps
        if _has_repeated(plan):
            return plan
        tiled = TiledGraph(self._space.flow, plan.block_rows)
        schedule = placing.reordered(self._lean, tiled, plan.schedule, _PROOF_SHARE * self._limits.seconds)
        if plan.estimate.peak_bytes <= schedule.lower_bound_bytes:  # another order with this peak has no use
            schedule = Schedule(steps, "optimal", schedule.lower_bound_bytes)
        if schedule.steps == steps:
            return _ordered(plan, schedule)
        other = self._with_moves(self._made(tiled, schedule, plan.splits, placing.PACKING_S), _FEW_MOVES_S)
        other = _ordered(other, schedule)
        return other if self._demand(other) <= self._demand(plan) else plan

    def _in_better_order(self, plan: Plan) -> Plan:
        """The plan in an order with a lower peak if one is found soon, else as it is; repeated steps stay."""
        if _has_repeated(plan) or not self._left(_PACKED):
            return plan
        tiled, _ = self._cut(plan)
        order = placing.reordered(self._lean, tiled, plan.schedule, self._share * _QUICK_S, _QUICK)
        if live_peak(tiled, order.steps, self._lean.work)[0] >= plan.estimate.peak_bytes:
            return plan
        return self._made(tiled, replace(order, status="feasible"), plan.splits, 0.0)

    def _timed(self, plan: Plan) -> Plan:
        """A plan with the time that it takes by the costs of this search."""
        flow = self._space.flow
        steps, tiled = plan.schedule.steps, TiledGraph(flow, plan.block_rows)
        rows = [plan.block_rows[operator.name] for operator in flow.graph.operators]
        costs = Costs(flow, by_calls(self._time, self._model.with_kernels(plan.kernels).calls))
        once = schedule_ticks(tiled, tuple(dict.fromkeys(steps)), costs)
        ticks = costs.ticks(rows) + schedule_ticks(tiled, steps, costs) - once
        ticks += placing.moves_ticks(plan, tiled, self._price)
        return replace(plan, estimate=replace(plan.estimate, ticks=ticks))


def tiles_tried(flow: Flow, calls: Mapping[str, KernelCall]) -> Iterator[CallTile]:
    """The tiles that a search may ask for: of every operator that can be cut all row counts that are tried,
    of the others the whole.
    """
    inside = frozenset().union(*components(flow.graph))
    for position, operator in enumerate(flow.graph.operators):
        if operator.op.is_view:
            continue
        total = flow.iteration_rows[position]
        parts = [rows for rows in ROWS_TRIED if rows < total] if position in inside else []
        for rows in (total, *parts):
            yield operator, calls[operator.name], timed_block(total, rows)


def could_win(peak_bytes: int, best: tuple[int, float, int]) -> bool:
    """Whether a plan could demand less than `best` if it were packed better: with an arena as large as its
    peak, or where something of the best lies beyond a memory, or in one that costs more.
    """
    beyond, dearer, arena_bytes = best
    return bool(beyond or dearer) or align_up(peak_bytes, ARENA_GRAIN_BYTES) < arena_bytes


def _has_repeated(plan: Plan) -> bool:
    """Whether steps of a plan are repeated."""
    return len(set(plan.schedule.steps)) < len(plan.schedule.steps)


def _ordered(plan: Plan, schedule: Schedule) -> Plan:
    """The plan with its schedule, the order of which was found, and proven, for the leanest kernels."""
    proven = plan.estimate.peak_bytes <= schedule.lower_bound_bytes
    return replace(plan, schedule=schedule if proven else replace(schedule, status="feasible"))


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
