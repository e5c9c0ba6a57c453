"""Gradients of operators that move or repeat values, as ONNX nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.training import training_functions as functions
from mcudeploy.extensions.training.backward import Backward
from mcudeploy.extensions.training.onnx_images import image_shape
from mcudeploy.ir.graph import Operator
from mcudeploy.ops.image.resize import Resize, ResizeSamples
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.move import Pad, Slice
from mcudeploy.ops.move.transpose import Transpose


def concat(to: Backward, operator: Operator, gradient: str) -> None:
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


def part(to: Backward, operator: Operator, gradient: str) -> None:
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


def pad(to: Backward, operator: Operator, gradient: str) -> None:
    """The gradient of the values inside the padding."""
    op, forward = operator.op, to.forward
    assert isinstance(op, Pad)
    (source,) = operator.inputs
    shape = forward.graph.tensors[source].shape
    to.add(source, forward.nodes.part(gradient, op.before, shape, f"{source}_gradient"))


def transpose(to: Backward, operator: Operator, gradient: str) -> None:
    """The gradient in the order of the input."""
    op, nodes = operator.op, to.forward.nodes
    assert isinstance(op, Transpose)
    (source,) = operator.inputs
    rows = nodes.transposed(gradient, (0, 2, 3, 1))
    view = nodes.reshaped(rows, tuple(op.dims[axis] for axis in op.perm))
    moved = nodes.transposed(view, tuple(int(axis) for axis in np.argsort(op.perm)))
    shape = (1, *to.forward.graph.tensors[source].shape)
    to.add(source, nodes.transposed(nodes.reshaped(moved, shape), (0, 3, 1, 2)))


def resize(to: Backward, operator: Operator, gradient: str) -> None:
    """The gradient of a value is the sum over the results, times its share of each."""
    op, nodes = operator.op, to.forward.nodes
    assert isinstance(op, Resize)
    (source,) = operator.inputs
    shape = to.forward.graph.tensors[source].shape
    rows, cols = nodes.reals(_shares(op.rows, shape[0]).T), nodes.reals(_shares(op.cols, shape[1]))
    name = f"{source}_gradient"
    inputs = [gradient, rows, cols]
    to.add(source, nodes.add(functions.RESIZE_GRADIENT, inputs, image_shape(shape), name))


def _shares(samples: ResizeSamples, size: int) -> NDArray[np.float32]:
    """[results, positions]: the share of each result that each position of the input has."""
    shares = np.zeros((len(samples.first), size), np.float32)
    for row, first, fraction in zip(shares, samples.first, samples.fraction, strict=True):
        row[first] = 1 - fraction
        if fraction:
            row[first + 1] = fraction
    return shares
