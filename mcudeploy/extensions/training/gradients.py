"""Gradients of convolutions, functions of two values and moves, as ONNX nodes; the table of all gradients."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.training import training_functions as functions
from mcudeploy.extensions.training.backward import Backward, GradientRule
from mcudeploy.extensions.training.forward import parameter_name, window
from mcudeploy.extensions.training.int8_values import constant
from mcudeploy.extensions.training.node_list import NotTrainable, OnnxShape, image_shape
from mcudeploy.extensions.training.pool_gradients import average_pool, max_pool, reduction
from mcudeploy.extensions.training.unary_gradients import prelu, softmax, unary
from mcudeploy.ir.graph import Operator, Shape
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.image.resize import Resize, ResizeSamples
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.move import Pad, Slice
from mcudeploy.ops.move.quantize import Dequantize, Quantize
from mcudeploy.ops.move.transpose import Transpose
from mcudeploy.ops.move.view import Reshape
from mcudeploy.ops.pool.pool import AveragePool, MaxPool
from mcudeploy.ops.reduce.reduce import Reduce
from mcudeploy.ops.reduce.softmax import Softmax
from mcudeploy.ops.scalar.elementwise import Binary
from mcudeploy.ops.scalar.unary import Unary


def _concat(to: Backward, operator: Operator, gradient: str) -> None:
    """Each input has the gradient of its part."""
    op, forward = operator.op, to.forward
    assert isinstance(op, Concat)
    start = [0, 0, 0]
    for source in operator.inputs:
        shape = forward.graph.tensors[source].shape
        if source in to.wanted:
            rows, cols, channels = start
            part = forward.nodes.part(gradient, (rows, cols, channels), shape, f"{source}_gradient")
            to.add(source, part)
        start[op.axis] += shape[op.axis]


def _part(to: Backward, operator: Operator, gradient: str) -> None:
    """The gradient of values that a slice leaves out is 0."""
    op, forward = operator.op, to.forward
    assert isinstance(op, Slice)
    (source,) = operator.inputs
    sizes, own = forward.graph.tensors[source].shape, forward.graph.tensors[operator.output].shape
    rows, cols, channels = (
        size - first - count for size, first, count in zip(sizes, op.start, own, strict=True)
    )
    margins = op.start, (rows, cols, channels)
    to.add(source, forward.nodes.padded(gradient, margins, name=f"{source}_gradient"))


def _pad(to: Backward, operator: Operator, gradient: str) -> None:
    """The gradient of the values inside the padding."""
    op, forward = operator.op, to.forward
    assert isinstance(op, Pad)
    (source,) = operator.inputs
    shape = forward.graph.tensors[source].shape
    to.add(source, forward.nodes.part(gradient, op.before, shape, f"{source}_gradient"))


def _transpose(to: Backward, operator: Operator, gradient: str) -> None:
    """The gradient in the order of the input."""
    op, nodes = operator.op, to.forward.nodes
    assert isinstance(op, Transpose)
    (source,) = operator.inputs
    view = nodes.reshaped(nodes.rows(gradient), tuple(op.dims[axis] for axis in op.perm))
    moved = nodes.transposed(view, tuple(int(axis) for axis in np.argsort(op.perm)))
    to.add(source, nodes.image(moved, to.forward.graph.tensors[source].shape))


def _resize(to: Backward, operator: Operator, gradient: str) -> None:
    """The gradient of a value is the sum over the results, times its share of each."""
    op, nodes = operator.op, to.forward.nodes
    assert isinstance(op, Resize)
    (source,) = operator.inputs
    shape = to.forward.graph.tensors[source].shape
    rows, cols = nodes.reals(_shares(op.rows, shape[0]).T), nodes.reals(_shares(op.cols, shape[1]))
    to.node(source, functions.RESIZE_GRADIENT, [gradient, rows, cols])


def _shares(samples: ResizeSamples, size: int) -> NDArray[np.float32]:
    """[results, positions]: the share of each result that each position of the input has."""
    shares = np.zeros((len(samples.first), size), np.float32)
    for row, first, fraction in zip(shares, samples.first, samples.fraction, strict=True):
        row[first] = 1 - fraction
        if fraction:
            row[first + 1] = fraction
    return shares


def _conv(to: Backward, operator: Operator, gradient: str) -> None:
    forward = to.forward
    (source,) = operator.inputs
    if source in to.wanted:
        to.add(source, _of_input(to, operator, gradient))
    if operator.name in forward.trained.weights:
        x = forward.first_channels(operator, to.tensors.image(source))
        to.updates.weights(operator, x, gradient)
    to.updates.bias(operator, gradient)


def _of_input(to: Backward, operator: Operator, gradient: str) -> str:
    """The gradient of a convolution's input, by weights some or all of which are trained."""
    forward, shape = to.forward, to.forward.graph.tensors[operator.inputs[0]].shape
    trained = forward.parameters.get(parameter_name(operator, "weights"))
    channels = forward.trained.channels.get(operator.name)
    if trained is None or channels is None:
        weights = trained or constant(forward.nodes, forward.graph, operator, "weights")
        return input_gradient(to, operator, gradient, weights, shape)
    rows, cols, depth = shape
    others = constant(forward.nodes, forward.graph, operator, "weights", channels)
    parts = [
        input_gradient(to, operator, gradient, trained, (rows, cols, channels)),
        input_gradient(to, operator, gradient, others, (rows, cols, depth - channels)),
    ]
    return forward.nodes.add("Concat", parts, image_shape(shape), f"{operator.inputs[0]}_gradient", axis=1)


