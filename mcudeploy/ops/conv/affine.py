"""int8 values scaled and shifted by channel: a BatchNormalization without a preceding convolution."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import Operator, Quantization, Tensor
from mcudeploy.ir.opdef import ConstantArray, KernelCall, Params
from mcudeploy.ops.common import ElementwiseOperator, counts_of_rows, is_int8
from mcudeploy.ops.requantize import INT32_MAX, clamp_bounds, quantization_of

_MOST_SHIFT = 30
_LANES = 4
"""Channels of a vector."""
_STEEPEST = 2.0**11
"""The steepest slope, in output steps per input step, at which 32 bits resolve 2^-12 of an output step."""


def affine_records(
    factor: ConstantArray, offset: ConstantArray, source: Quantization, output: Quantization
) -> NDArray[np.int32] | None:
    """Return int32[C, 3] m, b, shift with y[c] = (m * x[c] + b) >> shift in stored values; no sum overflows.

    Results are exact to (64 + slope / 2) / 2^22 of an output step before they are rounded half up; the slope
    is in stored values. None if 32 bits do not resolve the slope.
    """
    slope = factor.astype(np.float64) * source.scale / output.scale
    if not np.all(np.abs(slope) <= _STEEPEST) or not np.all(np.isfinite(offset)):
        return None
    start = offset.astype(np.float64) / output.scale - slope * source.zero_point + output.zero_point
    ends = np.stack((start - 128 * slope, start + 127 * slope))
    saturated = (ends.min(axis=0) > 128) | (ends.max(axis=0) < -129)
    slope, start = np.where(saturated, 0.0, slope), np.where(saturated, np.clip(start, -256, 256), start)
    reach = 128 * np.abs(slope) + np.abs(start) + 1
    shift = np.minimum(np.floor(np.log2(INT32_MAX / reach)), _MOST_SHIFT)
    m = np.rint(slope * 2.0**shift)
    # The error of m grows with the distance from `root`, the input whose result is 0 and does not saturate.
    root = np.clip(np.rint(-start / np.where(slope == 0, 1, slope)), -128, 127)
    b = np.rint((start + slope * root + 0.5) * 2.0**shift) - m * root
    return np.stack((m, b, shift), axis=1).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Affine(ElementwiseOperator):
    """y[..., c] = clip(factor[c] * x[..., c] + offset[c]), int8 to int8.

    Constants `factor` and `offset`, float32 [C], are of real values; `low` and `high` are the fused clip.
    """

    kind: ClassVar[str] = "Affine"
    takes_rows: ClassVar[bool] = True
    overwritten: ClassVar[tuple[int, ...]] = (0,)

    low: float = -inf
    high: float = inf

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """affine_s8. Raises ValueError for floats, and for factors that `affine_records` does not resolve."""
        if not is_int8(inputs[0]) or not is_int8(output):
            raise ValueError("Affine makes int8 from int8")
        factor, offset = operator.constants["factor"], operator.constants["offset"]
        if factor.shape != (output.shape[2],) or offset.shape != factor.shape:
            raise ValueError(f"{operator.name}: factor and offset need {output.shape[2]} values")
        target = quantization_of(output)
        records = affine_records(factor, offset, quantization_of(inputs[0]), target)
        if records is None:
            raise ValueError(f"{operator.name}: its factors are too large for the scales of input and output")
        low, high = clamp_bounds(target, self.low, self.high)
        _, cols, channels = output.shape
        size: Params = {"cols": cols, "channels": channels}
        params = {"records": records.ravel(), **size, "act.min": low, "act.max": high}
        vectors, ragged = -(-channels // _LANES), int(channels % _LANES > 0)
        row = {"rows": 1, "pixels": cols, "elements": cols * channels}
        row |= {"vectors": vectors, "pixels_of_vectors": cols * vectors, "ragged": cols * ragged}
        row["clipped"] = cols * channels * ((low, high) != (-128, 127))
        return KernelCall("affine_s8", params, counts=counts_of_rows(row))
