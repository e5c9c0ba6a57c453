"""Elementwise functions of two integers, with broadcasting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.opdef import KernelCall, Params
from mcudeploy.ops.common import WIDE_INTEGERS, within
from mcudeploy.ops.scalar.elementwise import BroadcastOperator, broadcast_strides, pixel_counts

IntegerFunction = Literal[
    "add", "sub", "mul", "div", "mod", "fmod", "pow", "max", "min",
    "less", "less_equal", "equal", "keep", "drop", "and", "or", "xor", "shift_left", "shift_right",
]  # fmt: skip
"""Functions of IntegerBinary. Overflow wraps around, and division by 0 yields 0. mod has the sign of the
second operand, fmod that of the first. keep yields the second operand where the first is not 0, drop where
it is 0; elsewhere both yield 0.
"""
_FUNCTIONS: tuple[IntegerFunction, ...] = get_args(IntegerFunction)


@dataclass(frozen=True, slots=True)
class IntegerBinary(BroadcastOperator):
    """A function of two operands of int8, int16 or int32 each; the result is of one of these types.

    A constant is int32. `offsets` are added to the stored bytes of both operands and of the result: 128 for
    uint8.
    """

    kind: ClassVar[str] = "IntegerBinary"
    takes_rows: ClassVar[bool] = True
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS

    function: IntegerFunction
    constant_operand: int | None = None
    constant_shape: Shape | None = None
    offsets: tuple[int, int, int] = (0, 0, 0)

    def label(self, inputs: tuple[Shape, ...]) -> str:
        """The function."""
        return self.function

    def divisor(self, operator: Operator) -> int:
        """The least constant divisor of `mod`; 0 for other functions."""
        remainder = self.function == "mod" and self.constant_operand == 1
        return int(operator.constants["constant"].min()) if remainder else 0

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `integer_binary`. Raises ValueError for floats."""
        if any(tensor.dtype == "float32" for tensor in (*inputs, output)):
            raise ValueError(f"{self.function} is for integers, not for float32")
        pointers = self.pointers(self.checked_constant(operator, np.int32))
        strides = broadcast_strides(self.operands(tuple(tensor.shape for tensor in inputs)))
        rest = iter(inputs)
        sizes = [4 if self.constant_operand == at else next(rest).dtype.size_bytes for at in (0, 1)]
        params: Params = {
            **pointers,
            **within("broadcast", strides),
            "function": _FUNCTIONS.index(self.function),
            "a_bytes": sizes[0],
            "b_bytes": sizes[1],
            "out_bytes": output.dtype.size_bytes,
        }
        names = ("a_offset", "b_offset", "out_offset")
        return KernelCall(
            "integer_binary",
            params | dict(zip(names, self.offsets, strict=True)),
            counts=pixel_counts(strides),
        )
