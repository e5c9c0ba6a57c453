"""Operators as ONNX nodes over images [1, C, H, W], and the table of them."""

from __future__ import annotations

from itertools import product
from math import inf
from typing import Any

import numpy as np

from mcudeploy.extensions.training import gelu_nodes
from mcudeploy.extensions.training import training_functions as functions
from mcudeploy.extensions.training.forward import Forward, ForwardRule, window
from mcudeploy.extensions.training.int8_values import constant, is_stored
from mcudeploy.extensions.training.node_list import ONNX_AXES, NotTrainable, image_shape
from mcudeploy.extensions.training.training import parameter_axes
from mcudeploy.ir.graph import Operator, Shape
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.image.resize import COORDINATE_MODES, NEAREST_MODES, Resize, resize_samples
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.move import Pad, Slice
from mcudeploy.ops.move.quantize import Dequantize, Quantize
from mcudeploy.ops.move.transpose import Transpose
from mcudeploy.ops.move.view import Reshape
from mcudeploy.ops.pool.pool import AveragePool, MaxPool
from mcudeploy.ops.reduce.reduce import Reduce
from mcudeploy.ops.reduce.softmax import Softmax
from mcudeploy.ops.scalar.elementwise import Binary
from mcudeploy.ops.scalar.functions import BINARY, UNARY, NumberAttribute
from mcudeploy.ops.scalar.unary import Unary

_BINARY = ("add", "sub", "mul", "div", "prelu")
_UNARY = (
    "abs", "celu", "elu", "erf", "exp", "gelu", "hard_sigmoid", "hard_swish", "leaky_relu", "neg", "relu",
    "selu", "sigmoid", "softplus", "swish", "tanh",
)  # fmt: skip
_OWN = {"gelu": functions.GELU, "swish": functions.SWISH}
"""Functions that functions.OPSET lacks."""


def pool(to: Forward, operator: Operator) -> str:
    """A pool, with the pads that its number of windows needs."""
    op = operator.op
    assert isinstance(op, AveragePool | MaxPool)
    attributes = pool_window(op, to.graph.tensors[operator.inputs[0]].shape)
    if isinstance(op, AveragePool):
        del attributes["dilations"]  # ONNX has none before its version 19
        attributes["count_include_pad"] = int(op.count_include_pad)
    return to.node(operator, type(op).__name__, **attributes)


def pool_window(op: AveragePool | MaxPool, source: Shape) -> dict[str, Any]:
    """The attributes of the windows of a pool on this input. Pads that the mean does not count extend to the
    end of the last window. Raises NotTrainable if ONNX has no such attributes.
    """
    pads = list(op.pads)
    for at in (0, 1):
        reach = op.dilation[at] * (op.kernel_shape[at] - 1) + 1
        free = source[at] + op.pads[at] + op.pads[at + 2] - reach
        if free // op.stride[at] + 1 != op.out_size[at]:
            pads[at + 2] = (op.out_size[at] - 1) * op.stride[at] + reach - source[at] - op.pads[at]
            if isinstance(op, AveragePool) and op.count_include_pad:
                raise NotTrainable("its windows reach beyond padding that counts (ceil_mode)")
            if not 0 <= pads[at + 2] < op.kernel_shape[at]:
                raise NotTrainable("a window lies beyond the padding (ceil_mode)")
        if isinstance(op, AveragePool) and op.dilation[at] != 1:
            raise NotTrainable("the windows of its mean are dilated")
    return {
        "kernel_shape": list(op.kernel_shape),
        "strides": list(op.stride),
        "dilations": list(op.dilation),
        "pads": pads,
    }


def binary(to: Forward, operator: Operator) -> str:
    """A function of two operands, one of which may be a constant."""
    op = operator.op
    assert isinstance(op, Binary)
    if op.function not in _BINARY:
        raise NotTrainable(f"{op.function} has no gradient here; {', '.join(_BINARY)} have")
    inputs = [to.images[name] for name in operator.inputs]
    if op.constant_operand is not None:
        operand = operator.constants["constant"].transpose(2, 0, 1)[np.newaxis]
        inputs.insert(op.constant_operand, to.nodes.reals(operand))
    return to.clipped(to.node(operator, BINARY[op.function].onnx[0], inputs), op.low, op.high)


