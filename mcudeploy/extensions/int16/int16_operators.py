"""Translation of .tflite operators on int16 activations to nodes with the arithmetic of TFLite's kernels.

Values are stored integers, whose zero point is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, log2, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.int16 import int16_functions as functions
from mcudeploy.extensions.int16.int16 import (
    IDENTITY,
    INT16,
    SUM_BITS,
    Bounds,
    Int16Function,
    SigmoidInt16,
    TwiceScale,
)
from mcudeploy.extensions.int16.int16_functions import Rescaling
from mcudeploy.extensions.int16.int16_products import (
    batch_matmul,
    conv,
    depthwise,
    fully_connected,
    transpose_conv,
)
from mcudeploy.extensions.int16.int16_scales import bounds_of, require_one_image, scale_and_zero, scale_of
from mcudeploy.extensions.int16.lstm_integers import integer_lstm
from mcudeploy.extensions.int16.lut_int16 import TableFunction, interpolated_function
from mcudeploy.extensions.int16.resize_int16 import ResizeSamplesInt16
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.tflite.contents import TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.convolutions import pool_attributes
from mcudeploy.frontend.tflite.elementwise import CLIPS
from mcudeploy.frontend.tflite.formula import Formula, formula_node
from mcudeploy.frontend.tflite.moves import axes_of, padding_of
from mcudeploy.frontend.tflite.scales import fused
from mcudeploy.frontend.tflite.variable_states import Translation
from mcudeploy.frontend.tflite.writer import Writer
from mcudeploy.ops.conv.conv import window_positions
from mcudeploy.ops.requantize import mean_multiplier

_BINARY: dict[str, Int16Function] = {"ADD": "add", "SUB": "sub", "MUL": "mul"}
_TABLES: dict[str, TableFunction] = {"EXP": "exp", "LOG": "log", "RSQRT": "rsqrt"}
_LEAST_INTEGER_BITS = 3
"""Integer bits of the argument of TFLite's logistic table."""
_TABLE_UNIT = 3 * 4096.0
"""Steps of the table's argument in a unit: 24 * 2^9."""
_NEAR_POWER = 1e-3
_SOFTMAX_UNIT = 10.0 / 65535.0
_ONE = 2.0**-15


def binary(writer: Writer, operator: TfliteOperator) -> None:
    """ADD, SUB and MUL, with broadcasting."""
    sources, result = [writer.input(operator, at) for at in (0, 1)], writer.output(operator)
    if all(source.data is not None for source in sources):
        raise Unsupported("all its operands are constant")
    scales = [scale_of(source) for source in sources]
    result_scale, function = scale_of(result), _BINARY[operator.op]
    if function != "mul" and operator.flag("PotScaleInt16") and all(map(_is_power, (*scales, result_scale))):
        raise Unsupported(
            "its scales are powers of two, which TFLite adds differently; convert the model again"
        )
    factors = [_float_quotient(scales, result_scale)] * 3
    if function != "mul":
        common = 2 * max(scales)
        factors = [scales[0] / common, scales[1] / common, common / (2.0**SUM_BITS * result_scale)]
    a, b, of_result = (TwiceScale.of(factor) for factor in factors)
    if of_result.exponent > 0:
        raise Unsupported(
            f"the scale of its result, {result_scale:g}, is too small for {scales[0]:g}, {scales[1]:g}"
        )
    bounds = bounds_of(fused(operator), result)
    value = functions.binary(Formula(), function, (a, b, of_result), bounds)
    facts: dict[str, Any] = {"function": function, "bounds": [bounds.low, bounds.high]}
    facts |= {name: [it.multiplier, it.exponent] for name, it in (("a", a), ("b", b), ("result", of_result))}
    inputs = {name: writer.raw(source) for name, source in zip("ab", sources, strict=True)}
    writer.keep(result, formula_node(writer, "BinaryInt16", inputs, value, **facts))


def _float_quotient(factors: Sequence[float], divisor: float) -> float:
    """A product divided by a scale, each step rounded to float32 where TFLite does so."""
    product = np.float32(factors[0])
    for factor in factors[1:]:
        product = np.float32(product * np.float32(factor))
    return float(np.float32(product / np.float32(divisor)))


def _is_power(scale: float) -> bool:
    """Whether TFLite treats a scale as a power of two."""
    exponent = log2(scale)
    return abs(exponent - round(exponent)) < _NEAR_POWER


