"""Rules that write gradients as ONNX nodes: of convolutions, functions of two values, and moves of values.

GRADIENT_RULES is the table of all such rules.
"""

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


def _concat(backward: Backward, operator: Operator, gradient: str) -> None:
    """Each input has the gradient of its part."""
    op, forward = operator.op, backward.forward
    assert isinstance(op, Concat)
    start = [0, 0, 0]
    for source in operator.inputs:
        shape = forward.graph.tensors[source].shape
        if source in backward.wanted:
            rows, cols, channels = start
            part = forward.nodes.part(gradient, (rows, cols, channels), shape, f"{source}_gradient")
            backward.add(source, part)
        start[op.axis] += shape[op.axis]


def _part(backward: Backward, operator: Operator, gradient: str) -> None:
    """The gradient of values that a slice leaves out is 0."""
    op, forward = operator.op, backward.forward
    assert isinstance(op, Slice)
    (source,) = operator.inputs
    sizes, sliced = forward.graph.tensors[source].shape, forward.graph.tensors[operator.output].shape
    rows_after, cols_after, channels_after = (
        size - first - count for size, first, count in zip(sizes, op.start, sliced, strict=True)
    )
    margins = op.start, (rows_after, cols_after, channels_after)
    backward.add(source, forward.nodes.padded(gradient, margins, name=f"{source}_gradient"))


def _pad(backward: Backward, operator: Operator, gradient: str) -> None:
    """The gradient of the values inside the padding."""
    op, forward = operator.op, backward.forward
    assert isinstance(op, Pad)
    (source,) = operator.inputs
    shape = forward.graph.tensors[source].shape
    backward.add(source, forward.nodes.part(gradient, op.before, shape, f"{source}_gradient"))


def _transpose(backward: Backward, operator: Operator, gradient: str) -> None:
    """The gradient in the order of the input."""
    op, nodes = operator.op, backward.forward.nodes
    assert isinstance(op, Transpose)
    (source,) = operator.inputs
    view = nodes.reshaped(nodes.rows(gradient), tuple(op.dims[axis] for axis in op.perm))
    moved = nodes.transposed(view, tuple(int(axis) for axis in np.argsort(op.perm)))
    backward.add(source, nodes.image(moved, backward.forward.graph.tensors[source].shape))


def _resize(backward: Backward, operator: Operator, gradient: str) -> None:
    """The gradient of a value is the sum of the results' gradients, each times the value's share in it."""
    op, nodes = operator.op, backward.forward.nodes
    assert isinstance(op, Resize)
    (source,) = operator.inputs
    shape = backward.forward.graph.tensors[source].shape
    rows, cols = nodes.reals(_shares(op.rows, shape[0]).T), nodes.reals(_shares(op.cols, shape[1]))
    backward.node(source, functions.RESIZE_GRADIENT, [gradient, rows, cols])


def _shares(samples: ResizeSamples, size: int) -> NDArray[np.float32]:
    """[results, positions]: the share of each position of the input in each result."""
    shares = np.zeros((len(samples.first), size), np.float32)
    for row, first, fraction in zip(shares, samples.first, samples.fraction, strict=True):
        row[first] = 1 - fraction
        if fraction:
            row[first + 1] = fraction
    return shares


def _conv(backward: Backward, operator: Operator, gradient: str) -> None:
    forward = backward.forward
    (source,) = operator.inputs
    if source in backward.wanted:
        backward.add(source, _of_input(backward, operator, gradient))
    if operator.name in forward.trained.weights:
        x = forward.first_channels(operator, backward.tensors.image(source))
        backward.updates.weights(operator, x, gradient)
    backward.updates.bias(operator, gradient)


