"""Long short-term memory in integers, with the arithmetic of TFLite."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.int16.int16 import TwiceScale
from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.opdef import ConstantArray, Counts, CountsOf, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.conv.conv_constants import FOUR
from mcudeploy.ops.conv.packing import GROUP, pack_blocks, padded
from mcudeploy.ops.matrix.recurrent import Recurrent
from mcudeploy.ops.requantize import INT32_MAX

LstmResult = Literal["steps", "last"]
"""The result: h of every step, or h of the last step."""

LSTM_GATES = 4
GATE_BITS = 3
"""Integer bits of the sums of a gate."""
MOST_CELL_BITS = 6
NO_CLIP = 2**15
_MOST_EXPONENT = 1
"""Largest exponent of a scale that certainly takes the product of two 15-bit values to an int32."""
_GATE_BYTES = 2
_STEPS_OF_INT8 = 255


@dataclass(frozen=True, slots=True)
class LstmInt8(PlainOperator):
    """An LSTM over x (1, steps, inputs) int8, with the states h int8 and c int16 of (1, 1, hidden).

    The next run continues from the states after the last step; no other operator reads them. The result is
    (1, steps, hidden), h of every step, or (1, 1, hidden), h of the last step.
    Constants, for the gates input, forget, candidate, output in turn: "weights" int8 [4 * hidden, inputs],
    "recurrent" int8 [4 * hidden, hidden], "bias" int32 [4 * hidden] in units of the product with x.

    `scales`: from sums to gates with GATE_BITS integer bits, four for products with x, then four for products
    with h. `result_scale`, `zero_point`: of the computed h; `zero_points`: of x, and of h as the gates read
    it. The cell state has `cell_bits` integer bits and stays within `clip`.
    """

    kind: ClassVar[str] = "LstmInt8"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT16})

    hidden: int
    scales: tuple[TwiceScale, ...]
    result_scale: TwiceScale
    zero_point: int
    zero_points: tuple[int, int]
    cell_bits: int
    clip: int = NO_CLIP
    result: LstmResult = "steps"

    def __post_init__(self) -> None:
        if len(self.scales) != 2 * LSTM_GATES:
            raise ValueError(f"{len(self.scales)} scales")
        require_states(self.cell_bits, self.result_scale)

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """The loop nest of Recurrent."""
        return Recurrent("lstm", self.hidden, self.result, keeps=True).loops(inputs)

    def last_state(self, steps: int) -> tuple[int, LstmInt8] | None:
        """The last of these steps, and the operator that returns h of that step alone."""
        if self.result != "steps":
            return None
        return steps - 1, replace(self, result="last")

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """lstm_s8. Raises ValueError for sums that could overflow."""
        types = [tensor.dtype for tensor in (*inputs, output)]
        if types != [DType.INT8, DType.INT8, DType.INT16, DType.INT8]:
            raise ValueError(f"{operator.name}: its tensors are {', '.join(types)}")
        (_, steps, depth), cells = inputs[0].shape, padded(self.hidden, FOUR)
        weights, recurrent = (operator.constants[name] for name in ("weights", "recurrent"))
        rows = LSTM_GATES * self.hidden
        if weights.shape != (rows, depth) or recurrent.shape != (rows, self.hidden):
            raise ValueError(f"weights {weights.shape} and {recurrent.shape} do not fit {self.hidden} cells")
        biases = np.stack(
            [
                self._bias(
                    weights, self.zero_points[0], self.scales[:LSTM_GATES], operator.constants["bias"]
                ),
                self._bias(
                    recurrent, self.zero_points[1], self.scales[LSTM_GATES:], np.zeros(rows, np.int32)
                ),
            ]
        )

        by_gate = biases.reshape(2, LSTM_GATES, self.hidden)
        filled = np.pad(by_gate, ((0, 0), (0, 0), (0, cells - self.hidden)))
        scales = np.array([(scale.multiplier, scale.exponent) for scale in self.scales], np.int32)
        params: Params = {
            "input_weights": packed_gates(weights),
            "recurrent_weights": packed_gates(recurrent),
            "biases": filled.reshape(-1).astype(np.int32),
            "scales": scales.reshape(-1),
            "steps": steps,
            "inputs": depth,
            "hidden": self.hidden,
            "last": int(self.result == "last"),
            "cell_bits": self.cell_bits,
            "cell_clip": self.clip,
            **self.result_scale.params(),
            "zero_point": self.zero_point,
        }
        return KernelCall(
            "lstm_s8", params, _GATE_BYTES * LSTM_GATES * cells, counts=self._counts(steps, depth)
        )

    def _bias(
        self, weights: ConstantArray, zero_point: int, scales: tuple[TwiceScale, ...], bias: ConstantArray
    ) -> NDArray[np.int64]:
        """The bias with the zero point folded in. Raises ValueError if a sum could overflow."""
        integers = weights.astype(np.int64)
        folded = bias.astype(np.int64) - zero_point * integers.sum(axis=1)
        largest = np.abs(bias.astype(np.int64)) + _STEPS_OF_INT8 * np.abs(integers).sum(axis=1)
        shifts = np.repeat([max(scale.exponent, 0) for scale in scales], self.hidden)
        factors = np.repeat(
            [scale.multiplier * 2.0 ** (scale.exponent - 31) for scale in scales], self.hidden
        )
        if np.any(largest << shifts > INT32_MAX) or np.any(largest * factors > INT32_MAX // 2):
            raise ValueError("sums of its gates may overflow 32 bits, which TFLite does not expect")
        return np.asarray(folded, np.int64)

    def _counts(self, steps: int, depth: int) -> CountsOf:
        fours = LSTM_GATES * -(-self.hidden // FOUR)
        lengths = (depth, self.hidden)
        counts: Counts = {
            "calls": 1,
            "steps": steps,
            "cells": steps * self.hidden,
            "fours": 2 * steps * fours,
            "groups": steps * fours * sum(length // GROUP for length in lengths),
            "tails": steps * fours * sum(length % GROUP > 0 for length in lengths),
        }
        return lambda _: counts


def require_states(cell_bits: int, result_scale: TwiceScale) -> None:
    """Raise ValueError for bits that a cell state cannot have, or a scale by which h could overflow."""
    if not 0 <= cell_bits <= MOST_CELL_BITS:
        raise ValueError(f"a cell state with {cell_bits} bits of integers")
    if result_scale.exponent > _MOST_EXPONENT:
        raise ValueError("the scale of its state is too small: it could overflow 32 bits")


def packed_gates(weights: ConstantArray) -> NDArray[np.int32]:
    """The weights int8 [4 * hidden, depth] packed in records of four cells, gate by gate."""
    return pack_blocks(weights.astype(np.int8), LSTM_GATES, 1, FOUR).reshape(-1)
