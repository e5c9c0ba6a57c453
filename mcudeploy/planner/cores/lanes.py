"""The tapes of several cores that run a plan together, and the waits that keep every byte correct.

The cores share each step, in the order of the schedule. Live ranges and arenas are thus those of one core,
except for scratch. A core waits if another core wrote bytes that it reads or writes, or read bytes that it
writes. Waits that follow from earlier ones are omitted: vector clocks record what a core knows of the others
(Fidge 1988, Mattern 1989).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Plan, Residence, Run, Sync, Transfer, Wait, WorkSlice
from mcudeploy.planner.cores.parts import WorkSharing
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import core_scratch
from mcudeploy.tiling.locations import BlockTable, Locations

Span = tuple[str, int, int]
"""Bytes of a memory's arena, from and to."""
Touched = tuple[list[Span], list[Span]]
"""The spans that an entry reads, and those that it writes."""


def on_cores(plan: Plan, calls: Mapping[str, KernelCall], cores: int) -> Plan:
    """Return the plan with a tape for each core; unchanged for one core.

    The scratch of the plan must have room for all cores.
    """
    return plan if cores == 1 else replace(plan, lanes=_LaneBuilder(plan, calls, cores).lanes())


class _LaneBuilder:
    """A builder of core tapes: it shares entries in order and records the last accesses of arena bytes."""

    def __init__(self, plan: Plan, calls: Mapping[str, KernelCall], cores: int) -> None:
        self._plan, self._cores = plan, cores
        self._accesses = _ByteAccesses(plan, calls)
        self._sharing = WorkSharing.of(self._accesses.tiled.flow, calls, cores)
        self._lanes: list[list[WorkSlice | Sync]] = [[] for _ in range(cores)]
        self._clocks: list[list[list[int]]] = [[[0] * cores] for _ in range(cores)]
        self._last = {memory: _LastAccesses(cores, size) for memory, size in plan.layout.arenas.items()}
        self._load = [0.0] * cores
        self._core_of: dict[int, int] = {}

    def lanes(self) -> tuple[tuple[WorkSlice | Sync, ...], ...]:
        """Return the core tapes."""
        time = 0
        for number, entry in enumerate(self._plan.tape):
            if isinstance(entry, Run):
                self._share(number, entry, time)
                time += 1
            else:
                self._add(0, WorkSlice(number), self._accesses.moved(entry))
        return tuple(tuple(lane) for lane in self._lanes)

    def _share(self, number: int, entry: Run, time: int) -> None:
        operator = self._plan.graph.operators[entry.operator]
        rows = self._accesses.rows(entry)
        slices = self._sharing.slices(operator, rows)
        first = 0
        # An operator without inputs asks the application, which runs on core 0.
        if len(slices) == 1 and operator.inputs:
            idlest = min(range(self._cores), key=lambda core: self._load[core])
            # all whole steps of an operator stay on one core: fewer waits
            first = self._core_of.setdefault(entry.operator, idlest)
            self._load[first] += self._sharing.iterations(operator, rows)
        for core, mine in enumerate(slices, first):
            for part_rows, columns in mine:
                part = WorkSlice(number, part_rows, columns)
                self._add(core, part, self._accesses.step(entry, time, core, part))

    def _add(self, core: int, part: WorkSlice, touched: Touched) -> None:
        """Append a slice after the waits that it needs."""
        lane, clocks = self._lanes[core], self._clocks[core]
        clock = list(clocks[-1])
        needed = [0] * self._cores
        reads, writes = touched
        for (memory, lo, hi), writing in (*((it, False) for it in reads), *((it, True) for it in writes)):
            needed = list(map(max, needed, self._last[memory].before(lo, hi, writing=writing)))
        needed[core] = 0
        for other in self._missing(needed, clock):
            lane.append(Sync(part.entry, other, needed[other]))
            clock = list(map(max, clock, self._clocks[other][needed[other]]))
        lane.append(part)
        clock[core] = len(clocks)
        clocks.append(clock)
        for memory, lo, hi in reads:
            self._last[memory].read(lo, hi, core, len(clocks) - 1)
        for memory, lo, hi in writes:
            self._last[memory].write(lo, hi, core, len(clocks) - 1)

    def _missing(self, needed: Sequence[int], clock: Sequence[int]) -> list[int]:
        """Return the cores to wait for; the remaining dependencies follow from these."""
        ahead = [core for core, parts in enumerate(needed) if parts > clock[core]]
        known = {core: self._clocks[core][needed[core]] for core in ahead}
        return [
            core
            for core in ahead
            if not any(known[other][core] >= needed[core] for other in ahead if other != core)
        ]


class _LastAccesses:
    """For every byte of an arena, the last slice that wrote it, and those of each core that read it since."""

    def __init__(self, cores: int, size: int) -> None:
        self._writer = np.zeros((cores, size), np.int32)
        self._readers = np.zeros((cores, size), np.int32)

    def before(self, lo: int, hi: int, *, writing: bool) -> list[int]:
        """Return, by core, the number of slices that must be complete before an access to these bytes."""
        last = self._writer[:, lo:hi].max(axis=1, initial=0)
        if writing:
            last = np.maximum(last, self._readers[:, lo:hi].max(axis=1, initial=0))
        return [int(each) for each in last]

    def read(self, lo: int, hi: int, core: int, parts: int) -> None:
        """Record that slice number `parts` of a core reads these bytes."""
        self._readers[core, lo:hi] = parts

    def write(self, lo: int, hi: int, core: int, parts: int) -> None:
        """Record that slice number `parts` of a core writes these bytes."""
        self._writer[:, lo:hi] = 0
        self._readers[:, lo:hi] = 0
        self._writer[core, lo:hi] = parts


