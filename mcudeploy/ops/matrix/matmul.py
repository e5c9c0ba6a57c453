"""Matrix product of two activations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import Axis, Counts, Index, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import is_int8, merged, reduced_axis, require_same_dtype, scaled
from mcudeploy.ops.conv import conv_counts_mve
from mcudeploy.ops.conv.conv_counts import expanded
from mcudeploy.ops.conv.conv_counts_wide import multiplied, pixel_blocks
from mcudeploy.ops.conv.packing import GROUP, VECTOR, padded
from mcudeploy.ops.requantize import quant, quantization_of, quantize_scale

_LINES = 4
"""Lines that a kernel multiplies at a time: of the first matrix, or of a second one that is transposed."""
_MOST_LINES = 24
"""Lines of the first matrix that matmul_s8_mve multiplies at a time."""
_COLUMNS = 16
"""Columns of a block of the second matrix."""
_FLOAT_COLUMNS = 8
"""Columns that a float kernel multiplies at a time."""


@dataclass(frozen=True, slots=True)
class MatMul(PlainOperator):
    """A (M,h,K) x B (K,h,N) -> (M,h,N), or `batched` A (h,M,K) x B (h,K,N) -> (h,M,N): h products.

    `transpose_b`: B is stored as (N,h,K) or (h,N,K).
    """

    kind: ClassVar[str] = "MatMul"

    batched: bool = False
    transpose_b: bool = False

    def _sizes(self, inputs: tuple[Shape, ...]) -> tuple[int, int, int, int]:
        """(heads, M, K, N). Raises ValueError if the shapes do not fit."""
        a, b = inputs
        if self.batched:
            (heads, m, k), (b_heads, *b_matrix) = a, b
        else:
            (m, heads, k), (b_first, b_heads, b_second) = a, b
            b_matrix = [b_first, b_second]
        n, b_k = b_matrix if self.transpose_b else reversed(b_matrix)
        if b_heads != heads or b_k != k:
            raise ValueError(f"{a} and {b} cannot be multiplied")
        return heads, m, k, n

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Axes h, m, n and the reduced k; every iteration is a multiply-accumulate."""
        heads, m, k, n = self._sizes(inputs)
        axes = (Axis("h", heads), Axis("m", m), Axis("n", n), reduced_axis("k", k))
        in_h, in_m, in_n, in_k = (Index.of(**{axis.name: 1}) for axis in axes)
        b_first, b_second = (in_n, in_k) if self.transpose_b else (in_k, in_n)
        if self.batched:
            reads = ((in_h, in_m, in_k), (in_h, b_first, b_second))
            return LoopNest(axes, reads, (in_h, in_m, in_n), multiplies=True)
        reads = ((in_m, in_h, in_k), (b_first, in_h, b_second))
        return LoopNest(axes, reads, (in_m, in_h, in_n), multiplies=True)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """matmul_s8 or matmul_f32, with transposed B matmul_s8_bt or matmul_f32_bt. int8 has variants."""
        require_same_dtype(*inputs, output)
        heads, m, k, n = self._sizes(tuple(tensor.shape for tensor in inputs))
        size: Params = {
            "batched": int(self.batched),
            "m": output.shape[1],
            "k": k,
            "n": n,
        }
        variant = "_bt" if self.transpose_b else ""
        if not is_int8(output):
            together = _LINES if self.transpose_b else _FLOAT_COLUMNS
            of_line = _float_line(k, n, together)
            return KernelCall(
                f"matmul_f32{variant}",
                size,
                counts=lambda rows: (
                    {"calls": 1, "rows": len(rows)} | scaled(of_line, len(rows) * output.shape[1])
                ),
            )
        params = size | _arithmetic(inputs, output, k)
        line = _lines(k, n) if self.transpose_b else _columns(k, n)

        def counts(rows: Interval) -> Counts:
            lines = len(rows) * output.shape[1]
            return {"calls": 1, "rows": len(rows), "lines": lines} | scaled(line, lines)

        others = self._wide(params, heads, m) + self._by_vectors(params, heads, m)
        return KernelCall(f"matmul_s8{variant}", params, counts=counts, others=others)

    def _wide(self, params: Params, heads: int, m: int) -> tuple[KernelCall, ...]:
        """matmul_s8_wide, if its shift is 32: it widens each second matrix once."""
        if params["quant.shift"] != 32:
            return ()
        k, n = params["k"], params["n"]
        assert isinstance(k, int) and isinstance(n, int)
        pairs = padded(k, GROUP) // 2
        scratch = 4 * (_LINES * pairs + -(-n // 2) * (4 + 2 * pairs))
        widened = self._widened(k, n)
        together = {"four_lines": 1, "four_lines_groups": k // GROUP, "four_lines_rest": int(k % GROUP > 0)}

        def counts(rows: Interval) -> Counts:
            matrices, lines = (len(rows), m) if self.batched else (heads, len(rows))
            blocks = pixel_blocks(lines, _LINES)
            products = multiplied(blocks, n, pairs)
            alone = lines - _LINES * blocks[_LINES]
            read = merged(scaled(expanded(k), alone), scaled(together, blocks[_LINES]))
            each = merged({"matrices": 1}, widened, products, read)
            return {"calls": 1} | scaled(each, matrices)

        params = params | {"transposed": int(self.transpose_b), "pairs": pairs}
        mode = "bt" if self.transpose_b else "b"
        return (KernelCall("matmul_s8_wide", params, scratch, mode=mode, isa=Isa.DSP, counts=counts),)

    def _by_vectors(self, params: Params, heads: int, m: int) -> tuple[KernelCall, ...]:
        """matmul_s8_mve, if its shift is 32: it packs each second matrix once."""
        k, n = params["k"], params["n"]
        assert isinstance(k, int) and isinstance(n, int)
        vectors, fours = conv_counts_mve.whole_vectors(k), -(-n // 4)
        record = 4 * VECTOR * vectors + 32
        if params["quant.shift"] != 32 or 2 * record >= 2**16:  # it scatters by places of 16 bits
            return ()
        lines_of_b = {"b_lines": n, "b_vectors": n * vectors}
        columns_of_b = {"b_lines": k, "b_columns": k * -(-n // (VECTOR // 2))}
        packed = {"records": fours, "record_vectors": fours * vectors}
        packed |= lines_of_b if self.transpose_b else columns_of_b

        def counts(rows: Interval) -> Counts:
            matrices, lines = (len(rows), m) if self.batched else (heads, len(rows))
            chunks, rest = divmod(lines, _MOST_LINES)
            runs = {_MOST_LINES: chunks} | ({rest: 1} if rest else {})
            products = conv_counts_mve.multiplied(runs, n, k, reads_on=False)
            each = {"matrices": 1, "lines": lines, "line_vectors": lines * vectors} | packed | products
            return {"calls": 1} | scaled(each, matrices)

        scratch = fours * record + 2 * VECTOR * vectors
        params = params | {"transposed": int(self.transpose_b)}
        mode = "bt" if self.transpose_b else "b"
        return (KernelCall("matmul_s8_mve", params, scratch, mode=mode, isa=Isa.MVE, counts=counts),)

    def _widened(self, k: int, n: int) -> Counts:
        """Counts of widening a matrix; see mcud_widen_s8.h."""
        fours = k // GROUP
        if self.transpose_b:
            return {"b_lines": n, "b_fours": n * fours, "b_rest": n * int(k % GROUP > 0)}
        columns = n // GROUP
        single = -(-k // GROUP) * n - fours * columns * GROUP
        return {"records": -(-n // 2), "b_fours": fours, "b_columns": fours * columns, "b_single": single}


def _float_line(k: int, n: int, together: int) -> Counts:
    """Counts of a line of the float product, by groups of `together` columns, the last ones singly."""
    blocks, single = divmod(n, together)
    return {"lines": 1, "blocks": blocks, "values": blocks * k, "single": single, "single_values": single * k}


def _lines(k: int, n: int) -> Counts:
    """Counts of a line of the product with a transposed matrix, by four lines of that at a time."""
    blocks = -(-n // _LINES)
    return {
        "blocks": blocks,
        "groups": blocks * (k // GROUP),
        "rest": blocks * (k % GROUP),
        "vectors": blocks * -(-k // 8),
        "results": n,
    }


def _columns(k: int, n: int) -> Counts:
    """Counts of a line of the product, by blocks of columns; see mcud_product_s8.h.

    With vectors, all columns of a block are taken together, else four at a time, the last ones singly.
    """
    blocks, fours, single = -(-n // _COLUMNS), n // 4, n % 4
    last_fours = -(-(n % _COLUMNS) // 4)
    return {
        "blocks": blocks,
        "fours": fours,
        "groups": fours * (k // GROUP),
        "rest": fours * (k % GROUP),
        "single": single,
        "single_values": single * k,
        "block_values": n // _COLUMNS * k,
        "some": last_fours,
        "some_values": last_fours * k,
        "sum_vectors": blocks * -(-k // 16),
        "results": n,
    }


def _arithmetic(inputs: tuple[Tensor, ...], output: Tensor, k: int) -> Params:
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
