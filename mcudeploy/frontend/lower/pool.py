"""Pools over windows or whole images, and reductions over any axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from mcudeploy.frontend.lower.builder import Builder, OperatorLowering
from mcudeploy.frontend.lower.follow import finish, follow, fused_nodes
from mcudeploy.frontend.lower.views import axes_of
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.quantization import is_monotone
from mcudeploy.frontend.onnx.values import (
    IndexArray,
    OnnxValue,
    axis_shapes,
    coordinates,
    image_index,
    image_positions,
    natural_shape,
    positions,
)
from mcudeploy.frontend.onnx.windows import KernelWindow, window_of
from mcudeploy.ir.graph import DType, Quantization, Shape
from mcudeploy.ir.opdef import OperatorDef
from mcudeploy.ops.pool.pool import AveragePool, MaxPool
from mcudeploy.ops.pool.pool_indices import MaxPoolIndices
from mcudeploy.ops.reduce.reduce import Reduce, Reduction
from mcudeploy.ops.requantize import STORED
from mcudeploy.ops.scalar.unary import Unary


def monotone(builder: Builder, name: str) -> OnnxValue:
    """A value whose stored elements are ordered as its real values: a pending table is monotone."""
    value = builder.value(name)
    if value.table is None or is_monotone(value.table):
        return value
    return builder.as_tensor(name)


def strictly_monotone(builder: Builder, name: str) -> OnnxValue:
    """A value whose stored elements are ordered as its real values, and differ if these differ."""
    value = builder.value(name)
    int8_form = builder.int8_form(name) if value.real and value.table is not None else None
    return int8_form or builder.as_tensor(name)


def max_pool(builder: Builder, node: Node) -> None:
    """Lower MaxPool on stored values: a maximum commutes with dequantisation and every rising function."""
    indices = node.outputs[1] if len(node.outputs) > 1 else ""
    if builder.is_read(indices):
        builder.define(indices, _indices(builder, node, strictly_monotone(builder, node.inputs[0])))
    if builder.is_read(node.output):
        builder.define(node.output, _max_pool(builder, node, monotone(builder, node.inputs[0])))


def real_max_pool(builder: Builder, node: Node) -> OnnxValue:
    """Lower the pool on a float tensor."""
    return _max_pool(builder, node, builder.real(node.inputs[0]))


def _max_pool(builder: Builder, node: Node, value: OnnxValue) -> OnnxValue:
    op, source = _window_maximum(builder, node, value)
    tensor = builder.tensors[source]
    shape = (*op.out_size, tensor.shape[2])
    result = builder.emit(op, (source,), shape, tensor.dtype, tensor.quantization, nodes=(node,))
    return replace(value, tensor=result, index=image_index(shape, value.index.ndim))


def _window_maximum(builder: Builder, node: Node, value: OnnxValue) -> tuple[MaxPool, str]:
    """The MaxPool of a node, and the tensor of its image."""
    image = image_positions(value.index)
    window = _pool_window(node, value, image)
    if not window.least_taps:
        raise Unsupported("a window has only padding: its maximum would be minus infinity")
    op = MaxPool(window.kernel, window.stride, window.dilation, window.pads, window.out_size)
    return op, builder.arranged(value.tensor, image)


def _indices(builder: Builder, node: Node, value: OnnxValue) -> OnnxValue:
    """Emit the positions of the maxima in the model's order, by rows or by columns of each channel."""
    op, source = _window_maximum(builder, node, value)
    rows, cols, channels = builder.shape_of(source)
    by_columns = node.integer("storage_order", 0) != 0 and value.index.ndim > 3
    steps = (1, rows) if by_columns else (cols, 1)
    indices = MaxPoolIndices(op, (*steps, rows * cols))
    shape = (*op.out_size, channels)
    result = builder.emit(indices, (source,), shape, DType.INT32, nodes=(node,))
    return OnnxValue(result, image_index(shape, value.index.ndim), real=False)


def _pool_window(node: Node, value: OnnxValue, image: IndexArray) -> KernelWindow:
    if node.op.startswith("Global"):
        size = (image.shape[0], image.shape[1])
        return KernelWindow(
            size, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), least_taps=image.shape[0] * image.shape[1]
        )
    kernel = node.integers("kernel_shape")
    if kernel is None or len(kernel) != value.index.ndim - 2:
        raise Unsupported(f"kernel_shape {list(kernel or ())} does not fit the input {list(value.shape)}")
    ceil_mode = node.integer("ceil_mode", 0) != 0
    return window_of(node, kernel, image.shape[:2], ceil_mode=ceil_mode)


@dataclass(frozen=True, slots=True)
class ResultType:
    """Element type and quantisation of a result, and the nodes that its operator replaces."""

    dtype: DType
    quantization: Quantization | None
    nodes: tuple[Node, ...]


Emission = Callable[[OnnxValue, ResultType], OnnxValue]
"""Function that emits an operator on an int8 or float value, with a result of the given type."""


