"""What the tape is made of: records, parameters, offset tables and schedule, as C lays them out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from mcudeploy.boards.board import Board
from mcudeploy.ir.graph import Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Plan, Residences, Step, Transfer, memory_of
from mcudeploy.memory.blocks import TiledGraph
from mcudeploy.memory.flow import Flow
from mcudeploy.memory.locations import Locations
from mcudeploy.units.needs import unit_names

WORD_BYTES = 4
"""Bytes of an integer or float in a record, and what tables begin at a multiple of."""
ONE_PIECE = 0xFFFFFFFF
"""Rows in a block of a tensor in one piece: no row has a larger number."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record of an operator (its place in the graph): the `number`th, and the versions of what it touches,
    as `Locations` counts them: the tensors that it reads, the one that it makes, and its scratch, if any.
    """

    operator: int
    number: int
    versions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """The record of a tensor or of scratch, with what the table of offsets has for it."""

    memory: str
    offsets: tuple[int, ...]
    row_bytes: int
    block_rows: int


@dataclass(frozen=True, slots=True)
class Moves:
    """The transfers in one arena: the old and the new places, and the bytes of each."""

    old: Stored
    new: Stored
    sizes: tuple[int, ...]


Named = tuple[bool, str]
"""A tensor, or (True) the scratch of an operator."""


class _Versions:
    """The versions of tensors, views among them, and of scratch."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.tiled = TiledGraph(Flow.of(plan.graph), plan.block_rows)
        self._tensors, self._scratch = Locations(plan.layout.blocks), Locations(plan.layout.scratch)

    def find(self, named: Named) -> tuple[Locations, str]:
        """Where its places are, and by which name."""
        is_scratch, name = named
        return (self._scratch, name) if is_scratch else (self._tensors, self.tiled.flow.roots[name])

    def changes(self, named: Named) -> int:
        """How often something of it comes to lie elsewhere."""
        where, name = self.find(named)
        return where.changes(name)

    def touched(self, operator: Operator) -> list[Named]:
        """What an operator reads, then what it makes, then its scratch."""
        tensors = [(False, name) for name in (*operator.inputs, operator.output)]
        return tensors + [(True, operator.name)] * (operator.name in self._plan.layout.scratch)

    def fitting(self, step: Step, time: int) -> list[Interval]:
        """For all that the operator of a step touches the versions in which what the step touches of it lies
        where it does now.
        """
        operator = self.tiled.graph.operators[step.operator]
        made = 0 if operator.op.accumulates else step.block
        blocks = [*self.tiled.blocks_read(step), [(operator.output, made)]]
        if operator.name in self._plan.layout.scratch:
            worked = min(step.block, len(self._plan.layout.scratch[operator.name]) - 1)
            blocks.append([(operator.name, worked)])
        ranges = []
        for named, touched in zip(self.touched(operator), blocks, strict=True):
            where, name = self.find(named)
            version, common = where.version(name, time), Interval(0, where.changes(name) + 1)
            for block_id in touched:
                same = where.unmoved(block_id, version)
                common = common.clip(same.lo, same.hi)
            ranges.append(common)
        return ranges


