"""The graph that computes a window from its new rows and the rows that the last run has left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from mcudeploy.ir.graph import Graph, GraphIO, Operator, Shape, State, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import OperatorDef
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.move import Slice
from mcudeploy.ops.move.queue import Queue
from mcudeploy.ops.move.view import Reshape
from mcudeploy.planner.hop.computed_rows import ComputedRows
from mcudeploy.planner.hop.operator_rows import OperatorPart, restricted
from mcudeploy.planner.hop.row_io import new_rows, stored_rows
from mcudeploy.planner.hop.steady import Steadiness
from mcudeploy.tiling.dataflow import Dataflow, RowAccess


@dataclass(frozen=True, slots=True)
class _Held:
    """A tensor of the new graph that holds some rows of a tensor of the window."""

    rows: Interval
    tensor: str
    borrowed: bool = False
    """Whether the memory belongs to a state or to another tensor of the window."""


def incremental(graph: Graph, steady: Steadiness, rows: Mapping[str, ComputedRows]) -> Graph:
    """Return the graph of a run that computes `rows` of each tensor from new rows of the input.

    Once the window is full, its outputs equal those of `graph`, bit for bit.
    """
    return _Rewriter(graph, steady, rows).rewritten()


@dataclass(slots=True)
class _Rewriter:
    graph: Graph
    steady: Steadiness
    rows: Mapping[str, ComputedRows]
    tensors: dict[str, Tensor] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    held: dict[str, list[_Held]] = field(default_factory=dict)
    """By tensor of the window, the tensors that hold rows of it."""

    def rewritten(self) -> Graph:
        graph, io = self.graph, self.graph.inputs[0]
        window = graph.tensors[io.tensor]
        new = self.steady.tensors[window.name].new
        self._hold(window.name, new, window.name)
        self._keep(window.name)
        for operator, readings in zip(graph.operators, Dataflow.of(graph).readings, strict=True):
            if operator.output in self.rows:
                self._compute(operator, readings)
        outputs = tuple(replace(it, tensor=self._output(it)) for it in graph.outputs)
        return replace(
            graph,
            tensors=self.tensors,
            operators=tuple(self.operators),
            inputs=(new_rows(io, window, len(new)), *(state.before for state in self.states)),
            outputs=(*outputs, *(state.after for state in self.states)),
            references={},
            states=tuple(self.states),
        )

    def _output(self, io: GraphIO) -> str:
        """Return a tensor with all rows of an output, which is neither a state nor the input."""
        name = io.tensor
        everything = Interval(0, self.graph.tensors[name].shape[0])
        self._reading(name, everything)
        held = next(it for it in self.held[name] if it.rows == everything)
        return self._sliced(name, held, everything)

    def _compute(self, operator: Operator, readings: tuple[RowAccess, ...]) -> None:
        """Add the operators for the computed rows of an output, and the one that keeps rows."""
        name = operator.output
        computed = self.rows[name].computed
        for number, rows in enumerate(computed):
            part = self._part(operator, readings, rows)
            inputs = tuple(map(self._reading, operator.inputs, part.reads))
            if _is_copy(part.op, self.tensors[inputs[0]].shape):
                self.held.setdefault(name, []).append(_Held(rows, inputs[0], borrowed=True))
                continue
            suffix = "" if len(computed) == 1 else ("_head", "_tail")[number]
            self._hold(name, rows, f"{name}{suffix}")
            self.operators.append(
                replace(
                    operator,
                    name=f"{operator.name}{suffix}",
                    op=part.op,
                    inputs=inputs,
                    output=f"{name}{suffix}",
                )
            )
        self._keep(name)

    def _part(self, operator: Operator, readings: tuple[RowAccess, ...], rows: Interval) -> OperatorPart:
        shapes = tuple(tensor.shape for tensor in self.graph.input_tensors(operator))
        whole = OperatorPart(operator.op, tuple(Interval(0, shape[0]) for shape in shapes))
        if operator.output not in self.steady.tensors:
            return whole
        part = restricted(operator, readings, shapes, rows)
        everything = len(rows) == self.graph.tensors[operator.output].shape[0]
        return whole if everything and part.reads == whole.reads else part

    def _keep(self, name: str) -> None:
        """Add the queue that takes in the new rows of a tensor, if any stay."""
        rows = self.rows[name]
        if not len(rows.kept):
            return
        tensor, stored = self.graph.tensors[name], rows.stored
        row_elements = tensor.shape[1] * tensor.shape[2]
        entering = self._viewed(self._reading(name, rows.new), (1, len(rows.new), row_elements))
        state = replace(tensor, name=f"{name}_kept", shape=(1, len(stored), row_elements))
        moved = replace(state, name=f"{name}_queue")
        self.tensors |= {state.name: state, moved.name: moved}
        self.operators.append(Operator(moved.name, Queue(), (entering, state.name), moved.name))
        initial = np.zeros(state.shape, state.dtype.value)
        self.states.append(State(stored_rows(state), stored_rows(moved), initial))
        view = self._viewed(moved.name, (len(stored), *tensor.shape[1:]))
        self.held[name].append(_Held(stored, view, borrowed=True))

    def _reading(self, name: str, rows: Interval) -> str:
        """Return a tensor with exactly these rows of a tensor of the window."""
        held = self.held[name]
        known = next((it.tensor for it in held if it.rows == rows), None)
        if known is not None:
            return known
        covers = (_cover(held, rows), _cover_from_end(held, rows))
        parts = min(covers, key=lambda some: sum(each.rows != it for each, it in some))
        tensors = [self._sliced(name, each, it) for each, it in parts]
        if len(tensors) > 1:
            tensors = [self._emit(Concat(0), tuple(tensors), f"{name}_joined_{rows.lo}_{rows.hi}")]
        held.append(_Held(rows, tensors[0]))
        return tensors[0]

    def _sliced(self, name: str, held: _Held, rows: Interval) -> str:
        """Return a tensor with some of the rows that another holds."""
        if held.rows == rows and not held.borrowed:
            return held.tensor
        _, cols, channels = self.tensors[held.tensor].shape
        op = Slice((rows.lo - held.rows.lo, 0, 0), (1, 1, 1), (len(rows), cols, channels))
        return self._emit(op, (held.tensor,), f"{name}_rows_{rows.lo}_{rows.hi}")

    def _viewed(self, name: str, shape: Shape) -> str:
        """Return a tensor under another shape."""
        if self.tensors[name].shape == shape:
            return name
        return self._emit(Reshape(shape), (name,), f"{name}_view")

    def _emit(self, op: OperatorDef, inputs: tuple[str, ...], name: str) -> str:
        """Add an operator that only moves elements."""
        while name in self.tensors:
            name += "_"
        shape = op.loops(tuple(self.tensors[each].shape for each in inputs)).output_shape()
        self.tensors[name] = replace(self.tensors[inputs[0]], name=name, shape=shape)
        self.operators.append(Operator(name, op, inputs, name))
        return name

    def _hold(self, name: str, rows: Interval, tensor: str) -> None:
        """Add a tensor for some rows of a tensor of the window."""
        whole = self.graph.tensors[name]
        self.tensors[tensor] = replace(whole, name=tensor, shape=(len(rows), *whole.shape[1:]))
        self.held.setdefault(name, []).append(_Held(rows, tensor))


_Cover = list[tuple[_Held, Interval]]
"""Tensors, and the rows to take of each, in ascending order."""


def _cover(held: list[_Held], rows: Interval) -> _Cover:
    """Cover rows by tensors that hold some of them, each as far as it reaches."""
    cover: _Cover = []
    at = rows.lo
    while at < rows.hi:
        best = max((it for it in held if at in it.rows), key=lambda it: it.rows.hi)
        cover.append((best, Interval(at, min(best.rows.hi, rows.hi))))
        at = cover[-1][1].hi
    return cover


def _cover_from_end(held: list[_Held], rows: Interval) -> _Cover:
    """Cover rows as `_cover` does, but from the last row backwards."""
    cover: _Cover = []
    end = rows.hi
    while end > rows.lo:
        best = min((it for it in held if end - 1 in it.rows), key=lambda it: it.rows.lo)
        cover.append((best, Interval(max(best.rows.lo, rows.lo), end)))
        end = cover[-1][1].lo
    return cover[::-1]


def _is_copy(op: OperatorDef, shape: Shape) -> bool:
    """Return whether an operator only copies its input of this shape."""
    return op == Slice((0, 0, 0), (1, 1, 1), shape)
