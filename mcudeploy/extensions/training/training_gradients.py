"""Lowering of the gradients of pools, resizes and scalar functions, and of the images that they read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.training import training_functions as functions
from mcudeploy.extensions.training.training_functions import CLIP_MASK
from mcudeploy.extensions.training.training_pools import AveragePoolGradient, MaxPoolGradient, MaxPoolTaps
from mcudeploy.extensions.training.training_resize import ResizeGradient
from mcudeploy.extensions.training.training_unary import (
    PiecewiseGradient,
    Slope,
    SlopedGradient,
    SmoothFunction,
    SmoothGradient,
)
from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.values import OnnxValue, image_index, image_positions, positions
from mcudeploy.ir.graph import DType, Quantization, Shape
from mcudeploy.ir.opdef import ConstantArray, OperatorDef
from mcudeploy.ops.image.resize import ResizeSamples
from mcudeploy.ops.pool.pool import AveragePool, MaxPool


def image_tensor(builder: Builder, name: str) -> str:
    """The float32 tensor of an image, channels last.

    An int8 image is converted for this reader alone, so that no float32 copy of it stays in memory.
    """
    value = builder.converted(name)
    return builder.arranged(value.tensor, image_positions(value.index))


def stored_image(builder: Builder, name: str) -> str:
    """The tensor of an image, channels last, as int8 if it is stored so."""
    int8_form = builder.int8_form(name) if builder.value(name).table is not None else None
    if int8_form is None:
        return image_tensor(builder, name)
    return builder.arranged(int8_form.tensor, image_positions(int8_form.index))


def mask_tensor(builder: Builder, name: str) -> str:
    """The tensor of a mask, which ClipMask makes."""
    producer = builder.producers.get(name)
    if producer is None or producer.op != CLIP_MASK:
        raise Unsupported("its mask is not made by ClipMask")
    return builder.values[name].tensor


def stated_shape(builder: Builder, name: str) -> Shape:
    """The rows, columns and channels that the file states for a value [1, C, H, W]."""
    info = builder.model.infos.get(name)
    if info is None or info.shape is None or len(info.shape) != 4:
        raise Unsupported("the size of its result is not known")
    _, channels, rows, cols = info.shape
    return rows, cols, channels


def define_image(
    builder: Builder,
    node: Node,
    op: OperatorDef,
    inputs: tuple[str, ...],
    constants: Mapping[str, ConstantArray] | None = None,
) -> None:
    """Emit an operator whose float32 result is an image, the node's output."""
    shape = builder.output_shape(op, inputs)
    tensor = builder.emit(op, inputs, shape, DType.FLOAT32, constants=constants, nodes=(node,))
    builder.define(node.output, OnnxValue(tensor, image_index(shape, 4), real=True))


def max_pool_taps(builder: Builder, node: Node) -> None:
    """MaxPoolTaps of an image, as tap numbers. The reference has indices, so nothing compares them."""
    source = image_tensor(builder, node.inputs[0])
    rows, cols, channels = stated_shape(builder, node.output)
    op = MaxPoolTaps(_max_pool(node, (rows, cols)))
    shape = (rows, cols, channels)
    tensor = builder.emit(op, (source,), shape, DType.INT8, Quantization(1.0, 0), nodes=(node,))
    builder.values[node.output] = OnnxValue(tensor, positions(shape), real=False)


def max_pool_gradient(builder: Builder, node: Node) -> None:
    """MaxPoolGradient, by the tap numbers of a MaxPoolTaps."""
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
    it = _max_pool(node, (rows, cols), (weights[2], weights[3]))
    pool = AveragePool(it.kernel_shape, it.stride, it.dilation, it.pads, it.out_size, False)
    shape = stated_shape(builder, node.output)
    op = AveragePoolGradient(pool, shape, node.number("factor", 1.0))
    define_image(builder, node, op, (gradient,))


def resize_gradient(builder: Builder, node: Node) -> None:
    """ResizeGradient, by constant shares."""
    rows, cols = (builder.constants.get(name) for name in node.inputs[1:])
    if rows is None or cols is None:
        raise Unsupported("its shares are not constants")
    gradient, shape = image_tensor(builder, node.inputs[0]), stated_shape(builder, node.output)
    op = ResizeGradient(_samples(rows.reals().T), _samples(cols.reals()), shape)
    define_image(builder, node, op, (gradient,))


def _samples(shares: NDArray[Any]) -> ResizeSamples:
    """The samples of an axis from `shares` [results, positions]: the share of each position in each result.
    """
    first, fractions = [], []
    for row in np.asarray(shares, np.float32):
        places = np.flatnonzero(row)
        if places.size not in (1, 2) or places[-1] - places[0] > 1:
            raise Unsupported("a result is not a mean of two neighbours")
        first.append(int(places[0]))
        fractions.append(float(row[places[1]]) if places.size == 2 else 0.0)
    return ResizeSamples(tuple(first), tuple(fractions))


def _max_pool(node: Node, out_size: tuple[int, int], kernel: tuple[int, ...] | None = None) -> MaxPool:
    """The MaxPool with a node's windows; `kernel` replaces the attribute kernel_shape."""
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


_SMOOTH: dict[str, SmoothFunction] = {
    functions.SWISH_GRADIENT: "swish",
    functions.GELU_GRADIENT: "gelu",
    functions.ERF_GRADIENT: "erf",
    functions.SOFTPLUS_GRADIENT: "softplus",
}


def piecewise_gradient(builder: Builder, node: Node) -> None:
    """PiecewiseGradient, of images."""
    numbers = {}
    for name in Slope().numbers:
        value = node.attributes.get(name)
        if not isinstance(value, int | float):
            raise Unsupported(f"attribute {name} is not a number")
        numbers[name] = float(value)
    _emit(builder, node, PiecewiseGradient(Slope.of_numbers(numbers)))


def smooth_gradient(builder: Builder, node: Node) -> None:
    """SwishGradient and others, of images."""
    _emit(builder, node, SmoothGradient(_SMOOTH[node.op], node.number("alpha", 1.0)))


def sloped_gradient(builder: Builder, node: Node) -> None:
    """SlopedGradient, by the bits of a ClipMask and constant slopes for each channel."""
    gradient, mask = image_tensor(builder, node.inputs[0]), mask_tensor(builder, node.inputs[1])
    shape, constant = builder.shape_of(gradient), builder.constants.get(node.inputs[2])
    if constant is None or constant.shape != (1, shape[2], 1, 1):
        raise Unsupported("its slopes are not constants of the channels")
    slopes = {"slopes": np.ascontiguousarray(constant.reals().reshape(-1), np.float32)}
    define_image(builder, node, SlopedGradient(), (gradient, mask), slopes)


def _emit(builder: Builder, node: Node, op: PiecewiseGradient | SmoothGradient) -> None:
    define_image(builder, node, op, tuple(image_tensor(builder, name) for name in node.inputs))
