"""Matrix product of two int16 activations, with the arithmetic of TFLite's reference kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcudeploy.extensions.int16.int16 import require_int16
from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import scaled
from mcudeploy.ops.matrix.matmul import MatMul

_COLUMNS = 4
_MOST_DEPTH = 2**16
"""Number of products whose sum, shifted left by _MOST_SHIFT, certainly fits 62 bits."""
_MOST_SHIFT = 15


@dataclass(frozen=True, slots=True)
class MatMulInt16(PlainOperator):
    """The MatMul of int16 values: sums times multiplier / 2^shift, ties rounded up; see SumScales."""

    kind: ClassVar[str] = "MatMulInt16"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT16})

    multiplier: int
    shift: int
    left_shift: int = 0
    batched: bool = False
    transpose_b: bool = False

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """The loop nest of MatMul."""
        return MatMul(self.batched, self.transpose_b).loops(inputs)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """matmul_s16. Raises ValueError for sums that could overflow."""
        require_int16(operator.name, *inputs, output)
        k, n = inputs[0].shape[2], output.shape[2]
        if k > _MOST_DEPTH or self.left_shift > _MOST_SHIFT:
            raise ValueError(f"{operator.name}: a sum of {k} products times 2^{self.left_shift} may overflow")
        params: Params = {
            "batched": int(self.batched),
            "m": output.shape[1],
            "k": k,
            "n": n,
            "transposed": int(self.transpose_b),
            "left_shift": self.left_shift,
            "multiplier": self.multiplier,
            "shift": self.shift,
        }
        blocks = n if self.transpose_b else -(-n // _COLUMNS)
        line = {"blocks": blocks, "block_values": blocks * k, "values": n * k, "results": n}

        def counts(rows: Interval) -> Counts:
            lines = len(rows) * output.shape[1]
            return {"calls": 1, "rows": len(rows), "lines": lines} | scaled(line, lines)

        mode = "bt" if self.transpose_b else "b"
        return KernelCall("matmul_s16", params, mode=mode, counts=counts)
