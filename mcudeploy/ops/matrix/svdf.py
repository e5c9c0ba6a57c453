"""The time filter of SVDF: the last values of every channel are kept, weighted and summed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import (
    Axis,
    ConstantArray,
    Counts,
    CountsOf,
    Index,
    KernelCall,
    LoopNest,
    Params,
    PlainOperator,
)
from mcudeploy.ops.common import is_int8, reduced_axis, require_same_dtype
from mcudeploy.ops.requantize import INT32_MAX, quant, quantization_of, quantize_scale


@dataclass(frozen=True, slots=True)
class Svdf(PlainOperator):
    """x (1, 1, filters), state (1, filters, memory) -> (1, 1, units): a unit sums filters / units filters.

    The state, which no other operator reads, holds the last `memory` values of every filter: x replaces the
    oldest, and the next run continues from there. Constants: "weights" [filters, memory], float32 or int8;
    "bias" [units], float32, or int32 in units of the scales of state and weights; for int8 also
    "weight_scale" [1].

    Source: Nakkiran et al., "Compressing deep neural networks using a rank-constrained topology", 2015.
    """

    kind: ClassVar[str] = "Svdf"

    units: int

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """A multiply-accumulate for each value of the state."""
        x, state = inputs
        filters = x[2]
        if x != (1, 1, filters) or state[:2] != (1, filters) or filters % self.units:
            raise ValueError(f"{x} and a state {state} do not make {self.units} units")
        rank, memory = filters // self.units, state[2]
        axes = (
            Axis("row", 1),
            Axis("ch", self.units),
            reduced_axis("rank", rank),
            reduced_axis("at", memory),
        )
        row, of_filter = Index.of(row=1), Index.of(ch=rank, rank=1)
        reads = ((row, Index(), of_filter), (row, of_filter, Index.of(at=1)))
        return LoopNest(axes, reads, (row, Index(), Index.of(ch=1)), multiplies=True)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """svdf_s8 or svdf_f32. Raises ValueError if x and the state differ in scale or zero point."""
        require_same_dtype(*inputs, output)
        x, state = inputs
        _, filters, memory = state.shape
        weights, bias = operator.constants["weights"], operator.constants["bias"]
        if weights.shape != (filters, memory) or bias.shape != (self.units,):
            raise ValueError(f"weights {weights.shape}, bias {bias.shape} do not fit a state {state.shape}")
        params: Params = {"weights": weights.ravel(), "bias": bias}
        size: Params = {
            "units": self.units,
            "rank": filters // self.units,
            "memory": memory,
        }
        kernel = "svdf_f32"
        if is_int8(output):
            if quantization_of(x) != quantization_of(state):
                raise ValueError(f"{x.name} needs the quantisation of {state.name}, which stores its values")
            kernel = "svdf_s8"
            params["bias"], arithmetic = _arithmetic(operator, state, output)
            size |= arithmetic
        return KernelCall(kernel, params | size, counts=self._counts(filters, memory))

    def _counts(self, filters: int, memory: int) -> CountsOf:
        def counts(_: Interval) -> Counts:
            return {"calls": 1, "units": self.units, "filters": filters, "products": filters * memory}

        return counts


def _arithmetic(operator: Operator, state: Tensor, output: Tensor) -> tuple[ConstantArray, Params]:
    """The bias with the state's zero point folded in, and the requantisation of sums."""
    weights, bias = (operator.constants[name].astype(np.int64) for name in ("weights", "bias"))
    source, target = quantization_of(state), quantization_of(output)
    by_unit = weights.reshape(len(bias), -1)
    folded = bias - source.zero_point * by_unit.sum(axis=1)
    largest = int((np.abs(folded) + 128 * np.abs(by_unit).sum(axis=1)).max())
    if largest > INT32_MAX:
        raise ValueError("its sums may overflow 32 bits")
    scale = source.scale * float(operator.constants["weight_scale"][0]) / target.scale
    multipliers, shift = quantize_scale(np.array([scale]))
    if (largest * int(multipliers[0])) >> shift >= 2**30:
        raise ValueError(f"the output scale {target.scale} is too small for its sums")
    return folded.astype(np.int32), quant(int(multipliers[0]), shift, target)
