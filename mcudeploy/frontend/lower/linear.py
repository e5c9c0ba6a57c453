"""Lowering of Conv, Gemm, MatMul and BatchNormalization."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.lower.affine import (
    ConvRead,
    Linear,
    covered_nodes,
    emit_float,
    emit_linear,
    fold_affine,
    normalization,
)
from mcudeploy.frontend.lower.builder import Builder, OperatorLowering
from mcudeploy.frontend.lower.follow import Ending, finish, follow, fused_nodes
from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.values import (
    IndexArray,
    OnnxValue,
    channel_order,
    image_index,
    image_positions,
    is_storage_order,
    positions,
)
from mcudeploy.frontend.onnx.windows import KernelWindow, window_of
from mcudeploy.ir.graph import DType, Quantization, Shape
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.conv.affine import Affine, affine_records
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.matrix.matmul import MatMul


def conv(builder: Builder, node: Node) -> None:
    """Lower a 1-D or 2-D convolution of one image with constant weights [K, C / groups, R, S] or [..., R]."""
    weights = builder.constant(node.input(1), "the weights")
    value = builder.value(node.inputs[0])
    if weights.value.ndim not in (3, 4):
        raise Unsupported(f"weights of {weights.value.ndim} dimensions; 1-D and 2-D images are supported")
    if value.index.ndim != weights.value.ndim:
        raise Unsupported(f"weights {list(weights.shape)} do not fit the input {list(value.shape)}")
    image = image_positions(value.index)
    groups = node.integer("group", 1)
    if groups < 1 or weights.shape[1] * groups != value.shape[1]:
        raise Unsupported(
            f"weights {list(weights.shape)} in {groups} groups do not fit {value.shape[1]} input channels"
        )
    bias = builder.constant(node.input(2), "the bias") if node.input(2) else None
    if bias is not None and bias.value.size != weights.shape[0]:
        raise Unsupported(f"the bias has {bias.value.size} values for {weights.shape[0]} channels")
    window = window_of(node, weights.shape[2:], image.shape[:2], ceil_mode=False)
    rank = value.index.ndim
    stored = weights.moved(_channels_last)
    rows, cols = window.out_size
    spatial = (rows, cols) if rank == 4 else (rows,)
    shape = (1, weights.shape[0], *spatial)

    def read(source: OnnxValue, kernel: Constant) -> ConvRead:
        return _read_image(builder, source, kernel, window, groups)

    emit_linear(builder, node, shape, 1, linear=Linear.of(stored, bias), reader=read)


def _channels_last(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """Convert weights [K, C, R, S] or [K, C, R] to [K, R, S, C]."""
    if array.ndim == 3:
        array = array[..., np.newaxis]
    return array.transpose(0, 2, 3, 1)


def _read_image(
    builder: Builder, source: OnnxValue, weights: Constant, window: KernelWindow, groups: int
) -> ConvRead:
    """Read an image. Its channels may be permuted: then the weights are permuted instead of the tensor.

    The results of a depthwise convolution have the same permutation.
    """
    out_channels = weights.shape[0]
    kernel, stride, dilation = window.kernel, window.stride, window.dilation
    op = Conv2d(out_channels, kernel, stride, dilation, window.pads, groups)
    shape = (*window.out_size, out_channels)
    image = image_positions(source.index)
    order = channel_order(image) if groups in (1, image.shape[2]) else None
    result = image_index(shape, source.index.ndim)
    if order is None or image.size != builder.tensors[source.tensor].elements:
        return ConvRead(builder.arranged(source.tensor, image), op, weights, shape, result)
    tensor, channels = builder.viewed(source.tensor, image.shape), np.argsort(order)
    if groups == 1:
        return ConvRead(tensor, op, weights.moved(lambda array: array[..., channels]), shape, result)
    outputs = positions((out_channels,)).reshape(groups, -1)[channels].reshape(-1)
    return ConvRead(tensor, op, weights, shape, result[:, np.argsort(outputs)], outputs)


def gemm(builder: Builder, node: Node) -> None:
    """Lower the matrix product alpha * A * B + beta * C with constant B and C."""
    weights = builder.constant(node.input(1), "the second matrix")
    value = builder.value(node.inputs[0])
    if weights.value.ndim != 2 or value.index.ndim != 2:
        raise Unsupported("both operands must be matrices")
    if node.integer("transB", 0) == 0:
        weights = weights.moved(lambda array: array.T)
    transposed = node.integer("transA", 0) != 0
    rows, depth = value.shape[::-1] if transposed else value.shape
    if depth != weights.shape[1]:
        raise Unsupported(f"the operands do not fit: {depth} columns by {weights.shape[1]} rows")
    shape = (rows, weights.shape[0])
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    bias = None
    third = builder.constant(node.input(2), "the third matrix") if node.input(2) and beta != 0 else None
    if third is not None and alpha != 0:
        bias = _gemm_bias(third, shape, beta / alpha)
    linear = Linear.of(weights, bias, alpha)
    if alpha == 0 and third is not None:
        linear = replace(linear, offset=beta * _gemm_bias(third, shape, 1.0).reals().reshape(-1))

    def read(source: OnnxValue, kernel: Constant) -> ConvRead:
        index = source.index.T if transposed else source.index
        return read_matrix(builder, source.tensor, index, kernel, shape)

    emit_linear(builder, node, shape, 1, linear=linear, reader=read)


def _gemm_bias(constant: Constant, shape: tuple[int, int], factor: float) -> Constant:
    """The bias [K] that is a row of the third matrix times `factor`; `shape` is that of the result."""
    if constant.value.ndim > 2 or any(
        size not in (1, full) for size, full in zip(constant.shape[::-1], shape[::-1], strict=False)
    ):
        raise Unsupported(f"the third matrix {list(constant.shape)} does not fit {list(shape)}")
    rows = np.broadcast_to(constant.value, shape)
    if not np.all(rows == rows[:1]):
        raise Unsupported("the third matrix differs between rows")
    row = constant.moved(lambda array: np.broadcast_to(array, shape)[0])
    return row if factor == 1 else Constant(np.asarray(row.reals() * factor, np.float64))


def matmul(builder: Builder, node: Node) -> None:
    """Lower a product with a constant matrix on either side, or of two activations."""
    left, right = builder.operand(node.inputs[0]), builder.operand(node.inputs[1])
    if isinstance(right, Constant) and isinstance(left, OnnxValue):
        _constant_product(builder, node, left, _matrix(right).moved(np.transpose), swapped=False)
    elif isinstance(left, Constant) and isinstance(right, OnnxValue):
        _constant_product(builder, node, right, _matrix(left), swapped=True)
    else:
        _product(builder, node)


def _matrix(constant: Constant) -> Constant:
    if constant.value.ndim < 2 or prod(constant.shape[:-2]) != 1:
        raise Unsupported(f"a constant operand {list(constant.shape)} is not supported: one matrix is")
    return constant.moved(lambda array: array.reshape(array.shape[-2:]))


def _constant_product(
    builder: Builder, node: Node, value: OnnxValue, weights: Constant, *, swapped: bool
) -> None:
    """Lower a product with constant weights [K, depth]; `swapped`: they are the left operand."""
    if value.index.ndim < 2:
        raise Unsupported("a product with a vector is not supported")
    index = np.swapaxes(value.index, -1, -2) if swapped else value.index
    if index.shape[-1] != weights.shape[1]:
        raise Unsupported(f"the operands do not fit: {index.shape[-1]} by {weights.shape[1]}")
    shape = (*index.shape[:-1], weights.shape[0])
    result = (*shape[:-2], shape[-1], shape[-2]) if swapped else shape

    def read(source: OnnxValue, kernel: Constant) -> ConvRead:
        index = np.swapaxes(source.index, -1, -2) if swapped else source.index
        reading = read_matrix(builder, source.tensor, index, kernel, shape)
        return replace(reading, index=np.swapaxes(reading.index, -1, -2)) if swapped else reading

    axis = len(shape) - 2 if swapped else len(shape) - 1
    emit_linear(builder, node, result, axis, linear=Linear.of(weights, None), reader=read)


def read_matrix(
    builder: Builder, tensor: str, index: IndexArray, weights: Constant, shape: tuple[int, ...]
) -> ConvRead:
    """Read rows of `depth` elements for weights [K, depth], which take the stored order of the elements."""
    depth, channels = index.shape[-1], weights.shape[0]
    places = index.reshape(-1, depth)
    count = len(places)
    stored = builder.shape_of(tensor)
    if count == 1:
        order = np.argsort(places[0])
        kernel = stored[:2]
        ordered = weights.moved(lambda array: array[:, order].reshape(channels, *stored))
        image_shape = (1, 1, channels)
        result = positions((channels,)).reshape(shape)
        return ConvRead(tensor, Conv2d(channels, kernel), ordered, image_shape, result)
    rows, cols = places // depth, places % depth
    if np.all(rows == rows[:, :1]) and np.all(cols == cols[:1]):
        order = np.argsort(cols[0])
        source = tensor if stored[2] == depth else builder.viewed(tensor, (count, 1, depth))
        row_order = rows[:, 0]
    else:
        order, row_order = np.arange(depth), np.arange(count)
        source = builder.arranged(tensor, places.reshape(count, 1, depth))
    image = builder.shape_of(source)
    ordered = weights.moved(lambda array: array[:, order].reshape(channels, 1, 1, depth))
    image_shape = (image[0], image[1], channels)
    result = (row_order[:, np.newaxis] * channels + positions((channels,))).astype(np.int32)
    return ConvRead(source, Conv2d(channels), ordered, image_shape, result.reshape(shape))


def _product(builder: Builder, node: Node) -> None:
    """Lower the product of two activations: matrices, or batches of equal size."""
    ending = follow(builder, node.output)
    first, second = node.inputs[:2]
    a, b = builder.int8_form(first), builder.int8_form(second)
    if a is None or b is None or ending.quantization is None or ending.clips:
        real = builder.real(first), builder.real(second)
        builder.define(node.output, _emit_product(builder, *real, None, (node,)))
        return
    nodes = fused_nodes(node, ending, quantized=True)
    finish(builder, ending, _emit_product(builder, a, b, ending.quantization, nodes), quantized=True)


def _emit_product(
    builder: Builder, a: OnnxValue, b: OnnxValue, quantization: Quantization | None, nodes: tuple[Node, ...]
) -> OnnxValue:
    if a.index.ndim < 2 or b.index.ndim < 2:
        raise Unsupported("a product of vectors is not supported")
    reading = read_product(builder, a, b)
    shape = builder.output_shape(reading.op, reading.inputs)
    dtype = DType.FLOAT32 if quantization is None else DType.INT8
    tensor = builder.emit(reading.op, reading.inputs, shape, dtype, quantization, nodes=nodes)
    return OnnxValue(tensor, reading.index, real=True)


@dataclass(frozen=True, slots=True, eq=False)
class ProductRead:
    """A product of two stored matrices: the tensors, the operator, and the positions of the results."""

    inputs: tuple[str, str]
    op: MatMul
    index: IndexArray


def read_product(builder: Builder, a: OnnxValue, b: OnnxValue) -> ProductRead:
    """Arrange both matrices, or batches of equal size. Raises Unsupported if they do not fit."""
    (rows, depth), cols = a.shape[-2:], b.shape[-1]
    batch = prod(a.shape[:-2])
    if b.shape[-2] != depth or prod(b.shape[:-2]) != batch:
        raise Unsupported(f"a product of {list(a.shape)} and {list(b.shape)} is not supported")
    left, right = a.index.reshape(batch, rows, depth), b.index.reshape(batch, depth, cols)
    transposed = bool(cols > 1 and right[0, 0, 1] - right[0, 0, 0] != 1)
    right = np.swapaxes(right, 1, 2) if transposed else right
    op = MatMul(_matrix_per_row(builder, (a.tensor, left), (b.tensor, right)), transposed)
    result = positions((batch, rows, cols))
    if not op.batched:
        left, right = np.swapaxes(left, 0, 1), np.swapaxes(right, 0, 1)
        result = np.swapaxes(positions((rows, batch, cols)), 0, 1)
    inputs = builder.arranged(a.tensor, left), builder.arranged(b.tensor, right)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return ProductRead(inputs, op, result.reshape(*lead, rows, cols))


def _matrix_per_row(builder: Builder, *operands: tuple[str, IndexArray]) -> bool:
    """Whether row i of the stored operands should be the matrices of product i, otherwise column i.

    The form for which fewer elements move is chosen. `operands`: tensors, and positions [products, lines,
    values] in them.
    """

    def moved(tensor: str, wanted: IndexArray) -> int:
        takes_all = wanted.size == builder.tensors[tensor].elements
        return 0 if takes_all and is_storage_order(wanted) else wanted.size

    by_rows = sum(moved(*operand) for operand in operands)
    by_columns = sum(moved(tensor, np.swapaxes(index, 0, 1)) for tensor, index in operands)
    return len(operands[0][1]) > 1 and by_rows <= by_columns


def batch_normalization(builder: Builder, node: Node) -> None:
    """Lower BatchNormalization that is not folded: Affine on int8, a depthwise 1x1 convolution on floats."""
    value = builder.value(node.inputs[0])
    if value.index.ndim < 2:
        raise Unsupported("the input needs a channel axis")
    channels = value.shape[1]
    factor, offset = normalization(builder, node, channels)
    weights = Constant(np.ones((channels, 1, 1, 1), np.float32))
    linear, name = fold_affine(builder, node.output, value.shape, 1, Linear(weights, None, factor, offset))
    ending = follow(builder, name)
    result = _affine(builder, node, linear, ending)
    if result is not None:
        finish(builder, ending, result, quantized=True)
        return
    reading = _read_channels(builder, builder.real(node.inputs[0]), linear.weights)
    finish(builder, ending, emit_float(builder, node, linear, reading, ending), quantized=False)


def _affine(builder: Builder, node: Node, linear: Linear, ending: Ending) -> OnnxValue | None:
    """Apply the factors and offsets to int8 values.

    None unless input and result are quantised, and the factors fit the kernel.
    """
    source = None if ending.quantization is None else builder.int8_form(node.inputs[0])
    if source is None or source.quantization is None or ending.quantization is None:
        return None
    factor, offset = linear.factor.astype(np.float32), linear.offset.astype(np.float32)
    if affine_records(factor, offset, source.quantization, ending.quantization) is None:
        return None
    reading = _read_channels(builder, source, linear.weights)
    constants: dict[str, ConstantArray] = {"factor": factor, "offset": offset}
    nodes = covered_nodes(node, linear, ending, quantized=True)
    return reading.emit(builder, Affine(ending.low, ending.high), ending.quantization, constants, nodes)


def _read_channels(builder: Builder, source: OnnxValue, weights: Constant) -> ConvRead:
    """Read the channels of an image or of a vector, each with its own factor."""
    index = source.index
    image = index.reshape(index.shape[0], 1, -1) if index.ndim == 2 else image_positions(index)
    tensor = builder.arranged(source.tensor, image)
    shape: Shape = builder.shape_of(tensor)
    channel_index = image_index(shape, index.ndim) if index.ndim > 2 else positions(index.shape)
    return ConvRead(tensor, Conv2d(shape[2], groups=shape[2]), weights, shape, channel_index)


LOWERINGS: dict[str, OperatorLowering] = {
    "BatchNormalization": OperatorLowering(batch_normalization, "kernel", only="inference"),
    "Conv": OperatorLowering(
        conv, "kernel", only="3-D: float32, by 2-D convolutions; computed weights: one image, float32"
    ),
    "Gemm": OperatorLowering(gemm, "kernel"),
    "MatMul": OperatorLowering(matmul, "kernel"),
}