def unary(to: Forward, operator: Operator) -> str:
    """A function of one value."""
    op, x = operator.op, to.images[operator.inputs[0]]
    assert isinstance(op, Unary)
    if op.function == "clip":
        return to.clipped(x, op.alpha, op.beta)
    if op.function == "square":
        return to.node(operator, "Mul", [x, x])
    if op.function == "gelu_tanh":
        return to.node(operator, "Mul", [x, gelu_nodes.share(to.nodes, x)])
    if op.function not in _UNARY:
        raise NotTrainable(f"{op.function} has no gradient here; clip, {', '.join(_UNARY)} have")
    row = UNARY[op.function]
    numbers = ((row.alpha, op.alpha), (row.beta, op.beta))
    attributes: dict[str, Any] = {it.name: value for it, value in numbers if isinstance(it, NumberAttribute)}
    return to.node(operator, _OWN.get(op.function, row.onnx), **attributes)


def view(to: Forward, operator: Operator) -> str:
    """The values, row by row, in another shape."""
    rows = to.nodes.rows(to.images[operator.inputs[0]])
    return to.nodes.image(rows, to.graph.tensors[operator.output].shape)


def softmax(to: Forward, operator: Operator) -> str:
    """A softmax along an axis."""
    op = operator.op
    assert isinstance(op, Softmax)
    return to.node(operator, "Softmax", axis=ONNX_AXES[op.axis])


def concat(to: Forward, operator: Operator) -> str:
    """The inputs side by side along an axis."""
    op = operator.op
    assert isinstance(op, Concat)
    return to.node(operator, "Concat", axis=ONNX_AXES[op.axis])


def reduction(to: Forward, operator: Operator) -> str:
    """A mean, sum or other reduction along axes, which stay with size 1."""
    op = operator.op
    assert isinstance(op, Reduce)
    axes, name = sorted(ONNX_AXES[axis] for axis in op.axes), f"Reduce{op.function.capitalize()}"
    if op.function != "sum":
        return to.node(operator, name, keepdims=1, axes=axes)
    inputs = [to.images[operator.inputs[0]], to.nodes.constant(np.array(axes, np.int64), "axes")]
    return to.node(operator, name, inputs, keepdims=1)


def part(to: Forward, operator: Operator) -> str:
    """A part of each axis, without steps."""
    op, tensors = operator.op, to.graph.tensors
    assert isinstance(op, Slice)
    if op.step != (1, 1, 1):
        raise NotTrainable("it leaves out values between others, or turns their order")
    image = to.images[operator.inputs[0]]
    return to.nodes.part(image, op.start, tensors[operator.output].shape, operator.name)


def pad(to: Forward, operator: Operator) -> str:
    """Values around the input."""
    op = operator.op
    assert isinstance(op, Pad)
    if min(op.before) < 0 or min(op.after) < 0:
        raise NotTrainable("it crops on one side")
    image = to.images[operator.inputs[0]]
    return to.nodes.padded(image, (op.before, op.after), op.value, operator.name)


def transpose(to: Forward, operator: Operator) -> str:
    """The axes of a view in another order."""
    op = operator.op
    assert isinstance(op, Transpose)
    rows = to.nodes.rows(to.images[operator.inputs[0]])
    return to.nodes.image(to.nodes.transposed(to.nodes.reshaped(rows, op.dims), op.perm), op.out_shape)


def resize(to: Forward, operator: Operator) -> str:
    """An image of another size."""
    op, tensors = operator.op, to.graph.tensors
    assert isinstance(op, Resize)
    attributes = _resize_attributes(op, tensors[operator.inputs[0]].shape)
    shape = image_shape(tensors[operator.output].shape)
    sizes = to.nodes.constant(np.array(shape, np.int64), "sizes")
    return to.node(operator, "Resize", [to.images[operator.inputs[0]], "", "", sizes], **attributes)


