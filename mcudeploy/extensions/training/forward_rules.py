"""Rules that write each kind of operator as ONNX nodes over images [1, C, H, W], and their table."""

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
from mcudeploy.extensions.training.training_operators import parameter_axes
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
_OF_DOMAIN = {"gelu": functions.GELU, "swish": functions.SWISH}
"""Functions that ONNX has only after functions.OPSET, as operators of the training domain."""


def pool(forward: Forward, operator: Operator) -> str:
    """A pool, with the pads that its number of windows needs."""
    op = operator.op
    assert isinstance(op, AveragePool | MaxPool)
    attributes = pool_window(op, forward.graph.tensors[operator.inputs[0]].shape)
    if isinstance(op, AveragePool):
        del attributes["dilations"]  # ONNX has none before its version 19
        attributes["count_include_pad"] = int(op.count_include_pad)
    return forward.node(operator, type(op).__name__, **attributes)


def pool_window(op: AveragePool | MaxPool, source: Shape) -> dict[str, Any]:
    """The attributes of the windows of a pool whose input has the shape `source`.

    Pads at the end grow until they hold the last window, if the mean does not count them (ceil_mode). Raises
    NotTrainable if ONNX has no such attributes.
    """
    pads = list(op.pads)
    for axis in (0, 1):
        reach = op.dilation[axis] * (op.kernel_shape[axis] - 1) + 1
        free = source[axis] + op.pads[axis] + op.pads[axis + 2] - reach
        if free // op.stride[axis] + 1 != op.out_size[axis]:
            pads[axis + 2] = (op.out_size[axis] - 1) * op.stride[axis] + reach - source[axis] - op.pads[axis]
            if isinstance(op, AveragePool) and op.count_include_pad:
                raise NotTrainable("its windows reach beyond padding that counts (ceil_mode)")
            if not 0 <= pads[axis + 2] < op.kernel_shape[axis]:
                raise NotTrainable("a window lies beyond the padding (ceil_mode)")
        if isinstance(op, AveragePool) and op.dilation[axis] != 1:
            raise NotTrainable("the windows of its mean are dilated")
    return {
        "kernel_shape": list(op.kernel_shape),
        "strides": list(op.stride),
        "dilations": list(op.dilation),
        "pads": pads,
    }


def binary(forward: Forward, operator: Operator) -> str:
    """A function of two operands, one of which may be a constant."""
    op = operator.op
    assert isinstance(op, Binary)
    if op.function not in _BINARY:
        raise NotTrainable(f"{op.function} has no gradient here; {', '.join(_BINARY)} have")
    inputs = [forward.images[name] for name in operator.inputs]
    if op.constant_operand is not None:
        operand = operator.constants["constant"].transpose(2, 0, 1)[np.newaxis]
        inputs.insert(op.constant_operand, forward.nodes.reals(operand))
    return forward.clipped(forward.node(operator, BINARY[op.function].onnx[0], inputs), op.low, op.high)


def unary(forward: Forward, operator: Operator) -> str:
    """A function of one value."""
    op, x = operator.op, forward.images[operator.inputs[0]]
    assert isinstance(op, Unary)
    if op.function == "clip":
        return forward.clipped(x, op.alpha, op.beta)
    if op.function == "square":
        return forward.node(operator, "Mul", [x, x])
    if op.function == "gelu_tanh":
        return forward.node(operator, "Mul", [x, gelu_nodes.share(forward.nodes, x)])
    if op.function not in _UNARY:
        raise NotTrainable(f"{op.function} has no gradient here; clip, {', '.join(_UNARY)} have")
    row = UNARY[op.function]
    numbers = ((row.alpha, op.alpha), (row.beta, op.beta))
    attributes: dict[str, Any] = {it.name: value for it, value in numbers if isinstance(it, NumberAttribute)}
    return forward.node(operator, _OF_DOMAIN.get(op.function, row.onnx), **attributes)


def view(forward: Forward, operator: Operator) -> str:
    """The values, row by row, in another shape."""
    rows = forward.nodes.rows(forward.images[operator.inputs[0]])
    return forward.nodes.image(rows, forward.graph.tensors[operator.output].shape)


def softmax(forward: Forward, operator: Operator) -> str:
    """A softmax along an axis."""
    op = operator.op
    assert isinstance(op, Softmax)
    return forward.node(operator, "Softmax", axis=ONNX_AXES[op.axis])


def concat(forward: Forward, operator: Operator) -> str:
    """The inputs side by side along an axis."""
    op = operator.op
    assert isinstance(op, Concat)
    return forward.node(operator, "Concat", axis=ONNX_AXES[op.axis])


def reduction(forward: Forward, operator: Operator) -> str:
    """A mean, sum or other reduction along axes, which stay with size 1."""
    op = operator.op
    assert isinstance(op, Reduce)
    axes, name = sorted(ONNX_AXES[axis] for axis in op.axes), f"Reduce{op.function.capitalize()}"
    if op.function != "sum":
        return forward.node(operator, name, keepdims=1, axes=axes)
    inputs = [forward.images[operator.inputs[0]], forward.nodes.constant(np.array(axes, np.int64), "axes")]
    return forward.node(operator, name, inputs, keepdims=1)


