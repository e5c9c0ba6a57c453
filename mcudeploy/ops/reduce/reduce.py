"""Means over axes that a pooling window does not cover; sums, products and extremes over any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Literal

import numpy as np

from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import (
    Axis,
    AxisKind,
    Counts,
    CountsOf,
    Index,
    KernelCall,
    LoopNest,
    Params,
    PlainOperator,
)
from mcudeploy.ops.common import AXIS_NAMES, is_int8, require_same_dtype
from mcudeploy.ops.requantize import Rounding, mean_multiplier, quant, quantization_of, quantize_scale

Reduction = Literal["mean", "sum", "prod", "max", "min"]


@dataclass(frozen=True, slots=True)
class Reduce(PlainOperator):
    """A function of all values along `axes`, which remain as dimensions of size 1. int8: means only."""

    kind: ClassVar[str] = "Reduce"
    takes_rows: ClassVar[bool] = True

    axes: tuple[int, ...]
    function: Reduction = "mean"
    rounding: Rounding = "once"

    @property
    def stem(self) -> str:
        """The function."""
        return f"reduce_{self.function}"

    def __post_init__(self) -> None:
        if not self.axes or list(self.axes) != sorted(set(self.axes) & {0, 1, 2}):
            raise ValueError(f"axes are an ascending choice of 0, 1, 2, not {self.axes}")

    def label(self, inputs: tuple[Shape, ...]) -> str:
        """The function."""
        return f"reduce {self.function}"

    def rounding_error(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> float:
        """The rounding error of the multiplier of TFLite's means."""
        if self.rounding != "tflite":
            return 0.0
        count = prod(inputs[0].shape[axis] for axis in self.axes)
        scale = quantization_of(inputs[0]).scale / quantization_of(output).scale
        return 2.0 ** min(mean_multiplier(scale, count)[1], 0) / 2

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """One axis per dimension; the reduced ones do not index the output."""
        (shape,) = inputs
        kinds = [AxisKind.REDUCED if axis in self.axes else AxisKind.SPATIAL for axis in range(3)]
        axes = tuple(Axis(*entry) for entry in zip(AXIS_NAMES, shape, kinds, strict=True))
        read = Index.of(row=1), Index.of(col=1), Index.of(ch=1)
        row, col, ch = (
            Index() if axis in self.axes else Index.of(**{name: 1}) for axis, name in enumerate(AXIS_NAMES)
        )
        return LoopNest(axes, (read,), (row, col, ch))

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """reduce_mean_s8, or the float kernel of the function. Raises ValueError for others on int8."""
        require_same_dtype(*inputs, output)
        shape = inputs[0].shape
        count = prod(shape[axis] for axis in self.axes)
        size = self.sizes(shape)
        counts = reduce_counts(size)
        if not is_int8(output):
            mean = self.function == "mean"  # a sum that is divided
            name, divisor = ("sum", float(count)) if mean else (self.function, 1.0)
            return KernelCall(f"reduce_{name}_f32", {**size, "count": divisor}, counts=counts)
        if self.function != "mean":
            raise ValueError(f"a {self.function} along axes is for float32 only")
        source, target = quantization_of(inputs[0]), quantization_of(output)
        if count * 255 >= 2**31:
            raise ValueError(f"a sum of {count} elements may overflow 32 bits")
        bias: Params = {"bias": -source.zero_point * count}
        if self.rounding == "tflite":
            arithmetic = quant(*mean_multiplier(source.scale / target.scale, count), target)
            params = {**size, **bias, "twice": 1, **arithmetic}
            return KernelCall("reduce_mean_s8", params, mode="twice", counts=counts)
        multipliers, shift = quantize_scale(np.array([source.scale / (target.scale * count)], np.float64))
        if (255 * count * int(multipliers[0])) >> shift >= 2**30:
            raise ValueError(
                f"the output scale {target.scale} is too small for the input scale {source.scale}"
            )
        arithmetic = quant(int(multipliers[0]), shift, target)
        return KernelCall("reduce_mean_s8", {**size, **bias, "twice": 0, **arithmetic}, counts=counts)

    def sizes(self, shape: Shape) -> Params:
        """The kernel's loops: over the summed elements (rows, outer, inner), and over an output row (cols,
        channels).
        """
        rows, cols, channels = shape
        sum_rows, sum_cols, sum_channels = (axis in self.axes for axis in range(3))
        size: Params = {
            "rows": rows if sum_rows else 1,
            "outer": cols if sum_cols else 1,
            "outer_step": channels,
            "inner": channels if sum_channels else 1,
            "cols": 1 if sum_cols else cols,
            "col_step": channels,
            "channels": 1 if sum_channels else channels,
        }
        if sum_cols and sum_channels:
            size |= {"outer": 1, "inner": cols * channels}
        return size


def reduce_counts(size: Mapping[str, Any]) -> CountsOf:
    """Counts of summing, for every output, runs of elements in each row."""
    row_elements = size["cols"] * size["channels"]

    def counts(rows: Interval) -> Counts:
        outputs = len(rows) * row_elements
        lines = outputs * size["rows"]
        runs = lines * size["outer"]
        return {
            "calls": 1,
            "rows": len(rows),
            "outputs": outputs,
            "lines": lines,
            "runs": runs,
            "summed": runs * size["inner"],
        }

    return counts
