"""The contents of the tape: records, parameters, offset tables and schedule, as C stores them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mcudeploy.boards.board import Board
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.engine import CPU
from mcudeploy.ir.graph import Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Plan, Run, Step, Transfer, Wait
from mcudeploy.planner.cores.requirements import unit_names
from mcudeploy.tiling.blocks import BlockId, TiledGraph
from mcudeploy.tiling.locations import BlockTable, Locations

WORD_BYTES = 4
"""Bytes of an integer or float in a record, and the alignment of tables."""
ONE_PIECE = 0xFFFFFFFF
"""Rows in a block of a contiguous tensor: no row has a larger number."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record of an operator (its index in the graph): the `number`th, and what it accesses.

    It names the tensors that it reads, the one that it writes, and its scratch, if any, each with the version
    of `Locations`.
    """

    operator: int
    number: int
    touched: tuple[tuple[NamedRange, int], ...]


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """The record of a tensor or of scratch, with its part of the offset table.

    `lead`: the rows that the first block lacks.
    """

    memory: str
    offsets: tuple[int, ...]
    row_bytes: int
    block_rows: int
    lead: int = 0


@dataclass(frozen=True, slots=True)
class Moves:
    """The transfers of an engine from one memory to another (or the same): old and new places, bytes of each.

    `ends`: transfers between memories whose source is not needed afterwards.
    """

    engine: str
    old: TensorRecord
    new: TensorRecord
    sizes: tuple[int, ...]
    ends: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Waits:
    """The waits for an engine: for each, the number of begun transfers that may still be in flight."""

    engine: str
    pending: tuple[int, ...]


class NamedRange(NamedTuple):
    """A tensor, or the scratch of an operator, within one memory."""

    is_scratch: bool
    name: str
    memory: str


Fitting = list[tuple[NamedRange, Interval]]
"""All that an operator accesses, and the acceptable versions of each."""


class _Versions:
    """The versions of tensors, including views, and of scratch."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.tiled = TiledGraph.of(plan)
        self._tensors, self._scratch = Locations.of(plan.layout), Locations(plan.layout.scratch)

    def find(self, named: NamedRange) -> tuple[Locations, BlockTable]:
        """Return the locations and the table of a range."""
        if named.is_scratch:
            return self._scratch, BlockTable(named.name, named.memory)
        return self._tensors, BlockTable(self.tiled.flow.roots[named.name], named.memory)

    def changes(self, named: NamedRange) -> int:
        """Return the number of times that a part of a range changes its place."""
        where, table = self.find(named)
        return where.changes(table)

    def all(self) -> Iterator[NamedRange]:
        """Yield every tensor, then the scratch of every operator that has some, by memory."""
        for name, root in self.tiled.flow.roots.items():
            yield from (NamedRange(False, name, memory) for memory in self._tensors.memories(root))
        for name in self._plan.layout.scratch:
            yield from (NamedRange(True, name, memory) for memory in self._scratch.memories(name))

    def touched(self, operator: Operator) -> list[NamedRange]:
        """Return the inputs of an operator, its output, then its scratch, in the first memory of each."""
        roots = self.tiled.flow.roots
        tensors = [
            NamedRange(False, name, self._tensors.memories(roots[name])[0])
            for name in (*operator.inputs, operator.output)
        ]
        return tensors + [
            NamedRange(True, operator.name, memory)
            for memory in (self._scratch.memories(operator.name) if self._has_scratch(operator) else ())
        ]

    def _has_scratch(self, operator: Operator) -> bool:
        return operator.name in self._plan.layout.scratch

    def fitting(self, step: Step, time: int) -> Fitting:
        """Return the memory and the valid versions of everything that the operator of a step accesses.

        A version is valid if it contains the current place of all that the step accesses.
        """
        operator = self.tiled.graph.operators[step.operator]
        fitting: Fitting = []
        for name, read in zip(operator.inputs, self.tiled.blocks_read(step), strict=True):
            numbers = [block for _, block in read]
            memory = self._tensors.read(self.tiled.flow.roots[name], numbers, time)
            fitting.append(self._common(NamedRange(False, name, memory), numbers, time))
        name, written = operator.output, 0 if operator.op.accumulates else step.block
        memory = self._tensors.destination((name, written), time).memory
        if (added := self.tiled.added_to(step)) and self._is_moved(added, operator.output):
            (name, written), memory = added, self._tensors.read(added[0], [added[1]], time)
        fitting.append(self._common(NamedRange(False, name, memory), [written], time))
        if self._has_scratch(operator):
            worked = min(step.block, len(self._plan.layout.scratch[operator.name]) - 1)
            memory = self._scratch.memories(operator.name)[0]
            fitting.append(self._common(NamedRange(True, operator.name, memory), [worked], time))
        return fitting

    def _is_moved(self, added: BlockId, result: str) -> bool:
        """Return whether sums in place have several places before they are the result."""
        blocks = self._plan.layout.blocks
        return len({(it.memory, it.offset) for it in (*blocks[added[0]][added[1]], *blocks[result][0])}) > 1

    def _common(self, named: NamedRange, blocks: Iterable[int], time: int) -> tuple[NamedRange, Interval]:
        where, table = self.find(named)
        version, common = where.version(table, time), Interval(0, where.changes(table) + 1)
        for block in blocks:
            same = where.unmoved(table, block, version)
            common = common.clip(same.lo, same.hi)
        return named, common


