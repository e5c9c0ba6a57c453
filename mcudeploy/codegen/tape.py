"""What the tape is made of, and what it takes in flash: records, parameters, offset tables and schedule, as C
lays them out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from mcudeploy.analyzer.needs import unit_names
from mcudeploy.board import Board
from mcudeploy.graph import Operator
from mcudeploy.interval import Interval
from mcudeploy.ops.opdef import KernelCall
from mcudeploy.plan import Move, Placement, Plan, Step
from mcudeploy.simulator.blocks import TiledGraph
from mcudeploy.simulator.flow import Flow
from mcudeploy.simulator.whereabouts import Whereabouts

_WORD = 4
"""Bytes of an integer or float in a record, and what tables begin at a multiple of."""
ONE_PIECE = 0xFFFFFFFF
"""Rows in a block of a tensor in one piece: no row has a larger number."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record of an operator (its place in the graph): the `number`th, and the versions of the tensors that
    the operator reads, then of the one that it makes, as `Whereabouts` counts them.
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
    """The moves in one arena: the old and the new places, and the bytes of each."""

    old: Stored
    new: Stored
    sizes: tuple[int, ...]


class Tape:
    """The records of a plan, the tensors that they name, and the entries of the tape as codes.

    A code is `record << block_bits | block`; of a move the record of its arena, behind all others, and its
    number there. Views have no record. Where blocks are moved, an operator has a record for each stretch of
    its steps that finds all it touches in one version of each tensor.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self._where = plan, Whereabouts(plan.layout)
        self._tiled = TiledGraph(Flow.of(plan.graph), plan.block_rows)
        self.records, of_step = _records(plan, self._tiled, self._where)
        named = {pair for record in self.records for pair in self.named(record)}
        self.tensors: list[tuple[str, int]] = [
            (name, version)
            for name, root in self._tiled.flow.roots.items()
            for version in range(self._where.moves(root) + 1)
            if (name, version) in named or not self._where.moves(root)
        ]
        largest = max((step.block for step in plan.schedule.steps), default=0)
        self.block_bits = max(largest, len(plan.layout.moves) - 1).bit_length()
        self.codes: NDArray[np.uint32] = np.array(list(self._codes(of_step)), np.uint32)

    def _codes(self, of_step: Sequence[int]) -> Iterator[int]:
        records, made = iter(of_step), Counter[str]()
        arenas = sorted({self._memory(move) for move in self.plan.layout.moves})
        for entry in self.plan.tape:
            if isinstance(entry, Move):
                memory = self._memory(entry)
                yield len(self.records) + arenas.index(memory) << self.block_bits | made[memory]
                made[memory] += 1
            else:
                yield next(records) << self.block_bits | entry.block

    def named(self, record: Record) -> list[tuple[str, int]]:
        """The tensors that a record names, each with its version: what is read, then what is made."""
        operator = self.plan.graph.operators[record.operator]
        return list(zip(_touched(operator), record.versions, strict=True))

    def tensor(self, name: str, version: int) -> Stored:
        """A tensor in one of its versions. All places of one that moves are in the table."""
        placement, root = self.plan.layout.tensors[name], self._tiled.flow.roots[name]
        row_bytes = self.plan.graph.tensors[name].row_bytes
        if not self._where.moves(root):
            return _stored(placement, row_bytes)
        offsets = self._where.offsets(root, version)
        return Stored(placement.memory, offsets, row_bytes, placement.block_rows)

    def scratch(self, operator: str) -> Stored:
        """The scratch of an operator, in one place or at one for each step."""
        return _stored(self.plan.layout.scratch[operator], 0)

    def _memory(self, move: Move) -> str:
        return self.plan.layout.tensors[move.tensor].memory

    def moves(self) -> list[Moves]:
        """The moves in each arena, by its name."""
        ways: dict[str, list[tuple[int, int, int]]] = {}
        for move, (old, new) in zip(self.plan.layout.moves, self._where.ways(), strict=True):
            size = self._tiled.block_bytes(move.tensor, move.block)
            ways.setdefault(self._memory(move), []).append((old, new, size))
        found = []
        for memory, each in sorted(ways.items()):
            olds, news, sizes = zip(*each, strict=True)
            found.append(Moves(Stored(memory, olds, 0, 1), Stored(memory, news, 0, 1), sizes))
        return found

    def stored(self) -> Iterator[Stored]:
        """Every record with offsets, in the order of the table."""
        yield from (self.tensor(name, version) for name, version in self.tensors)
        yield from (self.scratch(name) for name in self.plan.layout.scratch)
        for moves in self.moves():
            yield from (moves.old, moves.new)


def _records(plan: Plan, tiled: TiledGraph, where: Whereabouts) -> tuple[list[Record], list[int]]:
    """The records in the order of operators, and for each step the place of its record.

    Each version has a table: stretches of all operators take the same as far as they can.
    """
    stretches, of_step = _stretches(plan, tiled, where)
    chosen: dict[str, list[int]] = {}
    found = [
        pair
        for operator, mine in zip(plan.graph.operators, stretches, strict=True)
        for fitting in mine
        for pair in zip(_touched(operator), fitting, strict=True)
    ]
    for name, versions in sorted(found, key=lambda pair: -pair[1].lo):
        if not any(version in versions for version in chosen.setdefault(name, [])):
            chosen[name].append(versions.lo)
    first = [0, *accumulate(len(mine) for mine in stretches)]
    records = []
    for at, mine in enumerate(stretches):
        names = _touched(plan.graph.operators[at])
        for number, fitting in enumerate(mine):
            pairs = zip(names, fitting, strict=True)
            versions_of = (min(version for version in chosen[name] if version in one) for name, one in pairs)
            records.append(Record(at, number, tuple(versions_of)))
    return records, [first[step.operator] + of_step[time] for time, step in enumerate(plan.schedule.steps)]


def _touched(operator: Operator) -> tuple[str, ...]:
    return (*operator.inputs, operator.output)


def _stretches(
    plan: Plan, tiled: TiledGraph, where: Whereabouts
) -> tuple[list[list[list[Interval]]], list[int]]:
    """For each operator its stretches of steps, as long as they go, each with the versions that would do for
    every tensor that it names; and for each step the number of its operator's stretch.
    """
    found: list[list[list[Interval]]] = [[] for _ in plan.graph.operators]
    of_step = []
    for time, step in enumerate(plan.schedule.steps):
        mine, fitting = found[step.operator], _fitting(tiled, where, step, time)
        if mine and all(one.overlaps(other) for one, other in zip(mine[-1], fitting, strict=True)):
            mine[-1] = [one.clip(now.lo, now.hi) for one, now in zip(mine[-1], fitting, strict=True)]
        else:
            mine.append(fitting)
        of_step.append(len(mine) - 1)
    for operator, mine in zip(plan.graph.operators, found, strict=True):
        if not mine and not operator.op.is_view:
            mine.append([Interval(0, 1)] * len(_touched(operator)))
    return found, of_step


def _fitting(tiled: TiledGraph, where: Whereabouts, step: Step, time: int) -> list[Interval]:
    """For each input of a step and its output the versions in which all blocks that it touches lie where they
    do now.
    """
    operator = tiled.graph.operators[step.operator]
    made = 0 if operator.op.accumulates else step.block
    roots = [tiled.flow.roots[name] for name in _touched(operator)]
    touched = [*tiled.blocks_read(step), [(operator.output, made)]]
    ranges = []
    for root, blocks in zip(roots, touched, strict=True):
        version, common = where.version(root, time), Interval(0, where.moves(root) + 1)
        for block_id in blocks:
            same = where.unmoved(block_id, version)
            common = common.clip(same.lo, same.hi)
        ranges.append(common)
    return ranges


def _stored(placement: Placement, row_bytes: int) -> Stored:
    offsets, pitch = placement.offsets, row_bytes * placement.block_rows
    if all(offset == offsets[0] + i * pitch for i, offset in enumerate(offsets)):
        # in one piece (scratch: in one place): one offset serves all rows
        return Stored(placement.memory, offsets[:1], row_bytes, ONE_PIECE)
    return Stored(placement.memory, offsets, row_bytes, placement.block_rows)


def integer_bits(largest: int) -> int:
    """Width of a table's integers."""
    return 16 if largest < 2**16 else 32


