"""The checker of core tapes. It shares no code with the planner: it reads only the tapes.

`judge.check` checks the program's tape, and thereby slices that run in its order. Two slices conflict if both
access a byte and one of them writes it. If the tapes and their waits order all conflicting slices, every
interleaving has the same result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mcudeploy.checker.owners import PlanFaultError, Shapes, Span
from mcudeploy.ir.engine import CPU
from mcudeploy.ir.graph import Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Plan, Residence, Run, Sync, Transfer, Wait, WorkSlice

_GRAIN = 8
"""The alignment in bytes of each core's scratch after that of the previous core."""


@dataclass(frozen=True, slots=True)
class _Access:
    span: Span
    writes: bool


def require_no_races(plan: Plan, shapes: Shapes) -> None:
    """Check that slices are in order, add up to their entries, do not deadlock, and do not race.

    `shapes.work`: the scratch of all cores together. Raises PlanFaultError.
    """
    for core, lane in enumerate(plan.lanes):
        for one, other in pairwise(lane):
            if other.entry < one.entry:
                raise PlanFaultError(f"core {core} goes from entry {one.entry} back to {other.entry}")
    _require_whole(plan)
    _Races(plan, shapes).run()


def _require_whole(plan: Plan) -> None:
    """Check that every entry is done once: all columns of all rows of a step, the rest by core 0."""
    parts: dict[int, list[tuple[int, WorkSlice]]] = {}
    for core, lane in enumerate(plan.lanes):
        for each in lane:
            if isinstance(each, WorkSlice):
                parts.setdefault(each.entry, []).append((core, each))
    if set(parts) != set(range(len(plan.tape))):
        raise PlanFaultError("the tapes of the cores and the program differ in their entries")
    for number, entry in enumerate(plan.tape):
        parts_of_entry = parts[number]
        if not isinstance(entry, Run):
            if [core for core, _ in parts_of_entry] != [0]:
                raise PlanFaultError(f"entry {number} is not done by core 0 exactly once")
            continue
        operator = plan.graph.operators[entry.operator]
        rows, width = _rows(plan, operator, entry.block), plan.graph.tensors[operator.output].cells
        writers = np.zeros((len(rows), width), np.int32)
        for core, part in parts_of_entry:
            most = len(rows) if part.columns is None else 1
            if not (0 < len(part.rows) <= most and rows.covers(part.rows)):
                raise PlanFaultError(f"entry {number}: core {core} writes rows {part.rows} of {rows}")
            columns = Interval(0, width) if part.columns is None else part.columns
            if len(columns) == 0 or not Interval(0, width).covers(columns):
                raise PlanFaultError(f"entry {number}: core {core} writes columns {columns} of {width}")
            writers[part.rows.lo - rows.lo : part.rows.hi - rows.lo, columns.lo : columns.hi] += 1
        if not bool((writers == 1).all()):
            raise PlanFaultError(f"entry {number} ({operator.name}) is not written whole exactly once")
        if len(parts_of_entry) > 1 and operator.op.accumulates:
            raise PlanFaultError(f"entry {number} ({operator.name}) accumulates: one core does it")
        if not operator.inputs and parts_of_entry[0][0]:
            raise PlanFaultError(f"entry {number} ({operator.name}) is fed by the application, on core 0")


def _rows(plan: Plan, operator: Operator, block: int) -> Interval:
    """Return the rows that a step runs through: of its output, or of its input if it accumulates."""
    name = operator.inputs[0] if operator.op.accumulates else operator.output
    return plan.rows_of(operator.name).interval(block, plan.graph.tensors[name].shape[0])


