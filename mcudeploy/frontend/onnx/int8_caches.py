"""Caches whose rows are int8: each row that a run writes has a float32 scale beside it."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.common.text import printable
from mcudeploy.frontend.onnx.protos import function_of, graphs_of, opset_of, refill, sizes_of, unused_name
from mcudeploy.frontend.onnx.rounding import DOMAIN
from mcudeploy.frontend.onnx.states import LOAD, QUEUE, WRITE, KeptState

WIDEN = "Widen"
"""Operator on int8 rows and their scales: the rows as floats."""
_MIN_SCALE = 1e-30
"""The smallest scale of a row, so that a row of zeros does not become NaN."""
_MIN_SCALED_VALUES = 64
"""Number of values of a head from which on each of its rows has a scale: 4 dB less noise for 1/16 more bytes.
Smaller heads share one scale for each position.
"""
_AXES_AS_INPUT = 18
"""The first opset in which ReduceMax has its axes as an input."""
_LEAVE_OUT = "leave it out of --int8-cache"


def chosen(patterns: Sequence[str], states: Sequence[str]) -> set[str]:
    """Return the states that --int8-cache selects by names and patterns, separated by commas.

    Raises UsageError for a name or pattern that fits no state, and for a model without states.
    """
    if patterns and not states:
        raise UsageError("--int8-cache: the model has no states: name its caches by --state OUTPUT=INPUT")
    named = [name.strip() for each in patterns for name in each.split(",")]
    unknown = next((it for it in named if not any(fnmatchcase(state, it) for state in states)), None)
    if unknown is not None:
        known = ", ".join(map(printable, states))
        raise UsageError(f"--int8-cache: no state is named {printable(unknown)!r}; the states are {known}")
    return {state for state in states if any(fnmatchcase(state, it) for it in named)}


def in_int8(proto: ModelProto, name: str, kept: Sequence[KeptState]) -> list[KeptState]:
    """Store the rows of the cache `name`, which consists of the states `kept`, as int8 with scales.

    Returns the states that replace these. Raises ModelError for a state that is not a cache of float32 rows,
    or if nodes read the rows that it has before the run writes.
    """
    return [it for state in kept for it in _stored(proto, name, state)]


def _stored(proto: ModelProto, name: str, kept: KeptState) -> list[KeptState]:
    """Replace a state by one of int8 rows and one of scales; return these."""
    graph, label = proto.graph, f"state {printable(name)!r}"
    enter, load = (_reader(graph, kept.before, *ops) for ops in ((QUEUE, WRITE), (LOAD,)))
    if enter is None or (enter.op_type == QUEUE and load is not None):
        raise ModelError(f"{label} is not a cache of which a run writes some rows: {_LEAVE_OUT}")
    before = next(it for it in graph.input if it.name == kept.before)
    if before.type.tensor_type.elem_type != TensorProto.FLOAT:
        raise ModelError(f"{label} is not float32: {_LEAVE_OUT}")
    old_rows = set() if load is None else set(load.output)
    if any(not old_rows.isdisjoint(node.input) for inner in graphs_of(graph) for node in inner.node):
        raise ModelError(f"{label}: nodes read the rows that it has before the run writes: {_LEAVE_OUT}")
    sizes, entry = sizes_of(before), _EntryNodes(proto, kept.after)
    axis = next(it.i for it in enter.attribute if it.name == "axis")
    row_axes = [at for at in range(len(sizes)) if at != axis]
    if row_axes and sizes[row_axes[-1]] >= _MIN_SCALED_VALUES:
        row_axes = row_axes[-1:]
    rows, scales = entry.quantized(enter.input[0], row_axes)
    scale_sizes = [1 if at in row_axes else size for at, size in enumerate(sizes)]
    states = [
        entry.state(enter, rows, TensorProto.INT8, sizes),
        entry.state(enter, scales, TensorProto.FLOAT, scale_sizes),
    ]
    entry.add(WIDEN, *(it.after for it in states), out=kept.after, domain=DOMAIN)
    nodes = (entry.nodes if node == enter else [node] for node in graph.node if node != load)
    refill(graph.node, (it for several in nodes for it in several))
    graph.input.remove(before)
    return states


def _reader(graph: GraphProto, state: str, *ops: str) -> NodeProto | None:
    """The first node with one of the operators `ops` that reads a state, if there is one."""
    readers = (it for it in graph.node if it.domain == DOMAIN and it.op_type in ops and state in it.input)
    return next(readers, None)


class _EntryNodes:
    """Collects the nodes that replace the node by which rows enter a cache; `after`: this node's result."""

    def __init__(self, proto: ModelProto, after: str) -> None:
        self._graph, self._opset, self._after = proto.graph, opset_of(proto), after
        self.nodes: list[NodeProto] = []

    def add(self, op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        """Add a node, and return its result."""
        result = out or unused_name(self._graph, f"{self._after}_{op.lower()}_{len(self.nodes)}")
        self.nodes.append(helper.make_node(op, inputs, [result], f"{result}_{op.lower()}", **attributes))
        return result

    def _constant(self, value: Any) -> str:
        name = unused_name(self._graph, f"{self._after}_constant_{len(self._graph.initializer)}")
        self._graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def quantized(self, rows: str, axes: Sequence[int]) -> tuple[str, str]:
        """The rows as int8 with the largest value 127, and their float32 scales; `axes`: those of a row."""
        magnitudes = self.add("Abs", rows)
        if self._opset < _AXES_AS_INPUT:
            largest = self.add("ReduceMax", magnitudes, axes=list(axes), keepdims=1)
        else:
            largest = self.add("ReduceMax", magnitudes, self._constant(np.array(axes)), keepdims=1)
        scale = self.add("Mul", largest, self._constant(np.float32(1 / 127)))
        scale = self.add("Max", scale, self._constant(np.float32(_MIN_SCALE)))
        steps = self.add("Div", rows, scale)
        one, zero = self._constant(np.float32(1)), self._constant(np.int8(0))
        return self.add("QuantizeLinear", steps, one, zero), scale

    def state(self, enter: NodeProto, newest: str, kind: int, sizes: Sequence[int]) -> KeptState:
        """Add a state of these sizes, and a copy of the node `enter` by which the rows `newest` enter it."""
        ending = "scales" if kind == TensorProto.FLOAT else "int8"
        before = unused_name(self._graph, f"{enter.input[1]}_{ending}")
        self._graph.input.append(helper.make_tensor_value_info(before, kind, sizes))
        node = NodeProto()
        node.CopyFrom(enter)
        after = unused_name(self._graph, f"{self._after}_{ending}")
        node.input[0], node.input[1], node.output[0], node.name = newest, before, after, after
        self.nodes.append(node)
        self._graph.value_info.append(helper.make_tensor_value_info(after, kind, sizes))
        return KeptState(before, after, "")


def widen_function(opset: int) -> FunctionProto:
    """The operator WIDEN as a function of ONNX operators."""
    text = f"{WIDEN} (rows, scale) => (y) {{ floats = Cast <to = 1> (rows) y = Mul (floats, scale) }}"
    return function_of(text, DOMAIN, opset)