def handed_over(plan: Plan, board: Board) -> dict[str, int]:
    """Operators with a kernel that a compute unit other than the first runs: its number among the board's."""
    numbers = {unit.name: number for number, unit in enumerate(board.units)}
    names = unit_names(plan.graph, board, plan.functions)
    kernels = (operator.name for operator in plan.graph.operators if not operator.op.is_view)
    return {name: number for name in kernels if (number := numbers[names[name]])}


def tables_bytes(plan: Plan, calls: Mapping[str, KernelCall], board: Board) -> int:
    """Bytes of flash that a plan takes beside code and weights: records, offset tables and schedule.

    It is what the linker reports for the generated tables, up to a few bytes between them.
    """
    tape = Tape(plan)
    pointer_bytes, handed = 8 if board.is_host else 4, len(handed_over(plan, board))
    # An operator of another unit has a second record, which shares its inputs, and one that points to it.
    pointers, words = (5 + 1) * handed, (2 + 1 + 1 % (pointer_bytes // _WORD)) * handed
    named: set[tuple[str, int]] = set()
    for record in tape.records:
        operator = plan.graph.operators[record.operator]
        pointers += 5 + len(operator.inputs)  # kernel, parameters, inputs, output, scratch
        words += 2
        named |= set(tape.named(record))
        if record.number:
            continue  # the parameters are those of the first
        values = calls[operator.name].params.values()
        scalars = sum(isinstance(value, int | float | np.generic) for value in values)
        padding = scalars % (pointer_bytes // _WORD) if scalars < len(values) else 0
        pointers += len(values) - scalars
        words += scalars + padding
    records = len(named) + len(plan.layout.scratch)
    for moves in tape.moves():  # a record, its input and its parameters, two tensors of places, bytes of each
        pointers, words, records = pointers + 5 + 1 + 1, words + 2 + len(moves.sizes), records + 2
    arenas = len(plan.layout.arenas)
    pointers += 2 * records + 2 * arenas + 3  # an arena's size is padded to a pointer
    words += 2 * records + 3 + 3 % (pointer_bytes // _WORD)
    return (
        pointers * pointer_bytes
        + words * _WORD
        + _offsets_bytes(tape, board.offset_unit)
        + len(tape.codes) * integer_bits(int(tape.codes.max(initial=0))) // 8
    )


def _offsets_bytes(tape: Tape, alignment: int) -> int:
    stored = [offset for each in tape.stored() for offset in each.offsets]
    return len(stored) * integer_bits(max(stored, default=0) // alignment) // 8
