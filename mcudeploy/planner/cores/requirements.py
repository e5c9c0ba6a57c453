"""What the compute units of a plan ask of tensors: alignment, and memories that they all reach."""

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
    """Of each block: a multiple of `alignment` bytes as its offset, in one of `memories` (never none)."""

    alignment: int
    memories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Requirements:
    """Needs of tensors that own memory, and of the scratch and state of operators, by name."""

    tensors: Mapping[str, Need]
    work: Mapping[str, Need]


def unit_names(graph: Graph, board: Board, functions: Sequence[Function]) -> dict[str, str]:
    """Operator to the name of its compute unit: the board's first for what is in no function."""
    first = board.units[0].name
    units = {operator.name: first for operator in graph.operators}
    return units | {name: function.unit for function in functions for name in function.operators}


def users(graph: Graph, board: Board, functions: Sequence[Function]) -> dict[str, tuple[str, ...]]:
    """By tensor that owns memory the units that write or read it, or a view of it.

    Graph inputs and outputs are also touched by the board's first unit, on which the application runs.
    """
    names, roots = unit_names(graph, board, functions), Dataflow.of(graph).roots
    found: dict[str, dict[str, None]] = {root: {} for root in roots.values()}
    for operator in graph.operators:
        if not operator.op.is_view:
            for tensor in (operator.output, *operator.inputs):
                found[roots[tensor]][names[operator.name]] = None
    for border in (*graph.inputs, *graph.outputs):
        found[roots[border.tensor]][board.units[0].name] = None
    return {tensor: tuple(units) for tensor, units in found.items()}


def needs(graph: Graph, board: Board, functions: Sequence[Function] = ()) -> Requirements:
    """What each tensor needs: all its `users` have their say.

    Graph inputs and outputs are in the `border_memories` of the board: a DMA may fill and send them. Inputs
    that arrive by rows are written by the application's code.
    Where several units use a memory and one sees it through a cache, everything there begins at a line of
    that cache: no two blocks have bytes in one line, and cleaning or invalidating one never touches another.
    Raises FitError for a tensor whose units reach no memory in common: a copy step has to come between them.
    """
    names = unit_names(graph, board, functions)
    used = dict.fromkeys((board.units[0].name, *names.values()))
    lines = _lines(board, [board.unit(name) for name in used])
    touched = users(graph, board, functions)
    roots = Dataflow.of(graph).roots
    borders = {roots[border.tensor] for border in (*graph.resident_inputs(), *graph.own_outputs())}
    tensors = {tensor: _need(board, tensor, units, lines) for tensor, units in touched.items()}
    tensors |= {name: _within(tensors[name], board.border_memories) for name in borders}
    work = {name: _need(board, f"the scratch of {name}", [unit], lines) for name, unit in names.items()}
    return Requirements(tensors, work)


def _within(need: Need, preferred: Collection[str]) -> Need:
    """A need with these memories alone, as far as its units reach any of them."""
    return replace(need, memories=tuple(it for it in need.memories if it in preferred) or need.memories)


def _lines(board: Board, units: Sequence[Unit]) -> dict[str, int]:
    """By memory that several of these units reach, and some through a cache, what begins at a line of it."""
    lines = {}
    for memory in (memory.name for memory in board.memories):
        sizes = [unit.cache_line for unit in units if memory in unit.cached]
        if sizes and sum(memory in board.reach(unit) for unit in units) > 1:
            lines[memory] = lcm(*sizes)
    return lines


def _need(board: Board, what: str, units: Collection[str], lines: Mapping[str, int]) -> Need:
    memories = common(board, units)
    if not memories:
        listed = reach_text(board, units)
        raise FitError(f"{what}: no memory of {board.name} is reached by all of its units: {listed}.")
    alignments = [board.unit(unit).alignment for unit in units] + [lines.get(it, 1) for it in memories]
    return Need(lcm(*alignments), memories)
