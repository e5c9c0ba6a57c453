"""The core tapes as C stores them: slices, and the records that only slices need.

A slice of whole rows uses the record of its step. Each further core has its own scratch, and a slice of
columns has other parameters. Records of such slices follow those of the tape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Sync, WorkSlice
from mcudeploy.ops.move.columns import part_of
from mcudeploy.planner.tape.tape import Tape
from mcudeploy.tiling.live import core_scratch


@dataclass(frozen=True, slots=True)
class SliceRecord:
    """A record of some slices: record number `base` with changes.

    `scratch_shift`: bytes from the first core's scratch to that of its core. For `columns` it has its own
    parameters (`call`) and byte offsets into its input and its output.
    """

    base: int
    core: int
    columns: Interval | None
    scratch_shift: int
    call: KernelCall | None = field(default=None, compare=False)
    input_shift: int = 0
    output_shift: int = 0


@dataclass(frozen=True, slots=True)
class SliceEntry:
    """An entry of a core's tape: a record and rows.

    Without a record it is a wait until core `first` has completed `end` slices.
    """

    entry: int
    record: int | None
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class LaneTables:
    """The records of slices, numbered after those of the tape, and the entries of each core's tape."""

    records: list[SliceRecord]
    lanes: list[list[SliceEntry]]

    @classmethod
    def of(cls, tape: Tape, calls: Mapping[str, KernelCall]) -> LaneTables:
        """Return the tables of a plan."""
        numbers: dict[SliceRecord, int] = {}
        count = len(tape.records) + len(tape.moves) + len(tape.waits)
        lanes = []
        for core, lane in enumerate(tape.plan.lanes):
            entries = []
            for each in lane:
                if isinstance(each, Sync):
                    entries.append(SliceEntry(each.entry, None, each.core, each.parts))
                    continue
                base, block = tape.record_of(each.entry)
                rows = each.rows
                if base >= len(tape.records):  # moves and waits use their numbers
                    rows = Interval(block, block + 1)
                elif (record := _record(tape, calls, base, core, each)) is not None:
                    base = count + numbers.setdefault(record, len(numbers))
                entries.append(SliceEntry(each.entry, base, rows.lo, rows.hi))
            lanes.append(entries)
        return cls(list(numbers), lanes)

    @property
    def largest(self) -> int:
        """The largest number in the tapes plus one, so that MCUD_CORE_WAIT differs from all of them."""
        every = (max(it.entry, it.record or 0, it.first, it.end) + 1 for lane in self.lanes for it in lane)
        return max(every, default=0)

    @property
    def codes(self) -> int:
        """The number of integers in the tapes."""
        return 4 * sum(map(len, self.lanes))


def _record(
    tape: Tape, calls: Mapping[str, KernelCall], base: int, core: int, part: WorkSlice
) -> SliceRecord | None:
    """Return the record of a slice if it differs from the record of its step."""
    operator = tape.plan.graph.operators[tape.records[base].operator]
    call = calls[operator.name]
    shift = core * core_scratch(call.scratch_bytes)
    if part.columns is None:
        return SliceRecord(base, core, None, shift) if shift else None
    source, output = (tape.plan.graph.tensors[name] for name in (operator.inputs[0], operator.output))
    narrow, values = part_of(call, output, part.columns)
    return SliceRecord(
        base,
        core if shift else 0,
        part.columns,
        shift,
        narrow,
        values * source.dtype.size_bytes,
        part.columns.lo * output.cell_bytes,
    )