def int8_or_float(builder: Builder, node: Node, emission: Emission, *, integers: bool = True) -> None:
    """Lower a node by `emission`: in int8 if its input and its result (after views) are quantised.

    Others are lowered in float; `integers`: whether there is an int8 kernel.
    """
    ending = follow(builder, node.output)
    source = builder.int8_form(node.inputs[0])
    if integers and source is not None and ending.quantization is not None and not ending.clips:
        nodes = fused_nodes(node, ending, quantized=True)
        result = emission(source, ResultType(DType.INT8, ending.quantization, nodes))
        finish(builder, ending, result, quantized=True)
        return
    nodes = fused_nodes(node, ending, quantized=False)
    result = emission(builder.real(node.inputs[0]), ResultType(DType.FLOAT32, None, nodes))
    if ending.clips:
        shape = builder.shape_of(result.tensor)
        clip = Unary("clip", ending.low, ending.high)
        clipped = builder.emit(clip, (result.tensor,), shape, DType.FLOAT32, nodes=nodes[1:])
        result = replace(result, tensor=clipped)
    finish(builder, ending, result, quantized=False)


def average_pool(builder: Builder, node: Node) -> None:
    """Lower AveragePool and GlobalAveragePool; the divisor includes padding only by count_include_pad."""
    counted = node.integer("count_include_pad", 0) != 0

    def emission(value: OnnxValue, result: ResultType) -> OnnxValue:
        image = image_positions(value.index)
        window = _pool_window(node, value, image)
        if not window.least_taps and not counted:
            raise Unsupported("a window has only padding: its mean would be that of no element")
        op = AveragePool(window.kernel, window.stride, window.dilation, window.pads, window.out_size, counted)
        rounding = builder.model.roundings.get(node.label)
        if rounding is not None and result.dtype is DType.INT8:
            op = replace(op, ties=rounding.ties)
        source = builder.arranged(value.tensor, image)
        shape = (*window.out_size, image.shape[2])
        tensor = builder.emit(op, (source,), shape, result.dtype, result.quantization, nodes=result.nodes)
        return OnnxValue(tensor, image_index(shape, value.index.ndim), real=True)

    int8_or_float(builder, node, emission)


REDUCTIONS: dict[str, Reduction] = {
    "ReduceMax": "max",
    "ReduceMean": "mean",
    "ReduceMin": "min",
    "ReduceProd": "prod",
    "ReduceSum": "sum",
}


def reduce(builder: Builder, node: Node) -> None:
    """Lower a reduction.

    Maxima of quantised values are pools of stored values, means over rows and columns average pools, others
    a Reduce.
    """
    function = REDUCTIONS[node.op]
    value = builder.value(node.inputs[0])
    axes = _reduced_axes(builder, node, value)
    if all(value.shape[axis] == 1 for axis in axes):
        builder.define(node.output, replace(value, index=_squeezed(value.index, axes, node)))
        return
    if function in ("max", "min") and value.real and value.table is not None:
        value = monotone(builder, node.inputs[0])
        builder.define(node.output, _stored_extreme(builder, node, value, axes, minimum=function == "min"))
        return

    def emission(source: OnnxValue, result: ResultType) -> OnnxValue:
        return _reduced(builder, node, source, axes, result)

    int8_or_float(builder, node, emission, integers=function == "mean")


def real_reduce(builder: Builder, node: Node) -> OnnxValue:
    """Lower a reduction on a float tensor."""
    value = builder.real(node.inputs[0])
    axes = _reduced_axes(builder, node, value)
    if all(value.shape[axis] == 1 for axis in axes):
        return replace(value, index=_squeezed(value.index, axes, node))
    return _reduced(builder, node, value, axes, ResultType(DType.FLOAT32, None, (node,)))


def _reduced(
    builder: Builder, node: Node, value: OnnxValue, axes: tuple[int, ...], result: ResultType
) -> OnnxValue:
    value, shape, dimensions = _reduced_dimensions(builder, value, axes)
    op, out_shape = _reduction(REDUCTIONS[node.op], shape, dimensions)
    dtype, quantization = result.dtype, result.quantization
    tensor = builder.emit(op, (value.tensor,), out_shape, dtype, quantization, nodes=result.nodes)
    index = _reduced_index(value, axes, shape, dimensions)
    return OnnxValue(tensor, _squeezed(index, axes, node), real=True)


def _reduced_axes(builder: Builder, node: Node, value: OnnxValue) -> tuple[int, ...]:
    axes = axes_of(builder.constants, node, value.index.ndim)
    if axes:
        return axes
    return () if node.integer("noop_with_empty_axes", 0) else tuple(range(value.index.ndim))


