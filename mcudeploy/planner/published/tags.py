"""Memory tags: which tensors of a program share memory, by reference counts, on several compute units.

A tag has a number, a reference count, a size and the memories in which it may lie. Inputs and outputs of the
model have one reference more than their readers, so they stay. Each read by an operator or a call is one
reference; after the last one, the tag is free.

The model's level comes first: inputs and outputs of functions. Within a call follows the function's level:
its inputs are the caller's tags, which the call holds until it ends. The operators' level is last. A tensor
takes over the tag of an input that its operator is the last to read and may overwrite. Units that use the
tensor must reach that memory, and size and alignment must match. Otherwise it requests a tag: the smallest
free one of `need` to 16 * `need` bytes. If there is none, it enlarges the largest of at least `need` / 16
bytes, or takes a new one. The tag lies in memories that all units that use it reach.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import lcm
from typing import NamedTuple

from mcudeploy.boards.board import Board
from mcudeploy.ir.graph import Graph
from mcudeploy.ir.plan import Function
from mcudeploy.planner.cores.reach import common
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.tiling.dataflow import Dataflow

_REACH = 16
"""The maximum ratio between the size of a reused free tag and the need, in both directions."""


@dataclass(frozen=True, slots=True)
class TagOperator:
    """An operator; `overwrites`: inputs, by position, whose memory its output may take over."""

    output: str
    inputs: tuple[str, ...]
    overwrites: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TagFunction:
    """Operators that one compute unit runs, the tensors that they read from outside, and those read there."""

    unit: str
    operators: tuple[TagOperator, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TagProgram:
    """A model: functions in the order of their calls, its inputs and outputs, bytes of each tensor."""

    functions: tuple[TagFunction, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sizes: Mapping[str, int]


@dataclass(slots=True, eq=False)
class Tag:
    """Bytes in one of `memories` that tensors use in turn; `count`: references left."""

    number: int
    memories: tuple[str, ...]
    bytes: int = 0
    alignment: int = 1
    count: int = 0


def program_of(graph: Graph, board: Board, functions: Sequence[Function]) -> TagProgram:
    """Return a graph and its functions as a program; without functions the board's first unit has one.

    Views are their sources. Constants lie in flash and have no tags.
    """
    whole = Function(board.units[0].name, tuple(operator.name for operator in graph.operators))
    roots = Dataflow.of(graph).roots
    operators = {
        it.name: TagOperator(
            it.output,
            tuple(roots[name] for name in it.inputs),
            it.op.overwrites(graph.input_tensors(it), graph.tensors[it.output]),
        )
        for it in graph.operators
        if not it.op.is_view
    }
    groups = [[operators[name] for name in it.operators if name in operators] for it in functions or (whole,)]
    last = {roots[io.tensor] for io in graph.outputs}
    called = []
    for function, group in zip(functions or (whole,), groups, strict=True):
        own = {it.output for it in group}
        read = {name for other in groups if other is not group for it in other for name in it.inputs}
        inputs = dict.fromkeys(name for it in group for name in it.inputs if name not in own)
        outputs = tuple(it.output for it in group if it.output in read | last)
        called.append(TagFunction(function.unit, tuple(group), tuple(inputs), outputs))
    given = tuple(io.tensor for io in graph.resident_inputs())
    sizes = {name: graph.tensors[name].size_bytes for name in roots}
    return TagProgram(tuple(called), given, tuple(sorted(last)), sizes)


def assign_tags(program: TagProgram, board: Board, alignment: int = 1) -> dict[str, Tag]:
    """Return the tag of each tensor of a program; `alignment` in bytes is what the model itself requires.

    The units of a tensor have a memory in common: copies between others are operators of the program.
    """
    return _TagWalk(program, board, alignment).tags()


class _Demand(NamedTuple):
    """The memories in which a tensor may lie, its bytes, and their alignment."""

    memories: tuple[str, ...]
    bytes: int
    alignment: int


class _TagWalk:
    """The walk through all levels: the tags, of which those with a count of 0 are free, and the tensors."""

    def __init__(self, program: TagProgram, board: Board, alignment: int) -> None:
        self._program, self._board, self._alignment = program, board, alignment
        self._tags: list[Tag] = []
        self._tag_of: dict[str, Tag] = {}
        self._units: dict[str, list[str]] = {name: [] for name in program.inputs}
        for function in program.functions:
            for name in (*function.inputs, *function.outputs):
                self._units.setdefault(name, []).append(function.unit)
        self._reads = Counter(name for function in program.functions for name in function.inputs)
        self._reads.update(program.outputs)

    def tags(self) -> dict[str, Tag]:
        """Return the result of the walk."""
        for name in self._program.inputs:
            self._bind(name, self._requested(self._shared(name)), 1 + self._reads[name])
        for function in self._program.functions:
            self._call(function)
        return self._tag_of

    def _call(self, function: TagFunction) -> None:
        arguments = [self._tag_of[name] for name in function.inputs]
        for name in function.outputs:
            may = [at for at in _overwritable(function, name) if arguments.count(arguments[at]) == 1]
            demand = self._shared(name)
            tag = _taken_over(arguments, may, demand) or self._requested(demand)
            self._bind(name, tag, 1 + self._reads[name])  # one until the call ends
        results = [self._tag_of[name] for name in function.outputs]
        reads = Counter(name for operator in function.operators for name in operator.inputs)
        reads.update(function.outputs)
        for name in (*function.inputs, *function.outputs):
            self._tag_of[name].count += reads[name]
        for operator in function.operators:
            read = [self._tag_of[name] for name in operator.inputs]
            if operator.output not in self._tag_of:
                demand = self._demand(operator.output, [function.unit], [function.unit])
                tag = _taken_over(read, operator.overwrites, demand) or self._requested(demand)
                self._bind(operator.output, tag, reads[operator.output])
            for tag in read:
                tag.count -= 1
        for tag in (*arguments, *results, *results):
            tag.count -= 1

    def _bind(self, name: str, tag: Tag, references: int) -> None:
        tag.count += references
        self._tag_of[name] = tag

    def _shared(self, name: str) -> _Demand:
        """Return the demand of a tensor between functions; the first unit writes inputs and reads outputs."""
        units = self._units[name]
        ios = {*self._program.inputs, *self._program.outputs}
        return self._demand(name, units, [*units, self._board.units[0].name] if name in ios else units)

    def _demand(self, name: str, units: Sequence[str], reaching: Sequence[str]) -> _Demand:
        alignment = lcm(self._alignment, *(self._board.unit(unit).alignment for unit in units))
        need = align_up(self._program.sizes[name], alignment)
        return _Demand(common(self._board, reaching), need, alignment)

    def _requested(self, demand: _Demand) -> Tag:
        """Return a free tag that is near the demand, or a new one."""
        memories, need, alignment = demand
        free = [tag for tag in self._tags if not tag.count and not set(tag.memories).isdisjoint(memories)]
        large = [tag for tag in free if need <= tag.bytes <= _REACH * need]
        small = [tag for tag in free if need <= _REACH * tag.bytes and tag.bytes < need]
        if large:
            tag = min(large, key=lambda tag: tag.bytes)
        elif small:
            tag = max(small, key=lambda tag: tag.bytes)
        else:
            tag = Tag(len(self._tags), memories)
            self._tags.append(tag)
        tag.memories = tuple(memory for memory in tag.memories if memory in memories)
        tag.alignment = lcm(tag.alignment, alignment)
        tag.bytes = align_up(max(tag.bytes, need), tag.alignment)
        return tag


def _taken_over(read: Sequence[Tag], may: Sequence[int], demand: _Demand) -> Tag | None:
    """Return the tag of an input, by position in `read`, that the result takes over; None if there is none.

    All remaining references to it are these reads, and each of them may be overwritten.
    """
    for at in may:
        tag = read[at]
        places = {other for other, one in enumerate(read) if one is tag}
        fits = demand.bytes <= tag.bytes and tag.alignment % demand.alignment == 0
        reached = tuple(memory for memory in tag.memories if memory in demand.memories)
        if reached and fits and tag.count == len(places) and places <= set(may):
            tag.memories = reached
            return tag
    return None


def _overwritable(function: TagFunction, output: str) -> Iterator[int]:
    """Yield inputs of a function, by position, that an output's operator reads last and may overwrite."""
    for position, name in enumerate(function.inputs):
        last = next(it for it in reversed(function.operators) if name in it.inputs)
        slots = {at for at, read in enumerate(last.inputs) if read == name}
        if last.output == output and slots <= set(last.overwrites):
            yield position
