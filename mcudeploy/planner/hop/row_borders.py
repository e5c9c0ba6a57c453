"""Inputs and states of a graph that takes the new rows of a window."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mcudeploy.ir.graph import GraphIO, Tensor


def window_axis(border: GraphIO, tensor: Tensor) -> int | None:
    """Return the axis of an ONNX tensor that the rows of a stored tensor lie along; None if there is none."""
    order = border.order.reshape(border.shape)
    rows = np.where(order < 0, -1, order // (tensor.shape[1] * tensor.shape[2]))
    for axis, size in enumerate(border.shape):
        along = np.arange(size).reshape([-1 if at == axis else 1 for at in range(order.ndim)])
        if size == tensor.shape[0] > 1 and bool(((rows == along) | (order < 0)).all()):
            return axis
    return None


def new_rows(border: GraphIO, window: Tensor, rows: int) -> GraphIO:
    """Return the border of `rows` rows, for that of a window. Raises ValueError if the window has no axis."""
    axis = window_axis(border, window)
    if axis is None:
        raise ValueError(f"{border.name!r} is not stored as rows along one of its axes")
    shape = tuple(rows if at == axis else size for at, size in enumerate(border.shape))
    order = border.order.reshape(border.shape).take(range(rows), axis)
    return replace(border, shape=shape, order=np.ascontiguousarray(order).reshape(-1))


def stored_rows(tensor: Tensor) -> GraphIO:
    """Return the border of a state that the ONNX model does not have."""
    order = np.arange(tensor.elements, dtype=np.int32)
    return GraphIO(tensor.name, tensor.name, tensor.shape, tensor.dtype.value, order)
