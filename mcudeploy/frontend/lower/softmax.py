"""Softmax along any axis."""

from __future__ import annotations

import numpy as np

from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.lower.picking import axis_of
from mcudeploy.frontend.lower.pool import ResultForm, int8_or_float
from mcudeploy.frontend.onnx.nodes import Node
from mcudeploy.frontend.onnx.values import OnnxValue, axis_shapes, natural_shape, stored_axis
from mcudeploy.ops.softmax import Softmax


def softmax(builder: Builder, node: Node) -> None:
    """Lower Softmax along one axis (opset 13 semantics), in the layout of the value."""
    value = builder.value(node.inputs[0])
    axis = axis_of(node, value.index.ndim, default=-1)

    def emission(source: OnnxValue, form: ResultForm) -> OnnxValue:
        placed, dimension = along(builder, source, axis)
        shape, op = builder.shape_of(placed.tensor), Softmax(dimension)
        tensor = builder.emit(op, (placed.tensor,), shape, form.dtype, form.quantization, nodes=form.nodes)
        return OnnxValue(tensor, placed.index, real=True)

    int8_or_float(builder, node, emission)


def along(builder: Builder, value: OnnxValue, axis: int) -> tuple[OnnxValue, int]:
    """The value in a stored shape in which the ONNX axis is one dimension, and that dimension.

    The shape is the stored one, a view of it, or a transposition that makes the axis the channels.
    """
    shapes = (builder.shape_of(value.tensor), natural_shape(value.shape), *axis_shapes(value.index, axis))
    for shape in shapes:
        dimension = stored_axis(value.index, shape, axis)
        if dimension is not None:
            tensor = builder.viewed(value.tensor, shape)
            return OnnxValue(tensor, value.index, value.real, value.table, value.quantization), dimension
    last = np.moveaxis(value.index, axis, -1)
    tensor = builder.arranged(value.tensor, last.reshape(natural_shape(last.shape)))
    order = np.arange(last.size, dtype=np.int32).reshape(last.shape)
    index = np.ascontiguousarray(np.moveaxis(order, -1, axis))
    return OnnxValue(tensor, index, value.real, value.table, value.quantization), 2
