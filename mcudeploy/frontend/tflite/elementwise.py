"""Elementwise operators, softmax, changes of quantisation, comparisons, logic and SELECT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite

import numpy as np

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.protos import element_type
from mcudeploy.frontend.tflite.contents import TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.scales import fused, parameters, reals
from mcudeploy.frontend.tflite.writer import Writer

_BINARY = {"ADD": "Add", "SUB": "Sub", "MUL": "Mul", "DIV": "Div", "POW": "Pow"}
NAMED = {
    "ABS": "Abs",
    "CEIL": "Ceil",
    "COS": "Cos",
    "ELU": "Elu",
    "EXP": "Exp",
    "FLOOR": "Floor",
    "HARD_SWISH": "HardSwish",
    "LEAKY_RELU": "LeakyRelu",
    "LOG": "Log",
    "LOGISTIC": "Sigmoid",
    "LOG_SOFTMAX": "LogSoftmax",
    "ROUND": "Round",
    "SIGN": "Sign",
    "SIN": "Sin",
    "SQRT": "Sqrt",
    "TANH": "Tanh",
}
"""Functions of one value that ONNX has too."""
CLIPS = {"RELU": (0.0, inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}


def binary(writer: Writer, operator: TfliteOperator) -> None:
    """ADD, SUB, MUL, DIV and POW."""
    sources = [writer.input(operator, position) for position in (0, 1)]
    if all(it.kind == "INT32" for it in (*sources, writer.output(operator))):
        _on_int32(writer, operator, sources, _BINARY[operator.op])
        return
    names = [writer.real(source) for source in sources]
    onnx_name = writer.node(_BINARY[operator.op], names)
    writer.finish(writer.output(operator), onnx_name, fused(operator))


def _on_int32(writer: Writer, operator: TfliteOperator, sources: Sequence[TfliteTensor], op: str) -> None:
    """Translate an operator on int32 values, which are not quantised numbers."""
    bounds = fused(operator)
    onnx_name = writer.node(op, [writer.raw(source) for source in sources])
    for function, bound in zip(("Max", "Min"), bounds or (), strict=False):
        if isfinite(bound):
            limit = writer.constant(np.array(int(bound), np.int32))
            onnx_name = writer.part(function, [onnx_name, limit])
    writer.keep(writer.output(operator), onnx_name)


def cast(writer: Writer, operator: TfliteOperator) -> None:
    """CAST. Integers lose the bits that do not fit, floats their fraction."""
    source, result = writer.input(operator, 0), writer.output(operator)
    if source.dtype is None or result.dtype is None:
        raise Unsupported(f"it converts {source.kind} to {result.kind}")
    to = element_type(result.dtype)
    writer.keep(result, writer.node("Cast", [writer.raw(source)], to=to))


def named(writer: Writer, operator: TfliteOperator) -> None:
    """Translate a function that ONNX has too."""
    attributes = {"alpha": operator.number("Alpha")} if operator.op == "LEAKY_RELU" else {}
    onnx_name = writer.node(NAMED[operator.op], [writer.real(writer.input(operator, 0))], **attributes)
    writer.finish(writer.output(operator), onnx_name)


def negative(writer: Writer, operator: TfliteOperator) -> None:
    """NEG. TFLite negates the stored integers, whatever their quantisation; -128 stays."""
    source, result = writer.input(operator, 0), writer.output(operator)
    if source.kind != "INT8" or result.kind != "INT8":
        writer.finish(result, writer.node("Neg", [writer.real(source)]))
        return
    scales, result_scales = parameters(source), parameters(result)
    if scales != result_scales or any(scales.zero_point):
        writer.notes.append(
            f"{operator.label}: TFLite negates the stored integers, and so does the program; with the scales "
            "and zero points in the file that is not the negative of the number"
        )
    onnx_name = writer.node("Neg", [writer.raw(source)])
    writer.finish(result, writer.dequantized(onnx_name, result_scales.scale, "int8", result_scales))


def reciprocal_root(writer: Writer, operator: TfliteOperator) -> None:
    """RSQRT: the reciprocal of the square root."""
    root = writer.part("Sqrt", [writer.real(writer.input(operator, 0))])
    writer.finish(writer.output(operator), writer.node("Reciprocal", [root]))


def square(writer: Writer, operator: TfliteOperator) -> None:
    """SQUARE and SQUARED_DIFFERENCE."""
    name = writer.real(writer.input(operator, 0))
    if operator.op == "SQUARED_DIFFERENCE":
        name = writer.part("Sub", [name, writer.real(writer.input(operator, 1))])
    writer.finish(writer.output(operator), writer.node("Mul", [name, name]))


def clip(writer: Writer, operator: TfliteOperator) -> None:
    """RELU and similar operators."""
    name = writer.real(writer.input(operator, 0))
    writer.finish(writer.output(operator), name, CLIPS[operator.op])


def prelu(writer: Writer, operator: TfliteOperator) -> None:
    """PRELU: of a quantised image, the sum of its positive part and its negative part times the slopes.

    There is a slope for each channel or, in files of Keras, for each element. Both parts are rounded to the
    result's scale; one of them is zero, so that the sum is exact.
    """
    image, slopes, result = writer.input(operator, 0), writer.input(operator, 1), writer.output(operator)
    if image.kind == "FLOAT32":
        writer.finish(result, writer.node("PRelu", [writer.real(image), writer.real(slopes)]))
        return
    if slopes.data is None or np.broadcast_shapes(image.shape, slopes.shape) != image.shape:
        raise Unsupported(f"its slopes {list(slopes.shape)} must be constants that fit {list(image.shape)}")
    channels = image.shape[-1] if image.shape else 0
    by_channel = slopes.elements == channels == slopes.shape[-1] and len(image.shape) == 4
    zero = writer.float32(0)
    name = writer.image(image) if by_channel else writer.real(image)
    above = writer.part("Relu", [name])
    below = writer.as_stored(writer.part("Clip", [name, "", zero]), image)
    if by_channel:
        ones, zeros = (writer.constant(np.full(channels, value, np.float32)) for value in (1, 0))
        factors = [writer.constant(reals(slopes).reshape(-1)), zeros, zeros, ones]
        below = writer.part("BatchNormalization", [below, *factors], epsilon=0.0)
    else:
        below = writer.part("Mul", [below, writer.real(slopes)])
    above, below = writer.as_stored(above, result), writer.as_stored(below, result)
    total = writer.node("Add", [above, below])
    writer.finish(result, writer.channels_last(total) if by_channel else total)


def extremum(writer: Writer, operator: TfliteOperator) -> None:
    """MINIMUM and MAXIMUM, which are a Clip if one operand is a constant of one value.

    TFLite compares stored integers, as if all operands had the scale of the result.
    """
    result, is_minimum = writer.output(operator), operator.op == "MINIMUM"
    tensors = [writer.input(operator, position) for position in (0, 1)]
    if all(it.kind == "INT32" for it in (*tensors, result)):
        _on_int32(writer, operator, tensors, "Min" if is_minimum else "Max")
        return
    if result.kind in ("INT8", "UINT8") and all(it.kind == result.kind for it in tensors):
        tensors = [replace(it, scales=result.scales) if it.scales != result.scales else it for it in tensors]
    source, constant = sorted(tensors, key=lambda tensor: tensor.data is not None)
    if constant.data is None or constant.elements != 1 or source.shape != result.shape:
        names = [writer.real(tensor) for tensor in tensors]
        writer.finish(result, writer.node("Min" if is_minimum else "Max", names))
        return
    bound = writer.constant(reals(constant).reshape(()))
    onnx_name = writer.node("Clip", [writer.real(source), *(("", bound) if is_minimum else (bound, ""))])
    writer.finish(result, onnx_name)


def softmax(writer: Writer, operator: TfliteOperator) -> None:
    """SOFTMAX along the last axis. Its factor `beta` multiplies the scale of a quantised input."""
    source, beta = writer.input(operator, 0), operator.number("Beta")
    if not 0 < beta < inf:
        raise Unsupported(f"beta is {beta:g}; it must be positive")
    if beta == 1:
        name = writer.real(source)
    elif source.kind == "FLOAT32":
        name = writer.part("Mul", [writer.raw(source), writer.float32(beta)])
    else:
        scales = parameters(source)
        scale = [beta * each for each in scales.scale]
        name = writer.dequantized(writer.raw(source), scale, source.dtype or "", scales)
    writer.finish(writer.output(operator), writer.node("Softmax", [name], axis=-1))


def convert(writer: Writer, operator: TfliteOperator) -> None:
    """QUANTIZE and DEQUANTIZE: the value stays, its type or scale changes."""
    writer.finish(writer.output(operator), writer.real(writer.input(operator, 0)))


COMPARISONS = {
    "EQUAL": "Equal",
    "GREATER": "Greater",
    "GREATER_EQUAL": "GreaterOrEqual",
    "LESS": "Less",
    "LESS_EQUAL": "LessOrEqual",
    "NOT_EQUAL": "Equal",
}
LOGIC = {"LOGICAL_AND": "And", "LOGICAL_NOT": "Not", "LOGICAL_OR": "Or"}


def comparison(writer: Writer, operator: TfliteOperator) -> None:
    """Translate a comparison of numbers."""
    sources = [writer.input(operator, position) for position in (0, 1)]
    onnx_name = writer.node(COMPARISONS[operator.op], [_number(writer, source) for source in sources])
    if operator.op == "NOT_EQUAL":
        onnx_name = writer.part("Not", [onnx_name])
    writer.keep(writer.output(operator), onnx_name)


def _number(writer: Writer, tensor: TfliteTensor) -> str:
    """The tensor as numbers that can be compared: floats, or integers that are not quantised."""
    is_unquantized = tensor.kind in ("INT32", "INT64", "BOOL")
    return writer.raw(tensor) if is_unquantized else writer.real(tensor)


def logic(writer: Writer, operator: TfliteOperator) -> None:
    """Translate a function of truth values."""
    names = [writer.raw(tensor) for tensor in writer.inputs(operator)]
    writer.keep(writer.output(operator), writer.node(LOGIC[operator.op], names))


def select(writer: Writer, operator: TfliteOperator) -> None:
    """SELECT and SELECT_V2; the conditions of SELECT may be one for each row."""
    condition, result = writer.input(operator, 0), writer.output(operator)
    sources = [writer.input(operator, position) for position in (1, 2)]
    name = writer.raw(condition)
    if operator.op == "SELECT" and condition.shape not in ((), result.shape):
        if condition.shape != result.shape[:1]:
            raise Unsupported(f"conditions {list(condition.shape)} do not fit {list(result.shape)}")
        rows = [*condition.shape, *([1] * (len(result.shape) - 1))]
        name = writer.reshaped(name, rows)
    if result.kind in ("INT32", "INT64"):
        writer.keep(result, writer.node("Where", [name, *(writer.raw(it) for it in sources)]))
        return
    writer.finish(result, writer.node("Where", [name, *(writer.real(it) for it in sources)]))
