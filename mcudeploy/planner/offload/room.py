"""Offloading: if a fast memory is too small, blocks leave it between two uses and return.

`plan_residency` decides the times from the access trace of the schedule; this module assigns memories and
offsets to the residences.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, lcm
from typing import Self

from mcudeploy.common.effort import Effort
from mcudeploy.common.errors import FitError
from mcudeploy.costs.timeline import timeline
from mcudeploy.ir.engine import CPU
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Layout, Residence
from mcudeploy.ir.rectangles import PlacementProblem, Rectangle
from mcudeploy.ir.trace import FAST, SLOW, MemoryLink, Residency, Trace
from mcudeploy.planner.offload.access_trace import IoPlacement, io_placements, trace_of, with_repeats
from mcudeploy.planner.offload.memory_pair import MemoryPair
from mcudeploy.planner.offload.offload import plan_residency
from mcudeploy.planner.offload.trace_tables import steps_of
from mcudeploy.planner.place.arena import Budget, pack
from mcudeploy.planner.place.compaction import NEVER
from mcudeploy.planner.place.residences import (
    BufferResidence,
    BufferTransfer,
    Draft,
    Move,
    input_stacks,
    reside,
)
from mcudeploy.tiling.blocks import BlockId

_TURNS = 6
"""Maximum number of reductions of the room if its residences do not pack."""

_SHARE = 0.75
"""The fraction of the remaining effort for the residency of one plan."""

_UNITS, _TRACE_UNITS = 400, 100
"""Effort per step of a layout, in addition to its residency and moves, and of a trace."""

_HOPELESS = 2.5
"""A placement is not tried if its promised wait is more than this many times the least wait so far."""

_SWAPS_SHARE = 0.6
"""The fraction of the effort for transfers without repeated steps, before both."""

_PROMISE_SHARE = 0.02
"""The fraction of the effort for the first residency of each placement of graph inputs and outputs."""


def promises(
    draft: Draft, pair: MemoryPair, budget: Budget, cycles: Sequence[float]
) -> list[tuple[float, Offloading]]:
    """Return the placements of graph inputs and outputs with their latency in cycles, the least first.

    The latency is that of a short search for a residency. The steps take `cycles` each. A placement in
    which a step does not fit is left out.
    """
    ranked = []
    for io in io_placements(draft, pair.fast_bytes, takes_io=pair.takes_io):
        budget.effort.spend(_TRACE_UNITS * len(draft.steps))
        task = Offloading.of(draft, io, pair, budget).after(cycles)
        residency = task.residency(pair.room, budget.effort.part(_PROMISE_SHARE))
        if residency is not None:
            ranked.append((residency.cycles, task))
    return sorted(ranked, key=lambda each: each[0])


def over_time(
    draft: Draft, pair: MemoryPair, budget: Budget, cycles: Sequence[float]
) -> Iterator[tuple[tuple[int, ...], Layout]]:
    """Yield layouts of a schedule in which blocks leave the fast memory and return, or are computed again.

    Each comes with the steps that run, by number, some repeated; they take `cycles` each. Exposed and
    repeated time is minimised. There is at most one layout for each way to place graph inputs, outputs and
    states, those with the best promise first.
    """
    ranked, work, best = promises(draft, pair, budget, cycles), sum(cycles), inf
    for number, (promised, task) in enumerate(ranked, 1):
        if promised - work > _HOPELESS * (best - work):
            return
        own = replace(budget, effort=budget.effort.part(1.0 if number == len(ranked) else _SHARE))

        def residency(capacity: int, task: Offloading = task, own: Budget = own) -> Residency | None:
            own.effort.spend(_UNITS * len(draft.steps))
            return task.residency(capacity, own.effort.part(_SHARE), recompute=task.repeats_nothing)

        packed = task.packed(residency, own)
        if packed is not None:
            best = min(best, packed[0].cycles)
            yield tuple(step.origin for step in packed[0].trace.steps), packed[1]


@dataclass(frozen=True, slots=True, eq=False)
class Offloading:
    """A schedule with its access trace, for a fast and a slow memory.

    `parts`: the buffers of each item of the trace in the order of time, several if it is recomputed. Scratch
    is in the fast memory. A transfer that ends up to `slack` cycles later than the times of the trace predict
    is in time.
    """

    draft: Draft
    io: IoPlacement
    pair: MemoryPair
    link: MemoryLink
    trace: Trace
    parts: Sequence[tuple[int, ...]]
    slack: float = 0.0

    @classmethod
    def of(cls, draft: Draft, io: IoPlacement, pair: MemoryPair, budget: Budget, slack: float = 0.0) -> Self:
        """Return the offloading of a schedule whose steps have no times yet."""
        trace, buffer_of = trace_of(draft, io, [1.0] * len(draft.steps))
        return cls(draft, io, pair, pair.engine(budget), trace, [(at,) for at in buffer_of], slack)

    @property
    def repeats_nothing(self) -> bool:
        """Whether each step of the schedule runs once."""
        return len(set(self.draft.steps)) == len(self.draft.steps)

    def repeating(self, residency: Residency) -> Self:
        """Return the offloading of the steps of a residency, which may repeat some."""
        numbers = [step.origin for step in residency.trace.steps]
        trace = steps_of(self.trace, numbers)
        if len(numbers) == len(self.trace.steps):
            return replace(self, trace=trace)
        draft, io = with_repeats(self.draft, self.io, tuple(self.draft.steps[at] for at in numbers))
        parts: dict[tuple[tuple[BlockId, ...], BlockId | None], list[int]] = {}
        for at, item in enumerate(draft.items):
            parts.setdefault((item.members, item.scratch_of), []).append(at)
        owners = [self.draft.items[own[0]] for own in self.parts]
        parts_of = [
            tuple(sorted(parts[it.members, it.scratch_of], key=lambda at: draft.items[at].life.lo))
            for it in owners
        ]
        return replace(self, draft=draft, io=io, trace=trace, parts=parts_of)

    def after(self, cycles: Sequence[float]) -> Self:
        """Return the offloading with these times of the steps."""
        steps = zip(self.trace.steps, cycles, strict=True)
        timed = tuple(replace(step, cycles=float(each)) for step, each in steps)
        return replace(self, trace=replace(self.trace, steps=timed))

    def residency(self, capacity: int, effort: Effort, *, recompute: bool = False) -> Residency | None:
        """Return the best residency found for a capacity in bytes; None if a step does not fit."""
        first = effort.part(_SWAPS_SHARE) if recompute else effort
        try:
            plan = plan_residency(self.trace, capacity, self.link, recompute=False, effort=first)
            if not recompute or (plan is not None and not plan.exposed_cycles):
                return plan
            other = plan_residency(self.trace, capacity, self.link, recompute=True, effort=effort)
            return min((it for it in (plan, other) if it is not None), key=lambda it: it.cycles, default=None)
        except FitError:  # a single step
            return None

    def packed(
        self, find: Callable[[int], Residency | None], budget: Budget
    ) -> tuple[Residency, Layout] | None:
        """Return a residency found for a capacity, and its layout within the room of the fast memory.

        If that does not pack, the capacity is reduced. None if nothing is found.
        """
        capacity = self.pair.room
        for _ in range(_TURNS):
            residency = find(capacity)
            if residency is None:
                return None
            layout = self.repeating(residency).lay_out(residency, budget)
            missing = layout.arenas.get(self.pair.fast.name, 0) - self.pair.room
            if missing <= 0:
                return residency, layout
            capacity -= missing
        return None

    def prompted(self, residency: Residency) -> Residency:
        """Return the residency in which the core waits for each transfer once it should have ended.

        After the wait, the block may move again.
        """
        residency = replace(residency, trace=self.trace)
        run = timeline(residency, self.link)
        ends = (bisect_left(run.starts, end + self.slack) for _, end in run.served)
        transfers = tuple(
            replace(each, end=max(each.start, min(each.end, end)))
            for each, end in zip(residency.transfers, ends, strict=True)
        )
        return replace(residency, transfers=transfers)

    def lay_out(self, residency: Residency, budget: Budget) -> Layout:
        """Return the layout of a residency in both memories; blocks may move within the fast one.

        The slow memory has room for all. The trace has the times of the steps.
        """
        residences, transfers = self._of_buffers(self.prompted(residency))
        at_times = self._movable(residences, transfers)
        # The order of the rectangles decides between equal ones.
        keys = [(at, number) for own in self.parts for at in own for number in range(len(residences[at]))]
        for at in (at for at, places in enumerate(residences) if not places):
            memory = self.pair.slow if at in self.io.away else self.pair.fast
            residences[at].append(Residence(self.draft.items[at].life, memory.name, 0))
            keys.append((at, 0))
        moves: list[Move] = []
        arenas = {}
        for memory in (self.pair.fast, self.pair.slow):
            there = [(at, number) for at, number in keys if residences[at][number].memory == memory.name]
            groups, is_fast = self._together(residences, there), memory is self.pair.fast
            packed = pack(
                self._problem([(own[0][0], life) for own, life in groups]),
                {at: at_times[own[0]] for at, (own, _) in enumerate(groups) if own[0] in at_times},
                budget if is_fast else None,
                self.pair.room if is_fast else None,
            )
            if there:
                arenas[memory.name] = packed.used_bytes
            for (own, _), offset in zip(groups, packed.offsets, strict=True):
                for at, number in own:
                    residences[at][number] = replace(residences[at][number], offset=offset)
            moves += [(step, groups[index][0][0], offset) for step, index, offset in packed.moves]
        return reside(self.draft, residences, arenas, moves, transfers)

    def _together(
        self, residences: Sequence[Sequence[Residence]], there: Iterable[BufferResidence]
    ) -> list[tuple[list[BufferResidence], Interval]]:
        """Return groups of residences that share a place, each with its life.

        All residences of a state in the slow memory are one group, which lives as long as the state. Every
        other residence is a group.
        """
        groups: dict[tuple[int, ...], tuple[list[BufferResidence], Interval]] = {}
        for at, number in there:
            place = residences[at][number]
            is_home = at in self.io.homes and place.memory == self.pair.slow.name
            life = self.draft.items[at].life if is_home else place.life
            groups.setdefault((at,) if is_home else (at, number), ([], life))[0].append((at, number))
        return list(groups.values())

    def _movable(
        self, residences: Sequence[Sequence[Residence]], transfers: Sequence[BufferTransfer]
    ) -> dict[BufferResidence, Interval]:
        """Return the residences that may not always move, and the steps during which they may.

        Graph inputs, outputs and states never move. A residence that an engine reads or writes moves only in
        its longest time without a transfer.
        """
        movable = {
            (at, number): NEVER
            for at, places in enumerate(residences)
            for number in range(len(places))
            if at in self.io.fixed or not self.draft.items[at].members
        }
        flights: dict[BufferResidence, list[tuple[int, int]]] = {}
        for each in transfers:
            begin = residences[each.buffer][each.to].life.lo
            for number in (each.source, each.to) if each.end > begin else ():
                flights.setdefault((each.buffer, number), []).append((begin, each.end))
        for (at, number), of_residence in flights.items():
            life = residences[at][number].life
            ends = [life.lo, *(time for flight in sorted(of_residence) for time in flight), life.hi]
            lo, hi = max(zip(ends[::2], ends[1::2], strict=True), key=lambda gap: gap[1] - gap[0])
            # A move before a step precedes the transfers that begin before this step.
            movable.setdefault((at, number), Interval(lo, max(lo, hi + (hi < life.hi))))
        return movable

    def _of_buffers(self, residency: Residency) -> tuple[list[list[Residence]], list[BufferTransfer]]:
        """Return the residences of a residency by buffer, and the transfers between them."""
        residences: list[list[Residence]] = [[] for _ in self.draft.items]
        names = {FAST: self.pair.fast.name, SLOW: self.pair.slow.name}
        coming = {(each.item, each.end) for each in residency.transfers if each.direction == "in"}
        number_of: dict[tuple[int, int], BufferResidence] = {}
        for item, places in enumerate(residency.residences):
            lives = {at: self.draft.items[at].life for at in self.parts[item]}
            slow = {place.life.lo for place in places if place.memory == SLOW}
            for number, place in enumerate(places):
                hi = place.life.hi
                at = max((at for at in lives if lives[at].lo <= place.life.lo), key=lambda at: lives[at].lo)
                # Incoming bytes are still present when others leave before the step.
                hi += place.memory == SLOW and (item, hi) in coming and hi not in slow
                life = Interval(place.life.lo, min(hi, lives[at].hi))
                number_of[item, number] = at, len(residences[at])
                residences[at].append(Residence(life, names[place.memory], 0))
        engine, copies = self.pair.link.engine if self.pair.link else CPU, []
        for each in residency.transfers:
            places = residency.residences[each.item]
            latest = {place.memory: at for at, place in enumerate(places) if place.life.lo <= each.start}
            source, to = (SLOW, FAST) if each.direction == "in" else (FAST, SLOW)
            (at, old), (_, new) = number_of[each.item, latest[source]], number_of[each.item, latest[to]]
            copies.append(BufferTransfer(engine, at, old, new, each.end))
        return residences, copies

    def _problem(self, there: Sequence[tuple[int, Interval]]) -> PlacementProblem:
        """Return the rectangles of buffers and their lives in one memory.

        Rows of a graph input that begin there are a stack.
        """
        rectangles, index_of = [], dict[BlockId, int]()
        for index, (at, life) in enumerate(there):
            item = self.draft.items[at]
            alignment = lcm(self.draft.alignment, self.draft.starts.get(at, 1))
            rectangles.append(Rectangle(item.size_bytes, life, alignment))
            if item.members and life.lo == 0:
                index_of.setdefault(item.members[0], index)
        return PlacementProblem(tuple(rectangles), input_stacks(self.draft.tiled, index_of))