class _Races:
    """A run of the tapes, entry by entry, with a vector clock for each core.

    For every byte it records the last writer and the readers since.
    """

    def __init__(self, plan: Plan, shapes: Shapes) -> None:
        self._plan, self._shapes = plan, shapes
        count = len(plan.lanes)
        self._clocks = np.zeros((count, count), np.int64)
        # For every slice of each core: the core's clock after it, and the entry of which it is a part.
        self._history: list[list[np.ndarray]] = [[] for _ in range(count)]
        self._entry_of: list[list[int]] = [[] for _ in range(count)]
        # For every byte: the slices of each core that wrote it last, or read it since.
        self._wrote = {name: np.zeros((count, size), np.int32) for name, size in plan.layout.arenas.items()}
        self._read = {name: np.zeros((count, size), np.int32) for name, size in plan.layout.arenas.items()}
        self._begun: list[Transfer] = []
        # For residences that transfers fill: the first step that may read them.
        self._ready = {(it.tensor, it.block, it.to): it.end for it in plan.layout.transfers}

    def run(self) -> None:
        """Run all entries."""
        positions = [0] * len(self._plan.lanes)
        time = 0
        for number, entry in enumerate(self._plan.tape):
            for core, lane in enumerate(self._plan.lanes):
                while positions[core] < len(lane) and lane[positions[core]].entry == number:
                    each = lane[positions[core]]
                    positions[core] += 1
                    if isinstance(each, Sync):
                        self._await(core, each)
                    else:
                        self._run_slice(core, each, list(self._accesses(entry, each, core, time)))
            if isinstance(entry, Run):
                time += 1
            elif isinstance(entry, Transfer):
                self._begun.append(entry)

    def _await(self, core: int, sync: Sync) -> None:
        if not (0 <= sync.core < len(self._plan.lanes) and sync.core != core):
            raise PlanFaultError(f"core {core} waits for core {sync.core} before entry {sync.entry}")
        done = self._entry_of[sync.core]
        if not 1 <= sync.parts <= len(done) or done[sync.parts - 1] >= sync.entry:
            raise PlanFaultError(
                f"core {core} waits before entry {sync.entry} for part {sync.parts} of core {sync.core}, "
                "which does not come earlier"
            )
        self._clocks[core] = np.maximum(self._clocks[core], self._history[sync.core][sync.parts - 1])

    def _run_slice(self, core: int, part: WorkSlice, accesses: list[_Access]) -> None:
        clock = self._clocks[core]
        for access in accesses:
            memory, (lo, hi) = access.span.memory, (access.span.bytes.lo, access.span.bytes.hi)
            before = self._wrote[memory][:, lo:hi].max(axis=1, initial=0)
            if access.writes:
                before = np.maximum(before, self._read[memory][:, lo:hi].max(axis=1, initial=0))
            before[core] = 0
            if bool((before > clock).any()):
                other, verb = int((before > clock).argmax()), "writes" if access.writes else "reads"
                raise PlanFaultError(
                    f"core {core}, entry {part.entry}: {verb} "
                    f"{access.span.bytes} of {memory}: part {before[other]} of core {other} touches them; it "
                    f"has waited for part {clock[other]} only"
                )
        clock[core] += 1
        self._history[core].append(clock.copy())
        self._entry_of[core].append(part.entry)
        for access in accesses:
            memory, (lo, hi) = access.span.memory, (access.span.bytes.lo, access.span.bytes.hi)
            touched = self._wrote if access.writes else self._read
            touched[memory][core, lo:hi] = clock[core]

    def _accesses(
        self, entry: Run | Transfer | Wait, part: WorkSlice, core: int, time: int
    ) -> Iterator[_Access]:
        if isinstance(entry, Run):
            yield from self._of_step(entry, part, core, time)
            return
        moved = [entry] if isinstance(entry, Transfer) else self._begun[: entry.transfer + 1]
        for each in moved:
            if isinstance(entry, Transfer) or each.engine == entry.engine != CPU:
                source, target = self._plan.layout.way(each)
                size = self._shapes.block_bytes(each.tensor, each.block)
                yield _Access(_span(source, 0, size), writes=False)
                yield _Access(_span(target, 0, size), writes=True)

    def _of_step(self, entry: Run, part: WorkSlice, core: int, time: int) -> Iterator[_Access]:
        plan = self._plan
        operator = plan.graph.operators[entry.operator]
        accumulates, nest = operator.op.accumulates, plan.graph.loops(operator)
        whole = _rows(plan, operator, entry.block)
        for operand, tensor in enumerate(plan.graph.input_tensors(operator)):
            total = tensor.shape[0]
            rows_of = nest.rows_taken if accumulates else nest.rows_read
            needed, of_step = (rows_of(operand, rows, total) for rows in (part.rows, whole))
            for span in self._held(tensor.name, needed, of_step, time):
                yield _Access(span, writes=False)
        if not accumulates or whole.hi == plan.graph.tensors[operator.inputs[0]].shape[0]:
            yield _Access(self._written(entry, operator, part, time), writes=True)
        scratch, state = self._shapes.work[operator.name]
        if scratch + state:
            steps = plan.layout.scratch[operator.name]
            place = next(it for it in steps[0 if state else entry.block] if time in it.life)
            core_scratch = scratch // len(plan.lanes) // _GRAIN * _GRAIN
            yield _Access(
                _span(place, 0 if state else core * core_scratch, state or core_scratch), writes=True
            )

    def _held(self, name: str, needed: Interval, of_step: Interval, time: int) -> Iterator[Span]:
        """Yield the spans of rows of a tensor in the memory that the whole step reads.

        Of a view with another number of rows, they are the whole tensor.
        """
        root = self._shapes.roots[name]
        size, graph = self._shapes.block_rows(root), self._plan.graph
        row_bytes = graph.tensors[root].row_bytes
        if not graph.same_rows(name, root):
            needed = of_step = Interval(0, size.rows)
        if len(needed) == 0:
            return
        numbers = size.blocks(of_step)
        for memory in self._plan.layout.arenas:
            places = {number: self._residence_at(root, number, memory, time) for number in numbers}
            if all(places.values()):
                break
        for number, place in places.items():
            start = size.start(number)
            rows = needed.clip(start, start + size.rows)
            if len(rows) and place is not None:
                first = (rows.lo - start) * row_bytes
                yield _span(place, first, len(rows) * row_bytes)

    def _residence_at(self, tensor: str, block: int, memory: str, time: int) -> Residence | None:
        for at, each in enumerate(self._plan.layout.blocks[tensor][block]):
            ready = self._ready.get((tensor, block, at), each.life.lo)
            if each.memory == memory and ready <= time < each.life.hi:
                return each
        return None

    def _written(self, entry: Run, operator: Operator, part: WorkSlice, time: int) -> Span:
        output = self._plan.graph.tensors[operator.output]
        block = 0 if operator.op.accumulates else entry.block
        residences = list(enumerate(self._plan.layout.blocks[operator.output][block]))
        here = [
            it for at, it in residences if time in it.life and (operator.output, block, at) not in self._ready
        ]
        place = here[-1] if here else next(it for _, it in residences if time in it.life)
        if operator.op.accumulates:
            return _span(place, 0, output.size_bytes)
        first = part.rows.lo - self._plan.rows_of(operator.name).start(entry.block)
        columns = Interval(0, output.cells) if part.columns is None else part.columns
        size = len(part.rows) * output.row_bytes if part.columns is None else len(columns) * output.cell_bytes
        return _span(place, first * output.row_bytes + columns.lo * output.cell_bytes, size)


def _span(place: Residence, first: int, size: int) -> Span:
    return Span(place.memory, Interval(place.offset + first, place.offset + first + size))
