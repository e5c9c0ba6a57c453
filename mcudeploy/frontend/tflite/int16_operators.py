"""Operators of int16 activations: integers throughout, with the arithmetic of TFLite's reference kernels.

Weights are int8 (16x8). Values are the stored integers, whose zero point is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.tflite import int16_functions as functions
from mcudeploy.frontend.tflite.contents import Scales, TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.dense import require_alike, require_ranks
from mcudeploy.frontend.tflite.elementwise import CLIPS
from mcudeploy.frontend.tflite.formula import Formula, formula_node
from mcudeploy.frontend.tflite.int16_functions import Finish, Rescaling
from mcudeploy.frontend.tflite.scales import Bounds as RealBounds
from mcudeploy.frontend.tflite.scales import fused, scales_of
from mcudeploy.frontend.tflite.variable_states import Translation
from mcudeploy.frontend.tflite.windows import pool_attributes, window_attributes
from mcudeploy.frontend.tflite.writer import Writer
from mcudeploy.ops.conv import window_positions
from mcudeploy.ops.conv_int16 import SumScales, SumTies
from mcudeploy.ops.int16 import IDENTITY, INT16, Bounds, Int16Function, SigmoidInt16, TwiceScale

_BINARY: dict[str, Int16Function] = {"ADD": "add", "SUB": "sub", "MUL": "mul"}
_LEAST_INTEGER_BITS = 3
"""Bits of the integers of the argument of a function that a table has."""
_TABLE_UNIT = 3 * 4096.0
_SOFTMAX_UNIT = 10.0 / 65535.0
_ONE = 2.0**-15


def is_int16(tensor: TfliteTensor) -> bool:
    """Whether a tensor has quantised int16 values."""
    return tensor.kind == "INT16" and tensor.scales is not None


@dataclass(frozen=True, slots=True, eq=False)
class _Product:
    """A convolution or matrix product: its input, its weights with the output channels first, its bias, its
    result.
    """

    source: TfliteTensor
    weights: TfliteTensor
    stored: NDArray[np.int8]
    bias: TfliteTensor | None
    result: TfliteTensor


def conv(writer: Writer, operator: TfliteOperator) -> None:
    """CONV_2D: image [1, H, W, C], filter [K, R, S, C / groups]."""
    kernel = writer.input(operator, 1)
    require_ranks(writer.input(operator, 0), kernel)
    _convolution(writer, operator, _int8(kernel), axis=0)


def depthwise(writer: Writer, operator: TfliteOperator) -> None:
    """DEPTHWISE_CONV_2D: image [1, H, W, C], filter [1, R, S, C * multiplier]."""
    kernel = writer.input(operator, 1)
    require_ranks(writer.input(operator, 0), kernel)
    bias = writer.given(operator, 2)
    if bias is not None and bias.kind == "INT32":
        raise Unsupported("its bias is INT32; TFLite takes INT64 with int16 activations")
    _convolution(writer, operator, _int8(kernel).transpose(3, 1, 2, 0), axis=3)


def _convolution(writer: Writer, operator: TfliteOperator, stored: NDArray[np.int8], *, axis: int) -> None:
    image, kernel, result = writer.input(operator, 0), writer.input(operator, 1), writer.output(operator)
    require_alike(image, kernel, axis)
    depth, channels = stored.shape[3], image.shape[3]
    groups = channels // max(depth, 1)
    if depth < 1 or channels % depth or len(stored) % max(groups, 1):
        raise Unsupported(f"a filter {list(kernel.shape)} does not fit {channels} input channels")
    _require_one_image(image)
    window = window_attributes(operator, image.shape[1:3], stored.shape[1:3])
    bias = writer.given(operator, 2)
    ties: SumTies = "twice" if bias is not None and bias.kind == "INT32" else "up"
    product = _Product(image, kernel, stored, bias, result)
    finish = _finish(operator, product, ties)
    f = Formula()
    f.result("y", functions.convolution(f, finish, window, groups))
    facts = {**window, "group": groups, **_facts(finish)}
    writer.keep(result, formula_node(writer, "ConvInt16", _operands(writer, product, finish), f, **facts))


def fully_connected(writer: Writer, operator: TfliteOperator) -> None:
    """FULLY_CONNECTED: any input taken as rows of D values, weights [K, D]."""
    source, weights, result = writer.input(operator, 0), writer.input(operator, 1), writer.output(operator)
    if operator.integer("WeightsFormat") != 0:
        raise Unsupported("shuffled weights are not supported; convert the model again")
    if len(weights.shape) != 2 or weights.shape[1] < 1 or source.elements % weights.shape[1]:
        raise Unsupported(f"an input of {source.elements} values does not fit weights {list(weights.shape)}")
    require_alike(source, weights, 0)
    channels, depth = weights.shape
    if result.elements != source.elements // depth * channels:
        raise Unsupported(f"{list(source.shape)} cannot become {list(result.shape)}")
    product = _Product(source, weights, _int8(weights), writer.given(operator, 2), result)
    finish = _finish(operator, product, "away")
    f = Formula()
    f.result("y", functions.dense(f, finish, (channels, depth), result.shape))
    operands = _operands(writer, product, finish)
    writer.keep(result, formula_node(writer, "DenseInt16", operands, f, **_facts(finish)))


def _int8(weights: TfliteTensor) -> NDArray[np.int8]:
    if weights.kind != "INT8":
        raise Unsupported(f"its weights are {weights.kind}; with int16 activations they must be INT8")
    if any(scales_of(weights).zero_point):
        raise Unsupported("its weights have a zero point; with int16 activations it must be 0")
    return weights.array().astype(np.int8)


def _finish(operator: TfliteOperator, product: _Product, ties: SumTies) -> Finish:
    """The scales of the sums as TFLite computes them, in double precision."""
    weights = np.array(scales_of(product.weights).scale, np.float32).astype(np.float64)
    factors = _scale(product.source) * weights / _scale(product.result)
    factors = np.broadcast_to(factors, len(product.stored))
    bounds = _bounds(fused(operator), product.result)
    return Finish(SumScales.of(np.ascontiguousarray(factors), ties), ties, bounds)


def _operands(writer: Writer, product: _Product, finish: Finish) -> dict[str, str]:
    bias, channels = product.bias, len(product.stored)
    added = np.zeros(channels, np.int64)
    if bias is not None:
        if bias.kind not in ("INT32", "INT64") or bias.data is None or bias.elements != channels:
            raise Unsupported(f"its bias needs {channels} constants of INT64 or INT32, not {bias.kind}")
        added = bias.array().astype(np.int64).reshape(-1)
    return {
        "x": writer.raw(product.source),
        "weights": writer.constant(np.ascontiguousarray(product.stored)),
        "bias": writer.constant(added),
        "multipliers": writer.constant(finish.scales.multipliers),
        "shifts": writer.constant(finish.scales.shifts),
    }


def _facts(finish: Finish) -> dict[str, Any]:
    return {
        "ties": finish.ties,
        "left_shift": finish.scales.left_shift,
        "bounds": [finish.bounds.low, finish.bounds.high],
    }


def _require_one_image(image: TfliteTensor) -> None:
    if image.shape[0] != 1:
        raise Unsupported(
            f"the batch is {image.shape[0]}; with int16 activations it must be 1: convert the model with a "
            "batch of 1"
        )


def _scale(tensor: TfliteTensor) -> float:
    """The scale of an int16 tensor, with the precision of the file. Raises Unsupported for others."""
    scales = _meaning(tensor)
    if tensor.kind != "INT16":
        raise Unsupported(f"tensor {tensor.label} is {tensor.kind}; the others of it are INT16")
    if scales.zero_point[0] != 0:
        raise Unsupported(f"tensor {tensor.label} is INT16 with a zero point; TFLite needs 0")
    return float(np.float32(scales.scale[0]))


def _meaning(tensor: TfliteTensor) -> Scales:
    scales = scales_of(tensor)
    if not scales.single or not scales.scale[0] > 0:
        raise Unsupported(f"tensor {tensor.label} needs one scale, above 0")
    return scales


def _bounds(real: RealBounds, result: TfliteTensor) -> Bounds:
    """The bounds of an activation as stored integers: float32 quotients, ties away from zero."""
    scale = np.float32(_scale(result))

    def stored(bound: float) -> int:
        steps = float(np.float32(abs(bound)) / scale) if isfinite(bound) else inf
        whole = int(min(np.floor(steps + 0.5), 2.0**31))
        return min(max(whole if bound > 0 else -whole, INT16.min), INT16.max)

    return Bounds() if real is None else Bounds(stored(real[0]), stored(real[1]))


def binary(writer: Writer, operator: TfliteOperator) -> None:
    """ADD, SUB and MUL, with broadcasting."""
    sources, result = [writer.input(operator, at) for at in (0, 1)], writer.output(operator)
    if all(source.data is not None for source in sources):
        raise Unsupported("all its operands are constant")
    scales = [_scale(source) for source in sources]
    made, function = _scale(result), _BINARY[operator.op]
    if function != "mul" and operator.flag("PotScaleInt16") and all(map(_is_power, (*scales, made))):
        raise Unsupported(
            "its scales are powers of two, which TFLite adds in another way; convert the model again"
        )
    factors = [scales[0] * scales[1] / made] * 3
    if function != "mul":
        common = 2 * max(scales)
        factors = [scales[0] / common, scales[1] / common, common / (2.0**15 * made)]
    a, b, whole = (TwiceScale.of(factor) for factor in factors)
    if whole.exponent > 0:
        raise Unsupported(f"the scale of its result, {made:g}, is too small for {scales[0]:g}, {scales[1]:g}")
    bounds = _bounds(fused(operator), result)
    f = Formula()
    f.result("y", functions.binary(f, function, (a, b, whole), bounds))
    facts: dict[str, Any] = {"function": function, "bounds": [bounds.low, bounds.high]}
    facts |= {name: [it.multiplier, it.exponent] for name, it in (("a", a), ("b", b), ("result", whole))}
    inputs = {name: writer.raw(source) for name, source in zip("ab", sources, strict=True)}
    writer.keep(result, formula_node(writer, "BinaryInt16", inputs, f, **facts))


def _is_power(scale: float) -> bool:
    return log2(scale) == round(log2(scale))


def clip(writer: Writer, operator: TfliteOperator) -> None:
    """RELU and similar operators."""
    source, result = writer.input(operator, 0), writer.output(operator)
    scale = TwiceScale.of(_scale(source) / _scale(result))
    bounds = _bounds(CLIPS[operator.op], result)
    _rescaled(writer, source, result, Rescaling(scale, scale, bounds=bounds))


def leaky_relu(writer: Writer, operator: TfliteOperator) -> None:
    """LEAKY_RELU."""
    source, result = writer.input(operator, 0), writer.output(operator)
    ratio, alpha = _scale(source) / _scale(result), float(np.float32(operator.number("Alpha")))
    if not isfinite(alpha):
        raise Unsupported(f"alpha is {alpha}")
    below = TwiceScale.of(_scale(source) * abs(alpha) / _scale(result))
    _rescaled(writer, source, result, Rescaling(TwiceScale.of(ratio), below, negated=alpha < 0))


def _rescaled(writer: Writer, source: TfliteTensor, result: TfliteTensor, what: Rescaling) -> None:
    f = Formula()
    f.result("y", functions.rescaled(f, what, result.dtype or ""))
    writer.keep(
        result, formula_node(writer, "RescaleInt16", {"x": writer.raw(source)}, f, **_rescaling(what))
    )


def _rescaling(what: Rescaling) -> dict[str, Any]:
    return {
        "above": [what.above.multiplier, what.above.exponent],
        "below": [what.below.multiplier, what.below.exponent],
        "negated": int(what.negated),
        "zero_points": list(what.zero_points),
        "bounds": [what.bounds.low, what.bounds.high],
    }


def convert(writer: Writer, operator: TfliteOperator) -> None:
    """QUANTIZE and DEQUANTIZE: from or to float32, int16 in another scale, and int8."""
    source, result = writer.input(operator, 0), writer.output(operator)
    kinds = source.kind, result.kind
    if kinds == ("FLOAT32", "INT16"):
        step = _scale(result)
        f = Formula(np.float32)
        f.result("y", functions.quantized(f, step))
        inputs = {"x": writer.raw(source), "scale": writer.constant(np.array(step, np.float32))}
        writer.keep(result, formula_node(writer, "QuantizeInt16", inputs, f))
        return
    if kinds == ("INT16", "FLOAT32"):
        factor = writer.constant(np.array(_scale(source), np.float32))
        made = writer.node("Cast", [writer.raw(source)], main=False, to=1)
        writer.finish(result, writer.node("Mul", [made, factor]))
        return
    if not {*kinds} <= {"INT8", "INT16"}:
        raise Unsupported(
            f"it converts {kinds[0]} to {kinds[1]}; int16 is converted from and to FLOAT32, INT8"
        )
    before, after = _meaning(source), _meaning(result)
    scale = TwiceScale.of(float(np.float32(before.scale[0])) / float(np.float32(after.scale[0])))
    limits = np.iinfo(result.dtype or "")
    bounds = Bounds(int(limits.min), int(limits.max))
    zero_points = before.zero_point[0], after.zero_point[0]
    _rescaled(writer, source, result, Rescaling(scale, scale, zero_points=zero_points, bounds=bounds))


def sigmoid(writer: Writer, operator: TfliteOperator) -> None:
    """LOGISTIC and TANH; their results have the scale 2^-15."""
    source, result = writer.input(operator, 0), writer.output(operator)
    _require_unit(result)
    scale, tangent = _scale(source), operator.op == "TANH"
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
    f = Formula()
    f.result("y", functions.sigmoid(f, op))
    facts = {"tangent": int(tangent), "multiplier": multiplier, "shift": shift}
    writer.keep(result, formula_node(writer, "SigmoidInt16", {"x": writer.raw(source)}, f, **facts))


def softmax(writer: Writer, operator: TfliteOperator) -> None:
    """SOFTMAX along the last axis; its result has the scale 2^-15."""
    source, result, beta = writer.input(operator, 0), writer.output(operator), operator.number("Beta")
    _require_unit(result)
    if not 0 < beta < inf:
        raise Unsupported(f"beta is {beta:g}; it must be positive")
    scale = TwiceScale.of(_scale(source) * float(np.float32(beta)) / _SOFTMAX_UNIT)
    f = Formula()
    f.result("y", functions.softmax(f, scale))
    facts = {"scale": [scale.multiplier, scale.exponent]}
    writer.keep(result, formula_node(writer, "SoftmaxInt16", {"x": writer.raw(source)}, f, **facts))


def _require_unit(result: TfliteTensor) -> None:
    if _scale(result) != _ONE:
        raise Unsupported(f"the scale of its result is {_scale(result):g}; TFLite needs 2^-15")


def pool(writer: Writer, operator: TfliteOperator) -> None:
    """AVERAGE_POOL_2D and MAX_POOL_2D of one scale."""
    image, result = writer.input(operator, 0), writer.output(operator)
    if len(image.shape) != 4 or len(result.shape) != 4:
        raise Unsupported(f"an image {list(image.shape)} needs four dimensions")
    _require_one_image(image)
    if _scale(image) != _scale(result):
        raise Unsupported("the scales of its input and its result differ, which TFLite ignores")
    window = pool_attributes(operator, image.shape)
    f = Formula()
    average = operator.op == "AVERAGE_POOL_2D"
    if average:
        made = functions.means(f, window, image.shape[3], _counts(window, image.shape[1:3]))
    else:
        made = functions.maxima(f, window)
    f.result("y", made)
    bounds = _bounds(fused(operator), result)
    facts = {**window, "average": int(average)}
    name = formula_node(writer, "PoolInt16", {"x": writer.raw(image)}, f, **facts)
    if bounds != Bounds():
        writer.known(name, result.shape, "int16")
        what = Rescaling(IDENTITY, IDENTITY, bounds=bounds)
        f = Formula()
        f.result("y", functions.rescaled(f, what, "int16"))
        name = formula_node(writer, "RescaleInt16", {"x": name}, f, **_rescaling(what))
    writer.keep(result, name)


def _counts(window: dict[str, Any], size: tuple[int, ...]) -> NDArray[np.int64]:
    """The number of values inside an image under each window, [OH, OW]."""
    along = []
    for at, length in enumerate(size):
        taps, stride = window["kernel_shape"][at], window["strides"][at]
        pads = window["pads"][at], window["pads"][at + 2]
        places = window_positions(length, taps, stride, 1, pads)
        starts = np.arange(places) * stride - pads[0]
        along.append(np.minimum(starts + taps, length) - np.maximum(starts, 0))
    return np.outer(along[0], along[1]).astype(np.int64)


INT16_TRANSLATIONS: dict[str, Translation] = {
    **dict.fromkeys(_BINARY, binary),
    "AVERAGE_POOL_2D": pool,
    "CONV_2D": conv,
    "DEPTHWISE_CONV_2D": depthwise,
    "DEQUANTIZE": convert,
    "FULLY_CONNECTED": fully_connected,
    "LEAKY_RELU": leaky_relu,
    "LOGISTIC": sigmoid,
    "MAX_POOL_2D": pool,
    "QUANTIZE": convert,
    "RELU": clip,
    "RELU6": clip,
    "SOFTMAX": softmax,
    "TANH": sigmoid,
}
"""Translation of each operator that computes with int16 activations; moves are those of other integers."""
