"""Scales, zero points and fused activations: checks, and their values as real numbers."""

from __future__ import annotations

from math import copysign, floor, inf, isfinite

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.tflite.contents import Scales, TfliteOperator, TfliteTensor

_QUANTIZED = ("INT8", "UINT8")
_ACTIVATIONS = {0: None, 1: (0.0, inf), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
"""Bounds by the file's number of a fused activation: none, RELU, RELU_N1_TO_1, RELU6."""

_WAYS_OUT = {
    "FLOAT16": ", and constants of FLOAT16",
    "INT16": " here; docs/tflite.md lists the operators of int16 activations",
}

Bounds = tuple[float, float] | None
"""The smallest and the largest value, None if there is no limit."""


def parameters(tensor: TfliteTensor) -> Scales:
    """The quantisation of a tensor of int8 or uint8.

    Raises Unsupported for other types, and for scales and zero points that do not fit.
    """
    if tensor.kind not in _QUANTIZED:
        way_out = _WAYS_OUT.get(tensor.kind, "")
        raise Unsupported(
            f"tensor {tensor.label} is {tensor.kind}; FLOAT32, INT8 and UINT8 are supported{way_out}"
        )
    return scales_of(tensor)


def scales_of(tensor: TfliteTensor) -> Scales:
    """The quantisation of a tensor of integers. Raises Unsupported for scales that do not fit."""
    scales = tensor.scales
    if scales is None:
        raise Unsupported(f"tensor {tensor.label} is {tensor.kind} without a scale")
    if not all(isfinite(scale) for scale in scales.scale):
        raise Unsupported(f"tensor {tensor.label} has a scale that is not finite")
    if not scales.single and (
        not 0 <= scales.axis < len(tensor.shape) or tensor.shape[scales.axis] != len(scales.scale)
    ):
        raise Unsupported(f"tensor {tensor.label} has {len(scales.scale)} scales along axis {scales.axis}")
    return scales


def reals(tensor: TfliteTensor) -> NDArray[np.float32]:
    """The real numbers of a constant of float32, or with a single scale. Raises Unsupported for others."""
    values = tensor.array()
    if tensor.kind == "FLOAT32":
        return values.astype(np.float32)
    scales = scales_of(tensor)
    if not scales.single:
        raise Unsupported(f"constant {tensor.label} has a scale for each channel; it needs one")
    steps = values.astype(np.int32) - scales.zero_point[0]
    return np.asarray(steps.astype(np.float32) * np.float32(scales.scale[0]), np.float32)


def fused(operator: TfliteOperator) -> Bounds:
    """The bounds of the operator's fused activation. Raises Unsupported if it is not a clip."""
    number = int(operator.options.get("FusedActivationFunction", 0))
    if number not in _ACTIVATIONS:
        raise Unsupported(
            f"fused activation {number} is not supported; NONE, RELU, RELU_N1_TO_1 and RELU6 are"
        )
    return _ACTIVATIONS[number]


def stored_bounds(bounds: Bounds, scales: Scales, dtype: str) -> Bounds:
    """The real values of the bounds after their rounding to integers, with ties away from zero, as in TFLite.

    A bound outside the range of the integers is infinite; None if both are.
    """
    if bounds is None:
        return None
    limits, scale, zero_point = np.iinfo(dtype), np.float32(scales.scale[0]), scales.zero_point[0]
    if not scale > 0:
        return bounds
    steps = [
        copysign(floor(abs(bound) / scale + 0.5), bound) if isfinite(bound) else bound for bound in bounds
    ]
    low = -inf if steps[0] + zero_point <= limits.min else float(np.float32(steps[0]) * scale)
    high = inf if steps[1] + zero_point >= limits.max else float(np.float32(steps[1]) * scale)
    return None if (low, high) == (-inf, inf) else (low, high)


def is_int16(tensor: TfliteTensor) -> bool:
    """Whether a tensor has quantised int16 values."""
    return tensor.kind == "INT16" and tensor.scales is not None