def _resize_attributes(op: Resize, source: Shape) -> dict[str, str]:
    """The attributes of a Resize by sizes with these samples. Raises NotTrainable if there are none."""
    roundings = NEAREST_MODES if op.mode == "nearest" else NEAREST_MODES[:1]
    for coordinates, rounding in product(COORDINATE_MODES, roundings):
        rows, cols = (
            resize_samples(
                size, out, out / size, mode=op.mode, coordinates=coordinates, nearest_mode=rounding
            )
            for size, out in zip(source[:2], op.out_size, strict=True)
        )
        if (rows, cols) == (op.rows, op.cols):
            names = {"mode": op.mode, "coordinate_transformation_mode": coordinates}
            return names | ({"nearest_mode": rounding} if op.mode == "nearest" else {})
    raise NotTrainable("its scales are not the quotients of its sizes")


def _conv(to: Forward, operator: Operator) -> str:
    op, x = operator.op, to.images[operator.inputs[0]]
    assert isinstance(op, Conv2d)
    trained = operator.name in to.trained.weights
    if trained and op.groups not in (1, to.nodes.shapes[x][1]):
        raise NotTrainable(
            f"its weights are in {op.groups} groups: those of 1 group, or depthwise ones, are trained. Take "
            "--update bias, or last:K for the layers after it"
        )
    weights = to.parameter(operator, "weights", parameter_axes(op))
    bias = to.parameter(operator, "bias", (0,))
    if trained:
        return _trained_conv(to, operator, x, weights, bias)
    if operator.name not in to.trained.biases:
        return to.clipped(to.node(operator, "Conv", [x, weights, bias], **window(op)), op.low, op.high)
    if all(is_stored(to.graph.tensors[name]) for name in (*operator.inputs, operator.output)):
        if operator.constants["weights"].dtype != np.int8:
            raise NotTrainable(
                "its weights have a zero point other than 0, and a bias alone is trained beside symmetric "
                "int8 ones: train its weights as well (full, last:K), or quantise them to symmetric int8"
            )
        bounds = {"low": op.low, "high": op.high}
        return to.node(operator, functions.BIASED_CONV, [x, weights, bias], **window(op), **bounds)
    products = to.node(operator, "Conv", [x, weights], **window(op))
    column = to.nodes.reshaped(bias, (1, op.out_channels, 1, 1))
    sums = to.nodes.add("Add", [products, column], to.nodes.shapes[products])
    return to.clipped(sums, op.low, op.high)


def _trained_conv(to: Forward, operator: Operator, x: str, weights: str, bias: str) -> str:
    """A convolution by trained weights; those of its last input channels may be constants."""
    op, nodes, inputs = operator.op, to.nodes, [x, weights, bias]
    assert isinstance(op, Conv2d)
    channels = to.trained.channels.get(operator.name)
    if channels is None:
        bounds = {"low": op.low, "high": op.high}
        return to.node(operator, functions.TRAINED_CONV, inputs, **window(op), **bounds)
    rows, cols, depth = to.graph.tensors[operator.inputs[0]].shape
    inputs[0] = to.first_channels(operator, x)
    others = nodes.part(x, (0, 0, channels), (rows, cols, depth - channels))
    bounds = {"low": -inf, "high": inf}
    sums = to.node(operator, functions.TRAINED_CONV, inputs, **window(op), **bounds)
    frozen, shape = constant(nodes, to.graph, operator, "weights", channels), nodes.shapes[sums]
    rest = nodes.add("Conv", [others, frozen], shape, **window(op))
    return to.clipped(nodes.add("Add", [sums, rest], shape), op.low, op.high)


def _conversion(to: Forward, operator: Operator) -> str:
    return to.images[operator.inputs[0]]


FORWARD_RULES: dict[str, ForwardRule] = {
    AveragePool.kind: pool,
    Binary.kind: binary,
    Concat.kind: concat,
    Conv2d.kind: _conv,
    Dequantize.kind: _conversion,
    MaxPool.kind: pool,
    Pad.kind: pad,
    Quantize.kind: _conversion,
    Reduce.kind: reduction,
    Reshape.kind: view,
    Resize.kind: resize,
    Slice.kind: part,
    Softmax.kind: softmax,
    Transpose.kind: transpose,
    Unary.kind: unary,
}
