"""Scales and bounds of int16 tensors of .tflite files."""

from __future__ import annotations

from math import inf, isfinite

import numpy as np

from mcudeploy.extensions.int16.int16 import INT16, Bounds
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.tflite.contents import Scales, TfliteTensor
from mcudeploy.frontend.tflite.scales import Bounds as RealBounds
from mcudeploy.frontend.tflite.scales import scales_of


def require_one_image(image: TfliteTensor) -> None:
    """Raise Unsupported for a batch of several images."""
    if image.shape[0] != 1:
        raise Unsupported(
            f"the batch is {image.shape[0]}; with int16 activations it must be 1: convert the model with a "
            "batch of 1"
        )


def scale_of(tensor: TfliteTensor) -> float:
    """The scale of an int16 tensor, with the precision of the file. Raises Unsupported for others."""
    scales = scale_and_zero(tensor)
    if tensor.kind != "INT16":
        raise Unsupported(f"tensor {tensor.label} is {tensor.kind}; other tensors of the operator are INT16")
    if scales.zero_point[0] != 0:
        raise Unsupported(f"tensor {tensor.label} is INT16 with a zero point; TFLite needs 0")
    return float(np.float32(scales.scale[0]))


def scale_and_zero(tensor: TfliteTensor) -> Scales:
    """The scale and the zero point of a tensor. Raises Unsupported for several scales, and for 0 or less."""
    scales = scales_of(tensor)
    if not scales.single or not scales.scale[0] > 0:
        raise Unsupported(f"tensor {tensor.label} needs one scale, above 0")
    return scales


def bounds_of(real: RealBounds, result: TfliteTensor) -> Bounds:
    """The bounds of an activation as stored integers: float32 quotients, rounded with ties away from zero."""
    scale = np.float32(scale_of(result))

    def stored(bound: float) -> int:
        steps = float(np.float32(abs(bound)) / scale) if isfinite(bound) else inf
        whole = int(min(np.floor(steps + 0.5), 2.0**31))
        return min(max(whole if bound > 0 else -whole, INT16.min), INT16.max)

    return Bounds() if real is None else Bounds(stored(real[0]), stored(real[1]))