class Tape:
    """The records of a plan, the tensors that they name, and the entries of the tape as codes.

    A code is `record << block_bits | block`. A transfer has the record of its engine and memories, and its
    number there; a wait has the record of its engine, after all others. Views have no record. If blocks
    change their place, an operator has a record for each stretch of its steps that uses one version of each
    tensor.
    """

    def __init__(self, plan: Plan, least_blocks: int = 1) -> None:
        """`least_blocks`: the number of blocks that a code has bits for at least."""
        self.plan, self._versions = plan, _Versions(plan)
        self.records, of_step = _records(plan, self._versions)
        named = {pair for record in self.records for pair in record.touched}
        self.stored_as: list[tuple[NamedRange, int]] = [
            (owner, version)
            for owner in self._versions.all()
            for version in range(self._versions.changes(owner) + 1)
            if (owner, version) in named or not (self._versions.changes(owner) or self.is_spread(owner))
        ]
        self.moves, self.waits = self._moves(), self._waits()
        largest = max((step.block for step in plan.schedule.steps), default=0)
        counts = [len(each.sizes) for each in self.moves] + [len(each.pending) for each in self.waits]
        self.block_bits = max(largest, max(counts, default=1) - 1, least_blocks - 1).bit_length()
        self.codes: NDArray[np.uint32] = np.array(list(self._codes(of_step)), np.uint32)

    def record_of(self, entry: int) -> tuple[int, int]:
        """Return the record number of an entry of the tape, and its block."""
        code = int(self.codes[entry])
        return code >> self.block_bits, code & ((1 << self.block_bits) - 1)

    def is_spread(self, named: NamedRange) -> bool:
        """Return whether a tensor is in several memories."""
        where, table = self._versions.find(named)
        return len(where.memories(table.name)) > 1

    def _codes(self, of_step: Sequence[int]) -> Iterator[int]:
        records = iter(of_step)
        of_moves = ((it.engine, it.old.memory, it.new.memory) for it in self.moves)
        numbers = {each: at for at, each in enumerate((*of_moves, *((it.engine,) for it in self.waits)))}
        counts = Counter[tuple[str, ...]]()
        for entry in self.plan.tape:
            if isinstance(entry, Run):
                yield next(records) << self.block_bits | entry.block
                continue
            key: tuple[str, ...] = (entry.engine,)
            if isinstance(entry, Transfer):
                key += tuple(each.memory for each in self.plan.layout.way(entry))
            yield len(self.records) + numbers[key] << self.block_bits | counts[key]
            counts[key] += 1

    def stored(self, named: NamedRange, version: int) -> TensorRecord:
        """Return a tensor, or scratch, in one of its versions.

        If it changes its place, every offset is listed.
        """
        where, table = self._versions.find(named)
        offsets = where.offsets(table, version)
        row_bytes, (block_rows, lead) = self._rows(named)
        pitch = row_bytes * block_rows
        if not where.changes(table) and all(at == offsets[0] + i * pitch for i, at in enumerate(offsets)):
            # contiguous (scratch: in one place): one offset serves all rows
            return TensorRecord(named.memory, offsets[:1], row_bytes, ONE_PIECE, lead)
        return TensorRecord(named.memory, offsets, row_bytes, block_rows, lead)

    def number(self, named: NamedRange, version: int) -> int:
        """Return the number of a version among those of a tensor, or of scratch, in all memories."""
        where, table = self._versions.find(named)
        before = where.memories(table.name)[: where.memories(table.name).index(table.memory)]
        return version + sum(where.changes(BlockTable(table.name, memory)) + 1 for memory in before)

    def _rows(self, named: NamedRange) -> tuple[int, BlockRows]:
        """Return the bytes of a row (0 for scratch), and its blocks."""
        if named.is_scratch:
            return 0, self.plan.rows_of(named.name)
        tiled, graph = self._versions.tiled, self.plan.graph
        tensor, root = graph.tensors[named.name], tiled.flow.roots[named.name]
        is_same = graph.same_rows(named.name, root)
        return tensor.row_bytes, tiled.tensor_block_rows(root) if is_same else BlockRows(tensor.shape[0])

    def _moves(self) -> list[Moves]:
        """Return the transfers by their engines and memories."""
        ways: dict[tuple[str, str, str], list[tuple[int, int, int, bool]]] = {}
        ending = _ending(self.plan)
        for number, transfer in enumerate(self.plan.layout.transfers):
            old, new = self.plan.layout.way(transfer)
            size = self._versions.tiled.moved_bytes(self.plan.layout, transfer)
            ends = old.memory != new.memory and number in ending
            key = transfer.engine, old.memory, new.memory
            ways.setdefault(key, []).append((old.offset, new.offset, size, ends))
        moves = []
        for (engine, one, other), each in sorted(ways.items()):
            olds, news, sizes, ended = zip(*each, strict=True)
            source, target = TensorRecord(one, olds, 0, 1), TensorRecord(other, news, 0, 1)
            moves.append(Moves(engine, source, target, sizes, ended))
        return moves

    def _waits(self) -> list[Waits]:
        """Return the waits by engine."""
        begun: dict[str, list[int]] = {}
        pending: dict[str, list[int]] = {}
        numbers = iter(range(len(self.plan.layout.transfers)))
        for entry in self.plan.tape:
            if isinstance(entry, Transfer):
                begun.setdefault(entry.engine, []).append(next(numbers))
            elif isinstance(entry, Wait):
                later = sum(number > entry.transfer for number in begun[entry.engine])
                pending.setdefault(entry.engine, []).append(later)
        return [Waits(engine, tuple(each)) for engine, each in sorted(pending.items())]

    def all_stored(self) -> Iterator[TensorRecord]:
        """Yield every record with offsets, in the order of the table."""
        yield from (self.stored(*each) for each in self.stored_as)
        for moves in self.moves:
            yield from (moves.old, moves.new)


