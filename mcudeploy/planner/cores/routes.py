"""The steps between compute units: copies if two units reach no common memory, and cache maintenance.

    P makes t, C reads t                    one memory that both reach, no caches: nothing to do
    P makes raw, Clean on P makes t,        P, C see that memory through a cache
      Invalidate on C makes t_C, C reads t_C
    P makes t, Copy makes t_C, C reads t_C  no memory that both reach; a unit that reaches one of each copies

All of them are the identity, row by row. Cache maintenance works in place if the live ranges of the tensors
allow it; otherwise its kernels copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mcudeploy.boards.board import Board
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.opdef import OperatorDef
from mcudeploy.ops.move.transfer import Clean, Copy, Invalidate
from mcudeploy.ops.move.view import Reshape
from mcudeploy.planner.cores.functions import Assignment
from mcudeploy.planner.cores.reach import common, is_cached, meet
from mcudeploy.tiling.dataflow import Dataflow

_APPLICATION = -1
"""The position that stands for the application, which writes graph inputs and reads graph outputs."""


def with_transfers(graph: Graph, board: Board, assignment: Assignment) -> tuple[Graph, Assignment]:
    """Return the graph with the copy and cache steps for tensors that go between units, and their units.

    The application runs on the board's first unit. Raises FitError if a tensor must go between two units and
    no unit reaches memories of both.
    """
    if not assignment.elsewhere:
        return graph, assignment
    made, assignment = _Rewrite(graph, board, assignment).rewritten()
    return _with_whole_inputs(made, board), assignment


def _with_whole_inputs(graph: Graph, board: Board) -> Graph:
    """Return the graph with inputs read whole if their rows would share a cache line.

    Operators read such an input through a view of one row, and a view of that with the input's rows. Its
    rows thus die together. Else another unit would reuse the place of a dead row, and its invalidation would
    hit live rows in the same line.
    """
    lines = [unit.cache_line for unit in board.units if unit.cached]
    rows = {it.tensor: graph.tensors[it.tensor].row_bytes for it in graph.inputs}
    shared = [name for name, row_bytes in rows.items() if any(row_bytes % line for line in lines)]
    views = {name: replace(graph.tensors[name], name=f"{name}_whole") for name in shared}
    pieces = {
        name: replace(view, name=f"{name}_piece", shape=(1, 1, view.elements)) for name, view in views.items()
    }
    before = tuple(
        Operator(f"view_{it.name}", Reshape(it.shape), (source,), it.name)
        for name in shared
        for source, it in ((name, pieces[name]), (pieces[name].name, views[name]))
    )
    after = tuple(
        replace(it, inputs=tuple(views[name].name if name in views else name for name in it.inputs))
        for it in graph.operators
    )
    tensors = {**graph.tensors, **{it.name: it for it in (*pieces.values(), *views.values())}}
    return replace(graph, tensors=tensors, operators=before + after) if views else graph


@dataclass(frozen=True, slots=True)
class _TensorReader:
    """A read of tensor `name` on a unit by operator `position`."""

    position: int
    name: str
    unit: str


@dataclass(frozen=True, slots=True)
class _TensorRoute:
    """The producer of a tensor, and the memories in which it may lie."""

    producer: str
    memories: tuple[str, ...]


class _Rewrite:
    """The new operators, each after the producer of its input, and the changed inputs and outputs."""

    def __init__(self, graph: Graph, board: Board, assignment: Assignment) -> None:
        self._graph, self._board, self._assignment = graph, board, assignment
        self._producers = graph.producers()
        self._tensors, self._references = dict(graph.tensors), dict(graph.references)
        self._elsewhere = dict(assignment.elsewhere)
        self._operators = {operator.name for operator in graph.operators}
        self._after: dict[int, list[Operator]] = {}
        self._read_instead: dict[tuple[int, str], str] = {}  # by reader and tensor
        self._written_instead: dict[str, str] = {}
        self._seen_by: dict[tuple[str, str], str] = {}  # by tensor and unit

    def rewritten(self) -> tuple[Graph, Assignment]:
        """Return the rewritten graph and its assignment."""
        graph, readers = self._graph, self._readers()
        for io in graph.inputs:
            self._cross(io.tensor, self._assignment.first, readers[io.tensor])
        for operator in graph.operators:
            if not operator.op.is_view:
                self._cross(operator.output, self._assignment.unit(operator.name), readers[operator.output])
        operators = list(self._after.get(_APPLICATION, ()))
        for position, operator in enumerate(graph.operators):
            inputs = tuple(self._read_instead.get((position, name), name) for name in operator.inputs)
            output = self._written_instead.get(operator.output, operator.output)
            operators.append(replace(operator, inputs=inputs, output=output))
            operators += self._after.get(position, ())
        graph = replace(
            graph,
            tensors=self._tensors,
            operators=tuple(operators),
            inputs=tuple(
                replace(it, tensor=self._written_instead.get(it.tensor, it.tensor)) for it in graph.inputs
            ),
            outputs=tuple(
                replace(it, tensor=self._read_instead[_APPLICATION, it.tensor]) for it in graph.outputs
            ),
            references=self._references,
        )
        return graph, Assignment(self._assignment.first, self._elsewhere)

    def _readers(self) -> dict[str, list[_TensorReader]]:
        """Return, by tensor that owns memory, its readers, also through views; views are not readers."""
        roots = Dataflow.of(self._graph).roots
        readers: dict[str, list[_TensorReader]] = {name: [] for name in self._graph.tensors}
        for position, operator in enumerate(self._graph.operators):
            if not operator.op.is_view:
                unit = self._assignment.unit(operator.name)
                for name in dict.fromkeys(operator.inputs):
                    readers[roots[name]].append(_TensorReader(position, name, unit))
        for io in self._graph.outputs:
            readers[roots[io.tensor]].append(_TensorReader(_APPLICATION, io.tensor, self._assignment.first))
        return readers

    def _cross(self, tensor: str, producer: str, readers: Sequence[_TensorReader]) -> None:
        """Add the steps between the producer of a tensor and its readers."""
        meeting = meet(self._board, tensor, producer, [reader.unit for reader in readers])
        route = _TensorRoute(producer, meeting.memories)
        shared = len(meeting.units) > 1
        # Rows of a graph input share cache lines, as in the application's array: then any cache matters.
        units = [producer] if tensor in self._producers else meeting.units
        if shared and any(is_cached(self._board, unit, route.memories) for unit in units):
            raw = self._new_tensor(tensor, "raw")
            self._written_instead[tensor] = raw
            self._add(Clean(), raw, tensor, producer, self._position(tensor))
        for reader in readers:
            copier = meeting.copiers.get(reader.unit)
            if copier is None:
                name = self._read_in_reach(reader.name, reader.unit, route)
            else:
                name = self._read_out_of_reach(reader.name, copier, reader.unit, route)
            self._read_instead[reader.position, reader.name] = name

    def _read_in_reach(self, name: str, unit: str, route: _TensorRoute) -> str:
        """Return the tensor that a unit reads in place of one that lies in its reach."""
        if unit == route.producer or not is_cached(self._board, unit, route.memories):
            return name
        if (name, unit) not in self._seen_by:
            self._seen_by[name, unit] = self._new_tensor(name, unit)
            self._add(Invalidate(), name, self._seen_by[name, unit], unit, self._position(name))
        return self._seen_by[name, unit]

    def _read_out_of_reach(self, name: str, copier: str, unit: str, route: _TensorRoute) -> str:
        """Return the tensor that a unit reads in place of one that is out of its reach."""
        if (name, unit) not in self._seen_by:
            onwards = _TensorRoute(copier, common(self._board, [copier, unit]))
            source = self._read_in_reach(name, copier, route)
            copied = written = self._new_tensor(name, unit)
            if is_cached(self._board, copier, onwards.memories):
                written = self._new_tensor(copied, "raw")
            self._add(Copy(), source, written, copier, self._position(name))
            if written != copied:
                self._add(Clean(), written, copied, copier, self._position(name))
            self._producers[copied] = self._position(name)
            self._seen_by[name, unit] = self._read_in_reach(copied, unit, onwards)
        return self._seen_by[name, unit]

    def _position(self, name: str) -> int:
        return self._producers.get(name, _APPLICATION)

    def _new_tensor(self, like: str, suffix: str) -> str:
        """Add a separate tensor with the same values."""
        name = f"{like}_{suffix}"
        while name in self._tensors:
            name += "_"
        self._tensors[name] = replace(self._tensors[like], name=name)
        if like in self._references:
            self._references[name] = replace(self._references[like], tensor=name)
        return name

    def _add(self, op: OperatorDef, source: str, output: str, unit: str, position: int) -> None:
        """Add an operator on a unit, after the one at a position."""
        name = f"{op.kind.lower()}_{output}"
        while name in self._operators:
            name += "_"
        self._operators.add(name)
        self._after.setdefault(position, []).append(Operator(name, op, (source,), output))
        if unit != self._assignment.first:
            self._elsewhere[name] = unit
