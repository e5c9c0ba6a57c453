"""Softmax over one axis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, floor, log2
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import Operator, Quantization, Shape, Tensor
from mcudeploy.ir.opdef import CountsOf, Index, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import (
    AXIS_NAMES,
    ELEMENTWISE,
    is_int8,
    reduced_axis,
    require_same_dtype,
    spatial_axes,
)
from mcudeploy.ops.requantize import (
    INT32_MAX,
    Rounding,
    quant,
    quantization_of,
    quantize_scale,
    rounded_twice,
    tflite_multipliers,
)

_PROBABILITY_BITS = 30
"""Fraction bits of a probability in the int8 kernels."""
_LEAST_SHIFT = 33
"""The least shift: the kernels shift only the upper half of a product."""
_TFLITE_OUTPUT = Quantization(1 / 256, -128)
"""The only quantisation of the output of TFLite's softmax."""
_TFLITE_COUNT = 4095
"""The most values of a group whose sum TFLite's kernel represents."""
_TFLITE_FUNCTION_ERROR = 1e-4
"""The error of TFLite's exponentials, in steps of the output: they are within 2.3e-7 of the real ones."""

_QUARTER = 1 << 24
"""1/4 with 26 fraction bits."""
_POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""exp(-1/4), exp(-1/2), exp(-1) ... exp(-16), with 31 fraction bits."""
_EXP_EIGHTH = 1895147668
"""exp(-1/8), with 31 fraction bits."""
_THIRD = 715827883


@dataclass(frozen=True, slots=True)
class Softmax(PlainOperator):
    """exp(x - max) / sum over axis 0 (rows), 1 (cols) or 2 (channels).

    Over rows, every row of the output reads all rows of the input.
    """

    kind: ClassVar[str] = "Softmax"
    takes_rows: ClassVar[bool] = True

    axis: int = 2
    rounding: Rounding = "once"
    """`tflite`: the arithmetic of TFLite's int8 kernel."""

    def __post_init__(self) -> None:
        if self.axis not in (0, 1, 2):
            raise ValueError(f"the axis is 0, 1 or 2, not {self.axis}")

    def like_tflite(self, output: Tensor) -> Softmax | None:
        """The operator with the bits of TFLite; None if TFLite has no such kernel."""
        exists = output.quantization == _TFLITE_OUTPUT and output.shape[self.axis] <= _TFLITE_COUNT
        return replace(self, rounding="tflite") if exists and self.axis != 0 else None

    def rounding_error(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> float:
        """The error of TFLite's arithmetic, 0 otherwise."""
        if self.rounding != "tflite":
            return 0.0
        # An exponential of the sum, which is at least 1, has 19 bits: an error of 2^-20 of 256 steps.
        return output.shape[self.axis] * 2.0**-20 * 256 + _TFLITE_FUNCTION_ERROR

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """An element reads its whole group: axis "all" runs through the softmax axis."""
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
        if self.rounding == "tflite":
            return KernelCall(
                "softmax_s8_tflite", {"table": tflite_exponentials(quantization_of(inputs[0]).scale), **size}
            )
        target = quantization_of(output)
        multipliers, shift = quantize_scale(
            np.array([1 / (target.scale * 2.0**_PROBABILITY_BITS)], np.float64)
        )
        multiplier = int(multipliers[0])
        if shift < _LEAST_SHIFT - 1 or (multiplier >= 2**30 and shift < _LEAST_SHIFT):
            raise ValueError(f"the output scale {target.scale} is too small")
        if shift < _LEAST_SHIFT:
            multiplier, shift = 2 * multiplier, _LEAST_SHIFT
        table: Params = {"table": exponentials(quantization_of(inputs[0]).scale, output.shape[self.axis])}
        rounding = quant(multiplier, shift, target)
        return KernelCall(f"softmax_s8{variant}", {**table, **size, **rounding}, counts=counts)

    def _row_counts(self, shape: Shape) -> CountsOf:
        """The counts of a softmax over rows: each output row reads all input rows."""
        total, elements = shape[0], shape[1] * shape[2]
        return lambda rows: {
            "calls": 1,
            "elements": elements,
            "looks": elements * total,
            "outputs": elements * len(rows),
        }

    def _size(self, shape: Shape) -> Params:
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
    """uint32[256]: exp(-scale * d) for d = max - q, with as many bits as keep a sum of `count` in 32 bits."""
    bits = floor(log2((2**32 - 1) / count))
    values = [round(exp(-scale * distance) * 2**bits) for distance in range(256)]
    return np.array(values, np.uint32)


def tflite_exponentials(scale: float) -> NDArray[np.int32]:
    """int32[256]: exp(-scale * d) for d = max - q, with 31 fraction bits, as TFLite computes it."""
    (multiplier,), (exponent,) = tflite_multipliers(np.array([min(scale * 2.0**26, 2.0**30 - 1)]))
    reach = (31 << 26) >> int(exponent)  # TFLite's exponentials of larger distances are 0
    steps = rounded_twice(-np.arange(min(reach + 1, 256)), int(multiplier), int(exponent))
    values = [_exponential(int(step)) for step in steps]
    return np.array([*values, *[0] * (256 - len(values))], np.int32)


def _exponential(x: int) -> int:
    """exp(x) with 31 fraction bits, for -2^31 < x <= 0 with 26: exp_on_negative_values of gemmlowp."""
    if x == 0:
        return INT32_MAX
    past = (x & (_QUARTER - 1)) - _QUARTER
    result = _near_zero(past << 5)
    for bit, power in enumerate(_POWERS, 24):
        if (past - x) >> bit & 1:
            result = _product(result, power)
    return result


def _near_zero(x: int) -> int:
    """exp(x), -1/4 <= x < 0: four terms of a Taylor series around -1/8."""
    x += 1 << 28
    x2 = _product(x, x)
    x3, x4 = _product(x2, x), _product(x2, x2)
    terms = _halved(_product(_halved(x4, 2) + x3, _THIRD) + x2, 1)
    return _EXP_EIGHTH + _product(_EXP_EIGHTH, x + terms)


def _product(a: int, b: int) -> int:
    """The product a * b / 2^31, rounded half up."""
    return (a * b + (1 << 30)) >> 31


def _halved(x: int, times: int) -> int:
    """The quotient x / 2^times, rounded half away from zero."""
    return (x + (1 << (times - 1)) - (x < 0)) >> times
