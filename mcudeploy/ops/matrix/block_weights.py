"""Packed weights, of 2, 4 or 8 bits: dense layers of floats, and the gathering of rows of a table.

Weights [K, depth] have a scale, and perhaps a zero point, for each block along the depth of each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Axis, ConstantArray, Counts, Index, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import ELEMENTWISE, merged, reduced_axis, scaled, spatial_axes
from mcudeploy.ops.conv.packing import GROUP, pack_fours, padded

BITS = (2, 4, 8)
"""Bits of a packed weight."""
BLOCK_UNIT = 4
"""Blocks have a multiple of this number of values."""
_WORD = 32
_PIXELS = 4
"""Pixels that are multiplied together, with weights that are widened in scratch."""
_WIDENED = 32
"""Depth of the weights that are widened at a time."""


@dataclass(frozen=True, slots=True)
class BlockDense(PlainOperator):
    """y[r, c, k] = clip(bias[k] + sum over i of x[r, c, i] * w[k, i]) of floats, with packed weights w.

    x (H, W, depth) -> y (H, W, K). Constants: `weights` int8 [K, depth], in the range of `bits` bits; `scale`
    float32 [K, blocks]; `zero` int8 [K, blocks], and `bias` float32 [K], absent if all are 0. w is scale *
    (weights - zero). A block has `block` values, a multiple of 4; the last block of a row has the rest.
    """

    kind: ClassVar[str] = "BlockDense"
    named: ClassVar[str] = "dense"

    out_channels: int
    block: int
    bits: int
    low: float = -inf
    high: float = inf

    def label(self, inputs: tuple[Shape, ...]) -> str:
        """Its bits and blocks."""
        return f"dense, {self.bits} bits in blocks of {self.block}"

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """A pixel of the output reads the pixel at its place."""
        ((rows, cols, depth),) = inputs
        axes = Axis("row", rows), Axis("col", cols), Axis("k", self.out_channels), reduced_axis("c", depth)
        read, write = ((Index.of(row=1), Index.of(col=1), last) for last in (Index.of(c=1), Index.of(k=1)))
        return LoopNest(axes, (read,), write, multiplies=True)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `dense_f32_blocks`. Raises ValueError for constants that do not fit."""
        rows, cols, depth = inputs[0].shape
        arrays = packed_blocks(operator, (self.out_channels, depth), self.block, self.bits)
        bias = operator.constants.get("bias")
        arrays["bias"] = None if bias is None else pack_fours(np.ascontiguousarray(bias, np.float32), 1)
        params: Params = arrays | {
            "dims.input_channels": depth,
            "dims.output_cols": cols,
            "dims.output_channels": self.out_channels,
            "block": self.block,
            "bits": self.bits,
            "act.min": self.low,
            "act.max": self.high,
        }
        groups = padded(self.out_channels, GROUP) // GROUP
        each: Counts = {
            "groups": groups,
            "blocks": groups * -(-depth // self.block),
            "values": groups * depth,
        }
        if arrays["zero"] is not None:
            each["totals"] = groups * depth

        def counts(rows: Interval) -> Counts:
            fours, ones = divmod(len(rows) * cols, _PIXELS)
            together = {f"{name}_4": count for name, count in each.items()}
            return {"calls": 1} | merged(scaled(each, ones), scaled(together, fours))

        widens = self.bits != 4 or rows * cols >= _PIXELS
        scratch = _WIDENED * GROUP * output.dtype.size_bytes if widens else 0
        return KernelCall("dense_f32_blocks", params, scratch, mode=str(self.bits), counts=counts)


@dataclass(frozen=True, slots=True)
class GatherBlocks(PlainOperator):
    """Row i of the output is row indices[i] of a table of packed weights, as floats.

    The input has the indices, int32 (1, 1, count): negative ones count from the end, and those outside are
    clamped. The table (rows, width) has the constants of BlockDense, with K = rows and depth = width.
    """

    kind: ClassVar[str] = "GatherBlocks"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT32})

    width: int
    block: int
    bits: int

    def indexed_rows(self, operator: Operator, inputs: tuple[Tensor, ...]) -> int | None:
        """The rows of the table."""
        return len(operator.constants["weights"])

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """A row of the output reads one index."""
        rows, cols, count = inputs[0]
        if (rows, cols) != (1, 1):
            raise ValueError(f"the indices are a vector, found {inputs[0]}")
        indices = Index(), Index(), Index.of(row=1)
        return LoopNest(spatial_axes((count, 1, self.width)), (indices,), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `gather_rows_blocks`. Raises ValueError for constants that do not fit."""
        if (inputs[0].dtype, output.dtype) != (DType.INT32, DType.FLOAT32):
            raise ValueError(f"it takes int32 and writes float32, not {inputs[0].dtype}, {output.dtype}")
        rows = len(operator.constants["weights"])
        sizes = {"rows": rows, "width": self.width, "block": self.block, "bits": self.bits}
        each: Counts = {"rows": 1, "blocks": -(-self.width // self.block), "values": self.width}
        return KernelCall(
            "gather_rows_blocks",
            packed_blocks(operator, (rows, self.width), self.block, self.bits) | sizes,
            counts=lambda rows: {"calls": 1} | scaled(each, len(rows)),
        )


def packed_blocks(operator: Operator, shape: tuple[int, int], block: int, bits: int) -> Params:
    """Return weights, scales and zero points in the layout of mcud_blocks_f32.h; `shape` is (K, depth).

    Raises ValueError if they do not fit the shape, the blocks or the bits.
    """
    weights, scale, zero = (operator.constants.get(name) for name in ("weights", "scale", "zero"))
    parts = shape[0], -(-shape[1] // max(block, 1))
    if weights is None or scale is None or weights.shape != shape or scale.shape != parts:
        raise ValueError(f"weights {shape} in blocks of {block} need scales {parts}")
    if zero is not None and zero.shape != parts:
        raise ValueError(f"the zero points are {zero.shape}, not {parts}")
    if block < 1 or block % BLOCK_UNIT or bits not in BITS:
        raise ValueError(f"{bits} bits in blocks of {block} are not {BITS} bits in multiples of {BLOCK_UNIT}")
    if weights.dtype != np.int8 or weights.min() < -(1 << bits - 1) or weights.max() >= 1 << bits - 1:
        raise ValueError(f"weights do not fit {bits} bits")
    return {
        "weights": _words(weights, bits),
        "scale": pack_fours(np.ascontiguousarray(scale, np.float32), 1),
        "zero": None if zero is None else pack_fours(np.ascontiguousarray(zero, np.int8), 1),
    }


def _words(weights: NDArray[Any], bits: int) -> ConstantArray:
    """int8 [K, depth] -> words [fours of channels][...]: integers of four channels at each depth."""
    fours = pack_fours(np.ascontiguousarray(weights, np.int8), 1)[0]  # [fours][depth][4]
    integers = fours.reshape(len(fours), -1).view(np.uint8) & np.uint8((1 << bits) - 1)
    per_byte = 8 // bits
    full = np.pad(integers, ((0, 0), (0, -integers.shape[1] % (_WORD // bits))))
    parts = full.reshape(len(full), -1, per_byte)
    packed = np.zeros(parts.shape[:2], np.uint8)
    for place in range(per_byte):
        packed |= parts[:, :, place] << np.uint8(place * bits)
    return packed.view("<i4").astype(np.int32)


PACKED = BlockDense | GatherBlocks
"""The families whose weights stay packed."""


def packed_bytes(operator: Operator) -> int:
    """Return the bytes in flash of weights, scales and zero points, without padding of groups and words."""
    assert isinstance(operator.op, PACKED)
    constants = operator.constants
    others = sum(constants[name].nbytes for name in ("scale", "zero") if name in constants)
    return constants["weights"].size * operator.op.bits // 8 + others
