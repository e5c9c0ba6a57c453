"""A trace as arrays for the loops: one entry for each item that a step accesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.trace import ItemAccess, MemoryLink, Trace, TraceStep

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


class TraceTable(NamedTuple):
    """The arrays of a trace.

    Steps: `cycles`, `work` bytes, and their entries [first[s], first[s + 1]). Entries: item, whether it is
    read and written, the number of its operand, and the cycles of direct access to the whole operand (inf:
    impossible). Items: bytes, cycles out and in, and the flags of `Item`.
    """

    cycles: Floats
    work: Ints
    first: Ints
    item: Ints
    reads: Flags
    writes: Flags
    operand: Ints
    direct: Floats
    size: Ints
    out_cycles: Floats
    in_cycles: Floats
    given: Flags
    loaded: Flags
    kept: Flags
    fixed: Flags
    home: Flags
    linked: bool
    overlapped: bool


def table_of(trace: Trace, link: MemoryLink) -> TraceTable:
    """Return the arrays of a trace. Without a link only items that can be rematerialised leave."""
    first = [0]
    entries: list[_Entry] = []
    for step in trace.steps:
        entries += _entries(trace, step, link, len(entries))
        first.append(len(entries))
    columns = list(zip(*entries, strict=True)) or [()] * 5
    linked = link.read_rate > 0 and link.write_rate > 0
    size = np.array([item.size_bytes for item in trace.items], np.int64)
    return TraceTable(
        np.array([step.cycles for step in trace.steps], np.float64),
        np.array([step.work_bytes for step in trace.steps], np.int64),
        np.array(first, np.int64),
        np.array(columns[0], np.int64),
        np.array(columns[1], np.bool_),
        np.array(columns[2], np.bool_),
        np.array(columns[3], np.int64),
        np.array(columns[4], np.float64),
        size,
        link.latency + size / link.write_rate if linked else np.zeros(len(size)),
        link.latency + size / link.read_rate if linked else np.zeros(len(size)),
        np.array([item.given for item in trace.items], np.bool_),
        np.array([item.loaded for item in trace.items], np.bool_),
        np.array([item.kept for item in trace.items], np.bool_),
        np.array([item.fixed for item in trace.items], np.bool_),
        np.array([item.home for item in trace.items], np.bool_),
        linked,
        link.overlapped,
    )


class _Entry(NamedTuple):
    """The accesses of a step to an item: whether it is read or written, its operand, the cycles if direct."""

    item: int
    reads: bool
    writes: bool
    operand: int
    cycles: float


def _entries(trace: Trace, step: TraceStep, link: MemoryLink, count: int) -> list[_Entry]:
    """Return the entries of a step by item; operands with fixed or shared items cannot be direct."""
    touched: dict[int, list[ItemAccess]] = {}
    for access in step.accesses:
        touched.setdefault(access.item, []).append(access)
    linked = link.read_rate > 0 and link.write_rate > 0
    shared = {
        access.operand
        for item, accesses in touched.items()
        for access in accesses
        if trace.items[item].fixed or len({one.operand for one in accesses}) > 1
    }
    costs: dict[int, float] = {}
    for access in step.accesses:
        cost = np.inf
        if linked and access.direct_bytes is not None and access.operand not in shared:
            cost = access.direct_bytes / (link.write_rate if access.writes else link.read_rate)
        costs[access.operand] = costs.get(access.operand, 0.0) + cost
    numbers = {operand: count + place for place, operand in enumerate(costs)}
    entries = []
    for item, own in touched.items():
        operand = own[0].operand
        reads, writes = any(not a.writes for a in own), any(a.writes for a in own)
        entries.append(_Entry(item, reads, writes, numbers[operand], costs[operand]))
    return sorted(entries, key=lambda entry: entry.operand)


def steps_of(trace: Trace, sequence: Sequence[int] | Ints) -> Trace:
    """Return a trace of some steps of another, repeated and ordered as in the sequence."""
    steps = (
        replace(
            trace.steps[place], origin=place if trace.steps[place].origin < 0 else trace.steps[place].origin
        )
        for place in map(int, sequence)
    )
    return Trace(trace.items, tuple(steps))
