"""Softmax, and normalisation along the last axes."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from mcudeploy.frontend.lower.builder import Builder, Lowering, OperatorLowering
from mcudeploy.frontend.lower.follow import follow
from mcudeploy.frontend.lower.pool import ResultType, int8_or_float
from mcudeploy.frontend.lower.slice import axis_of
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.values import OnnxValue, axis_shapes, natural_shape, stored_axis
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.reduce.norm import LayerNorm, fixed_point
from mcudeploy.ops.reduce.softmax import Softmax


def softmax(builder: Builder, node: Node) -> None:
    """Lower Softmax along one axis (opset 13 semantics), in the layout of the value."""
    value = builder.value(node.inputs[0])
    axis = axis_of(node, value.index.ndim, default=-1)

    def emission(source: OnnxValue, result: ResultType) -> OnnxValue:
        placed, dimension = axis_as_dimension(builder, source, axis)
        shape, op = builder.shape_of(placed.tensor), Softmax(dimension)
        dtype, quantization = result.dtype, result.quantization
        tensor = builder.emit(op, (placed.tensor,), shape, dtype, quantization, nodes=result.nodes)
        return OnnxValue(tensor, placed.index, real=True)

    int8_or_float(builder, node, emission)


def axis_as_dimension(builder: Builder, value: OnnxValue, axis: int) -> tuple[OnnxValue, int]:
    """The value in a stored shape in which the ONNX axis is one dimension, and this dimension's number.

    The shape is the present one, a view of it, or a transposition that makes the axis the channels.
    """
    shapes = (builder.shape_of(value.tensor), natural_shape(value.shape), *axis_shapes(value.index, axis))
    for shape in shapes:
        dimension = stored_axis(value.index, shape, axis)
        if dimension is not None:
            return replace(value, tensor=builder.viewed(value.tensor, shape)), dimension
    last = np.moveaxis(value.index, axis, -1)
    tensor = builder.arranged(value.tensor, last.reshape(natural_shape(last.shape)))
    order = np.arange(last.size, dtype=np.int32).reshape(last.shape)
    index = np.ascontiguousarray(np.moveaxis(order, -1, axis))
    return replace(value, tensor=tensor, index=index), 2


_EPSILON = 1e-5


def layer_norm(builder: Builder, node: Node) -> None:
    """Lower LayerNormalization and RMSNormalization."""
    value = builder.value(node.inputs[0])
    axis = axis_of(node, value.index.ndim, default=-1)
    if any(builder.is_read(name) for name in node.outputs[1:]):
        raise Unsupported("its mean and deviation are read: only the normalised values are supported")
    sizes = value.shape[axis:]
    constants = {"scale": _parameter(builder, node, 1, sizes), "bias": _parameter(builder, node, 2, sizes)}
    op = LayerNorm(node.number("epsilon", _EPSILON), centred=node.op == "LayerNormalization")

    def emission(source: OnnxValue, result: ResultType) -> OnnxValue:
        placed = _with_axes_last(builder, source, axis)
        shape, quantization = builder.shape_of(placed.tensor), result.quantization
        nodes = (node,) if quantization is None else result.nodes
        tensor = builder.emit(
            op, (placed.tensor,), shape, result.dtype, quantization, constants=constants, nodes=nodes
        )
        return OnnxValue(tensor, placed.index, real=True)

    target = follow(builder, node.output).quantization
    integers = target is not None and fixed_point(constants["scale"], constants["bias"], target) is not None
    int8_or_float(builder, node, emission, integers=integers)


def _parameter(builder: Builder, node: Node, position: int, sizes: tuple[int, ...]) -> ConstantArray:
    """The scale (ones if omitted) or the bias (zeros)."""
    name = node.input(position)
    if not name:
        return np.full(prod(sizes), 1 if position == 1 else 0, np.float32)
    values = builder.constant(name, "scale and bias").value.astype(np.float32)
    return np.ascontiguousarray(np.broadcast_to(values, sizes).reshape(-1))


def _with_axes_last(builder: Builder, value: OnnxValue, axis: int) -> OnnxValue:
    """The value in a stored shape whose channels are the ONNX axes from `axis` on, in their order."""
    merged = value.index.reshape(*value.shape[:axis], -1)
    for shape in (builder.shape_of(value.tensor), natural_shape(merged.shape), *axis_shapes(merged, -1)):
        if stored_axis(merged, shape, merged.ndim - 1) == 2:
            return OnnxValue(builder.viewed(value.tensor, shape), value.index, real=True)
    tensor = builder.arranged(value.tensor, merged.reshape(natural_shape(merged.shape)))
    index = np.arange(value.index.size, dtype=np.int32).reshape(value.shape)
    return OnnxValue(tensor, index, real=True)


LOWERINGS: dict[str, OperatorLowering] = {
    "LayerNormalization": OperatorLowering(layer_norm, "kernel"),
    "RMSNormalization": OperatorLowering(layer_norm, "kernel"),
    "Softmax": OperatorLowering(softmax, "kernel"),
}
PRIVATE: dict[str, Lowering] = {"RMSNormalization": layer_norm}
