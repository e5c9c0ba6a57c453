"""Operators that compute each element from those at its place, softmax, and changes of quantisation."""

from __future__ import annotations

from math import inf

import numpy as np

from mcudeploy.frontend.model import Unsupported
from mcudeploy.frontend.tflite.contents import Operator
from mcudeploy.frontend.tflite.scales import fused, parameters
from mcudeploy.frontend.tflite.writer import Writer

_BINARY = {"ADD": "Add", "SUB": "Sub", "MUL": "Mul", "DIV": "Div"}
_UNARY = {"LOGISTIC": "Sigmoid", "TANH": "Tanh", "HARD_SWISH": "HardSwish"}
_CLIPS = {"RELU": (0.0, inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}


def binary(writer: Writer, operator: Operator) -> None:
    """ADD, SUB, MUL, DIV, with broadcasting."""
    names = [writer.real(writer.input(operator, position)) for position in (0, 1)]
    made = writer.node(_BINARY[operator.op], names)
    writer.finish(writer.output(operator), made, fused(operator))


def unary(writer: Writer, operator: Operator) -> None:
    """A function that ONNX has as well."""
    made = writer.node(_UNARY[operator.op], [writer.real(writer.input(operator, 0))])
    writer.finish(writer.output(operator), made)


def clip(writer: Writer, operator: Operator) -> None:
    """RELU and its like."""
    name = writer.real(writer.input(operator, 0))
    writer.finish(writer.output(operator), name, _CLIPS[operator.op])


def leaky_relu(writer: Writer, operator: Operator) -> None:
    """LEAKY_RELU."""
    alpha = operator.number("Alpha")
    made = writer.node("LeakyRelu", [writer.real(writer.input(operator, 0))], alpha=alpha)
    writer.finish(writer.output(operator), made)


def prelu(writer: Writer, operator: Operator) -> None:
    """PRELU: the slope is constant, usually one for each channel."""
    names = [writer.real(writer.input(operator, position)) for position in (0, 1)]
    writer.finish(writer.output(operator), writer.node("PRelu", names))


def extremum(writer: Writer, operator: Operator) -> None:
    """MINIMUM and MAXIMUM with a constant of one value: a clip."""
    tensors = [writer.input(operator, position) for position in (0, 1)]
    constants = [tensor for tensor in tensors if tensor.data is not None]
    sources = [tensor for tensor in tensors if tensor.data is None]
    if len(constants) != 1 or constants[0].elements != 1 or sources[0].shape != writer.output(operator).shape:
        raise Unsupported("one operand must be a constant of one value")
    bound = float(np.asarray(constants[0].array(), np.float64).reshape(-1)[0])
    if constants[0].kind != "FLOAT32":
        scales = parameters(constants[0])
        bound = float(np.float32((bound - scales.zero_point[0]) * np.float32(scales.scale[0])))
    low, high = (-inf, bound) if operator.op == "MINIMUM" else (bound, inf)
    limits = [writer.constant(np.array(end, np.float32)) if abs(end) < inf else "" for end in (low, high)]
    made = writer.node("Clip", [writer.real(sources[0]), *limits])
    writer.finish(writer.output(operator), made)


def softmax(writer: Writer, operator: Operator) -> None:
    """SOFTMAX along the last axis. Its factor `beta` joins the scale of a quantised input."""
    source, beta = writer.input(operator, 0), operator.number("Beta")
    if not 0 < beta < inf:
        raise Unsupported(f"beta is {beta:g}; it must be positive")
    if beta == 1:
        name = writer.real(source)
    elif source.kind == "FLOAT32":
        name = writer.node(
            "Mul", [writer.raw(source), writer.constant(np.array(beta, np.float32))], main=False
        )
    else:
        scales = parameters(source)
        scale = [beta * each for each in scales.scale]
        name = writer.dequantized(writer.raw(source), scale, source.dtype or "", scales)
    writer.finish(writer.output(operator), writer.node("Softmax", [name], axis=-1))


def convert(writer: Writer, operator: Operator) -> None:
    """QUANTIZE and DEQUANTIZE: the value stays, its type or its scale changes."""
    writer.finish(writer.output(operator), writer.real(writer.input(operator, 0)))
