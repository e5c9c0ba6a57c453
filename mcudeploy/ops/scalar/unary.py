"""float32 functions of one value."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, pi, sqrt
from typing import ClassVar, Literal

from mcudeploy.ir.graph import Operator, Tensor
from mcudeploy.ir.opdef import KernelCall, ParamValue
from mcudeploy.ops.common import ElementwiseOperator, is_int8, require_same_dtype

UnaryFunction = Literal[
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "celu", "clip", "cos", "cosh",
    "elu", "erf", "exp", "floor", "gelu", "gelu_tanh", "half", "hard_sigmoid", "hard_swish",
    "leaky_relu", "log", "logical_not", "mish", "neg", "power", "reciprocal", "relu", "round", "selu",
    "shrink", "sigmoid", "sign", "sin", "sinh", "softplus", "softsign", "sqrt", "square", "swish",
    "tan", "tanh", "thresholded_relu",
]  # fmt: skip
"""All but relu, which is a clip, have a kernel of their name; its header defines alpha and beta."""

GELU_SLOPE, GELU_CUBIC = sqrt(2 / pi), 0.044715
"""Of gelu_tanh: x / 2 * (1 + tanh(slope * (x + cubic * x^3)))."""


@dataclass(frozen=True, slots=True)
class Unary(ElementwiseOperator):
    """A float32 function of one value. clip: to [alpha, beta]; others are defined in the header of their
    kernel.
    """

    kind: ClassVar[str] = "Unary"
    overwritten: ClassVar[tuple[int, ...]] = (0,)

    function: UnaryFunction
    alpha: float = 0.0
    beta: float = 0.0

    @property
    def stem(self) -> str:
        """The function."""
        return self.function

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """clip_f32 for clip and relu, else the kernel of the function's name."""
        require_same_dtype(*inputs, output)
        if is_int8(output):
            raise ValueError(f"{self.function} of int8 values is a lookup table")
        size: dict[str, ParamValue] = {"row_elements": output.shape[1] * output.shape[2]}
        if self.function in ("relu", "clip"):
            low, high = (0.0, inf) if self.function == "relu" else (self.alpha, self.beta)
            return KernelCall("clip_f32", {**size, "act.min": low, "act.max": high})
        constants = {"alpha": float(self.alpha), "beta": float(self.beta)}
        return KernelCall(f"{self.function}_f32", {**size, **constants})
