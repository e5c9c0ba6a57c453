"""Softmax over one axis."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, floor, log2
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.opdef import CountsOf, Index, KernelCall, LoopNest, ParamValue, PlainOperator
from mcudeploy.ops.common import (
    AXIS_NAMES,
    ELEMENTWISE,
    is_int8,
    reduced_axis,
    require_same_dtype,
    spatial_axes,
)
from mcudeploy.ops.requantize import quant, quantization_of, quantize_scale

_PROBABILITY_BITS = 30
"""Fraction bits of a probability in the int8 kernels."""
_LEAST_SHIFT = 33
"""The kernels shift only the upper half of a product."""


@dataclass(frozen=True, slots=True)
class Softmax(PlainOperator):
    """exp(x - max) / sum over axis 0 (rows), 1 (cols) or 2 (channels).

    Over rows, every row of the output reads all rows of the input.
    """

    kind: ClassVar[str] = "Softmax"
    takes_rows: ClassVar[bool] = True

    axis: int = 2

    def __post_init__(self) -> None:
        if self.axis not in (0, 1, 2):
            raise ValueError(f"the axis is 0, 1 or 2, not {self.axis}")

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Reads every element of its group: axis "all" runs through the softmax axis."""
        (shape,) = inputs
        row, col, ch = (
            Index.of(all=1) if axis == self.axis else Index.of(**{name: 1})
            for axis, name in enumerate(AXIS_NAMES)
        )
        axes = (*spatial_axes(shape), reduced_axis("all", shape[self.axis]))
        return LoopNest(axes, ((row, col, ch),), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """softmax_s8, softmax_f32, and for axis 0 softmax_s8_rows, softmax_f32_rows."""
        require_same_dtype(*inputs, output)
        variant = "_rows" if self.axis == 0 else ""
        size = self._size(output.shape)
        counts = self._row_counts(output.shape) if self.axis == 0 else None
        if not is_int8(output):
            return KernelCall(f"softmax_f32{variant}", size, counts=counts)
        target = quantization_of(output)
        multipliers, shift = quantize_scale(
            np.array([1 / (target.scale * 2.0**_PROBABILITY_BITS)], np.float64)
        )
        multiplier = int(multipliers[0])
        if shift < _LEAST_SHIFT - 1 or (multiplier >= 2**30 and shift < _LEAST_SHIFT):
            raise ValueError(f"the output scale {target.scale} is too small")
        if shift < _LEAST_SHIFT:
            multiplier, shift = 2 * multiplier, _LEAST_SHIFT
        table: dict[str, ParamValue] = {
            "table": exponentials(quantization_of(inputs[0]).scale, output.shape[self.axis])
        }
        rounding = quant(multiplier, shift, target)
        return KernelCall(f"softmax_s8{variant}", {**table, **size, **rounding}, counts=counts)

    def _row_counts(self, shape: Shape) -> CountsOf:
        """Over rows: each element of any output row reads all input rows."""
        total, elements = shape[0], shape[1] * shape[2]
        return lambda rows: {
            "calls": 1,
            "elements": elements,
            "looks": elements * total,
            "outputs": elements * len(rows),
        }

    def _size(self, shape: Shape) -> dict[str, ParamValue]:
        rows, cols, channels = shape
        if self.axis == 0:
            return {"rows": rows, "row_elements": cols * channels}
        if self.axis == 1:
            return {"count": cols, "step": channels, "groups": channels, "group_step": 1}
        return {"count": channels, "step": 1, "groups": cols, "group_step": channels}

    def overwrites(self, inputs: tuple[Tensor, ...], output: Tensor) -> tuple[int, ...]:
        """The input, unless rows mix: an element is last read when it is written."""
        return () if self.axis == 0 else (0,)


def exponentials(scale: float, count: int) -> NDArray[np.uint32]:
    """uint32[256]: exp(-scale * d) for d = max - q, with the bits that a sum of `count` leaves in 32."""
    bits = floor(log2((2**32 - 1) / count))
    values = [round(exp(-scale * distance) * 2**bits) for distance in range(256)]
    return np.array(values, np.uint32)
