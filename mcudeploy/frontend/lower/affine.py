"""Linear operators with constant weights, from the weights to the emitted Conv2d.

Conv, Gemm, MatMul and BatchNormalization describe themselves as a `Linear` and state how they read a value.
Later nodes that scale and shift by constants are folded into the weights, or into the int8 weight scales.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.lower.follow import Ending, finish, follow, fused_nodes, sole_reader
from mcudeploy.frontend.lower.packed import block_weights, in_blocks
from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.values import IndexArray, OnnxValue
from mcudeploy.ir.graph import DType, Quantization, Shape
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.conv.affine import Affine
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.matrix.block_weights import BlockDense

_Doubles = NDArray[np.float64]
_ZERO_FACTOR_BIAS = 2.0**20
"""An int8 channel with factor 0 gets the scale with which its bias is this number of accumulator units."""
_MAX_ACCUMULATOR = 2.0**31 - 2.0**20
"""Largest accumulator that is allowed; the rest of 32 bits is reserved for rounding of the file's scales."""
_MAX_COARSE_BIAS = 2.0**30
"""A channel whose bias does not fit gets the scale with which it is this number of accumulator units."""

_OTHER_WEIGHTS = "its weights are not 8 bits with one scale for each output channel"
_LOSES_BIAS = "its bias, rounded to units of the sums, would move results by more than half a step"
_MIN_STATED_ROUNDING = 1e-4
"""The graph states the rounding of a bias if it changes a result by more than this part of an output step."""


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A linear operator: y[k] = factor[k] * (weights[k] * x + bias[k]) + offset[k].

    `weights` are [K, ...] in stored order; `nodes` are those folded into `factor` and `offset`.
    """

    weights: Constant
    bias: Constant | None
    factor: _Doubles
    offset: _Doubles
    nodes: tuple[Node, ...] = field(default=())

    @classmethod
    def of(cls, weights: Constant, bias: Constant | None, factor: float = 1.0) -> Linear:
        """A linear operator before folding; `bias` has K values or is None."""
        count = weights.shape[0]
        return cls(weights, bias, np.full(count, factor), np.zeros(count))

    @property
    def channels(self) -> int:
        return self.weights.shape[0]

    def biases(self) -> _Doubles:
        """The sum that is added to factor * weights * x, in real values: factor * bias + offset."""
        bias = np.zeros(self.channels) if self.bias is None else self.bias.reals().reshape(-1)
        return np.asarray(bias * self.factor + self.offset, np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class ConvRead:
    """A Conv2d that reads a stored value: the tensor, the operator, and the weights in the tensor's order.

    The result has the stored `shape`; `index` has the positions of the node's elements in it. Stored channel
    i of the result is channel `outputs[i]` of the node, or i if `outputs` is None.
    """

    tensor: str
    op: Conv2d
    weights: Constant
    shape: Shape
    index: IndexArray
    outputs: IndexArray | None = None

    def emit(
        self,
        builder: Builder,
        op: Conv2d | Affine | BlockDense,
        quantization: Quantization | None,
        constants: dict[str, ConstantArray],
        nodes: Sequence[Node],
    ) -> OnnxValue:
        """Emit the operator, in int8 if `quantization` is given, with constants [K, ...] by node channel."""
        if self.outputs is not None:
            constants = {name: value[self.outputs] for name, value in constants.items()}
        dtype = DType.FLOAT32 if quantization is None else DType.INT8
        tensor = builder.emit(
            op, (self.tensor,), self.shape, dtype, quantization, constants=constants, nodes=nodes
        )
        return OnnxValue(tensor, self.index, real=True)


Reader = Callable[[OnnxValue, Constant], ConvRead]
"""Function from a value and the weights [K, ...] to a ConvRead whose operator does not clip yet."""


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedWeights:
    """Weights [K, ...] of zero point 0 with one scale per output channel; no scale is negative.

    They are int8, or int16 if they take nine bits, as uint8 minus a zero point may.
    """

    integers: ConstantArray
    scale: _Doubles


def emit_linear(
    builder: Builder, node: Node, shape: tuple[int, ...], axis: int, *, linear: Linear, reader: Reader
) -> None:
    """Emit the Conv2d of a node, which reads its first input that is not a constant, and define its result.

    `shape` is the ONNX shape of the result, `axis` its channel axis.
    """
    source = next(name for name in node.inputs if name in builder.values)
    linear, name = fold_affine(builder, node.output, shape, axis, linear)
    ending = follow(builder, name)
    if ending.quantization is not None:
        value = builder.int8_form(source)
        if value is not None and value.quantization is not None:
            reading = reader(value, linear.weights)
            weights = quantized_weights(linear, reading.weights, value.quantization.scale)
            cause = _OTHER_WEIGHTS
            if weights is not None:
                scales = value.quantization.scale, ending.quantization.scale
                weights = fitted(weights, linear.biases(), *scales)
                cause = _LOSES_BIAS
                if _keeps_bias(linear, weights, *scales):
                    constants = _int8_constants(linear, weights, *scales)
                    op = replace(reading.op, low=ending.low, high=ending.high)
                    nodes = covered_nodes(node, linear, ending, quantized=True)
                    result = reading.emit(builder, op, ending.quantization, constants, nodes)
                    finish(builder, ending, result, quantized=True)
                    return
            builder.float_causes[node.label] = cause
    reading = reader(builder.real(source), linear.weights)
    result = emit_float(builder, node, linear, reading, ending)
    finish(builder, ending, result, quantized=False)


def _keeps_bias(linear: Linear, weights: QuantizedWeights, input_scale: float, output_scale: float) -> bool:
    """Whether rounding the bias to accumulator units moves every result by at most half an output step.

    A result moves further if a quantiser chose a large scale for an input that is always zero.
    """
    unit = weights.scale * input_scale
    moved = np.abs(linear.biases() - quantized_bias(linear, unit) * unit)
    return bool(np.all(moved <= 0.5 * output_scale))


def emit_float(builder: Builder, node: Node, linear: Linear, reading: ConvRead, ending: Ending) -> OnnxValue:
    """Emit the Conv2d on floats, with the clips of the ending; return its result."""
    bias = linear.biases().astype(np.float32)
    nodes = covered_nodes(node, linear, ending, quantized=False)
    pixels = _pixels(builder, reading)
    packed = None if pixels is None else block_weights(reading.weights)
    if pixels is not None and packed is not None:
        scale = packed.constants["scale"] * linear.factor[:, np.newaxis]
        stored = packed.constants | {"scale": np.asarray(scale, np.float32)}
        stored |= {"bias": bias} if np.any(bias) else {}
        dense = BlockDense(linear.channels, packed.block, packed.bits, ending.low, ending.high)
        return replace(reading, tensor=pixels).emit(builder, dense, None, stored, nodes)
    if in_blocks(reading.weights) and node.label not in builder.float_causes:
        builder.widened += reading.weights.value.size
    op = replace(reading.op, low=ending.low, high=ending.high)
    constants = _float_weights(linear, reading.weights) | {"bias": bias}
    return reading.emit(builder, op, None, constants, nodes)


def _pixels(builder: Builder, reading: ConvRead) -> str | None:
    """The tensor, viewed so that each output pixel reads one pixel; None if the windows read several."""
    conv, shape = reading.op.windowing, builder.shape_of(reading.tensor)
    if conv.is_pointwise and conv.stride == (1, 1):
        return reading.tensor
    if conv.is_plain and conv.kernel_shape == shape[:2] and reading.shape[:2] == (1, 1):
        return builder.viewed(reading.tensor, (1, 1, prod(shape)))
    return None


def covered_nodes(node: Node, linear: Linear, ending: Ending, *, quantized: bool) -> tuple[Node, ...]:
    """The nodes that a linear operator replaces: `node`, the folded ones, and those of the ending."""
    return (node, *linear.nodes, *fused_nodes(node, ending, quantized=quantized)[1:])


def _float_weights(linear: Linear, weights: Constant) -> dict[str, ConstantArray]:
    """The weights of a float convolution: int8 with scales if the file has these, else float32."""
    stored = stored_weights(linear, weights)
    if stored is not None and stored.integers.dtype == np.int8:
        return {"weights": stored.integers, "weight_scale": stored.scale.astype(np.float32)}
    along = (-1,) + (1,) * (weights.value.ndim - 1)
    values = weights.value
    if np.any(linear.factor != 1):
        values = values.astype(np.float64) * linear.factor.reshape(along)
    return {"weights": np.ascontiguousarray(values, np.float32)}


def _int8_constants(
    linear: Linear, weights: QuantizedWeights, input_scale: float, output_scale: float
) -> dict[str, ConstantArray]:
    unit = weights.scale * input_scale
    bias = quantized_bias(linear, unit)
    constants: dict[str, ConstantArray] = {
        "weights": weights.integers,
        "bias": bias,
        "weight_scale": weights.scale.astype(np.float32),
    }
    rounding = np.abs(linear.biases() / unit - bias)
    if np.any(rounding * unit > _MIN_STATED_ROUNDING * output_scale):
        constants["bias_rounding"] = rounding.astype(np.float32)
    return constants


def quantized_weights(linear: Linear, weights: Constant, input_scale: float) -> QuantizedWeights | None:
    """The weights of 8 bits with the factors in their scales; None for other weights.

    A channel whose factor is 0 gets a scale in whose units its bias fits.
    """
    stored = stored_weights(linear, weights)
    if stored is None:
        return None
    zero_factor_scale = np.maximum(np.abs(linear.biases()), 1e-6) / (input_scale * _ZERO_FACTOR_BIAS)
    return replace(stored, scale=np.where(stored.scale == 0, zero_factor_scale, stored.scale))


def stored_weights(linear: Linear, weights: Constant) -> QuantizedWeights | None:
    """Weights of 8 bits of the file, with the factors in their scales; None for other weights.

    The scale of a channel whose factor is 0 is 0.
    """
    stored = weights.quantized
    if stored is None or stored.bits != 8:
        return None
    rows = stored.scale.reshape(linear.channels, -1)
    if rows.shape[1] == 0 or not np.all(rows == rows[:, :1]):
        return None
    integers = stored.integers - stored.zero_point
    along = (-1,) + (1,) * (integers.ndim - 1)
    factor = rows[:, 0].astype(np.float64) * linear.factor
    negative, zero = factor < 0, factor == 0
    signed = np.where(zero.reshape(along), 0, np.where(negative.reshape(along), -integers, integers))
    return QuantizedWeights(_narrowest(signed), np.abs(factor))


def _narrowest(integers: NDArray[Any]) -> NDArray[np.int8] | NDArray[np.int16]:
    """Whole numbers as int8 if all of them fit, else as int16."""
    if integers.min() >= -128 and integers.max() <= 127:
        return np.ascontiguousarray(integers, np.int8)
    return np.ascontiguousarray(integers, np.int16)


def fitted(
    weights: QuantizedWeights, bias: _Doubles, input_scale: float, output_scale: float
) -> QuantizedWeights:
    """Give the weights larger steps in channels whose bias does not fit 32 bits.

    Quantisers give channels of (almost) zero weights scales so small that the bias saturates. There the bias
    determines the result, and the rounding of the weights moves the result by less than half an output step.
    Raises Unsupported if it would move the result by more.
    """
    flat = weights.integers.reshape(len(bias), -1).astype(np.float64)
    units = np.abs(bias) / (input_scale * weights.scale)
    overflows = units + 255 * np.abs(flat).sum(axis=1) > _MAX_ACCUMULATOR
    growth = np.where(overflows, np.maximum(units / _MAX_COARSE_BIAS, 1.0), 1.0)
    scale = weights.scale * growth
    ideal = flat / growth[:, np.newaxis]
    coarse = np.rint(ideal)
    moved = 255 * np.abs(ideal - coarse).sum(axis=1) * input_scale * scale / output_scale
    if np.any(moved > 0.5):
        raise Unsupported("a bias does not fit 32 bits in units of input scale * weight scale")
    return QuantizedWeights(_narrowest(coarse.reshape(weights.integers.shape)), scale)


def quantized_bias(linear: Linear, scale: _Doubles) -> NDArray[np.int32]:
    """The bias in units of `scale`, input scale * weight scale. Integers of the file with that scale stay.

    Raises Unsupported if a value does not fit an int32.
    """
    stored = None if linear.bias is None else linear.bias.quantized
    nothing_folded = bool(np.all(linear.factor == 1) and np.all(linear.offset == 0))
    units = np.rint(linear.biases() / scale)
    if nothing_folded and stored is not None:
        same_scale = np.isclose(stored.scale.reshape(-1), scale, rtol=1e-5, atol=0.0)
        bias = (stored.integers.astype(np.float64) - stored.zero_point).reshape(-1)
        units = np.where(same_scale, bias, units)
    if not np.all(np.isfinite(units)) or np.abs(units).max(initial=0.0) > np.iinfo(np.int32).max:
        raise Unsupported("the bias does not fit 32 bits in units of input scale * weight scale")
    return np.asarray(units, np.int32)


def fold_affine(
    builder: Builder, name: str, shape: tuple[int, ...], axis: int, linear: Linear
) -> tuple[Linear, str]:
    """Fold the nodes after `linear` that add, multiply or normalise by constants for each channel.

    Returns the linear operator, and the name of the last folded node's value.
    """
    while True:
        reader = sole_reader(builder, name)
        if reader is None or reader.domain:
            return linear, name
        affine = _affine(builder, reader, name, shape, axis)
        if affine is None:
            return linear, name
        factor, offset = affine
        linear = replace(
            linear,
            factor=linear.factor * factor,
            offset=linear.offset * factor + offset,
            nodes=(*linear.nodes, reader),
        )
        builder.done.add(reader.output)
        name = reader.output


def _affine(
    builder: Builder, node: Node, name: str, shape: tuple[int, ...], axis: int
) -> tuple[_Doubles, _Doubles] | None:
    """The factor and offset, per channel, of a node that scales and shifts the value; None for others."""
    channels = shape[axis]
    if node.op == "BatchNormalization":
        if axis % len(shape) != 1 or node.inputs[0] != name:
            return None
        return normalization(builder, node, channels)
    if node.op not in ("Add", "Sub", "Mul", "Div") or len(node.inputs) != 2:
        return None
    first = node.inputs[0] == name
    constant = builder.constants.get(node.inputs[1] if first else node.inputs[0])
    vector = None if constant is None else channel_vector(constant, shape, axis)
    if vector is None or not np.all(np.isfinite(vector)):
        return None
    one, none = np.ones(channels), np.zeros(channels)
    match node.op:
        case "Add":
            return one, vector
        case "Sub":
            return (one, -vector) if first else (-one, vector)
        case "Mul":
            return vector, none
        case _:
            return (1 / vector, none) if first and np.all(vector != 0) else None


def channel_vector(constant: Constant, shape: tuple[int, ...], axis: int) -> _Doubles | None:
    """A constant operand as one value per channel; None if it varies along, or adds, other axes."""
    if constant.value.ndim > len(shape) or constant.value.dtype.kind != "f":
        return None
    sizes = (1,) * (len(shape) - constant.value.ndim) + constant.shape
    wanted = axis % len(shape)
    if any(size != 1 for position, size in enumerate(sizes) if position != wanted):
        return None
    if sizes[wanted] not in (1, shape[wanted]):
        return None
    return np.broadcast_to(constant.reals().reshape(-1), (shape[wanted],)).astype(np.float64)


def normalization(builder: Builder, node: Node, channels: int) -> tuple[_Doubles, _Doubles]:
    """The factor and offset of an inference BatchNormalization.

    Raises Unsupported for training mode, and for parameters that are not constant or do not fit.
    """
    if node.integer("training_mode", 0) or len([name for name in node.outputs if name]) > 1:
        raise Unsupported("BatchNormalization in training mode is not supported")
    names = ("scale", "bias", "mean", "variance")
    scale, bias, mean, variance = (
        builder.constant(node.input(position), label).reals().reshape(-1)
        for position, label in enumerate(names, start=1)
    )
    if any(vector.size != channels for vector in (scale, bias, mean, variance)):
        raise Unsupported(f"its parameters do not have {channels} values")
    if np.any(variance < 0):
        raise Unsupported("a variance is negative")
    factor = scale / np.sqrt(variance + node.number("epsilon", 1e-5))
    return factor, bias - mean * factor