def clip(writer: Writer, operator: TfliteOperator) -> None:
    """RELU and similar operators."""
    source, result = writer.input(operator, 0), writer.output(operator)
    scale = TwiceScale.of(_float_quotient([scale_of(source)], scale_of(result)))
    bounds = bounds_of(CLIPS[operator.op], result)
    _emit_rescaling(writer, source, result, Rescaling(scale, scale, bounds=bounds))


def absolute(writer: Writer, operator: TfliteOperator) -> None:
    """ABS."""
    source, result = writer.input(operator, 0), writer.output(operator)
    scales = scale_of(source), scale_of(result)
    scale = IDENTITY if scales[0] == scales[1] else TwiceScale.of(scales[0] / scales[1])
    _emit_rescaling(writer, source, result, Rescaling(scale, scale, negated=True))


def lookup(writer: Writer, operator: TfliteOperator) -> None:
    """EXP, LOG and RSQRT, by tables that are interpolated."""
    source, result = writer.input(operator, 0), writer.output(operator)
    table = interpolated_function(_TABLES[operator.op], scale_of(source), scale_of(result))
    value = functions.looked_up(Formula(), table)
    inputs = {"x": writer.raw(source)}
    writer.keep(result, formula_node(writer, "LutInt16", inputs, value, table=table.tolist()))


def extremum(writer: Writer, operator: TfliteOperator) -> None:
    """MAXIMUM and MINIMUM, with broadcasting. TFLite compares stored integers, whatever their scales."""
    sources, result = [writer.input(operator, at) for at in (0, 1)], writer.output(operator)
    if all(source.data is not None for source in sources):
        raise Unsupported("all its operands are constant")
    if any(scale_of(source) != scale_of(result) for source in sources):
        raise Unsupported("the scales of its operands and its result differ, which TFLite ignores")
    least = operator.op == "MINIMUM"
    value = functions.extremum(Formula(), least=least)
    inputs = {name: writer.raw(source) for name, source in zip("ab", sources, strict=True)}
    writer.keep(result, formula_node(writer, "ExtremumInt16", inputs, value, least=int(least)))


def leaky_relu(writer: Writer, operator: TfliteOperator) -> None:
    """LEAKY_RELU."""
    source, result = writer.input(operator, 0), writer.output(operator)
    scales, alpha = (scale_of(source), scale_of(result)), operator.number("Alpha")
    if not isfinite(alpha):
        raise Unsupported(f"alpha is {alpha}")
    above = TwiceScale.of(_float_quotient(scales[:1], scales[1]))
    below = TwiceScale.of(_float_quotient([scales[0], abs(alpha)], scales[1]))
    _emit_rescaling(writer, source, result, Rescaling(above, below, negated=alpha < 0))


def _emit_rescaling(writer: Writer, source: TfliteTensor, result: TfliteTensor, rescaling: Rescaling) -> None:
    value = functions.rescaled(Formula(), rescaling, result.dtype or "")
    writer.keep(
        result,
        formula_node(
            writer, "RescaleInt16", {"x": writer.raw(source)}, value, **_rescaling_attributes(rescaling)
        ),
    )


def _rescaling_attributes(rescaling: Rescaling) -> dict[str, Any]:
    return {
        "above": [rescaling.above.multiplier, rescaling.above.exponent],
        "below": [rescaling.below.multiplier, rescaling.below.exponent],
        "negated": int(rescaling.negated),
        "zero_points": list(rescaling.zero_points),
        "bounds": [rescaling.bounds.low, rescaling.bounds.high],
    }


def convert(writer: Writer, operator: TfliteOperator) -> None:
    """QUANTIZE and DEQUANTIZE: between int16 and float32, int16 of another scale, or int8."""
    source, result = writer.input(operator, 0), writer.output(operator)
    kinds = source.kind, result.kind
    if kinds == ("FLOAT32", "INT16"):
        step = scale_of(result)
        value = functions.quantized(Formula(np.float32), step)
        inputs = {"x": writer.raw(source), "scale": writer.float32(step)}
        writer.keep(result, formula_node(writer, "QuantizeInt16", inputs, value))
        return
    if kinds == ("INT16", "FLOAT32"):
        factor = writer.float32(scale_of(source))
        onnx_name = writer.part("Cast", [writer.raw(source)], to=1)
        writer.finish(result, writer.node("Mul", [onnx_name, factor]))
        return
    if not {*kinds} <= {"INT8", "INT16"}:
        raise Unsupported(
            f"it converts {kinds[0]} to {kinds[1]}; int16 is converted from and to FLOAT32, INT8"
        )
    before, after = scale_and_zero(source), scale_and_zero(result)
    scale = TwiceScale.of(float(np.float32(before.scale[0])) / float(np.float32(after.scale[0])))
    limits = np.iinfo(result.dtype or "")
    bounds = Bounds(int(limits.min), int(limits.max))
    zero_points = before.zero_point[0], after.zero_point[0]
    _emit_rescaling(writer, source, result, Rescaling(scale, scale, zero_points=zero_points, bounds=bounds))


