"""Normalisation along channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from mcudeploy.ir.opdef import Index, KernelCall, LoopNest, PlainOperator
from mcudeploy.ops.common import ELEMENTWISE, is_int8, reduced_axis, require_same_dtype, spatial_axes

if TYPE_CHECKING:
    from mcudeploy.ir.graph import Operator, Shape, Tensor


@dataclass(frozen=True, slots=True)
class LayerNorm(PlainOperator):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias along channels, float32.

    Constants: "scale" and "bias", float32[channels]. Without `centred`, the mean is taken as 0 (RMS
    normalisation).
    """

    kind: ClassVar[str] = "LayerNorm"

    epsilon: float
    centred: bool = True

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """An element reads all channels of its pixel."""
        (shape,) = inputs
        axes = (*spatial_axes(shape), reduced_axis("all", shape[2]))
        return LoopNest(axes, ((Index.of(row=1), Index.of(col=1), Index.of(all=1)),), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """layer_norm_f32. Raises ValueError for int8."""
        require_same_dtype(*inputs, output)
        if is_int8(output):
            raise ValueError("a normalisation is for float32 only")
        _, cols, channels = output.shape
        constants = {name: operator.constants[name] for name in ("scale", "bias")}
        if any(array.shape != (channels,) for array in constants.values()):
            raise ValueError(f"scale and bias need {channels} elements")
        size = {"groups": cols, "count": channels, "centred": int(self.centred)}
        return KernelCall("layer_norm_f32", {**constants, **size, "epsilon": float(self.epsilon)})

    def overwrites(self, inputs: tuple[Tensor, ...], output: Tensor) -> tuple[int, ...]:
        """The input: an element is last read when it is written."""
        return (0,)
