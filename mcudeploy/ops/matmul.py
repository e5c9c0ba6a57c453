"""Matrix product of two activations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mcudeploy.ir.opdef import Axis, Index, KernelCall, LoopNest, ParamValue, PlainOperator
from mcudeploy.ops.common import is_int8, reduced_axis, require_same_dtype
from mcudeploy.ops.requantize import quant, quantization_of, quantize_scale

if TYPE_CHECKING:
    from mcudeploy.ir.graph import Operator, Shape, Tensor


@dataclass(frozen=True, slots=True)
class MatMul(PlainOperator):
    """A (M,1,K) x B (K,1,N) -> (M,1,N), or `batched` A (h,M,K) x B (h,K,N) -> (h,M,N).

    `transpose_b`: B is stored as (N,1,K) or (h,N,K).
    """

    kind: ClassVar[str] = "MatMul"

    batched: bool = False
    transpose_b: bool = False

    def _sizes(self, inputs: tuple[Shape, ...]) -> tuple[int, int, int, int]:
        """(heads, M, K, N). Raises ValueError if the shapes do not fit."""
        a, b = inputs
        if self.batched:
            heads, m, k = a
            b_heads, *b_matrix = b
        else:
            heads, b_heads = 1, 1
            (m, one, k), (b_first, b_one, b_second) = a, b
            if one != 1 or b_one != 1:
                raise ValueError(f"matrices (M,1,K) and (K,1,N) are needed, found {a} and {b}")
            b_matrix = [b_first, b_second]
        n, b_k = b_matrix if self.transpose_b else reversed(b_matrix)
        if b_heads != heads or b_k != k:
            raise ValueError(f"{a} and {b} cannot be multiplied")
        return heads, m, k, n

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Axes h (only batched), m, n and the reduced k; every iteration is a multiply-accumulate."""
        heads, m, k, n = self._sizes(inputs)
        axes = (Axis("m", m), Axis("n", n), reduced_axis("k", k))
        row_m, row_n, row_k = Index.of(m=1), Index.of(n=1), Index.of(k=1)
        b_first, b_second = (row_n, row_k) if self.transpose_b else (row_k, row_n)
        if not self.batched:
            zero = Index()
            reads = ((row_m, zero, row_k), (b_first, zero, b_second))
            return LoopNest(axes, reads, (row_m, zero, row_n), multiplies=True)
        head = Index.of(h=1)
        reads = ((head, row_m, row_k), (head, b_first, b_second))
        return LoopNest((Axis("h", heads), *axes), reads, (head, row_m, row_n), multiplies=True)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """matmul_s8, matmul_f32; with transposed B matmul_s8_bt, matmul_f32_bt."""
        require_same_dtype(*inputs, output)
        _, m, k, n = self._sizes(tuple(tensor.shape for tensor in inputs))
        size: dict[str, ParamValue] = {
            "batched": int(self.batched),
            "m": m if self.batched else 1,
            "k": k,
            "n": n,
        }
        variant = "_bt" if self.transpose_b else ""
        if not is_int8(output):
            return KernelCall(f"matmul_f32{variant}", size)
        return KernelCall(f"matmul_s8{variant}", size | _arithmetic(inputs, output, k))


def _arithmetic(inputs: tuple[Tensor, ...], output: Tensor, k: int) -> dict[str, ParamValue]:
    (a, b), out = (quantization_of(tensor) for tensor in inputs), quantization_of(output)
    largest = k * 255 * 256  # products without the zero point of a; then the term of the zero point of b
    if largest >= 2**31:
        raise ValueError(f"a sum of {k} products may overflow 32 bits")
    multipliers, shift = quantize_scale(np.array([a.scale * b.scale / out.scale], np.float64))
    if (largest * int(multipliers[0])) >> shift >= 2**30:
        raise ValueError(f"the output scale {out.scale} is too small for scales {a.scale} * {b.scale}")
    return {
        "a_zero_point": a.zero_point,
        "b_zero_point": b.zero_point,
        **quant(int(multipliers[0]), shift, out),
    }