def sigmoid(writer: Writer, operator: TfliteOperator) -> None:
    """LOGISTIC and TANH; their results have the scale 2^-15."""
    source, result = writer.input(operator, 0), writer.output(operator)
    _require_unit(result)
    scale, tangent = scale_of(source), operator.op == "TANH"
    multiplier, shift = 0, 0
    bits = round(log2(scale)) + 15 - _LEAST_INTEGER_BITS
    if _is_power(scale) and bits in (0, 1):
        multiplier = 3 << bits
    else:
        factor = scale * _TABLE_UNIT
        while factor <= INT16.max / 2 and shift <= 30:
            factor, shift = factor * 2, shift + 1
        multiplier = int(factor)
    if multiplier > INT16.max:
        raise Unsupported(f"the scale of its input, {scale:g}, is too large for the table of TFLite")
    op = SigmoidInt16(tangent, multiplier, shift)
    value = functions.sigmoid(Formula(), op)
    facts = {"tangent": int(tangent), "multiplier": multiplier, "shift": shift}
    writer.keep(result, formula_node(writer, "SigmoidInt16", {"x": writer.raw(source)}, value, **facts))


def softmax(writer: Writer, operator: TfliteOperator) -> None:
    """SOFTMAX along the last axis; its result has the scale 2^-15."""
    source, result, beta = writer.input(operator, 0), writer.output(operator), operator.number("Beta")
    _require_unit(result)
    if not 0 < beta < inf:
        raise Unsupported(f"beta is {beta:g}; it must be positive")
    scale = TwiceScale.of(float(np.float32(scale_of(source)) * np.float32(beta)) / _SOFTMAX_UNIT)
    value = functions.softmax(Formula(), scale)
    facts = {"scale": [scale.multiplier, scale.exponent]}
    writer.keep(result, formula_node(writer, "SoftmaxInt16", {"x": writer.raw(source)}, value, **facts))


def _require_unit(result: TfliteTensor) -> None:
    if scale_of(result) != _ONE:
        raise Unsupported(f"the scale of its result is {scale_of(result):g}; TFLite needs 2^-15")


def pool(writer: Writer, operator: TfliteOperator) -> None:
    """AVERAGE_POOL_2D and MAX_POOL_2D whose input and result have the same scale."""
    image, result = writer.input(operator, 0), writer.output(operator)
    if len(image.shape) != 4 or len(result.shape) != 4:
        raise Unsupported(f"an image {list(image.shape)} needs four dimensions")
    require_one_image(image)
    if scale_of(image) != scale_of(result):
        raise Unsupported("the scales of its input and its result differ, which TFLite ignores")
    window = pool_attributes(operator, image.shape)
    average = operator.op == "AVERAGE_POOL_2D"
    if average:
        counts = _counts(window, image.shape[1:3])
        value = functions.means(Formula(), window, image.shape[3], counts)
    else:
        value = functions.maxima(Formula(), window)
    bounds = bounds_of(fused(operator), result)
    facts = {**window, "average": int(average)}
    name = formula_node(writer, "PoolInt16", {"x": writer.raw(image)}, value, **facts)
    if bounds != Bounds():
        writer.declare(name, result.shape, "int16")
        rescaling = Rescaling(IDENTITY, IDENTITY, bounds=bounds)
        value = functions.rescaled(Formula(), rescaling, "int16")
        name = formula_node(writer, "RescaleInt16", {"x": name}, value, **_rescaling_attributes(rescaling))
    writer.keep(result, name)


def _counts(window: dict[str, Any], size: tuple[int, ...]) -> NDArray[np.int64]:
    """The number of values inside an image under each window, [OH, OW]."""
    by_axis = []
    for axis, length in enumerate(size):
        taps, stride = window["kernel_shape"][axis], window["strides"][axis]
        pads = window["pads"][axis], window["pads"][axis + 2]
        windows = window_positions(length, taps, stride, 1, pads)
        starts = np.arange(windows) * stride - pads[0]
        by_axis.append(np.minimum(starts + taps, length) - np.maximum(starts, 0))
    return np.outer(by_axis[0], by_axis[1]).astype(np.int64)