def part(forward: Forward, operator: Operator) -> str:
    """A range of each axis."""
    op, tensors = operator.op, forward.graph.tensors
    assert isinstance(op, Slice)
    if op.step != (1, 1, 1):
        raise NotTrainable("its steps are not 1: it leaves out values, or reverses their order")
    image = forward.images[operator.inputs[0]]
    return forward.nodes.part(image, op.start, tensors[operator.output].shape, operator.name)


def pad(forward: Forward, operator: Operator) -> str:
    """The input with a constant value around it."""
    op = operator.op
    assert isinstance(op, Pad)
    if min(op.before) < 0 or min(op.after) < 0:
        raise NotTrainable("it crops on one side")
    image = forward.images[operator.inputs[0]]
    return forward.nodes.padded(image, (op.before, op.after), op.value, operator.name)


def transpose(forward: Forward, operator: Operator) -> str:
    """The axes of a view in another order."""
    op = operator.op
    assert isinstance(op, Transpose)
    nodes = forward.nodes
    dims = nodes.reshaped(nodes.rows(forward.images[operator.inputs[0]]), op.dims)
    return nodes.image(nodes.transposed(dims, op.perm), op.out_shape)


def resize(forward: Forward, operator: Operator) -> str:
    """An image of another size."""
    op, tensors = operator.op, forward.graph.tensors
    assert isinstance(op, Resize)
    attributes = _resize_attributes(op, tensors[operator.inputs[0]].shape)
    shape = image_shape(tensors[operator.output].shape)
    sizes = forward.nodes.constant(np.array(shape, np.int64), "sizes")
    return forward.node(operator, "Resize", [forward.images[operator.inputs[0]], "", "", sizes], **attributes)


def _resize_attributes(op: Resize, source: Shape) -> dict[str, str]:
    """The attributes with which ONNX's Resize to sizes reads the samples of `op`. Raises NotTrainable if none
    do.
    """
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


def _conv(forward: Forward, operator: Operator) -> str:
    op, x = operator.op, forward.images[operator.inputs[0]]
    assert isinstance(op, Conv2d)
    trained = operator.name in forward.trained.weights
    if trained and op.groups not in (1, forward.nodes.shapes[x][1]):
        raise NotTrainable(
            f"its weights are in {op.groups} groups: only dense and depthwise weights are trained. Take "
            "--update bias, or last:K for the layers after it"
        )
    weights = forward.parameter(operator, "weights", parameter_axes(op))
    bias = forward.parameter(operator, "bias", (0,))
    if trained:
        return _trained_conv(forward, operator, x, weights, bias)
    if operator.name not in forward.trained.biases:
        sums = forward.node(operator, "Conv", [x, weights, bias], **window(op))
        return forward.clipped(sums, op.low, op.high)
    if all(is_stored(forward.graph.tensors[name]) for name in (*operator.inputs, operator.output)):
        if operator.constants["weights"].dtype != np.int8:
            raise NotTrainable(
                "its weights have a zero point other than 0, and training a bias alone needs symmetric int8 "
                "weights: train its weights as well (full, last:K), or quantise them to symmetric int8"
            )
        bounds = {"low": op.low, "high": op.high}
        return forward.node(operator, functions.BIASED_CONV, [x, weights, bias], **window(op), **bounds)
    products = forward.node(operator, "Conv", [x, weights], **window(op))
    column = forward.nodes.reshaped(bias, (1, op.out_channels, 1, 1))
    sums = forward.nodes.add("Add", [products, column], forward.nodes.shapes[products])
    return forward.clipped(sums, op.low, op.high)


def _trained_conv(forward: Forward, operator: Operator, x: str, weights: str, bias: str) -> str:
    """A convolution by trained weights. Weights of its last input channels may stay constants."""
    op, nodes, inputs = operator.op, forward.nodes, [x, weights, bias]
    assert isinstance(op, Conv2d)
    channels = forward.trained.channels.get(operator.name)
    if channels is None:
        bounds = {"low": op.low, "high": op.high}
        return forward.node(operator, functions.TRAINED_CONV, inputs, **window(op), **bounds)
    rows, cols, depth = forward.graph.tensors[operator.inputs[0]].shape
    inputs[0] = forward.first_channels(operator, x)
    others = nodes.part(x, (0, 0, channels), (rows, cols, depth - channels))
    bounds = {"low": -inf, "high": inf}
    sums = forward.node(operator, functions.TRAINED_CONV, inputs, **window(op), **bounds)
    frozen, shape = constant(nodes, forward.graph, operator, "weights", channels), nodes.shapes[sums]
    rest = nodes.add("Conv", [others, frozen], shape, **window(op))
    return forward.clipped(nodes.add("Add", [sums, rest], shape), op.low, op.high)


def _conversion(forward: Forward, operator: Operator) -> str:
    return forward.images[operator.inputs[0]]


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