def _of_input(backward: Backward, operator: Operator, gradient: str) -> str:
    """The gradient of a convolution's input, by weights of which all, some or none are trained."""
    forward, shape = backward.forward, backward.forward.graph.tensors[operator.inputs[0]].shape
    trained = forward.parameters.get(parameter_name(operator, "weights"))
    channels = forward.trained.channels.get(operator.name)
    if trained is None or channels is None:
        weights = trained or constant(forward.nodes, forward.graph, operator, "weights")
        return input_gradient(backward, operator, gradient, weights, shape)
    rows, cols, depth = shape
    others = constant(forward.nodes, forward.graph, operator, "weights", channels)
    parts = [
        input_gradient(backward, operator, gradient, trained, (rows, cols, channels)),
        input_gradient(backward, operator, gradient, others, (rows, cols, depth - channels)),
    ]
    return forward.nodes.add("Concat", parts, image_shape(shape), f"{operator.inputs[0]}_gradient", axis=1)


def input_gradient(backward: Backward, operator: Operator, gradient: str, weights: str, shape: Shape) -> str:
    """The gradient of the channels of a convolution's input that `weights` read; `shape`: that of these
    channels.
    """
    op = operator.op
    assert isinstance(op, Conv2d)
    reach = [dilation * (size - 1) + 1 for dilation, size in zip(op.dilation, op.kernel_shape, strict=True)]
    output_padding = [
        (shape[axis] + op.pads[axis] + op.pads[axis + 2] - reach[axis]) % op.stride[axis] for axis in (0, 1)
    ]
    inputs, name = [gradient, weights], f"{operator.inputs[0]}_gradient"
    attributes = {**window(op), "output_padding": output_padding}
    return backward.forward.nodes.add(
        functions.INPUT_GRADIENT, inputs, image_shape(shape), name, **attributes
    )


def _binary(backward: Backward, operator: Operator, gradient: str) -> None:
    op, forward, nodes = operator.op, backward.forward, backward.forward.nodes
    assert isinstance(op, Binary)
    if op.function == "prelu":
        prelu(backward, operator, gradient)
        return
    shape = nodes.shapes[gradient]
    inputs = list(operator.inputs)
    for at, source in enumerate(inputs):
        if source not in backward.wanted:
            continue
        operand = at if op.constant_operand != 0 else 1
        passed = gradient
        if op.function in ("mul", "div"):
            if op.constant_operand is None:
                other = backward.tensors.image(inputs[1 - at])
            else:
                other = nodes.reals(operator.constants["constant"].transpose(2, 0, 1)[np.newaxis])
            if op.function == "div" and op.constant_operand != 1:
                raise NotTrainable("only a division by a constant has a gradient here")
            passed = nodes.add("Mul" if op.function == "mul" else "Div", [gradient, other], shape)
        elif op.function == "sub" and operand == 1:
            passed = nodes.add("Neg", [gradient], shape)
        backward.add(source, _summed(backward, passed, nodes.shapes[forward.images[source]]))


def _summed(backward: Backward, gradient: str, shape: OnnxShape) -> str:
    """The sum of a gradient over the axes along which an operand of this shape is broadcast."""
    nodes = backward.forward.nodes
    repeated = [axis for axis, size in enumerate(nodes.shapes[gradient]) if size != shape[axis]]
    if not repeated:
        return gradient
    if repeated != [2, 3]:
        axes = nodes.constant(np.array(repeated, np.int64), "axes")
        return nodes.add("ReduceSum", [gradient, axes], shape, keepdims=1)
    mean = nodes.add("GlobalAveragePool", [gradient], shape)  # reads blocks of rows, unlike ReduceSum
    return nodes.add("Mul", [mean, nodes.reals(float(prod(nodes.shapes[gradient][2:])))], shape)


def _conversion(backward: Backward, operator: Operator, gradient: str) -> None:
    backward.add(operator.inputs[0], gradient)


def _view(backward: Backward, operator: Operator, gradient: str) -> None:
    nodes = backward.forward.nodes
    (source,) = operator.inputs
    backward.add(source, nodes.image(nodes.rows(gradient), backward.forward.graph.tensors[source].shape))


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
