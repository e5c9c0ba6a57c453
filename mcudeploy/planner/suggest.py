"""Proposals that make a model fit a board, each of them verified by a short search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import Proposal
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.fit import rank_boards
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import Planned, search_plans
from mcudeploy.planner.tape import footprint
from mcudeploy.planner.tape.plan_view import PlanView

_SEARCH_S = 1.0
"""Effort of each search."""
_OVERHEADS = (10.0, 25.0, 50.0, 100.0)
"""The percentages that are proposed for --max-overhead."""
_BOARDS_TRIED = 3
_GRAIN_BYTES = 1024
"""Of limits, if the exact sizes leave the search no room."""


class WaysOut:
    """The proposals for a model that does not fit a board with the given options.

    `board` is as in its file, without the limits of `options.memory_limits`.
    """

    def __init__(self, model: Model, board: Board, options: Options) -> None:
        self.model, self.board, self.options = model, board, options
        self._arenas: list[int] = []  # of all plans found

    def proposals(self, boards: Sequence[Board]) -> list[Proposal]:
        """Return the proposals that work; `boards` may be proposed too."""
        if self.options.states_plan:  # then there was no search
            return []
        proposals: list[Proposal] = []
        if footprint.weights_bytes(self.model.calls) <= self.board.flash_room:
            proposals += self._by_search()
            proposals += self._by_limits()
        if not self._is_limited:
            proposals += self._by_boards(boards)
        return proposals

    def plan(self) -> Plan | None:
        """Return a plan that fits with the given options, by a short search; None if there is none."""
        return self._fastest(self.options)

    @property
    def _is_limited(self) -> bool:
        options = self.options
        return bool(options.memory_limits) or (options.ram_limit, options.flash_limit) != (None, None)

    def _by_search(self) -> list[Proposal]:
        """Try other memories for inputs and outputs, cuts, a streamed input, and more overhead separately.

        If neither of the last two suffices, try them together.
        """
        options, proposals = self.options, list[Proposal]()
        board = options.limited(self.board)
        if board.keeps_reach:
            proposals += self._proposal_of("--no-dma-io", replace(options, dma_io=False))
        if not options.split:
            if options.placement == "tags":
                return proposals
            proposals += self._proposal_of("--split", replace(options, split=True))
            return proposals
        streamed = replace(options, stream_input=True)
        streams = not options.stream_input and self.model.window is None
        if streams:
            proposals += self._proposal_of("--stream-input", streamed)
        proposals += self._by_overhead("", options)
        if not proposals and streams:
            proposals += self._by_overhead("--stream-input ", streamed)
        return proposals

    def _proposal_of(self, option: str, options: Options) -> list[Proposal]:
        """Return the proposal of these options if they work."""
        planned, fitting = self._search(options)
        plan = min(fitting, key=_ticks, default=None)
        ticks = planned.baseline.estimate.ticks
        if plan is None:
            return []
        return [Proposal(option, _at_cost(plan, ticks) if ticks and plan.splits else _arena(plan))]

    def _by_overhead(self, before: str, options: Options) -> list[Proposal]:
        """Return the smallest sufficient overhead of the proposed ones, with a search under that limit."""
        if options.overhead_limit >= _OVERHEADS[-1]:
            return []
        planned, fitting = self._search(replace(options, max_overhead=_OVERHEADS[-1]))
        if not fitting or not planned.baseline.estimate.ticks:
            return []
        ticks = planned.baseline.estimate.ticks
        least = min(_percent(plan, ticks) for plan in fitting)
        for limit in (limit for limit in _OVERHEADS if limit >= max(least, options.overhead_limit + 0.01)):
            plan = self._fastest(replace(options, max_overhead=limit))
            if plan is not None:
                return [Proposal(f"{before}--max-overhead {limit:g}", _at_cost(plan, ticks))]
        return []

    def _by_limits(self) -> list[Proposal]:
        """Return limits of the user that are just large enough."""
        options = self.options
        if not self._is_limited:
            return []
        _, fitting = self._search(replace(options, ram_limit=None, memory_limits=()))
        plan = min(fitting, key=lambda one: one.layout.arena_bytes, default=None)
        if plan is None:
            return []
        grains = options.aligned(self.board).io_alignment, _GRAIN_BYTES
        return next(filter(None, (self._by_limits_of(plan, grain) for grain in grains)), [])

    def _by_limits_of(self, plan: Plan, grain: int) -> list[Proposal]:
        """Return limits of this plan's sizes, rounded up to multiples of `grain`, if they work."""
        options = self.options
        wanted, words = dict(options.memory_limits), list[str]()
        for name, limit in options.memory_limits:
            if plan.layout.arenas.get(name, 0) > limit:
                wanted[name] = align_up(plan.layout.arenas[name], grain)
        if wanted != dict(options.memory_limits):  # all of them: they replace the previous ones
            words += [f"--memory {name}={limit}" for name, limit in wanted.items()]
        arena = plan.layout.arena_bytes
        ram_limit = options.ram_limit
        if ram_limit is not None and arena > ram_limit:
            ram_limit = align_up(arena, grain)
            words.append(f"--ram-limit {ram_limit}")
        wider = replace(options, memory_limits=tuple(wanted.items()), ram_limit=ram_limit)
        return self._proposal_of(" ".join(words), wider) if words else []

    def _by_boards(self, boards: Sequence[Board]) -> Iterator[Proposal]:
        """Yield the board with the least RAM that has room, with this board's options as far as supported."""
        if self.options.assign or self.options.cores not in (None, 1):
            return
        others = (it for it in boards if it.name != self.board.name and not it.is_host)
        rooms = sorted(
            ((sum(map(it.room, it.memories)), it.name, it) for it in others), key=lambda one: one[:2]
        )
        needed = min(self._arenas, default=0) or self._least_arena()
        weights = footprint.weights_bytes(self.model.calls)
        tried = (it for room, _, it in rooms if room >= needed and it.flash_bytes >= weights)
        for board in islice(tried, _BOARDS_TRIED):
            (fit,) = rank_boards(self.model, [board], self.options)
            if not fit.fits:
                continue
            way = fit.chosen
            yield Proposal(f"--board {board.name} {way.options}".rstrip(), f"{_arena(way.plan)}, {way.name}")
            return

    def _least_arena(self) -> int:
        """Return the smallest arena of a plan on the board, assuming enough flash."""
        flash = self.board.flash.model_copy(update={"bytes": 2**31})
        (fit,) = rank_boards(self.model, [self.board.model_copy(update={"flash": flash})], self.options)
        return min(way.plan.layout.arena_bytes for way in fit.ways)

    def _fastest(self, options: Options) -> Plan | None:
        """Return the fastest plan that fits with these options; None if there is none."""
        _, fitting = self._search(options)
        return min(fitting, key=_ticks, default=None)

    def _search(self, options: Options) -> tuple[Planned, list[Plan]]:
        """Return the result of a search with these options, and its plans that fit."""
        board = options.limited(self.board)
        planned = search_plans(self.model, board, replace(options, time_limit=_SEARCH_S))
        self._arenas += [plan.layout.arena_bytes for plan in planned.choices]

        def fits(plan: Plan) -> bool:
            calls = planned.model_of(plan).calls
            return not footprint.missing(PlanView(plan, calls), board, options.ram_limit)

        return planned, [plan for plan in planned.choices if fits(plan)]


def _arena(plan: Plan) -> str:
    return f"an arena of {plan.layout.arena_bytes:,} bytes"


def _at_cost(plan: Plan, unsplit_ticks: float) -> str:
    return f"{_arena(plan)}, {_percent(plan, unsplit_ticks):+.1f} % of the unsplit plan's latency"


def _ticks(plan: Plan) -> float:
    return plan.estimate.ticks


def _percent(plan: Plan, unsplit_ticks: float) -> float:
    return 100 * (plan.estimate.ticks / unsplit_ticks - 1)
