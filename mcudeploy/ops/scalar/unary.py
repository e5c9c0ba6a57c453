"""float32 functions of one value."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.opdef import KernelCall, Params
from mcudeploy.ops.common import ElementwiseOperator, is_int8, require_same_dtype
from mcudeploy.ops.scalar.functions import UNARY


@dataclass(frozen=True, slots=True)
class Unary(ElementwiseOperator):
    """A float32 function of one value, a row of UNARY. clip: to [alpha, beta]."""

    kind: ClassVar[str] = "Unary"
    takes_rows: ClassVar[bool] = True
    links_vectors: ClassVar[bool] = True
    overwritten: ClassVar[tuple[int, ...]] = (0,)

    function: str
    alpha: float = 0.0
    beta: float = 0.0

    def __post_init__(self) -> None:
        if self.function not in UNARY:
            raise ValueError(f"{self.function} is not a function of one value")

    @property
    def stem(self) -> str:
        """The function."""
        return self.function

    def label(self, inputs: tuple[Shape, ...]) -> str:
        """The function."""
        return self.function

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """clip_f32 for clip and relu, else the kernel of the function's name."""
        require_same_dtype(*inputs, output)
        if is_int8(output):
            raise ValueError(f"{self.function} of int8 values is a lookup table")
        size: Params = {"row_elements": output.shape[1] * output.shape[2]}
        if self.function in ("relu", "clip"):
            low, high = (0.0, inf) if self.function == "relu" else (self.alpha, self.beta)
            return KernelCall("clip_f32", {**size, "act.min": low, "act.max": high})
        constants = {"alpha": float(self.alpha), "beta": float(self.beta)}
        return KernelCall(f"{self.function}_f32", {**size, **constants})

    def apply(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """The function of an array; the kernel may round differently."""
        row = UNARY[self.function]
        if row.single:
            return np.asarray(row.compute(x, np.float32(self.alpha), np.float32(self.beta)), np.float32)
        with np.errstate(all="ignore"):
            return np.asarray(row.compute(x.astype(np.float64), self.alpha, self.beta), np.float32)
