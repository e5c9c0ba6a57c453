"""Conversion between int32 and float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from mcudeploy.ir.opdef import KernelCall, LoopNest, PlainOperator
from mcudeploy.ops.common import elementwise_loops

if TYPE_CHECKING:
    from mcudeploy.ir.graph import Operator, Shape, Tensor

_KERNELS = {("int32", "float32"): "s32_to_f32", ("float32", "int32"): "f32_to_s32"}


@dataclass(frozen=True, slots=True)
class Cast(PlainOperator):
    """int32 to the nearest float32; float32 to int32 without its fraction, saturated, NaN to 0."""

    kind: ClassVar[str] = "Cast"

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Each element reads the element at its place."""
        return elementwise_loops(inputs)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """s32_to_f32 or f32_to_s32. Raises ValueError for other types."""
        name = _KERNELS.get((inputs[0].dtype, output.dtype))
        if name is None:
            raise ValueError(
                f"Cast is between int32 and float32, not from {inputs[0].dtype} to {output.dtype}"
            )
        return KernelCall(name, {"row_elements": output.shape[1] * output.shape[2]})
