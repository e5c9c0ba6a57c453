"""Normalisation along channels."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import Operator, Quantization, Shape, Tensor
from mcudeploy.ir.opdef import ConstantArray, Index, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import ELEMENTWISE, is_int8, reduced_axis, require_same_dtype, spatial_axes
from mcudeploy.ops.requantize import quantization_of

_MOST_BITS = 30
"""Bits of factors and biases in layer_norm_s8."""
_LEAST_SHIFT = 8
"""Fraction bits of a result at which only ties may be rounded wrongly."""
_MOST_CHANNELS = 2**16
"""The most channels of int8 values whose sum of squares fits 32 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class FixedPoint:
    """The integer parameters of layer_norm_s8."""

    factors: NDArray[np.int32]
    """[channels, 2]: the factor and the bias of each channel."""
    z_bits: int
    """Fraction bits of z, the value before the scale and bias."""
    shift: int
    """Fraction bits of a result before it is rounded."""


def fixed_point(scale: ConstantArray, bias: ConstantArray, output: Quantization) -> FixedPoint | None:
    """The parameters of layer_norm_s8 for these constants [channels]; None if they do not fit 32 bits."""
    if len(scale) > _MOST_CHANNELS:
        return None
    z_bits = 28 - ceil(log2(len(scale)) / 2)
    lost = 32 - z_bits  # bits of the product of z and a factor
    factor, offset = scale.astype(np.float64) / output.scale, bias / output.scale + output.zero_point + 0.5
    most = max(np.abs(factor).max() * 2**lost, np.abs(offset).max(), 2.0**lost)
    shift = _MOST_BITS - 1 - ceil(log2(most))
    if shift < _LEAST_SHIFT:
        return None
    factors = np.rint(np.stack([factor * 2.0 ** (shift + lost), offset * 2.0**shift], axis=1))
    return FixedPoint(np.ascontiguousarray(factors, np.int32), z_bits, shift)


@dataclass(frozen=True, slots=True)
class LayerNorm(PlainOperator):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias along channels.

    Constants: "scale" and "bias", float32[channels]. Without `centred`, the mean is taken as 0 (RMS
    normalisation). int8 needs constants for which `fixed_point` is not None.
    """

    kind: ClassVar[str] = "LayerNorm"
    takes_rows: ClassVar[bool] = True
    overwritten: ClassVar[tuple[int, ...]] = (0,)
    """The input: an element is last read when it is written."""

    epsilon: float
    centred: bool = True

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """An element reads all channels of its pixel."""
        (shape,) = inputs
        axes = (*spatial_axes(shape), reduced_axis("all", shape[2]))
        return LoopNest(axes, ((Index.of(row=1), Index.of(col=1), Index.of(all=1)),), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """layer_norm_s8 or layer_norm_f32. Raises ValueError for int8 that `fixed_point` does not support."""
        require_same_dtype(*inputs, output)
        _, cols, channels = output.shape
        constants = {name: operator.constants[name] for name in ("scale", "bias")}
        if any(array.shape != (channels,) for array in constants.values()):
            raise ValueError(f"scale and bias need {channels} elements")
        size = {"groups": cols, "count": channels, "centred": int(self.centred)}
        if not is_int8(output):
            return KernelCall("layer_norm_f32", {**constants, **size, "epsilon": float(self.epsilon)})
        source = quantization_of(inputs[0])
        fixed = fixed_point(constants["scale"], constants["bias"], quantization_of(output))
        if fixed is None:
            raise ValueError("its scale or bias is too large for int8")
        params: Params = {"factors": fixed.factors, **size}
        params |= {
            "input_zero_point": source.zero_point,
            "z_bits": fixed.z_bits,
            "shift": fixed.shift,
        }
        return KernelCall(
            "layer_norm_s8", params | {"epsilon": float(self.epsilon * (channels / source.scale) ** 2)}
        )
