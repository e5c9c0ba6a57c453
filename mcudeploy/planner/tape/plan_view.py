"""A plan with the facts that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Entry, Plan
from mcudeploy.planner.tape.core_tables import LaneTables
from mcudeploy.planner.tape.tape import Tape
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import Lives, WorkBytes, lives, work_bytes
from mcudeploy.tiling.loads import live_in
from mcudeploy.tiling.locations import Locations


@dataclass(frozen=True, eq=False)
class PlanView:
    """A plan, the kernel calls of its operators, and what follows. Each fact is derived once, when it is
    first asked for.
    """

    plan: Plan
    calls: Mapping[str, KernelCall]

    @cached_property
    def tiled(self) -> TiledGraph:
        """The cut graph."""
        return TiledGraph.of(self.plan)

    @cached_property
    def where(self) -> Locations:
        """The places of blocks."""
        return Locations.of(self.plan.layout)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The entries of the tape."""
        return self.plan.tape

    @cached_property
    def lives(self) -> Lives:
        """The live ranges of blocks."""
        return lives(self.tiled, self.plan.schedule.steps)

    @cached_property
    def work(self) -> WorkBytes:
        """Scratch and state of each operator in bytes."""
        return work_bytes(self.calls, max(1, len(self.plan.lanes)))

    @cached_property
    def loads(self) -> Mapping[str, tuple[int, ...]]:
        """The bytes in use at each step, by memory."""
        return live_in(self.plan.layout, self.tiled, len(self.plan.schedule.steps), self.work)

    @cached_property
    def tape(self) -> Tape:
        """The records of the program."""
        return Tape(self.plan)

    @cached_property
    def lanes(self) -> LaneTables:
        """The records of further cores."""
        return LaneTables.of(self.tape, self.calls)