def _ending(plan: Plan) -> set[int]:
    """Return the transfers, by number, whose source residence ends once the program has waited for them.

    The program may wait for them earlier than planned, together with a later transfer of the engine.
    """
    last: dict[tuple[str, int, int], tuple[int, int]] = {}
    unfinished: dict[str, list[int]] = {}
    numbers, time = iter(range(len(plan.layout.transfers))), 0
    for entry in plan.tape:
        finished: list[int] = []
        if isinstance(entry, Run):
            time += 1
        elif isinstance(entry, Wait):
            queue = unfinished[entry.engine]
            finished = [number for number in queue if number <= entry.transfer]
            del queue[: len(finished)]
        elif entry.engine == CPU:
            finished.append(next(numbers))
        else:
            unfinished.setdefault(entry.engine, []).append(next(numbers))
        for one, number in ((plan.layout.transfers[number], number) for number in finished):
            last[one.tensor, one.block, one.source] = number, time
    ways = ((plan.layout.way(plan.layout.transfers[number])[0], number, at) for number, at in last.values())
    return {number for source, number, at in ways if source.life.hi <= at}


def _records(plan: Plan, versions: _Versions) -> tuple[list[Record], list[int]]:
    """Return the records in the order of operators, and for each step the index of its record.

    Each version has a table, so stretches of all operators share versions as far as possible.
    """
    stretches, of_step = _stretches(plan, versions)
    chosen: dict[NamedRange, list[int]] = {}
    pairs = [pair for mine in stretches for fitting in mine for pair in fitting]
    for named, same in sorted(pairs, key=lambda pair: -pair[1].lo):
        if not any(version in same for version in chosen.setdefault(named, [])):
            chosen[named].append(same.lo)
    first = [0, *accumulate(len(mine) for mine in stretches)]
    records = []
    for at, mine in enumerate(stretches):
        for number, fitting in enumerate(mine):
            touched = (
                (named, min(version for version in chosen[named] if version in one)) for named, one in fitting
            )
            records.append(Record(at, number, tuple(touched)))
    return records, [first[step.operator] + of_step[time] for time, step in enumerate(plan.schedule.steps)]