class Tape:
    """The records of a plan, the tensors that they name, and the entries of the tape as codes.

    A code is `record << block_bits | block`; of a transfer the record of its arena, behind all others, and
    its number there. Views have no record. Where blocks change their place, an operator has a record for each
    stretch of its steps that finds all it touches in one version of each tensor.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self._versions = plan, _Versions(plan)
        self.records, of_step = _records(plan, self._versions)
        named = {pair for record in self.records for pair in self.named(record)}
        tensors: list[Named] = [(False, name) for name in self._versions.tiled.flow.roots]
        owners = [*tensors, *((True, name) for name in plan.layout.scratch)]
        self.stored_as: list[tuple[Named, int]] = [
            (owner, version)
            for owner in owners
            for version in range(self._versions.changes(owner) + 1)
            if (owner, version) in named or not self._versions.changes(owner)
        ]
        largest = max((step.block for step in plan.schedule.steps), default=0)
        self.block_bits = max(largest, len(plan.layout.transfers) - 1).bit_length()
        self.codes: NDArray[np.uint32] = np.array(list(self._codes(of_step)), np.uint32)

    def _codes(self, of_step: Sequence[int]) -> Iterator[int]:
        records, made = iter(of_step), Counter[str]()
        arenas = [moves.old.memory for moves in self.moves()]
        for entry in self.plan.tape:
            if isinstance(entry, Transfer):
                memory = self.plan.layout.way(entry)[1].memory
                yield len(self.records) + arenas.index(memory) << self.block_bits | made[memory]
                made[memory] += 1
            else:
                yield next(records) << self.block_bits | entry.block

    def named(self, record: Record) -> list[tuple[Named, int]]:
        """What a record names, each with its version: what is read, what is made, and scratch, if any."""
        operator = self.plan.graph.operators[record.operator]
        return list(zip(self._versions.touched(operator), record.versions, strict=True))

    def stored(self, named: Named, version: int) -> Stored:
        """A tensor, or scratch, in one of its versions. Where it changes its place every offset is listed."""
        where, name = self._versions.find(named)
        memory, offsets = memory_of(self._residences(named)), where.offsets(name, version)
        row_bytes, block_rows = self._rows(named)
        pitch = row_bytes * block_rows
        if not where.changes(name) and all(at == offsets[0] + i * pitch for i, at in enumerate(offsets)):
            # in one piece (scratch: in one place): one offset serves all rows
            return Stored(memory, offsets[:1], row_bytes, ONE_PIECE)
        return Stored(memory, offsets, row_bytes, block_rows)

    def _residences(self, named: Named) -> Residences:
        is_scratch, _ = named
        _, name = self._versions.find(named)
        return (self.plan.layout.scratch if is_scratch else self.plan.layout.blocks)[name]

    def _rows(self, named: Named) -> tuple[int, int]:
        """Bytes of a row, 0 of scratch, and rows of a block."""
        is_scratch, name = named
        if is_scratch:
            return 0, self.plan.block_rows[name]
        tiled, tensor = self._versions.tiled, self.plan.graph.tensors[name]
        is_view = tiled.flow.roots[name] != name
        return tensor.row_bytes, tensor.shape[0] if is_view else tiled.tensor_block_rows(name)

    def moves(self) -> list[Moves]:
        """The transfers in each arena, by its name."""
        ways: dict[str, list[tuple[int, int, int]]] = {}
        for transfer in self.plan.layout.transfers:
            old, new = self.plan.layout.way(transfer)
            size = self._versions.tiled.block_bytes(transfer.tensor, transfer.block)
            ways.setdefault(new.memory, []).append((old.offset, new.offset, size))
        found = []
        for memory, each in sorted(ways.items()):
            olds, news, sizes = zip(*each, strict=True)
            found.append(Moves(Stored(memory, olds, 0, 1), Stored(memory, news, 0, 1), sizes))
        return found

    def all_stored(self) -> Iterator[Stored]:
        """Every record with offsets, in the order of the table."""
        yield from (self.stored(*each) for each in self.stored_as)
        for moves in self.moves():
            yield from (moves.old, moves.new)


def _records(plan: Plan, versions: _Versions) -> tuple[list[Record], list[int]]:
    """The records in the order of operators, and for each step the place of its record.

    Each version has a table: stretches of all operators take the same as far as they can.
    """
    stretches, of_step = _stretches(plan, versions)
    chosen: dict[Named, list[int]] = {}
    found = [
        pair
        for operator, mine in zip(plan.graph.operators, stretches, strict=True)
        for fitting in mine
        for pair in zip(versions.touched(operator), fitting, strict=True)
    ]
    for named, same in sorted(found, key=lambda pair: -pair[1].lo):
        if not any(version in same for version in chosen.setdefault(named, [])):
            chosen[named].append(same.lo)
    first = [0, *accumulate(len(mine) for mine in stretches)]
    records = []
    for at, mine in enumerate(stretches):
        touched = versions.touched(plan.graph.operators[at])
        for number, fitting in enumerate(mine):
            pairs = zip(touched, fitting, strict=True)
            versions_of = (
                min(version for version in chosen[named] if version in one) for named, one in pairs
            )
            records.append(Record(at, number, tuple(versions_of)))
    return records, [first[step.operator] + of_step[time] for time, step in enumerate(plan.schedule.steps)]


def _stretches(plan: Plan, versions: _Versions) -> tuple[list[list[list[Interval]]], list[int]]:
    """For each operator its stretches of steps, as long as they go, each with the versions that would do for
    all that it touches; and for each step the number of its operator's stretch.
    """
    found: list[list[list[Interval]]] = [[] for _ in plan.graph.operators]
    of_step = []
    for time, step in enumerate(plan.schedule.steps):
        mine, fitting = found[step.operator], versions.fitting(step, time)
        if mine and all(one.overlaps(other) for one, other in zip(mine[-1], fitting, strict=True)):
            mine[-1] = [one.clip(now.lo, now.hi) for one, now in zip(mine[-1], fitting, strict=True)]
        else:
            mine.append(fitting)
        of_step.append(len(mine) - 1)
    for operator, mine in zip(plan.graph.operators, found, strict=True):
        if not mine and not operator.op.is_view:
            mine.append([Interval(0, 1)] * len(versions.touched(operator)))
    return found, of_step


def integer_bits(largest: int) -> int:
    """Width of a table's integers."""
    return 16 if largest < 2**16 else 32


def handed_over(plan: Plan, board: Board) -> dict[str, int]:
    """Operators with a kernel that a compute unit other than the first runs: its number among the board's."""
    numbers = {unit.name: number for number, unit in enumerate(board.units)}
    names = unit_names(plan.graph, board, plan.functions)
    kernels = (operator.name for operator in plan.graph.operators if not operator.op.is_view)
    return {name: number for name in kernels if (number := numbers[names[name]])}
