"""Translation of convolutions and products of int16 activations by int8 weights, as TFLite computes them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.int16 import int16_functions as functions
from mcudeploy.extensions.int16.conv_int16 import SumScales, SumTies
from mcudeploy.extensions.int16.int16 import INT16
from mcudeploy.extensions.int16.int16_functions import Finish
from mcudeploy.extensions.int16.int16_scales import bounds_of, require_one_image, scale_of
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.tflite.contents import TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.convolutions import (
    SCALED_MATMUL_NOTE,
    require_ranks,
    require_scales_along,
    swapped,
    window_attributes,
)
from mcudeploy.frontend.tflite.formula import Formula, formula_node
from mcudeploy.frontend.tflite.scales import fused, scales_of
from mcudeploy.frontend.tflite.upsampling import filters_of_places, placed, upsampling_axes
from mcudeploy.frontend.tflite.writer import Writer


@dataclass(frozen=True, slots=True, eq=False)
class _Product:
    """The tensors of a convolution or matrix product; `stored`: its weights, output channels first."""

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
    bias = writer.optional_input(operator, 2)
    if bias is not None and bias.kind == "INT32":
        raise Unsupported("its bias is INT32; TFLite takes INT64 with int16 activations")
    _convolution(writer, operator, _int8(kernel).transpose(3, 1, 2, 0), axis=3)


def _convolution(writer: Writer, operator: TfliteOperator, stored: NDArray[np.int8], *, axis: int) -> None:
    image, kernel, result = writer.input(operator, 0), writer.input(operator, 1), writer.output(operator)
    require_scales_along(kernel, axis)
    depth, channels = stored.shape[3], image.shape[3]
    groups = channels // max(depth, 1)
    if depth < 1 or channels % depth or len(stored) % max(groups, 1):
        raise Unsupported(f"a filter {list(kernel.shape)} does not fit {channels} input channels")
    require_one_image(image)
    window = window_attributes(operator, image.shape[1:3], stored.shape[1:3])
    bias = writer.optional_input(operator, 2)
    ties: SumTies = "twice" if bias is not None and bias.kind == "INT32" else "up"
    product = _Product(image, kernel, stored, bias, result)
    finish = _finish(operator, product, ties)
    value = functions.convolution(Formula(), finish, window, groups)
    facts = {**window, "group": groups, **_facts(finish)}
    writer.keep(result, formula_node(writer, "ConvInt16", _operands(writer, product, finish), value, **facts))


def fully_connected(writer: Writer, operator: TfliteOperator) -> None:
    """FULLY_CONNECTED: any input taken as rows of D values, weights [K, D]."""
    source, weights, result = writer.input(operator, 0), writer.input(operator, 1), writer.output(operator)
    if operator.integer("WeightsFormat") != 0:
        raise Unsupported("shuffled weights are not supported; convert the model again")
    if len(weights.shape) != 2 or weights.shape[1] < 1 or source.elements % weights.shape[1]:
        raise Unsupported(f"an input of {source.elements} values does not fit weights {list(weights.shape)}")
    require_scales_along(weights, 0)
    channels, depth = weights.shape
    if result.elements != source.elements // depth * channels:
        raise Unsupported(f"{list(source.shape)} cannot become {list(result.shape)}")
    product = _Product(source, weights, _int8(weights), writer.optional_input(operator, 2), result)
    finish = _finish(operator, product, "away")
    value = functions.dense(Formula(), finish, (channels, depth), result.shape)
    operands = _operands(writer, product, finish)
    writer.keep(result, formula_node(writer, "DenseInt16", operands, value, **_facts(finish)))


def transpose_conv(writer: Writer, operator: TfliteOperator) -> None:
    """TRANSPOSE_CONV: a convolution whose channels are all pixels of a block, and a move to their places."""
    kernel, image, result = writer.input(operator, 1), writer.input(operator, 2), writer.output(operator)
    require_ranks(image, kernel)
    require_scales_along(kernel, 0)
    stored = _int8(kernel)
    if len(result.shape) != 4 or result.shape[3] != len(stored):
        raise Unsupported(f"its filter {list(kernel.shape)} does not fit a result {list(result.shape)}")
    require_one_image(image)
    rows, cols = upsampling_axes(operator, image, kernel, result)
    filters = filters_of_places(stored, (rows, cols), 0).astype(np.int8)
    bias = writer.optional_input(operator, 3)
    ties: SumTies = "twice" if bias is not None and bias.kind == "INT32" else "up"
    product = _Product(image, kernel, filters, bias, result)
    finish = _finish(operator, product, ties)
    pads = [rows.pads[0], cols.pads[0], rows.pads[1], cols.pads[1]]
    window = {"kernel_shape": [rows.taps, cols.taps], "pads": pads}
    value = functions.convolution(Formula(), finish, window, 1)
    facts = {**window, **_facts(finish)}
    onnx_name = formula_node(writer, "ConvInt16", _operands(writer, product, finish), value, **facts)
    writer.declare(onnx_name, (1, rows.blocks, cols.blocks, len(filters)), "int16")
    writer.keep(result, placed(writer, onnx_name, result, rows, cols))


def batch_matmul(writer: Writer, operator: TfliteOperator) -> None:
    """BATCH_MATMUL over the last two axes of two activations, or of one and constant weights [..., D, K]."""
    tensors, result = [writer.input(operator, at) for at in (0, 1)], writer.output(operator)
    if tensors[1].kind == "INT8" and tensors[1].data is not None:
        _product_by_constant(writer, operator)
        return
    for tensor in tensors:
        if tensor.data is not None:
            raise Unsupported(
                f"its operand {tensor.label} is a constant of {tensor.kind}; the second may be one of "
                "INT8: convert it as FULLY_CONNECTED"
            )
    factor = np.array([scale_of(tensors[0]) * scale_of(tensors[1]) / scale_of(result)])
    depth = tensors[0].shape[-2 if operator.flag("AdjX") else -1]
    if factor[0] * depth * INT16.min**2 >= 2**31:
        raise Unsupported(
            f"the scale of its result, {scale_of(result):g}, is too small: TFLite's results of 32 bits could "
            "overflow"
        )
    scales = SumScales.of(factor, "up")
    names = []
    for tensor, flag in zip(tensors, ("AdjX", "AdjY"), strict=True):
        name = writer.raw(tensor)
        names.append(swapped(writer, name, len(tensor.shape)) if operator.flag(flag) else name)
    value = functions.matrix_product(Formula(), scales, result.shape)
    facts: dict[str, Any] = {
        "multiplier": int(scales.multipliers[0]),
        "shift": int(scales.shifts[0]),
        "left_shift": scales.left_shift,
    }
    inputs = dict(zip("ab", names, strict=True))
    writer.keep(result, formula_node(writer, "MatMulInt16", inputs, value, **facts))


def _product_by_constant(writer: Writer, operator: TfliteOperator) -> None:
    """BATCH_MATMUL by one constant matrix: a dense layer, but sums are rounded as for two activations."""
    source, weights, result = writer.input(operator, 0), writer.input(operator, 1), writer.output(operator)
    rank = len(weights.shape)
    if rank < 2 or prod(weights.shape[:-2]) != 1:
        raise Unsupported(f"constant weights {list(weights.shape)} are not supported; one matrix is")
    channels_first = operator.flag("AdjY")
    if not scales_of(weights).single:
        require_scales_along(weights, rank - (2 if channels_first else 1))
        writer.note_once(SCALED_MATMUL_NOTE)
    matrix = _int8(weights).reshape(weights.shape[-2:])
    stored = np.ascontiguousarray(matrix if channels_first else matrix.T)
    channels, depth = stored.shape
    name, shape = writer.raw(source), source.shape
    if operator.flag("AdjX"):
        name, shape = swapped(writer, name, len(shape)), (*shape[:-2], *shape[:-3:-1])
    if len(shape) < 2 or shape[-1] != depth or result.elements != source.elements // depth * channels:
        raise Unsupported(f"{list(source.shape)} by {list(weights.shape)} is not {list(result.shape)}")
    product = _Product(source, weights, stored, None, result)
    finish = _finish(operator, product, "up")
    value = functions.dense(Formula(), finish, (channels, depth), result.shape)
    operands = _operands(writer, product, finish) | {"x": name}
    writer.keep(result, formula_node(writer, "DenseInt16", operands, value, **_facts(finish)))


def _int8(weights: TfliteTensor) -> NDArray[np.int8]:
    if weights.kind != "INT8":
        raise Unsupported(f"its weights are {weights.kind}; with int16 activations they must be INT8")
    if any(scales_of(weights).zero_point):
        raise Unsupported("its weights have a zero point; with int16 activations it must be 0")
    return weights.array().astype(np.int8)


def _finish(operator: TfliteOperator, product: _Product, ties: SumTies) -> Finish:
    """The scales of the sums, in double precision as in TFLite, and the bounds of the fused activation."""
    weights = np.array(scales_of(product.weights).scale, np.float32).astype(np.float64)
    factors = scale_of(product.source) * weights / scale_of(product.result)
    factors = np.broadcast_to(
        factors if factors.size == 1 else np.resize(factors, len(product.stored)), len(product.stored)
    )
    bounds = bounds_of(fused(operator), product.result)
    return Finish(SumScales.of(np.ascontiguousarray(factors), ties), ties, bounds)


def _operands(writer: Writer, product: _Product, finish: Finish) -> dict[str, str]:
    bias, channels = product.bias, len(product.stored)
    added = np.zeros(channels, np.int64)
    if bias is not None:
        if bias.kind not in ("INT32", "INT64") or bias.data is None or channels % max(bias.elements, 1):
            raise Unsupported(f"its bias needs {channels} constants of INT64 or INT32, not {bias.kind}")
        added = np.resize(bias.array().astype(np.int64), channels)
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
