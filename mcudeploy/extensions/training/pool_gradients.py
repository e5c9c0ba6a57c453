"""Rules that write the gradients of pools, means and sums as ONNX nodes."""

from __future__ import annotations

from math import prod

import numpy as np

from mcudeploy.extensions.training import training_functions as functions
from mcudeploy.extensions.training.backward import Backward
from mcudeploy.extensions.training.forward_rules import pool_window
from mcudeploy.extensions.training.node_list import NotTrainable, image_shape
from mcudeploy.extensions.training.training_pools import MOST_TAPS
from mcudeploy.ir.graph import Operator
from mcudeploy.ops.pool.pool import AveragePool, MaxPool
from mcudeploy.ops.reduce.reduce import Reduce


def max_pool(backward: Backward, operator: Operator, gradient: str) -> None:
    """The gradient of a value is the sum over the windows in which it is the first largest."""
    op = operator.op
    assert isinstance(op, MaxPool)
    _to_largest(backward, operator, gradient, op)


def _to_largest(backward: Backward, operator: Operator, gradient: str, op: MaxPool) -> None:
    forward, nodes = backward.forward, backward.forward.nodes
    if prod(op.kernel_shape) > MOST_TAPS:
        rows, cols = op.kernel_shape
        raise NotTrainable(f"its window of {rows} x {cols} has more than {MOST_TAPS} taps")
    (source,) = operator.inputs
    image, shape = forward.images[source], forward.graph.tensors[source].shape
    taps = nodes.add_taps(image, nodes.shapes[gradient], **pool_window(op, shape))
    backward.node(source, functions.MAX_POOL_GRADIENT, [gradient, taps], sizes=list(image_shape(shape)))


def average_pool(backward: Backward, operator: Operator, gradient: str) -> None:
    """The gradient of a value: the sum over its windows, each divided by the number of values it counts."""
    op, forward, nodes = operator.op, backward.forward, backward.forward.nodes
    assert isinstance(op, AveragePool)
    (source,) = operator.inputs
    rows, cols, channels = forward.graph.tensors[source].shape
    if op.out_size == (1, 1) and op.pads == (0, 0, 0, 0) and op.kernel_shape == (rows, cols):
        _spread(backward, source, gradient, 1 / (rows * cols))
        return
    window = pool_window(op, (rows, cols, channels))
    kernel, pads = op.kernel_shape, window["pads"]
    output_padding = [
        (size + pads[axis] + pads[axis + 2] - kernel[axis]) % op.stride[axis]
        for axis, size in enumerate((rows, cols))
    ]
    shares = 1 / np.outer(op.taps_counted(0, rows), op.taps_counted(1, cols))
    factor = float(shares[0, 0])
    if np.any(shares != factor):
        factors = nodes.reals(shares[np.newaxis, np.newaxis])
        gradient, factor = nodes.add("Mul", [gradient, factors], nodes.shapes[gradient]), 1.0
    attributes = {
        **{each: window[each] for each in ("strides", "dilations", "pads")},
        "group": channels,
        "output_padding": output_padding,
        "factor": factor,
        "sizes": [channels, 1, *kernel],
    }
    backward.node(source, functions.AVERAGE_POOL_GRADIENT, [gradient], **attributes)


def reduction(backward: Backward, operator: Operator, gradient: str) -> None:
    """A sum passes its gradient to each of its terms; a maximum over pixels passes it to the largest value.
    """
    op, shapes = operator.op, backward.forward.graph.tensors
    assert isinstance(op, Reduce)
    (source,) = operator.inputs
    if op.function == "max" and op.axes == (0, 1):
        rows, cols, _ = shapes[source].shape
        whole = MaxPool((rows, cols), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1))
        _to_largest(backward, operator, gradient, whole)
        return
    if op.function not in ("mean", "sum"):
        raise NotTrainable(
            f"its {op.function} has no gradient here; means and sums have, and maxima of images"
        )
    count = shapes[source].elements // shapes[operator.output].elements
    _spread(backward, source, gradient, 1 / count if op.function == "mean" else 1.0)


def _spread(backward: Backward, source: str, gradient: str, factor: float) -> None:
    """Give each value of a tensor the gradient of the sum that it is a term of, times a factor."""
    nodes, shape = backward.forward.nodes, image_shape(backward.forward.graph.tensors[source].shape)
    of_sum = nodes.shapes[gradient]
    sizes = [1 if size == summed else size for size, summed in zip(shape, of_sum, strict=True)]
    backward.node(source, "Mul", [gradient, nodes.reals(np.full(sizes, factor))])
