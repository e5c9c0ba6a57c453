"""Gradients of operators that move or repeat values, as ONNX nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mcudeploy.ir.graph import Operator
from mcudeploy.ops.concat import Concat
from mcudeploy.ops.move import Pad, Slice
from mcudeploy.ops.resize import Resize
from mcudeploy.ops.transpose import Transpose
from mcudeploy.training.forward import image_shape, repetitions

if TYPE_CHECKING:
    from mcudeploy.training.gradients import Backward


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
    """The gradient of a value is the sum over its repetitions."""
    op, nodes = operator.op, to.forward.nodes
    assert isinstance(op, Resize)
    (source,) = operator.inputs
    window = repetitions(op)
    shape = image_shape(to.forward.graph.tensors[source].shape)
    mean = nodes.add("AveragePool", [gradient], shape, kernel_shape=window, strides=window)
    count = nodes.reals(float(window[0] * window[1]))
    to.add(source, nodes.add("Mul", [mean, count], shape, f"{source}_gradient"))
