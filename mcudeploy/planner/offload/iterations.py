"""Residencies of a schedule, one per iteration, and the layouts that they become.

Source: Capuchin (Peng et al., ASPLOS 2020). The step times are those that a device measured in the previous
iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcudeploy.boards.board import Board
from mcudeploy.common.effort import Effort
from mcudeploy.ir.plan import Layout, Plan, Transfer, memories_of
from mcudeploy.ir.trace import Residency
from mcudeploy.planner.offload.access_trace import IoPlacement, draft_of, io_placements
from mcudeploy.planner.offload.memory_pair import MemoryPair
from mcudeploy.planner.offload.passive import passive_plan, tight_operands
from mcudeploy.planner.offload.room import Offloading
from mcudeploy.planner.place.arena import Budget
from mcudeploy.planner.place.residences import Draft
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import WorkBytes

SLACK = 32.0
"""Cycles by which a transfer may end later than the previous iteration's times predict, without a wait."""


@dataclass(frozen=True, slots=True, eq=False)
class Iterations(Offloading):
    """The offloading of a plan that runs again and again."""

    @classmethod
    def of_plan(
        cls, tiled: TiledGraph, plan: Plan, work: WorkBytes, board: Board, budget: Budget
    ) -> Iterations | None:
        """Return the iterations of a plan, with graph inputs and outputs in their memories, without times.

        None for a board without a fast and a slow memory that all its units reach.
        """
        pair = MemoryPair.serving(plan, board)
        if pair is None:
            return None
        draft = draft_of(tiled, plan, work, board)
        return cls.of(draft, _io_placement(plan, draft, pair), pair, budget, SLACK)

    def passive(self, budget: Budget) -> tuple[Residency, Layout] | None:
        """Return the first iteration, which evicts on demand; None if that is impossible."""

        def residency(capacity: int) -> Residency | None:
            return passive_plan(self.trace, capacity, self.link, tight_operands(self.trace, capacity))

        return self.packed(residency, budget)

    def planned(self, budget: Budget, effort: Effort) -> tuple[Residency, Layout] | None:
        """Return the residency decided by the step times; None if there is none."""

        def residency(capacity: int) -> Residency | None:
            return self.residency(capacity, effort.part(1 / 2))

        return self.packed(residency, budget)

    def layout(self, residency: Residency, budget: Budget) -> Layout | None:
        """Return the layout of a residency, whose steps have their latest times; None if it does not pack."""
        layout = self.lay_out(residency, budget)
        return layout if layout.arenas.get(self.pair.fast.name, 0) <= self.pair.room else None

    def item_transfer(self, residency: Residency, layout: Layout, transfer: Transfer) -> int | None:
        """Return the number of the item's transfer that becomes a transfer into the fast memory."""
        begin, (_, target) = layout.begin(transfer), layout.way(transfer)
        for number, each in enumerate(residency.transfers):
            members = self.draft.items[self.parts[each.item][0]].members
            enters = target.memory == self.pair.fast.name and each.direction == "in"
            if enters and each.start == begin and (transfer.tensor, transfer.block) in members:
                return number
        return None


def _io_placement(plan: Plan, draft: Draft, pair: MemoryPair) -> IoPlacement:
    """Return where a plan places graph inputs and outputs."""
    blocks, roots = plan.layout.blocks, draft.tiled.flow.roots

    def is_slow(names: Sequence[str]) -> bool:
        return any(pair.slow.name in memories_of(blocks[roots[name]]) for name in names)

    states = {state.tensor for state in plan.graph.states}
    inputs = [io.tensor for io in plan.graph.resident_inputs() if io.tensor not in states]
    slow_inputs = is_slow(inputs)
    slow_outputs = is_slow([io.tensor for io in plan.graph.own_outputs()])
    slow_states = {state.tensor for state in plan.graph.states if is_slow([state.tensor])}
    placements = list(io_placements(draft, 0, takes_io=pair.takes_io))

    def fits(io: IoPlacement) -> bool:
        given = {at for at in io.given if draft.items[at].members[0][0] in inputs}
        same_states = {draft.items[at].members[0][0] for at in io.homes} == slow_states
        return same_states and bool(io.away) == slow_outputs and slow_inputs != bool(given & set(io.fixed))

    return next((io for io in placements if fits(io)), placements[0])
