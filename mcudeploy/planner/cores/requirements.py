"""The requirements of compute units on tensors: alignment, and memories that they all reach."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm

from mcudeploy.boards.board import Board, Unit
from mcudeploy.common.errors import FitError
from mcudeploy.ir.graph import Graph
from mcudeploy.ir.plan import Function
from mcudeploy.planner.cores.reach import common, reach_text
from mcudeploy.tiling.dataflow import Dataflow


@dataclass(frozen=True, slots=True)
class Need:
    """The requirement on each block: an offset that is a multiple of `alignment` bytes, in one of `memories`.

    `memories` is never empty. The first block begins at a multiple of `start`.
    """

    alignment: int
    memories: tuple[str, ...]
    start: int = 1


@dataclass(frozen=True, slots=True)
class Requirements:
    """Requirements of tensors that own memory, and of the scratch and state of operators, by name.

    `memories`: those of the board, in its order. `users`: the units that access each tensor.
    """

    tensors: Mapping[str, Need]
    work: Mapping[str, Need]
    memories: tuple[str, ...]
    users: Mapping[str, tuple[str, ...]]


def unit_names(graph: Graph, board: Board, functions: Sequence[Function]) -> dict[str, str]:
    """Return the compute unit of each operator by name; the board's first for operators in no function."""
    first = board.units[0].name
    units = {operator.name: first for operator in graph.operators}
    return units | {name: function.unit for function in functions for name in function.operators}


def users(graph: Graph, names: Mapping[str, str], first: str) -> dict[str, tuple[str, ...]]:
    """Return, for each tensor that owns memory, the units that write or read it or a view of it.

    `names`: the units of operators. The application, which accesses inputs and outputs, runs on `first`.
    """
    roots = Dataflow.of(graph).roots
    units_of: dict[str, dict[str, None]] = {root: {} for root in roots.values()}
    for operator in graph.operators:
        if not operator.op.is_view:
            for tensor in (operator.output, *operator.inputs):
                units_of[roots[tensor]][names[operator.name]] = None
    for io in (*graph.inputs, *graph.outputs):
        units_of[roots[io.tensor]][first] = None
    return {tensor: tuple(units) for tensor, units in units_of.items()}


def needs(graph: Graph, board: Board, functions: Sequence[Function] = ()) -> Requirements:
    """Return the requirements of each tensor: those of all its `users`.

    Graph inputs and outputs are in the `io_memories` of the board, since a DMA may fill and send them.
    Streamed inputs may be elsewhere: code of the application writes them. Inputs, outputs and states begin
    at a line of the application's cache: no line has bytes of two of them between runs. If several units use
    a memory and one accesses it through a cache, everything in it begins at a cache line: no two blocks share
    a line, so cleaning or invalidating one never affects another. Raises FitError if the units of a tensor
    reach no memory in common, so that a copy step is needed.
    """
    names = unit_names(graph, board, functions)
    first, memories = board.units[0].name, tuple(memory.name for memory in board.memories)
    used = {name: board.unit(name) for name in (first, *names.values())}
    lines = _lines(memories, {name: board.reach(unit) for name, unit in used.items()}, used.values())
    touched = users(graph, names, first)
    roots = Dataflow.of(graph).roots
    ios = {roots[io.tensor] for io in (*graph.resident_inputs(), *graph.own_outputs())}
    tensors = {tensor: _need(board, tensor, units, lines) for tensor, units in touched.items()}
    tensors |= {name: _within(tensors[name], board.io_memories) for name in ios}
    kept = {roots[io.tensor] for io in (*graph.resident_inputs(), *graph.outputs)}
    tensors |= {name: replace(tensors[name], start=board.io_alignment) for name in kept}
    work = {name: _need(board, f"the scratch of {name}", [unit], lines) for name, unit in names.items()}
    return Requirements(tensors, work, memories, touched)


def _within(need: Need, preferred: Collection[str]) -> Need:
    """Restrict a requirement to the preferred memories that its units reach, if any."""
    return replace(need, memories=tuple(it for it in need.memories if it in preferred) or need.memories)


def _lines(
    memories: Sequence[str], reached: Mapping[str, Collection[str]], units: Collection[Unit]
) -> dict[str, int]:
    """Return the cache line sizes, for memories that several of these units reach, some through a cache."""
    lines = {}
    for memory in memories:
        sizes = [unit.cache_line for unit in units if memory in unit.cached]
        if sizes and sum(memory in each for each in reached.values()) > 1:
            lines[memory] = lcm(*sizes)
    return lines


def _need(board: Board, what: str, units: Collection[str], lines: Mapping[str, int]) -> Need:
    memories = common(board, units)
    if not memories:
        listed = reach_text(board, units)
        raise FitError(f"{what}: no memory of {board.name} is reached by all of its units: {listed}.")
    alignments = [board.unit(unit).alignment for unit in units] + [lines.get(it, 1) for it in memories]
    return Need(lcm(*alignments), memories)