def input_gradient(to: Backward, operator: Operator, gradient: str, weights: str, shape: Shape) -> str:
    """The gradient, of this shape, of the channels of a convolution's input that these weights read."""
    op = operator.op
    assert isinstance(op, Conv2d)
    left = [
        (shape[at] + op.pads[at] + op.pads[at + 2] - op.dilation[at] * (op.kernel_shape[at] - 1) - 1)
        % op.stride[at]
        for at in (0, 1)
    ]
    inputs, name = [gradient, weights], f"{operator.inputs[0]}_gradient"
    return to.forward.nodes.add(
        functions.INPUT_GRADIENT, inputs, image_shape(shape), name, **window(op), output_padding=left
    )


def _binary(to: Backward, operator: Operator, gradient: str) -> None:
    op, forward, nodes = operator.op, to.forward, to.forward.nodes
    assert isinstance(op, Binary)
    if op.function == "prelu":
        prelu(to, operator, gradient)
        return
    shape = nodes.shapes[gradient]
    inputs = list(operator.inputs)
    for at, source in enumerate(inputs):
        if source not in to.wanted:
            continue
        place = at if op.constant_operand != 0 else 1
        own = gradient
        if op.function in ("mul", "div"):
            if op.constant_operand is None:
                other = to.tensors.image(inputs[1 - at])
            else:
                other = nodes.reals(operator.constants["constant"].transpose(2, 0, 1)[np.newaxis])
            if op.function == "div" and (op.constant_operand != 1 or place != 0):
                raise NotTrainable("gradients pass a division by a constant, and no other")
            own = nodes.add("Mul" if op.function == "mul" else "Div", [gradient, other], shape)
        elif op.function == "sub" and place == 1:
            own = nodes.add("Neg", [gradient], shape)
        to.add(source, _summed(to, own, nodes.shapes[forward.images[source]]))


def _summed(to: Backward, gradient: str, shape: OnnxShape) -> str:
    """The sum of a gradient over the axes along which its operand, of this shape, is repeated."""
    nodes = to.forward.nodes
    repeated = [axis for axis, size in enumerate(nodes.shapes[gradient]) if size != shape[axis]]
    if not repeated:
        return gradient
    if repeated != [2, 3]:
        axes = nodes.constant(np.array(repeated, np.int64), "axes")
        return nodes.add("ReduceSum", [gradient, axes], shape, keepdims=1)
    mean = nodes.add("GlobalAveragePool", [gradient], shape)  # which reads blocks of rows, unlike ReduceSum
    return nodes.add("Mul", [mean, nodes.reals(float(prod(nodes.shapes[gradient][2:])))], shape)


def _conversion(to: Backward, operator: Operator, gradient: str) -> None:
    to.add(operator.inputs[0], gradient)


def _view(to: Backward, operator: Operator, gradient: str) -> None:
    nodes = to.forward.nodes
    (source,) = operator.inputs
    to.add(source, nodes.image(nodes.rows(gradient), to.forward.graph.tensors[source].shape))


GRADIENT_RULES: dict[str, GradientRule] = {
    AveragePool.kind: average_pool,
    Binary.kind: _binary,
    Concat.kind: _concat,
    Conv2d.kind: _conv,
    Dequantize.kind: _conversion,
    MaxPool.kind: max_pool,
    Pad.kind: _pad,
    Quantize.kind: _conversion,
    Reduce.kind: reduction,
    Reshape.kind: _view,
    Resize.kind: _resize,
    Slice.kind: _part,
    Softmax.kind: softmax,
    Transpose.kind: _transpose,
    Unary.kind: unary,
}