def _stretches(plan: Plan, versions: _Versions) -> tuple[list[list[Fitting]], list[int]]:
    """Return the maximal stretches of steps of each operator, and the stretch number of each step.

    Each stretch comes with the versions that are valid for all that it accesses.
    """
    stretches: list[list[Fitting]] = [[] for _ in plan.graph.operators]
    of_step = []
    for time, step in enumerate(plan.schedule.steps):
        mine, fitting = stretches[step.operator], versions.fitting(step, time)
        at = next((at for at in reversed(range(len(mine))) if _agree(mine[at], fitting)), len(mine))
        mine[at:] = [*([_both(mine[at], fitting)] if at < len(mine) else [fitting]), *mine[at + 1 :]]
        of_step.append(at)
    for operator, mine in zip(plan.graph.operators, stretches, strict=True):
        if not mine and not operator.op.is_view:
            mine.append([(named, Interval(0, 1)) for named in versions.touched(operator)])
    return stretches, of_step


def _agree(one: Fitting, other: Fitting) -> bool:
    """Return whether one record is valid for both."""
    return all(
        named == too and here.overlaps(there) for (named, here), (too, there) in zip(one, other, strict=True)
    )


def _both(one: Fitting, other: Fitting) -> Fitting:
    """Return the versions that are valid for both."""
    return [(named, here.clip(it.lo, it.hi)) for (named, here), (_, it) in zip(one, other, strict=True)]


def integer_bits(largest: int) -> int:
    """Return the width of a table's integers in bits."""
    return 16 if largest < 2**16 else 32


def handed_over(plan: Plan, board: Board) -> dict[str, int]:
    """Return the operators with a kernel that run on another unit than the first, with the unit's number."""
    numbers = {unit.name: number for number, unit in enumerate(board.units)}
    names = unit_names(plan.graph, board, plan.functions)
    kernels = (operator.name for operator in plan.graph.operators if not operator.op.is_view)
    return {name: number for name in kernels if (number := numbers[names[name]])}
