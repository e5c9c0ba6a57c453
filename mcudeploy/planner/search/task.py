"""The common data of all plans of one search: the model, the board, the space of cuts, times and limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from mcudeploy.boards.board import Board
from mcudeploy.costs.tiles import (
    CallTile,
    CallTime,
    CopyCost,
    TileSource,
    move_price,
    timed_blocks,
)
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.axes import components
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.search.cuts import ROWS_TRIED, Space
from mcudeploy.planner.search.kernels import within_flash
from mcudeploy.planner.search.placing import cost_key
from mcudeploy.planner.search.tile_times import Rivals, VariantTimes
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow

_FITTING_SHARE = 0.9
"""The part of a memory that a peak may take, so that its arena fits: packing seldom loses 10 %."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchTask:
    """The common data of all plans of one search.

    The search takes the fastest plan with an arena of at most `ram_limit` bytes; without any, the smallest.
    """

    model: Model
    """In the form that is cut, with its fastest kernels."""
    min_scratch: Model
    """With the kernels of least scratch."""
    board: Board
    space: Space
    tiles: TileSource
    time: CallTime
    variants: VariantTimes
    """The times by each kernel that the flash has room for, with its scratch. For the results of a search
    `choose_kernels` chooses among all kernels.
    """
    price: CopyCost
    unsplit_ticks: float
    """The latency of the unsplit plan without stalls."""
    most_ticks: float
    """The limit of the latency without stalls."""
    most_latency: float
    """The limit of the latency with stalls."""
    ram_limit: float = inf
    beyond_peak: int = 0
    """Bytes by which arenas in several memories exceed the peak of the unsplit plan."""

    @classmethod
    def of(
        cls,
        model: Model,
        board: Board,
        tiles: TileSource,
        guess: CallTime | None,
        *,
        order: tuple[int, ...],
        unsplit: Plan,
        max_overhead: float,
        ram_limit: int | None,
    ) -> SearchTask:
        """Return the task for a model whose unsplit plan runs its operators, by position, in `order`.

        `guess`: estimated times, if `tiles` measures; `unsplit`: that plan; `max_overhead`: percent of its
        latency. A `ram_limit` above the room of the memories counts as that room.
        """
        flow = Dataflow.of(model.graph)
        affordable = within_flash(model, board.constants_room)
        rivals = Rivals.of(affordable, guess)
        time = tiles(model.graph, tiles_tried(flow, rivals))
        variants = VariantTimes.of(model, flow, rivals, time)
        factor, estimate = 1 + max_overhead / 100, unsplit.estimate
        several = sum(map(bool, unsplit.layout.arenas.values())) > 1
        beyond_peak = unsplit.layout.arena_bytes - estimate.peak_bytes if several else 0
        return cls(
            model, affordable.min_scratch, board, Space.of(flow, order), tiles, time, variants,
            move_price(tiles), estimate.ticks, estimate.ticks * factor, estimate.latency_ticks * factor,
            inf if ram_limit is None else min(ram_limit, sum(map(board.room, board.memories))),
            beyond_peak,
        )  # fmt: skip

    def tiled(self, plan: Plan) -> TiledGraph:
        """Return the graph in the blocks of a plan."""
        return TiledGraph(self.space.flow, plan.block_rows, plan.leads)

    def keeps(self, plan: Plan) -> bool:
        """Return whether a plan could keep the latency limit: stalls may still be avoided."""
        return plan.estimate.unavoidable_ticks <= self.most_latency

    @property
    def sufficient_bytes(self) -> float:
        """Return the peak below which only time counts: its arena keeps the RAM limit; 0 without one."""
        return 0.0 if self.ram_limit == inf else max(0.0, self.ram_limit - self.beyond_peak)

    @property
    def fit_bytes(self) -> float:
        """Return the highest peak whose arena usually fits one of the memories."""
        return _FITTING_SHARE * max(map(self.board.room, self.board.memories))

    def nearly_fits(self, plan: Plan) -> bool:
        """Return whether a plan's peak keeps the RAM limit, but its arena exceeds it."""
        return plan.estimate.peak_bytes <= self.ram_limit < plan.layout.arena_bytes

    def fits(self, plan: Plan) -> bool:
        """Return whether there is a limit for RAM, and a plan keeps it and those of the board's memories."""
        beyond = cost_key(plan, self.board)[0]
        return not beyond and plan.layout.arena_bytes <= self.ram_limit < inf


def tiles_tried(flow: Dataflow, rivals: Rivals) -> Iterator[CallTile]:
    """Yield the tiles that a search may need.

    For an operator that can be cut these are all row counts that are tried; for the others the whole.
    """
    inside = frozenset().union(*components(flow.graph))
    for position, operator in enumerate(flow.graph.operators):
        if operator.op.is_view:
            continue
        total = flow.iteration_rows[position]
        parts = [rows for rows in ROWS_TRIED if rows < total] if position in inside else []
        for block_rows in (total, *parts):
            for rows, _ in timed_blocks(flow, position, BlockRows(block_rows)):
                yield from ((operator, call, rows) for call in rivals.near(operator, rows))
