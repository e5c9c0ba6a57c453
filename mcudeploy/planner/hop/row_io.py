"""Inputs and states of a graph that takes the new rows of a window."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mcudeploy.ir.graph import Graph, GraphIO, Tensor


@dataclass(frozen=True, slots=True)
class WindowAxis:
    """The axis of an ONNX tensor along which the rows of a window lie, and its elements in a row."""

    axis: int
    elements: int


def window_axis(io: GraphIO, tensor: Tensor) -> WindowAxis | None:
    """Return the axis along which the rows of a stored tensor lie; None if there is none."""
    order = io.order.reshape(io.shape)
    rows = np.where(order < 0, -1, order // (tensor.shape[1] * tensor.shape[2]))
    for axis, size in enumerate(io.shape):
        if size % tensor.shape[0] or tensor.shape[0] == 1:
            continue
        elements = size // tensor.shape[0]
        along = (np.arange(size) // elements).reshape([-1 if at == axis else 1 for at in range(order.ndim)])
        if bool(((rows == along) | (order < 0)).all()):
            return WindowAxis(axis, elements)
    return None


def new_rows(io: GraphIO, window: Tensor, rows: int) -> GraphIO:
    """Return the input of `rows` rows, for that of a window. Raises ValueError if the window has no axis."""
    window_rows = window_axis(io, window)
    if window_rows is None:
        raise ValueError(f"{io.name!r} is not stored as rows along one of its axes")
    axis, size = window_rows.axis, rows * window_rows.elements
    shape = tuple(size if at == axis else each for at, each in enumerate(io.shape))
    order = io.order.reshape(io.shape).take(range(size), axis)
    return replace(io, shape=shape, order=np.ascontiguousarray(order).reshape(-1))


def with_rows(graph: Graph) -> Graph:
    """Return a graph whose input is stored as rows, if it is a vector that its only reader views as rows."""
    io = graph.inputs[0]
    readers = [operator for operator in graph.operators if io.tensor in operator.inputs]
    view = readers[0] if len(readers) == 1 else None
    source = graph.tensors[io.tensor]
    if view is None or not view.op.is_view or source.shape[0] > 1:
        return graph
    shape = graph.tensors[view.output].shape
    if shape[0] == 1 or view.output in {it.tensor for it in graph.outputs}:
        return graph
    tensors = {name: it for name, it in graph.tensors.items() if name != view.output}
    tensors[source.name] = replace(source, shape=shape)
    operators = (
        replace(it, inputs=tuple(source.name if name == view.output else name for name in it.inputs))
        for it in graph.operators
        if it is not view
    )
    references = {name: it for name, it in graph.references.items() if name != view.output}
    return replace(graph, tensors=tensors, operators=tuple(operators), references=references)


def stored_rows(tensor: Tensor) -> GraphIO:
    """Return the `GraphIO` of a state that the ONNX model does not have."""
    order = np.arange(tensor.elements, dtype=np.int32)
    return GraphIO(tensor.name, tensor.name, tensor.shape, tensor.dtype.value, order)
