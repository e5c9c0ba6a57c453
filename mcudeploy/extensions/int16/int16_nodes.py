"""Lowering of operators on int16 activations: each node of the domain "tflite" is one operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, get_args

import numpy as np

from mcudeploy.extensions.int16.conv_int16 import Conv2dInt16, SumTies
from mcudeploy.extensions.int16.int16 import (
    UNBOUNDED,
    BinaryInt16,
    Bounds,
    Int16Function,
    MeanInt16,
    QuantizeInt16,
    RescaleInt16,
    SigmoidInt16,
    SoftmaxInt16,
    TwiceScale,
)
from mcudeploy.extensions.int16.lstm_int8 import LstmInt8
from mcudeploy.extensions.int16.lstm_int16 import LstmInt16
from mcudeploy.extensions.int16.lut_int16 import LutInt16
from mcudeploy.extensions.int16.matmul_int16 import MatMulInt16
from mcudeploy.extensions.int16.resize_int16 import ResizeInt16, ResizeSamplesInt16
from mcudeploy.frontend.lower.alignment import Aligned, aligned
from mcudeploy.frontend.lower.builder import Builder, Lowering
from mcudeploy.frontend.lower.inputs import Layout, state_input
from mcudeploy.frontend.lower.linear import read_matrix, read_product
from mcudeploy.frontend.lower.move import dimensions_of, pad, resized_index
from mcudeploy.frontend.lower.norm import axis_as_dimension
from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.values import OnnxValue, positions
from mcudeploy.ir.graph import DType, Quantization
from mcudeploy.ir.opdef import ConstantArray, OperatorDef
from mcudeploy.ops.pool.pool import PoolInt16
from mcudeploy.ops.scalar.integer import IntegerBinary, IntegerFunction


def integer_lstm(builder: Builder, node: Node) -> None:
    """Lower an LSTM of int8 or int16 activations."""
    value = builder.integers(node.inputs[0])
    steps, depth = value.index.shape
    source = builder.arranged(value.tensor, value.index.reshape(1, steps, depth))
    op = _integer_lstm(node)
    dtype = builder.tensors[source].dtype
    quantization = Quantization(1.0, op.zero_points[1]) if isinstance(op, LstmInt8) else None
    states = [
        state_input(builder, name, (1, 1, op.hidden), of_state)
        for name, of_state in zip(node.inputs[4:6], (quantization, None), strict=True)
    ]
    weights, recurrent, bias = (builder.constant(name, "its weights").value for name in node.inputs[1:4])
    constants: dict[str, ConstantArray] = {
        "weights": weights.astype(np.int8),
        "recurrent": recurrent.astype(np.int8),
        "bias": bias.astype(np.int32),
    }
    inputs = [source, *(state for state in states if state is not None)]
    shape = (1, steps, op.hidden)
    tensor = builder.emit(op, inputs, shape, dtype, quantization, constants=constants, nodes=(node,))
    index = positions((steps, op.hidden))
    builder.define(node.output, OnnxValue(tensor, index, real=False, quantization=quantization))


def _integer_lstm(node: Node) -> LstmInt8 | LstmInt16:
    """The operator that the attributes of the node state."""
    hidden, cell_bits, clip = (node.integer(name, 0) for name in ("hidden", "cell_bits", "clip"))
    multipliers, shifts = node.integers("multipliers") or (), node.integers("shifts") or ()
    result = TwiceScale(*(node.integers("result") or (0, 0)))
    if node.op == "LstmInt16":
        left_shift = node.integer("left_shift", 0)
        return LstmInt16(hidden, multipliers, shifts, left_shift, result, cell_bits, clip)
    scales = tuple(TwiceScale(*pair) for pair in zip(multipliers, shifts, strict=True))
    of_x, of_h = node.integers("zero_points") or (0, 0)
    return LstmInt8(hidden, scales, result, node.integer("zero_point", 0), (of_x, of_h), cell_bits, clip)


_Name = TypeVar("_Name", bound=str)


def _conv(builder: Builder, node: Node) -> None:
    weights = builder.constant(node.inputs[1], "its weights").value.astype(np.int8)
    image = _image(builder, node)
    rows, cols = _pair(node, "strides")
    dilation = _pair(node, "dilations")
    op = Conv2dInt16(
        len(weights),
        weights.shape[1:3],
        (rows, cols),
        dilation,
        _pads(node),
        node.integer("group", 1),
        _ties(node),
        node.integer("left_shift", 0),
        _bounds(node),
    )
    tensor = _emitted(builder, node, op, (image,), _constants(builder, node, weights))
    shape = builder.shape_of(tensor)
    builder.define(node.output, OnnxValue(tensor, positions((1, *shape)), real=False))


def _dense(builder: Builder, node: Node) -> None:
    weights = builder.constant(node.inputs[1], "its weights").value.astype(np.int8)
    value = builder.integers(node.inputs[0])
    channels, depth = weights.shape
    rows = value.index.reshape(-1, depth)
    reading = read_matrix(builder, value.tensor, rows, Constant(weights), (len(rows), channels))
    op = Conv2dInt16(
        channels,
        reading.op.kernel_shape,
        ties=_ties(node),
        left_shift=node.integer("left_shift", 0),
        bounds=_bounds(node),
    )
    constants = _constants(builder, node, np.ascontiguousarray(reading.weights.value, np.int8))
    tensor = _emitted(builder, node, op, (reading.tensor,), constants)
    shape = _result_shape(builder, node, (len(rows), channels))
    builder.define(node.output, OnnxValue(tensor, reading.index.reshape(shape), real=False))


def _constants(
    builder: Builder, node: Node, weights: np.ndarray[tuple[int, ...], np.dtype[np.int8]]
) -> dict[str, ConstantArray]:
    bias, multipliers, shifts = (builder.constant(name, "its constants").value for name in node.inputs[2:5])
    words = bias.astype("<i8").view("<i4").reshape(-1, 2).T
    return {
        "weights": weights.reshape(len(weights), 1, 1, -1) if weights.ndim == 2 else weights,
        "bias": np.ascontiguousarray(words, np.int32),
        "multipliers": multipliers.astype(np.int32),
        "shifts": shifts.astype(np.int32),
    }


def _binary(builder: Builder, node: Node) -> None:
    function: Int16Function = _one_of(node, "function", get_args(Int16Function))
    a, b, result = (_scale(node, name) for name in ("a", "b", "result"))
    operands = _operands(builder, node)
    op = BinaryInt16(function, a, b, result, _bounds(node), operands.place, operands.constant_shape)
    constants = {name: array.astype(np.int16) for name, array in operands.constants.items()}
    tensor = _emitted(builder, node, op, operands.inputs, constants)
    builder.define(node.output, OnnxValue(tensor, operands.index, real=False))


def _extremum(builder: Builder, node: Node) -> None:
    operands = _operands(builder, node)
    function: IntegerFunction = "min" if node.integer("least", 0) else "max"
    op = IntegerBinary(function, operands.place, operands.constant_shape)
    tensor = _emitted(builder, node, op, operands.inputs, operands.constants)
    builder.define(node.output, OnnxValue(tensor, operands.index, real=False))


def _operands(builder: Builder, node: Node) -> Aligned:
    return aligned(builder, (_operand(builder, node.inputs[0]), _operand(builder, node.inputs[1])), (node,))


def _operand(builder: Builder, name: str) -> OnnxValue | Constant:
    constant = builder.constants.get(name)
    return builder.integers(name) if constant is None else constant


def _rescale(builder: Builder, node: Node) -> None:
    in_zero_point, out_zero_point = node.integers("zero_points") or (0, 0)
    op = RescaleInt16(
        _scale(node, "above"),
        _scale(node, "below"),
        node.integer("negated", 0) != 0,
        in_zero_point,
        out_zero_point,
        _bounds(node),
    )
    value = builder.integers(node.inputs[0])
    dtype = DType.INT8 if builder.model.dtype_of(node.output) == "int8" else DType.INT16
    tensor = _emitted(builder, node, op, (value.tensor,), dtype=dtype)
    quantization = builder.tensors[tensor].quantization
    builder.define(node.output, OnnxValue(tensor, value.index, real=False, quantization=quantization))


def _lookup(builder: Builder, node: Node) -> None:
    value = builder.integers(node.inputs[0])
    constants = {"table": np.array(node.integers("table") or (), np.int16)}
    tensor = _emitted(builder, node, LutInt16(), (value.tensor,), constants)
    builder.define(node.output, replace(value, tensor=tensor))


def _matmul(builder: Builder, node: Node) -> None:
    reading = read_product(builder, *(builder.integers(name) for name in node.inputs[:2]))
    multiplier, shift, left_shift = (node.integer(name, 0) for name in ("multiplier", "shift", "left_shift"))
    op = MatMulInt16(multiplier, shift, left_shift, reading.op.batched, reading.op.transpose_b)
    tensor = _emitted(builder, node, op, reading.inputs)
    shape = _result_shape(builder, node, reading.index.shape)
    builder.define(node.output, OnnxValue(tensor, reading.index.reshape(shape), real=False))


def _quantize(builder: Builder, node: Node) -> None:
    value = builder.real(node.inputs[0])
    scale = builder.constant(node.inputs[1], "its scale").value
    tensor = _emitted(builder, node, QuantizeInt16(float(scale.reshape(()))), (value.tensor,))
    builder.define(node.output, OnnxValue(tensor, value.index, real=False))


def _sigmoid(builder: Builder, node: Node) -> None:
    numbers = node.integer("multiplier", 0), node.integer("shift", 0)
    op = SigmoidInt16(node.integer("tangent", 0) != 0, *numbers)
    value = builder.integers(node.inputs[0])
    tensor = _emitted(builder, node, op, (value.tensor,))
    builder.define(node.output, replace(value, tensor=tensor))


def _softmax(builder: Builder, node: Node) -> None:
    value = builder.integers(node.inputs[0])
    arranged, dimension = axis_as_dimension(builder, value, value.index.ndim - 1)
    if dimension != 2:  # store the last axis as channels
        channels_last = value.index.reshape(-1, 1, value.index.shape[-1])
        index = positions(value.index.shape)
        tensor = builder.arranged(value.tensor, channels_last, (node,))
        arranged = replace(value, tensor=tensor, index=index)
    tensor = _emitted(builder, node, SoftmaxInt16(_scale(node, "scale")), (arranged.tensor,))
    builder.define(node.output, replace(arranged, tensor=tensor))


def _mean(builder: Builder, node: Node) -> None:
    """The mean over axes that are stored dimensions; over axes of one element only the scale changes."""
    value, scale = builder.integers(node.inputs[0]), _scale(node, "scale")
    axes = [axis for axis in node.integers("axes") or () if value.shape[axis] > 1]
    if axes:
        shape, dimensions = dimensions_of(builder, value, axes)
        op: OperatorDef = MeanInt16(tuple(sorted(dimensions)), scale)
        tensor = _emitted(builder, node, op, (builder.viewed(value.tensor, shape),))
        index = resized_index(value.index, shape, axes, dimensions, builder.shape_of(tensor))
    else:
        tensor, index = _emitted(builder, node, RescaleInt16(scale, scale), (value.tensor,)), value.index
    result = _result_shape(builder, node, index.shape)
    builder.define(node.output, OnnxValue(tensor, index.reshape(result), real=False))


def _resize(builder: Builder, node: Node) -> None:
    image = _image(builder, node)
    fields = ("first", "second", "weight")
    rows, cols = (
        ResizeSamplesInt16(*(tuple(node.integers(f"{axis}_{it}") or ()) for it in fields))
        for axis in ("rows", "cols")
    )
    tensor = _emitted(builder, node, ResizeInt16(rows, cols, node.integer("linear", 0) != 0), (image,))
    builder.define(node.output, OnnxValue(tensor, positions((1, *builder.shape_of(tensor))), real=False))


def _pool(builder: Builder, node: Node) -> None:
    image = _image(builder, node)
    shape = _result_shape(builder, node, ())
    kernel, stride = _pair(node, "kernel_shape"), _pair(node, "strides")
    op = PoolInt16(node.integer("average", 0) != 0, kernel, stride, _pads(node), (shape[1], shape[2]))
    tensor = _emitted(builder, node, op, (image,))
    builder.define(node.output, OnnxValue(tensor, positions(shape), real=False))


def _image(builder: Builder, node: Node) -> str:
    value = builder.integers(node.inputs[0])
    return builder.arranged(value.tensor, value.index[0], (node,))


def _result_shape(builder: Builder, node: Node, otherwise: tuple[int, ...]) -> tuple[int, ...]:
    info = builder.model.infos.get(node.output)
    return otherwise if info is None or info.shape is None else info.shape


def _scale(node: Node, name: str) -> TwiceScale:
    multiplier, exponent = node.integers(name) or (0, 0)
    return TwiceScale(multiplier, exponent)


def _bounds(node: Node) -> Bounds:
    low, high = node.integers("bounds") or (UNBOUNDED.low, UNBOUNDED.high)
    return Bounds(low, high)


def _pair(node: Node, name: str) -> tuple[int, int]:
    rows, cols = node.integers(name) or (1, 1)
    return rows, cols


def _pads(node: Node) -> tuple[int, int, int, int]:
    top, left, bottom, right = node.integers("pads") or (0, 0, 0, 0)
    return top, left, bottom, right


def _ties(node: Node) -> SumTies:
    return _one_of(node, "ties", get_args(SumTies))


def _one_of(node: Node, name: str, names: Sequence[_Name]) -> _Name:
    text = node.text(name, "")
    for known in names:
        if known == text:
            return known
    raise Unsupported(f"its {name} is {text!r}; {', '.join(names)} are supported")


def _emitted(
    builder: Builder,
    node: Node,
    op: OperatorDef,
    inputs: Sequence[str],
    constants: Mapping[str, ConstantArray] | None = None,
    *,
    dtype: DType = DType.INT16,
) -> str:
    """Emit the operator, and return its result. An int8 result has the scale 1; its readers state the real
    one.
    """
    shape = builder.output_shape(op, inputs)
    quantization = Quantization(1.0, 0) if dtype is DType.INT8 else None
    return builder.emit(op, inputs, shape, dtype, quantization, constants=constants, nodes=(node,))


LOWERINGS: dict[str, dict[str, Lowering]] = {
    "tflite": {
        "BinaryInt16": _binary,
        "ConvInt16": _conv,
        "DenseInt16": _dense,
        "ExtremumInt16": _extremum,
        "LutInt16": _lookup,
        "LstmInt8": integer_lstm,
        "LstmInt16": integer_lstm,
        "MatMulInt16": _matmul,
        "MeanInt16": _mean,
        "PadInt16": pad,
        "PoolInt16": _pool,
        "QuantizeInt16": _quantize,
        "RescaleInt16": _rescale,
        "ResizeInt16": _resize,
        "SigmoidInt16": _sigmoid,
        "SoftmaxInt16": _softmax,
    },
}
"""Lowering functions of the nodes that the translation of .tflite and QDQ files writes for integers."""

LAYOUTS: dict[str, dict[str, Layout]] = {
    "tflite": {
        **dict.fromkeys(("ConvInt16", "PoolInt16", "ResizeInt16"), "stored image"),
        **dict.fromkeys(
            ("DenseInt16", "MatMulInt16", "MeanInt16", "PadInt16", "SoftmaxInt16"), "stored order"
        ),
        **dict.fromkeys(("LutInt16", "QuantizeInt16", "RescaleInt16", "SigmoidInt16"), "same"),
        **dict.fromkeys(("BinaryInt16", "ExtremumInt16"), "same if as large"),
    }
}
