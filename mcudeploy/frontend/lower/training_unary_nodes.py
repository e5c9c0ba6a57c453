"""Gradients of functions of one value in training steps."""

from __future__ import annotations

import numpy as np

from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.lower.training_images import define_image, image_tensor, mask_tensor
from mcudeploy.frontend.onnx import training_functions as functions
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.ops.training_unary import (
    PiecewiseGradient,
    Slope,
    SlopedGradient,
    SmoothFunction,
    SmoothGradient,
)

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
        raise Unsupported("its slopes are no constants of the channels")
    slopes = {"slopes": np.ascontiguousarray(constant.reals().reshape(-1), np.float32)}
    define_image(builder, node, SlopedGradient(), (gradient, mask), slopes)


def _emit(builder: Builder, node: Node, op: PiecewiseGradient | SmoothGradient) -> None:
    define_image(builder, node, op, tuple(image_tensor(builder, name) for name in node.inputs))