def _stored_extreme(
    builder: Builder, node: Node, value: OnnxValue, axes: tuple[int, ...], *, minimum: bool
) -> OnnxValue:
    """Emit the largest stored value over axes as a MaxPool; for the smallest, complement before and after."""
    complement = np.bitwise_not(STORED).astype(np.int8)
    quantization = builder.tensors[value.tensor].quantization or Quantization(1.0, 0)
    tensor = value.tensor
    if minimum:
        tensor = builder.looked_up(tensor, complement, quantization, (node,))
    value, shape, dimensions = _reduced_dimensions(builder, replace(value, tensor=tensor), axes)
    tensor = value.tensor
    rows, cols = (1 if place in dimensions else shape[place] for place in (0, 1))
    if dimensions != (2,):
        tensor = _maximum(builder, node, tensor, (rows, cols, shape[2]))
    if 2 in dimensions:
        tensor = builder.viewed(tensor, (rows * cols, shape[2], 1))
        tensor = builder.viewed(_maximum(builder, node, tensor, (rows * cols, 1, 1)), (rows, cols, 1))
    if minimum:
        tensor = builder.looked_up(tensor, complement, quantization, (node,))
    index = _reduced_index(value, axes, shape, dimensions)
    return replace(value, tensor=tensor, index=_squeezed(index, axes, node))


def _maximum(builder: Builder, node: Node, tensor: str, shape: Shape) -> str:
    """Emit the MaxPool without padding whose result has the given shape."""
    source = builder.tensors[tensor]
    kernel = source.shape[0] // shape[0], source.shape[1] // shape[1]
    op = MaxPool(kernel, kernel, (1, 1), (0, 0, 0, 0), shape[:2])
    return builder.emit(op, (tensor,), shape, source.dtype, source.quantization, nodes=(node,))


def _reduced_index(
    value: OnnxValue, axes: tuple[int, ...], shape: Shape, dimensions: tuple[int, ...]
) -> IndexArray:
    """The positions of the results, in which reduced axes and stored dimensions have size 1."""
    reduced = tuple(1 if place in dimensions else size for place, size in enumerate(shape))
    index = value.index
    for axis in axes:
        index = index.take([0], axis=axis)
    places = coordinates(index, shape)
    zeroed = tuple(np.zeros_like(p) if d in dimensions else p for d, p in enumerate(places))
    return np.ravel_multi_index(zeroed, reduced).astype(np.int32)


def _squeezed(index: IndexArray, axes: tuple[int, ...], node: Node) -> IndexArray:
    """The index array without the reduced axes, unless the node keeps them."""
    return index if node.integer("keepdims", 1) else index.squeeze(axes)


def _reduction(function: Reduction, shape: Shape, dimensions: tuple[int, ...]) -> tuple[OperatorDef, Shape]:
    """The operator over these stored dimensions, and the shape of its result."""
    rows, cols, channels = (1 if place in dimensions else size for place, size in enumerate(shape))
    if function != "mean" or 2 in dimensions:
        return Reduce(dimensions, function), (rows, cols, channels)
    kernel = (shape[0] // rows, shape[1] // cols)
    op = AveragePool(kernel, (1, 1), (1, 1), (0, 0, 0, 0), (rows, cols), False)
    return op, (rows, cols, channels)


def _reduced_dimensions(
    builder: Builder, value: OnnxValue, axes: tuple[int, ...]
) -> tuple[OnnxValue, Shape, tuple[int, ...]]:
    """The value, its stored shape, and the stored dimensions that consist of exactly these ONNX axes.

    The shape is the present one, a view of it, or a transposition that makes the axes the rows.
    """
    merged = np.moveaxis(value.index, axes, range(-len(axes), 0))
    merged = merged.reshape(*merged.shape[: -len(axes)], -1)
    shapes = [builder.shape_of(value.tensor), natural_shape(value.shape), *axis_shapes(merged, -1)]
    for axis in range(value.index.ndim):
        shapes += axis_shapes(value.index, axis)
    for shape in shapes:
        dimensions = tuple(
            dimension
            for dimension, place in enumerate(coordinates(merged, shape))
            if not np.all(place == place[..., :1])
        )
        if prod(shape[dimension] for dimension in dimensions) == merged.shape[-1]:
            return replace(value, tensor=builder.viewed(value.tensor, shape)), shape, dimensions
    first = np.moveaxis(value.index, axes, range(len(axes)))
    shape = (merged.shape[-1], 1, value.index.size // merged.shape[-1])
    tensor = builder.arranged(value.tensor, first.reshape(shape))
    index = np.moveaxis(positions(first.shape), range(len(axes)), axes)
    return replace(value, tensor=tensor, index=index), shape, (0,)


LOWERINGS: dict[str, OperatorLowering] = {
    **dict.fromkeys(REDUCTIONS, OperatorLowering(reduce, real=real_reduce)),
    "AveragePool": OperatorLowering(average_pool, "kernel"),
    "GlobalAveragePool": OperatorLowering(average_pool, "kernel"),
    "GlobalMaxPool": OperatorLowering(max_pool, "moved", real=real_max_pool),
    "MaxPool": OperatorLowering(max_pool, "moved", only="indices of 1-D and 2-D", real=real_max_pool),
    "ReduceMean": OperatorLowering(reduce, "kernel", real=real_reduce),
}
