"""A plan with the facts that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TypeVar

from mcudeploy.extension import added
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Entry, Plan, Residence
from mcudeploy.ops.move.constant_pieces import PieceLoads
from mcudeploy.planner.tape.core_tables import LaneTables
from mcudeploy.planner.tape.joined_streams import UnitStreams
from mcudeploy.planner.tape.tape import Tape
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import Lives, WorkBytes, lives, work_bytes

T = TypeVar("T")


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
    def entries(self) -> tuple[Entry, ...]:
        """The entries of the tape."""
        return self.plan.tape

    def by_name(self, values: Iterable[T]) -> dict[str, list[T]]:
        """Return a value of each entry by the name of its operator, as `Plan.name_of`."""
        named: dict[str, list[T]] = {}
        for entry, value in zip(self.entries, values, strict=True):
            named.setdefault(self.plan.name_of(entry), []).append(value)
        return named

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
        """The bytes in use at each step, by memory; an in-place pair of blocks counts once."""
        steps = max(len(self.plan.schedule.steps), 1)
        spans: dict[tuple[str, int, int], list[Interval]] = {}
        for place, size in self._used():
            spans.setdefault((place.memory, place.offset, size), []).append(place.life)
        changes = {memory: [0] * (steps + 1) for memory in self.plan.layout.arenas}
        for (memory, _, size), alive in spans.items():
            change, last = changes[memory], 0
            for life in sorted(alive, key=lambda one: one.lo):
                lo = max(life.lo, last)
                if lo < life.hi:
                    change[lo] += size
                    change[life.hi] -= size
                    last = life.hi
        return {memory: tuple(accumulate(change[:-1])) for memory, change in changes.items()}

    def _used(self) -> Iterator[tuple[Residence, int]]:
        """Yield every residence with its bytes."""
        for name, blocks in self.plan.layout.blocks.items():
            for number, block in enumerate(blocks):
                yield from ((each, self.tiled.block_bytes(name, number)) for each in block)
        for name, steps in self.plan.layout.scratch.items():
            for step in steps:
                yield from ((each, sum(self.work[name])) for each in step)
        yield from ((it.place, it.size_bytes) for it in self.plan.layout.constants.values())

    @cached_property
    def piece_loads(self) -> Mapping[str, PieceLoads]:
        """The constants that steps load in pieces, by operator."""
        outputs = {it.name: self.plan.graph.tensors[it.output] for it in self.plan.graph.operators}
        return {
            name: PieceLoads.of(self.calls[name], outputs[name], pieces.channels)
            for name, _, pieces in self.plan.layout.in_pieces()
        }

    @cached_property
    def tape(self) -> Tape:
        """The records of the program."""
        return Tape(self.plan)

    @cached_property
    def streams(self) -> UnitStreams | None:
        """The command streams of a unit beside the core; None if it computes nothing."""
        if not any(call.isa.unit for call in self.calls.values()):
            return None
        return next(filter(None, (unit.joined(self.plan, self.calls) for unit in added("unit"))), None)

    @cached_property
    def lanes(self) -> LaneTables:
        """The records of further cores."""
        return LaneTables.of(self.tape, self.calls)
