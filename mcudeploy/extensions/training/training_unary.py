"""Operators of a training step: gradients of functions of one value."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal

import numpy as np

from mcudeploy.extensions.training.training_operators import MaskedGradient, require_floats
from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.opdef import KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import ELEMENTWISE, spatial_axes

SmoothFunction = Literal["swish", "gelu", "erf", "softplus"]
_SMOOTH_FUNCTIONS: tuple[SmoothFunction, ...] = ("swish", "gelu", "erf", "softplus")
"""In the order of MCUD_SLOPE_* of the kernel."""


@dataclass(frozen=True, slots=True)
class Slope:
    """The slope of a function by a value v: the result of the function if `of_result`, else its argument.

    The slope is lower[0] + lower[1] * v where v <= low, else `upper` where v >= high, and else
    middle[0] + middle[1] * v + middle[2] * v^2.
    """

    low: float = -inf
    high: float = inf
    lower: tuple[float, float] = (0.0, 0.0)
    middle: tuple[float, float, float] = (0.0, 0.0, 0.0)
    upper: float = 0.0
    of_result: bool = True

    @property
    def numbers(self) -> dict[str, float]:
        """All numbers, by their names in the kernel and in the ONNX function."""
        return {
            "low": self.low,
            "high": self.high,
            "lower_0": self.lower[0],
            "lower_1": self.lower[1],
            "middle_0": self.middle[0],
            "middle_1": self.middle[1],
            "middle_2": self.middle[2],
            "upper": self.upper,
        }

    @classmethod
    def of_numbers(cls, numbers: dict[str, float]) -> Slope:
        """Return the slope with these `numbers`."""
        return cls(
            numbers["low"],
            numbers["high"],
            (numbers["lower_0"], numbers["lower_1"]),
            (numbers["middle_0"], numbers["middle_1"], numbers["middle_2"]),
            numbers["upper"],
        )


@dataclass(frozen=True, slots=True)
class PiecewiseGradient(PlainOperator):
    """The first input, a gradient, times the slope by the second input, the values v of `Slope`."""

    kind: ClassVar[str] = "PiecewiseGradient"
    named: ClassVar[str] = "unary_gradient"
    overwritten: ClassVar[tuple[int, ...]] = (0, 1)

    slope: Slope

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Each element reads the elements at its place. Raises ValueError for unequal shapes."""
        return _loops(inputs)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `piecewise_f32_gradient`."""
        require_floats(*inputs, output)
        size: Params = {"row_elements": output.shape[1] * output.shape[2]}
        return KernelCall("piecewise_f32_gradient", size | self.slope.numbers)


@dataclass(frozen=True, slots=True)
class SmoothGradient(PlainOperator):
    """The first input, a gradient, times the slope of a function at its argument, the second input.

    `alpha` is that of swish, x / (1 + exp(-alpha * x)).
    """

    kind: ClassVar[str] = "SmoothGradient"
    named: ClassVar[str] = "unary_gradient"
    overwritten: ClassVar[tuple[int, ...]] = (0, 1)

    function: SmoothFunction
    alpha: float = 1.0

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Each element reads the elements at its place. Raises ValueError for unequal shapes."""
        return _loops(inputs)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `smooth_f32_gradient`."""
        require_floats(*inputs, output)
        fields: Params = {
            "row_elements": output.shape[1] * output.shape[2],
            "function": _SMOOTH_FUNCTIONS.index(self.function),
            "alpha": self.alpha,
        }
        return KernelCall("smooth_f32_gradient", fields)


@dataclass(frozen=True, slots=True)
class SlopedGradient(PlainOperator):
    """The first input, a gradient (H, W, C), where the second input, a ClipMask, is 1.

    Elsewhere the gradient times constants["slopes"], float32 [C].
    """

    kind: ClassVar[str] = "SlopedGradient"
    named: ClassVar[str] = "unary_gradient"
    overwritten: ClassVar[tuple[int, ...]] = (0,)

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """The loop nest of MaskedGradient."""
        return MaskedGradient().loops(inputs)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `sloped_gradient_f32`.

        Raises ValueError for a mask of another type than int8, and for another number of slopes.
        """
        require_floats(inputs[0], output)
        if inputs[1].dtype != "int8":
            raise ValueError("bits are stored as int8")
        slopes = operator.constants["slopes"]
        _, cols, channels = output.shape
        if slopes.shape != (channels,) or slopes.dtype != np.float32:
            raise ValueError(f"{slopes.dtype} slopes {slopes.shape} are not those of {channels} channels")
        params: Params = {"slopes": slopes, "cols": cols, "channels": channels}
        elements = cols * channels
        return KernelCall(
            "sloped_gradient_f32",
            params,
            counts=lambda rows: {
                "calls": 1,
                "rows": len(rows),
                "pixels": len(rows) * cols,
                "values": len(rows) * elements,
            },
        )


def _loops(inputs: tuple[Shape, ...]) -> LoopNest:
    gradient, values = inputs
    if gradient != values:
        raise ValueError(f"a gradient {gradient} is not of {values}")
    return LoopNest(spatial_axes(gradient), (ELEMENTWISE, ELEMENTWISE), ELEMENTWISE)
