"""Long short-term memory of int16 activations, with the arithmetic of TensorFlow Lite Micro."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.int16.int16 import INT16, TwiceScale, logistic_table, require_int16
from mcudeploy.extensions.int16.lstm_int8 import LSTM_GATES, NO_CLIP, LstmResult, packed_gates, require_states
from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.opdef import ConstantArray, Counts, CountsOf, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.conv.conv_constants import FOUR
from mcudeploy.ops.conv.packing import GROUP, padded
from mcudeploy.ops.matrix.recurrent import Recurrent

_VALUE_BYTES = 2
_SUM_BITS = 62
_MOST_SHIFT = 15


@dataclass(frozen=True, slots=True)
class LstmInt16(PlainOperator):
    """The LSTM of LstmInt8 with x, h and the result in int16, without zero points.

    The constants are those of LstmInt8, but the bias is int32 [2, 4 * hidden], the lower and the upper words.
    Sums are multiplied by `multipliers` / 2^`shifts`, as in SumScales: four values for the products with x,
    then four for the products with h.
    """

    kind: ClassVar[str] = "LstmInt16"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT16})

    hidden: int
    multipliers: tuple[int, ...]
    shifts: tuple[int, ...]
    left_shift: int
    result_scale: TwiceScale
    cell_bits: int
    clip: int = NO_CLIP
    result: LstmResult = "steps"

    def __post_init__(self) -> None:
        if {len(self.multipliers), len(self.shifts)} != {2 * LSTM_GATES}:
            raise ValueError(f"{len(self.multipliers)} multipliers, {len(self.shifts)} shifts")
        require_states(self.cell_bits, self.result_scale)

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """The loop nest of Recurrent."""
        return Recurrent("lstm", self.hidden, self.result, keeps=True).loops(inputs)

    def last_state(self, steps: int) -> tuple[int, LstmInt16] | None:
        """The last of these steps, and the operator that returns h of that step alone."""
        if self.result != "steps":
            return None
        return steps - 1, replace(self, result="last")

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """lstm_s16. Raises ValueError for sums that could overflow."""
        require_int16(operator.name, *inputs, output)
        (_, steps, depth), cells = inputs[0].shape, padded(self.hidden, FOUR)
        weights, recurrent, bias = (operator.constants[name] for name in ("weights", "recurrent", "bias"))
        rows = LSTM_GATES * self.hidden
        if (
            weights.shape != (rows, depth)
            or recurrent.shape != (rows, self.hidden)
            or bias.shape != (2, rows)
        ):
            raise ValueError(f"weights {weights.shape} and {recurrent.shape} do not fit {self.hidden} cells")
        self._require_sums(weights, recurrent, bias)
        by_gate = np.pad(bias.reshape(2, LSTM_GATES, -1), ((0, 0), (0, 0), (0, cells - self.hidden)))
        scales = np.array([self.multipliers, self.shifts], np.int32).T
        params: Params = {
            "input_weights": packed_gates(weights),
            "recurrent_weights": packed_gates(recurrent),
            "biases": by_gate.reshape(-1).astype(np.int32),
            "scales": scales.reshape(-1),
            "table": logistic_table(),
            "steps": steps,
            "inputs": depth,
            "hidden": self.hidden,
            "last": int(self.result == "last"),
            "left_shift": self.left_shift,
            "cell_bits": self.cell_bits,
            "cell_clip": self.clip,
            **self.result_scale.params(),
        }
        scratch = _VALUE_BYTES * (padded(max(depth, self.hidden), FOUR) + LSTM_GATES * cells)
        return KernelCall("lstm_s16", params, scratch, counts=self._counts(steps, depth))

    def _require_sums(self, weights: ConstantArray, recurrent: ConstantArray, bias: ConstantArray) -> None:
        """Raise ValueError if a sum could overflow."""
        upper = bias[1].astype(np.float64) * 2.0**32
        largest = max(
            _largest(weights, np.abs(upper) + 2.0**32), _largest(recurrent, np.zeros(len(recurrent)))
        )
        if self.left_shift > _MOST_SHIFT or largest * 2.0**self.left_shift >= 2.0**_SUM_BITS:
            raise ValueError("sums of its gates may overflow 64 bits: convert the model with larger scales")

    def _counts(self, steps: int, depth: int) -> CountsOf:
        fours = LSTM_GATES * -(-self.hidden // FOUR)
        groups = [-(-length // GROUP) for length in (depth, self.hidden)]
        counts: Counts = {
            "calls": 1,
            "steps": steps,
            "cells": steps * self.hidden,
            "values": steps * (depth + self.hidden),
            "fours": 2 * steps * fours,
            "groups": steps * fours * sum(groups),
        }
        return lambda _: counts


def _largest(weights: ConstantArray, bias: NDArray[np.float64]) -> float:
    """The largest magnitude of a sum of products with int16 values and a bias."""
    products = np.abs(weights.astype(np.float64)).sum(axis=1) * -float(INT16.min)
    return float((products + bias).max())