class _ByteAccesses:
    """The bytes that the entries of a plan's tape read and write."""

    def __init__(self, plan: Plan, calls: Mapping[str, KernelCall]) -> None:
        self._plan, self._calls = plan, calls
        self.tiled = TiledGraph.of(plan)
        self._tensors, self._scratch = Locations.of(plan.layout), Locations(plan.layout.scratch)
        self._begun: list[Transfer] = []

    def rows(self, entry: Run) -> Interval:
        """Return the rows that a step runs through: of its output, or of its input if it accumulates."""
        total = self.tiled.flow.iteration_rows[entry.operator]
        return self.tiled.step_rows[entry.operator].interval(entry.block, total)

    def step(self, entry: Run, time: int, core: int, part: WorkSlice) -> Touched:
        """Return the accesses of a slice of a step; it reads rows of its inputs regardless of its columns."""
        operator = self._plan.graph.operators[entry.operator]
        reads = [
            span
            for operand in range(len(operator.inputs))
            for span in self._read(entry, operand, time, part.rows)
        ]
        writes = list(self._written(entry, time, part))
        work = self._work(operator.name, entry.block, time, core)
        if operator.op.accumulates and entry.block:
            reads += work
        return reads, writes + work

    def _read(self, entry: Run, operand: int, time: int, rows: Interval) -> Iterator[Span]:
        reading = self.tiled.flow.readings[entry.operator][operand]
        first = self.tiled.first_step[entry.operator]
        lo, hi = self.tiled.reads[first + entry.block][operand]
        base = self.tiled.first_block[reading.root]
        row_bytes = self._plan.graph.tensors[reading.root].row_bytes
        blocks = range(lo - base, hi - base)
        memory = self._tensors.read(reading.root, blocks, time)
        needed = Interval(0, reading.rows) if reading.whole else _interval(*reading.reach(rows.lo, rows.hi))
        for block in blocks:
            held = self.tiled.block_interval(reading.root, block)
            start = self.tiled.tensor_block_rows(reading.root).start(block)
            mine = held if reading.whole else needed.clip(held.lo, held.hi)
            offset = self._tensors.offset(BlockTable(reading.root, memory), block, time)
            if len(mine):
                yield (
                    memory,
                    offset + (mine.lo - start) * row_bytes,
                    offset + (mine.hi - start) * row_bytes,
                )

    def _written(self, entry: Run, time: int, part: WorkSlice) -> Iterator[Span]:
        operator = self._plan.graph.operators[entry.operator]
        output = self._plan.graph.tensors[operator.output]
        if operator.op.accumulates:
            if entry.block == self.tiled.step_counts[entry.operator] - 1:
                place = self._tensors.destination((operator.output, 0), time)
                yield place.memory, place.offset, place.offset + output.size_bytes
            return
        place = self._tensors.destination((operator.output, entry.block), time)
        begin = self.tiled.step_rows[entry.operator].start(entry.block)
        lo = place.offset + (part.rows.lo - begin) * output.row_bytes
        hi = place.offset + (part.rows.hi - begin) * output.row_bytes
        if part.columns is not None:
            cell = output.cell_bytes
            lo, hi = lo + part.columns.lo * cell, lo + part.columns.hi * cell
        yield place.memory, lo, hi

    def _work(self, name: str, block: int, time: int, core: int) -> list[Span]:
        """Return the scratch of a core, or the state."""
        call = self._calls[name]
        if name not in self._plan.layout.scratch:
            return []
        blocks = self._plan.layout.scratch[name]
        memory = self._scratch.memories(name)[0]
        offset = self._scratch.offset(BlockTable(name, memory), min(block, len(blocks) - 1), time)
        if call.state_bytes:
            return [(memory, offset, offset + call.state_bytes)]
        mine = core_scratch(call.scratch_bytes)  # includes the padding, as in the checker
        offset += core * mine
        return [(memory, offset, offset + mine)]

    def moved(self, entry: Transfer | Wait) -> Touched:
        """Return the accesses of a transfer, or of all transfers of an engine that a wait ends.

        Transfers are passed in the order of the layout.
        """
        if isinstance(entry, Transfer):
            self._begun.append(entry)
            return self._copied([entry])
        ended = (each for each in self._begun[: entry.transfer + 1] if each.engine == entry.engine)
        return self._copied(ended)

    def _copied(self, transfers: Iterable[Transfer]) -> Touched:
        reads, writes = [], []
        for each in transfers:
            source, target = self._plan.layout.way(each)
            size = self.tiled.block_bytes(each.tensor, each.block)
            reads.append(_span(source, size))
            writes.append(_span(target, size))
        return reads, writes


def _span(place: Residence, size: int) -> Span:
    return place.memory, place.offset, place.offset + size


def _interval(lo: int, hi: int) -> Interval:
    return Interval(lo, max(lo, hi))
