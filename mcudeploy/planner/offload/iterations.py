"""Residencies of a schedule, one per iteration, and the layouts that they become.

Source: Capuchin (Peng et al., ASPLOS 2020). The step times are those that a device measured in the previous
iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mcudeploy.boards.board import Board
from mcudeploy.common.effort import Effort
from mcudeploy.ir.plan import Layout, Plan, Transfer, memories_of
from mcudeploy.ir.trace import MemoryLink, Residency, Trace
from mcudeploy.planner.offload.access_trace import Draft, IoPlacement, trace_of
from mcudeploy.planner.offload.offload import plan_residency
from mcudeploy.planner.offload.passive import passive_plan, tight_operands
from mcudeploy.planner.offload.room import MemoryPair, homes_tried, lay_out, packed, prompt, scene_of
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES, Budget
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import WorkBytes

SLACK = 32.0
"""Cycles by which a transfer may end later than the previous iteration's times predict, without a wait."""


@dataclass(frozen=True, slots=True, eq=False)
class Iterations:
    """A schedule on a board whose fast memory has `room` bytes for it, and its access trace."""

    scene: Draft
    homes: IoPlacement
    pair: MemoryPair
    link: MemoryLink
    trace: Trace
    buffer_of: Sequence[int]
    room: int

    @classmethod
    def of(
        cls, tiled: TiledGraph, plan: Plan, work: WorkBytes, board: Board, relocation: Budget
    ) -> Iterations | None:
        """Return the iterations of a plan, with graph inputs and outputs in their memories, without times.

        None for a board without a fast and a slow memory that all its units reach.
        """
        pair = MemoryPair.serving(plan, board)
        if pair is None:
            return None
        scene, still = scene_of(tiled, plan, work, board)
        homes = _homes_of(plan, scene, still, pair.slow.name)
        trace, buffer_of = trace_of(scene, homes, [1.0] * len(scene.steps))
        room = board.room(pair.fast) // ARENA_GRAIN_BYTES * ARENA_GRAIN_BYTES
        return cls(scene, homes, pair, pair.engine(relocation), trace, buffer_of, room)

    def after(self, cycles: Sequence[float]) -> Iterations:
        """Return the iterations with the measured times of the steps."""
        return replace(self, trace=timed(self.trace, cycles))

    def passive(self, relocation: Budget) -> tuple[Residency, Layout] | None:
        """Return the first iteration, which evicts on demand; None if that is impossible."""

        def found(capacity: int) -> Residency | None:
            return passive_plan(self.trace, capacity, self.link, tight_operands(self.trace, capacity))

        return self._packed(found, relocation)

    def planned(self, relocation: Budget, effort: Effort) -> tuple[Residency, Layout] | None:
        """Return the residency decided by the step times; None if there is none."""

        def found(capacity: int) -> Residency | None:
            part = effort.part(1 / 2)
            return plan_residency(self.trace, capacity, self.link, recompute=False, effort=part)

        return self._packed(found, relocation)

    def layout(self, found: Residency, relocation: Budget) -> Layout | None:
        """Return the layout of a residency, whose steps have their latest times; None if it does not pack."""
        made = self._laid_out(found, relocation)
        return made if made.arenas.get(self.pair.fast.name, 0) <= self.room else None

    def prompted(self, found: Residency) -> Residency:
        """Return a residency in which each transfer is waited for as soon as it should have ended."""
        return prompt(replace(found, trace=self.trace), self.link, SLACK)

    def _laid_out(self, found: Residency, relocation: Budget) -> Layout:
        prompted = self.prompted(found)
        return lay_out(self.scene, self.homes, self.pair, prompted, self.buffer_of, relocation, self.room)

    def passage_of(self, found: Residency, layout: Layout, transfer: Transfer) -> int | None:
        """Return the number of the item transfer that corresponds to a transfer into the fast memory."""
        begin, (_, new) = layout.begin(transfer), layout.way(transfer)
        for number, one in enumerate(found.passages):
            members = self.scene.items[self.buffer_of[one.item]].members
            into = new.memory == self.pair.fast.name and one.direction == "in"
            if into and one.start == begin and (transfer.tensor, transfer.block) in members:
                return number
        return None

    def _packed(
        self, find: Callable[[int], Residency | None], relocation: Budget
    ) -> tuple[Residency, Layout] | None:
        def laid_out(capacity: int) -> tuple[Residency, Layout] | None:
            found = find(capacity)
            return None if found is None else (found, self._laid_out(found, relocation))

        return packed(laid_out, self.pair.fast.name, self.room)


def timed(trace: Trace, cycles: Sequence[float]) -> Trace:
    """Return the trace with other step times."""
    steps = zip(trace.steps, cycles, strict=True)
    return replace(trace, steps=tuple(replace(step, cycles=float(each)) for step, each in steps))


def _homes_of(plan: Plan, scene: Draft, still: Sequence[int], slow: str) -> IoPlacement:
    """Return where a plan places graph inputs and outputs."""
    blocks, roots = plan.layout.blocks, scene.tiled.flow.roots

    def is_slow(names: Sequence[str]) -> bool:
        return any(slow in memories_of(blocks[roots[name]]) for name in names)

    given = is_slow([border.tensor for border in plan.graph.resident_inputs()])
    away = is_slow([border.tensor for border in plan.graph.outputs])
    ways = list(homes_tried(scene, still, 0))

    def fits(homes: IoPlacement) -> bool:
        return bool(homes.away) == away and given != bool(set(homes.given) & set(homes.fixed))

    return next((homes for homes in ways if fits(homes)), ways[0])