def mean(writer: Writer, operator: TfliteOperator) -> None:
    """MEAN over constant axes."""
    source, result = writer.input(operator, 0), writer.output(operator)
    axes = axes_of(writer, operator)
    count = prod(source.shape[axis] for axis in axes)
    multiplier, exponent = mean_multiplier(scale_of(source) / scale_of(result), count)
    scale = TwiceScale(multiplier, exponent)
    value = functions.mean(Formula(), axes, scale, result.shape)
    facts: dict[str, Any] = {"axes": axes, "scale": [multiplier, exponent]}
    writer.keep(result, formula_node(writer, "MeanInt16", {"x": writer.raw(source)}, value, **facts))


def pad(writer: Writer, operator: TfliteOperator) -> None:
    """PAD with zeros."""
    source, result, amounts = writer.input(operator, 0), writer.output(operator), padding_of(writer, operator)
    value = functions.padded(Formula())
    inputs = {"x": writer.raw(source), "pads": writer.int64(amounts[::2] + amounts[1::2])}
    writer.keep(result, formula_node(writer, "PadInt16", inputs, value))


def concatenation(writer: Writer, operator: TfliteOperator) -> None:
    """CONCATENATION whose inputs and result have the same scale."""
    sources, result = writer.inputs(operator), writer.output(operator)
    if any(scale_of(source) != scale_of(result) for source in sources):
        raise Unsupported("the scales of its inputs and its result differ, which TFLite ignores")
    if fused(operator) is not None:
        raise Unsupported("a fused activation is not supported with int16 activations")
    names = [writer.raw(source) for source in sources]
    writer.keep(result, writer.node("Concat", names, axis=operator.integer("Axis")))


def resize(writer: Writer, operator: TfliteOperator) -> None:
    """RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR, in fixed point as TFLite computes them."""
    image, result = writer.input(operator, 0), writer.output(operator)
    if len(image.shape) != 4 or len(result.shape) != 4:
        raise Unsupported(f"an image {list(image.shape)} needs four dimensions")
    require_one_image(image)
    aligned, halves = operator.flag("AlignCorners"), operator.flag("HalfPixelCenters")
    linear = operator.op == "RESIZE_BILINEAR"
    if aligned and halves:
        raise Unsupported("aligned corners and half-pixel centres exclude each other")
    axes = [
        ResizeSamplesInt16.of(size, new_size, linear=linear, aligned=aligned, halves=halves)
        for size, new_size in zip(image.shape[1:3], result.shape[1:3], strict=True)
    ]
    value = functions.resized(Formula(), axes[0], axes[1])
    facts: dict[str, Any] = {"linear": int(linear)}
    for name, axis in zip(("rows", "cols"), axes, strict=True):
        facts |= {f"{name}_{it}": list(getattr(axis, it)) for it in ("first", "second", "weight")}
    writer.keep(result, formula_node(writer, "ResizeInt16", {"x": writer.raw(image)}, value, **facts))


TRANSLATIONS: dict[str, dict[str, Translation]] = {
    "INT16": {
        **dict.fromkeys(_BINARY, binary),
        **dict.fromkeys(_TABLES, lookup),
        "ABS": absolute,
        "AVERAGE_POOL_2D": pool,
        "BATCH_MATMUL": batch_matmul,
        "CONCATENATION": concatenation,
        "CONV_2D": conv,
        "DEPTHWISE_CONV_2D": depthwise,
        "DEQUANTIZE": convert,
        "FULLY_CONNECTED": fully_connected,
        "LEAKY_RELU": leaky_relu,
        "LOGISTIC": sigmoid,
        "MAXIMUM": extremum,
        "MAX_POOL_2D": pool,
        "MEAN": mean,
        "MINIMUM": extremum,
        "PAD": pad,
        "QUANTIZE": convert,
        "RELU": clip,
        "RELU6": clip,
        "RESIZE_BILINEAR": resize,
        "RESIZE_NEAREST_NEIGHBOR": resize,
        "SOFTMAX": softmax,
        "TANH": sigmoid,
        "TRANSPOSE_CONV": transpose_conv,
        "UNIDIRECTIONAL_SEQUENCE_LSTM": integer_lstm,
    }
}
"""Translation of each operator that computes with int16 activations; for moves that of other integers."""
