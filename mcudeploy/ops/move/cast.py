"""Conversion between element types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcudeploy.ir.graph import DType, Operator, Tensor
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ops.common import WIDE_INTEGERS, ElementwiseOperator

_KERNELS = {
    ("float32", "int32"): "f32_to_s32",
    ("int16", "float32"): "s16_to_f32",
    ("int16", "int32"): "s16_to_s32",
    ("int32", "float32"): "s32_to_f32",
    ("int32", "int16"): "s32_to_s16",
    ("int32", "int8"): "s32_to_s8",
}


@dataclass(frozen=True, slots=True)
class Cast(ElementwiseOperator):
    """Integers to the nearest float32; float32 to int32 without its fraction, saturated, NaN to 0.

    int32 to int16 and int8 keeps the lowest bits.
    """

    kind: ClassVar[str] = "Cast"
    takes_rows: ClassVar[bool] = True
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """The kernel of the two types. Raises ValueError for others."""
        name = _KERNELS.get((inputs[0].dtype, output.dtype))
        if name is None:
            raise ValueError(f"a conversion from {inputs[0].dtype} to {output.dtype} is not supported")
        return KernelCall(name, {"row_elements": output.shape[1] * output.shape[2]})
