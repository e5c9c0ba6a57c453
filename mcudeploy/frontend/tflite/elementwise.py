"""Operators that compute each element from those at its place, softmax, and changes of quantisation."""

from __future__ import annotations

from math import inf

import numpy as np

from mcudeploy.frontend.model import Unsupported
from mcudeploy.frontend.tflite.contents import Operator
from mcudeploy.frontend.tflite.scales import fused, parameters, reals
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
    """PRELU of an image: what is above zero, and what is below times the slope of its channel.

    Of a quantised image both are rounded to the result's scale; as one of them is zero, the sum is exact.
    """
    image, slopes, result = writer.input(operator, 0), writer.input(operator, 1), writer.output(operator)
    channels = image.shape[-1] if image.shape else 0
    if slopes.data is None or slopes.elements != channels or slopes.shape[-1] != channels:
        raise Unsupported(
            f"its slopes {list(slopes.shape)} must be constants, one for each of {channels} channels"
        )
    zero = writer.constant(np.array(0, np.float32))
    name = writer.image(image)
    above = writer.node("Relu", [name], main=False)
    below = writer.node("Clip", [name, "", zero], main=False)
    below = writer.as_stored(below, image)
    ones, zeros = (writer.constant(np.full(channels, value, np.float32)) for value in (1, 0))
    factors = [writer.constant(reals(slopes).reshape(-1)), zeros, zeros, ones]
    below = writer.node("BatchNormalization", [below, *factors], main=False, epsilon=0.0)
    above, below = writer.as_stored(above, result), writer.as_stored(below, result)
    writer.finish(result, writer.channels_last(writer.node("Add", [above, below])))


def extremum(writer: Writer, operator: Operator) -> None:
    """MINIMUM and MAXIMUM with a constant of one value: a clip."""
    tensors = [writer.input(operator, position) for position in (0, 1)]
    constants = [tensor for tensor in tensors if tensor.data is not None]
    sources = [tensor for tensor in tensors if tensor.data is None]
    if len(constants) != 1 or constants[0].elements != 1 or sources[0].shape != writer.output(operator).shape:
        raise Unsupported("one operand must be a constant of one value")
    bound = float(reals(constants[0]).reshape(-1)[0])
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
