"""Convolutions, pools and matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mcudeploy.frontend.onnx.dynamic_ranges import float_note
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.tflite.contents import TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.scales import fused, parameters, scales_of
from mcudeploy.frontend.tflite.writer import Writer

_SAME, _VALID = 0, 1


def strides_of(operator: TfliteOperator, axes: str = "HW") -> tuple[int, ...]:
    """The strides along these axes. Raises Unsupported for strides below 1."""
    strides = tuple(operator.integer(f"Stride{axis}") for axis in axes)
    if min(strides) < 1:
        raise Unsupported(f"strides {list(strides)} must be at least 1")
    return strides


def window_attributes(operator: TfliteOperator, size: Sequence[int], kernel: Sequence[int]) -> dict[str, Any]:
    """The window attributes of the ONNX node of an operator.

    `size` of the image and `kernel` are (rows, columns) or (depth, rows, columns). Raises Unsupported for
    options that do not fit.
    """
    axes = "DHW"[-len(size) :]
    strides = strides_of(operator, axes)
    dilations = [int(operator.options.get(f"Dilation{axis}Factor", 1)) for axis in axes]
    if min(*kernel, *dilations) < 1:
        raise Unsupported(f"window {list(kernel)} and dilations {dilations} must be at least 1")
    padding = operator.integer("Padding")
    if padding not in (_SAME, _VALID):
        raise Unsupported(f"padding {padding} is neither SAME nor VALID")
    befores, afters = [], []
    for length, reach, stride, dilation in zip(size, kernel, strides, dilations, strict=True):
        outputs = -(-length // stride)
        total = (
            max((outputs - 1) * stride + (reach - 1) * dilation + 1 - length, 0) if padding == _SAME else 0
        )
        befores.append(total // 2)
        afters.append(total - total // 2)
    attributes = {"kernel_shape": list(kernel), "strides": list(strides), "pads": [*befores, *afters]}
    return attributes if set(dilations) == {1} else {**attributes, "dilations": dilations}


def average_pool(writer: Writer, operator: TfliteOperator) -> None:
    """AVERAGE_POOL_2D: padding is excluded; ties of integers round away from zero."""
    image, result = writer.input(operator, 0), writer.output(operator)
    name = writer.image(image)
    onnx_name = writer.node("AveragePool", [name], **pool_attributes(operator, image.shape))
    if image.kind != "FLOAT32" and image.scales == result.scales:
        writer.round_exactly(onnx_name, image)
    writer.finish(result, writer.channels_last(onnx_name), fused(operator), late=True)


def max_pool(writer: Writer, operator: TfliteOperator) -> None:
    """MAX_POOL_2D: padding is excluded."""
    image, result = writer.input(operator, 0), writer.output(operator)
    name = writer.image(image)
    onnx_name = writer.node("MaxPool", [name], **pool_attributes(operator, image.shape))
    writer.finish(result, writer.channels_last(onnx_name), fused(operator), late=True)


def pool_attributes(operator: TfliteOperator, shape: Sequence[int]) -> dict[str, Any]:
    """The window attributes of the ONNX node of a pool over an image [N, H, W, C] of this shape."""
    kernel = operator.integer("FilterHeight"), operator.integer("FilterWidth")
    return window_attributes(operator, shape[1:3], kernel)


_QUANTIZED = ("INT8", "UINT8")
_DYNAMIC_RANGE = float_note("not (dynamic range quantisation)", "TFLite", "full integer")

SCALED_MATMUL_NOTE = (
    "constants of BATCH_MATMUL with a scale for each channel are multiplied by these scales; LiteRT "
    "multiplies by 0 there, so that its results are zeros"
)


def conv(writer: Writer, operator: TfliteOperator) -> None:
    """CONV_2D: image [N, H, W, C], filter [K, R, S, C / groups]."""
    image, kernel = writer.input(operator, 0), writer.input(operator, 1)
    require_ranks(image, kernel)
    depth = kernel.shape[3]
    if depth < 1 or image.shape[3] % depth:
        raise Unsupported(f"a filter of {depth} channels does not fit {image.shape[3]} input channels")
    _convolution(writer, operator, perm=[0, 3, 1, 2], groups=image.shape[3] // depth, axis=0)


def depthwise(writer: Writer, operator: TfliteOperator) -> None:
    """DEPTHWISE_CONV_2D: image [N, H, W, C], filter [1, R, S, C * multiplier]."""
    image, kernel = writer.input(operator, 0), writer.input(operator, 1)
    require_ranks(image, kernel)
    if kernel.shape[0] != 1 or image.shape[3] < 1 or kernel.shape[3] % image.shape[3]:
        raise Unsupported(f"a filter {list(kernel.shape)} does not fit {image.shape[3]} input channels")
    _convolution(writer, operator, perm=[3, 0, 1, 2], groups=image.shape[3], axis=3)


def conv_3d(writer: Writer, operator: TfliteOperator) -> None:
    """CONV_3D of floats: image [N, D, H, W, C], filter [T, R, S, C / groups, K]."""
    image, kernel = writer.input(operator, 0), writer.input(operator, 1)
    if len(image.shape) != 5 or len(kernel.shape) != 5 or image.kind != "FLOAT32" or kernel.kind != "FLOAT32":
        raise Unsupported(
            f"image {list(image.shape)} and filter {list(kernel.shape)} need five dimensions, of FLOAT32"
        )
    depth = kernel.shape[3]
    if depth < 1 or image.shape[4] % depth:
        raise Unsupported(f"a filter of {depth} channels does not fit {image.shape[4]} input channels")
    inputs = [
        writer.part("Transpose", [writer.real(image)], perm=[0, 4, 1, 2, 3]),
        writer.constant(np.ascontiguousarray(kernel.array().transpose(4, 3, 0, 1, 2), np.float32)),
    ]
    inputs += bias_of(writer, writer.optional_input(operator, 2), (image, kernel), kernel.shape[4])
    attributes = window_attributes(operator, image.shape[1:4], kernel.shape[:3])
    onnx_name = writer.node("Conv", inputs, group=image.shape[4] // depth, **attributes)
    last = writer.part("Transpose", [onnx_name], perm=[0, 2, 3, 4, 1])
    writer.finish(writer.output(operator), last, fused(operator))


def require_ranks(image: TfliteTensor, kernel: TfliteTensor) -> None:
    """Require four dimensions each. Raises Unsupported for others."""
    if len(image.shape) != 4 or len(kernel.shape) != 4:
        raise Unsupported(f"image {list(image.shape)} and filter {list(kernel.shape)} need four dimensions")


def _convolution(
    writer: Writer, operator: TfliteOperator, *, perm: list[int], groups: int, axis: int
) -> None:
    image, kernel, result = writer.input(operator, 0), writer.input(operator, 1), writer.output(operator)
    require_scales_along(kernel, axis)
    note_dynamic_range(writer, image, kernel)
    rows, cols = kernel.shape[1:3]
    attributes = window_attributes(operator, image.shape[1:3], (rows, cols))
    inputs = [writer.image(image), writer.part("Transpose", [writer.real(kernel)], perm=perm)]
    channels = result.shape[3] if len(result.shape) == 4 else 0
    inputs += bias_of(writer, writer.optional_input(operator, 2), (image, kernel), channels)
    onnx_name = writer.node("Conv", inputs, group=groups, **attributes)
    writer.finish(result, writer.channels_last(onnx_name), fused(operator))


def require_scales_along(kernel: TfliteTensor, axis: int) -> None:
    """Raise Unsupported if quantised weights have scales along another axis than `axis`, the output channels.
    """
    if kernel.kind in _QUANTIZED:
        scales = parameters(kernel)
        if not scales.single and scales.axis != axis:
            raise Unsupported(f"the weights have scales along axis {scales.axis}; channels are axis {axis}")


def note_dynamic_range(writer: Writer, source: TfliteTensor, weights: TfliteTensor) -> None:
    """Note that an operator with quantised weights and a float input computes in floats."""
    if source.kind == "FLOAT32" and weights.kind in _QUANTIZED:
        writer.note_once(_DYNAMIC_RANGE)


def bias_of(
    writer: Writer, bias: TfliteTensor | None, operands: tuple[TfliteTensor, TfliteTensor], channels: int
) -> list[str]:
    """The bias as float32, in a list that is empty if there is none; `operands`: the input and the weights.

    An int32 bias counts in units of input scale * weight scale, whatever scale the file states for it.
    """
    if bias is None:
        return []
    if bias.kind == "FLOAT32":
        return [writer.real(bias)]
    if bias.kind != "INT32" or bias.data is None:
        raise Unsupported(f"the bias is {bias.kind}; constants of INT32 and FLOAT32 are supported")
    source, weights = (scales_of(operand) for operand in operands)
    units = np.array(source.scale, np.float32)[:1] * np.array(weights.scale, np.float32)
    if units.size not in (1, channels) or bias.elements != channels:
        raise Unsupported(
            f"the bias has {bias.elements} values and the weights {units.size} scales; "
            f"there are {channels} output channels"
        )
    if units.size == 1:
        units = units.reshape(())
    zeros = writer.constant(np.zeros(units.shape, np.int32))
    inputs = [writer.raw(bias), writer.constant(units), zeros]
    along = {"axis": 0} if units.ndim else {}
    return [writer.part("DequantizeLinear", inputs, **along)]


def fully_connected(writer: Writer, operator: TfliteOperator) -> None:
    """FULLY_CONNECTED: an input of any shape is read as rows of D values; weights [K, D]."""
    source, weights, result = writer.input(operator, 0), writer.input(operator, 1), writer.output(operator)
    if operator.integer("WeightsFormat") != 0:
        raise Unsupported("shuffled weights are not supported; convert the model again")
    if len(weights.shape) != 2:
        raise Unsupported(f"the weights have the shape {list(weights.shape)}; they need two dimensions")
    channels, depth = weights.shape
    if depth < 1 or source.elements % depth:
        raise Unsupported(f"an input of {source.elements} values does not fit weights {list(weights.shape)}")
    require_scales_along(weights, 0)
    note_dynamic_range(writer, source, weights)
    rows = source.elements // depth
    name = writer.real(source)
    if source.shape != (rows, depth):
        name = writer.reshaped(name, [rows, depth])
    bias = bias_of(writer, writer.optional_input(operator, 2), (source, weights), channels)
    onnx_name = writer.node("Gemm", [name, writer.real(weights), *bias], transB=1)
    if result.shape != (rows, channels):
        onnx_name = writer.reshaped(onnx_name, result.shape)
    writer.finish(result, onnx_name, fused(operator))


def batch_matmul(writer: Writer, operator: TfliteOperator) -> None:
    """BATCH_MATMUL over the last two axes of both operands; one of them may be constant."""
    names = []
    for position, flag in enumerate(("AdjX", "AdjY")):
        tensor = writer.input(operator, position)
        name = writer.real(tensor)
        names.append(swapped(writer, name, len(tensor.shape)) if operator.flag(flag) else name)
    source, other = writer.input(operator, 0), writer.input(operator, 1)
    require_scales_along(other, len(other.shape) - (2 if operator.flag("AdjY") else 1))
    if other.kind in _QUANTIZED and source.kind in _QUANTIZED and not parameters(other).single:
        writer.note_once(SCALED_MATMUL_NOTE)
    writer.finish(writer.output(operator), writer.node("MatMul", names))


def swapped(writer: Writer, name: str, rank: int) -> str:
    """Transpose the matrices of a value, its last two axes."""
    perm = [*range(rank - 2), rank - 1, rank - 2]
    return writer.part("Transpose", [name], perm=perm)
