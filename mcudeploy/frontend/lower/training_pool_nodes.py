"""Gradients of pools and resizes in training steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.lower.training_images import define_image, image_tensor, stated_shape
from mcudeploy.frontend.onnx import training_functions as functions
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.values import OnnxValue, positions
from mcudeploy.ir.graph import DType, Quantization
from mcudeploy.ops.pool import AveragePool, MaxPool
from mcudeploy.ops.resize import ResizeSamples
from mcudeploy.ops.training_pools import AveragePoolGradient, MaxPoolGradient, MaxPoolTaps
from mcudeploy.ops.training_resize import ResizeGradient


def max_pool_taps(builder: Builder, node: Node) -> None:
    """MaxPoolTaps of an image, as numbers of taps, which no reference stores."""
    source = image_tensor(builder, node.inputs[0])
    rows, cols, channels = stated_shape(builder, node.output)
    op = MaxPoolTaps(_max_pool(node, (rows, cols)))
    shape = (rows, cols, channels)
    tensor = builder.emit(op, (source,), shape, DType.INT8, Quantization(1.0, 0), nodes=(node,))
    builder.values[node.output] = OnnxValue(tensor, positions(shape), real=False)


def max_pool_gradient(builder: Builder, node: Node) -> None:
    """MaxPoolGradient, by the numbers of a MaxPoolTaps."""
    producer = builder.producers.get(node.inputs[1])
    if producer is None or producer.op != functions.MAX_POOL_TAPS:
        raise Unsupported("its indices are not those of MaxPoolTaps")
    gradient, taps = image_tensor(builder, node.inputs[0]), builder.values[node.inputs[1]].tensor
    rows, cols, _ = builder.shape_of(gradient)
    shape = stated_shape(builder, node.output)
    op = MaxPoolGradient(_max_pool(producer, (rows, cols)), shape)
    define_image(builder, node, op, (gradient, taps))


def average_pool_gradient(builder: Builder, node: Node) -> None:
    """AveragePoolGradient, of an image."""
    weights = node.integers("sizes") or ()
    if len(weights) != 4:
        raise Unsupported("its windows are not those of an image")
    gradient = image_tensor(builder, node.inputs[0])
    rows, cols, _ = builder.shape_of(gradient)
    like = _max_pool(node, (rows, cols), (weights[2], weights[3]))
    pool = AveragePool(like.kernel_shape, like.stride, like.dilation, like.pads, like.out_size, False)
    shape = stated_shape(builder, node.output)
    op = AveragePoolGradient(pool, shape, node.number("factor", 1.0))
    define_image(builder, node, op, (gradient,))


def resize_gradient(builder: Builder, node: Node) -> None:
    """ResizeGradient, by constant shares."""
    rows, cols = (builder.constants.get(name) for name in node.inputs[1:])
    if rows is None or cols is None:
        raise Unsupported("its shares are no constants")
    gradient, shape = image_tensor(builder, node.inputs[0]), stated_shape(builder, node.output)
    op = ResizeGradient(_samples(rows.reals().T), _samples(cols.reals()), shape)
    define_image(builder, node, op, (gradient,))


def _samples(shares: NDArray[Any]) -> ResizeSamples:
    """The samples of an axis, from the shares that each of its results has of the input's positions."""
    first, fractions = [], []
    for row in np.asarray(shares, np.float32):
        places = np.flatnonzero(row)
        if places.size not in (1, 2) or places[-1] - places[0] > 1:
            raise Unsupported("a result has shares of other values than two neighbours")
        first.append(int(places[0]))
        fractions.append(float(row[places[1]]) if places.size == 2 else 0.0)
    return ResizeSamples(tuple(first), tuple(fractions))


def _max_pool(node: Node, out_size: tuple[int, int], kernel: tuple[int, ...] | None = None) -> MaxPool:
    """The windows of a node with these numbers of results."""
    windows = [
        kernel or node.integers("kernel_shape") or (),
        node.integers("strides") or (1, 1),
        node.integers("dilations") or (1, 1),
    ]
    pads = node.integers("pads") or (0, 0, 0, 0)
    if any(len(pair) != 2 for pair in windows) or len(pads) != 4:
        raise Unsupported("its windows are not those of an image")
    kernel_shape, stride, dilation = ((pair[0], pair[1]) for pair in windows)
    return MaxPool(kernel_shape, stride, dilation, (pads[0], pads[1], pads[2], pads[3]), out_size)
