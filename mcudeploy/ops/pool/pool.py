"""Maximum and average over windows, which may be whole images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir import graph
from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Axis, AxisKind, Index, KernelCall, LoopNest, Params, PlainOperator, RowsPart
from mcudeploy.ops import requantize
from mcudeploy.ops.common import OFFSET_BYTES, SUM_BYTES, within
from mcudeploy.ops.conv.windows import Windows, sliding, window_text
from mcudeploy.ops.pool.pool_counts import int16_counts, row_counts, window_counts

Ties = Literal["even", "away", "up"]
"""Rounding of a mean halfway between two stored values: to the one at an even distance from the zero point;
away from a stored 0; up.
"""
_ORIGINS: Mapping[Ties, int] = {"away": 0, "up": -128}
"""The stored value from which ties round away; all values are above -128."""


def _pool_loops(pool: MaxPool | AveragePool, inputs: tuple[Shape, ...]) -> LoopNest:
    ((rows, cols, channels),) = inputs
    if min(*pool.kernel_shape, *pool.stride, *pool.dilation, *pool.out_size) < 1:
        raise ValueError("kernel, stride, dilation and output size must be at least 1")
    if min(pool.pads) < 0:
        raise ValueError(f"negative pads {pool.pads} are not supported")
    for dimension, size in enumerate((rows, cols)):
        last = (pool.out_size[dimension] - 1) * pool.stride[dimension] - pool.pads[dimension]
        if last >= size:
            raise ValueError(
                f"the last of {pool.out_size[dimension]} windows begins beyond the {size} inputs"
            )
    axes = (
        Axis("oh", pool.out_size[0]),
        Axis("ow", pool.out_size[1]),
        Axis("c", channels),
        Axis("r", pool.kernel_shape[0], AxisKind.REDUCED),
        Axis("s", pool.kernel_shape[1], AxisKind.REDUCED),
    )
    read = (
        Index.of(oh=pool.stride[0], r=pool.dilation[0], offset=-pool.pads[0]),
        Index.of(ow=pool.stride[1], s=pool.dilation[1], offset=-pool.pads[1]),
        Index.of(c=1),
    )
    return LoopNest(axes, (read,), (Index.of(oh=1), Index.of(ow=1), Index.of(c=1)))


def _pads_on(pool: MaxPool | AveragePool, part: RowsPart) -> tuple[int, int, int, int]:
    """The pads of a pool that computes some rows of an image."""
    below = pool.pads[2] if part.reads.hi == part.source[0] else 0
    return part.above, pool.pads[1], below, pool.pads[3]


def window_fields(pool: MaxPool | AveragePool, source: Tensor) -> Params:
    dims = {
        "input_rows": source.shape[0],
        "input_cols": source.shape[1],
        "channels": source.shape[2],
        "output_cols": pool.out_size[1],
    }
    return within("dims", dims) | sliding(pool.kernel_shape, pool.stride, pool.dilation, pool.pads)


@dataclass(frozen=True, slots=True)
class MaxPool(PlainOperator):
    """y[oh, ow, c] = the largest x under the window; padding never wins.

    x (H, W, C) -> y (out_size[0], out_size[1], C). Pairs are (rows, cols); pads are (top, left, bottom,
    right). `out_size` is stated because it depends on ceil_mode. int8: the output keeps the quantisation.
    """

    kind: ClassVar[str] = "MaxPool"
    takes_rows: ClassVar[bool] = True
    named: ClassVar[str] = "max_pool"

    kernel_shape: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pads: tuple[int, int, int, int]
    out_size: tuple[int, int]

    def on_rows(self, part: RowsPart) -> MaxPool:
        """The pool of these rows, with their pads."""
        return replace(self, pads=_pads_on(self, part), out_size=(len(part.rows), self.out_size[1]))

    def label(self, inputs: tuple[Shape, ...]) -> str:
        """Its windows."""
        return f"max pool {window_text(self.kernel_shape, self.stride)}"

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """One input (H, W, C). Raises ValueError if the windows do not fit it."""
        return _pool_loops(self, inputs)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """maxpool_s8 or maxpool_f32. Raises ValueError if an int8 output has another quantisation."""
        (source,) = inputs
        if source.dtype is not output.dtype or source.quantization != output.quantization:
            raise ValueError(f"{operator.name}: a maximum keeps dtype and quantisation")
        scratch = self.kernel_shape[0] * OFFSET_BYTES
        fields = window_fields(self, source)
        if source.dtype is graph.DType.INT8:
            return KernelCall("maxpool_s8", fields, scratch, counts=window_counts(fields, "maxima"))
        return KernelCall("maxpool_f32", fields, scratch, counts=window_counts(fields, "floats"))


def _multipliers(
    operator: Operator, source: Tensor, output: Tensor, factors: NDArray[np.float64], taps: int
) -> tuple[NDArray[np.int32], int]:
    """Integer multipliers and their shift for int8 means: `factors` times sums of at most `taps` values."""
    read, out = requantize.quantization_of(source), requantize.quantization_of(output)
    scales = factors * read.scale / out.scale
    requantize.check_accumulator(operator.name, np.full(scales.shape, taps * 255, np.int64), scales)
    return requantize.quantize_scale(scales)


@dataclass(frozen=True, slots=True)
class _Mean:
    """Parameters of a mean kernel: multipliers and their shift, zero points of values and results."""

    multipliers: NDArray[np.int32]
    shift: int
    input_zero_point: int
    output_zero_point: int


def _mean(operator: Operator, tensors: tuple[Tensor, Tensor], taps: NDArray[np.int64], ties: Ties) -> _Mean:
    """The multipliers and shift for sums of `taps` values.

    Raises ValueError if sums could overflow, or ties could not be recognised.
    """
    read, out = (requantize.quantization_of(tensor) for tensor in tensors)
    if ties == "even":
        multipliers, shift = _multipliers(operator, *tensors, 1.0 / taps, int(taps.max()))
        return _Mean(multipliers, shift, read.zero_point, out.zero_point)
    if read != out:
        raise ValueError(f"{operator.name}: ties {ties} need the input's quantisation in the output")
    shift = _exact_shift(int(taps.min()), int(taps.max()))
    # Each multiplier is too large by at most 1: ties round away, and no other mean becomes a tie.
    return _Mean(((1 << shift) // taps + 1).astype(np.int32), shift, _ORIGINS[ties], _ORIGINS[ties])


def _exact_shift(least: int, most: int) -> int:
    """A shift for means of `least` to `most` int8 or uint8 values, whose multipliers recognise ties exactly.

    It is 32 if possible, else the smallest. Raises ValueError if there is none.
    """
    fits = [shift for shift in range(1, 63) if (1 << shift) // least < requantize.INT32_MAX]
    exact = [shift for shift in fits if 2 * 255 * most * most < 1 << shift]
    if not exact:
        raise ValueError(f"means of {least} to {most} values cannot be rounded exactly")
    return 32 if 32 in exact else exact[0]


@dataclass(frozen=True, slots=True)
class AveragePool(PlainOperator):
    """y[oh, ow, c] = the mean of x under the window.

    x (H, W, C) -> y (out_size[0], out_size[1], C). Pairs are (rows, cols); pads are (top, left, bottom,
    right). `out_size` is stated because it depends on ceil_mode. The divisor is the number of taps inside the
    image, or with `count_include_pad` inside the image and its pads (the part of a ceil_mode window beyond
    them never counts). int8: input and output may have different quantisations if ties go to even.

    `row_taps`: if the input is a part of an image, the least and the most rows that a window of the whole
    image counts. All parts of the image then have the same factors.
    """

    kind: ClassVar[str] = "AveragePool"
    takes_rows: ClassVar[bool] = True
    named: ClassVar[str] = "average_pool"

    kernel_shape: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pads: tuple[int, int, int, int]
    out_size: tuple[int, int]
    count_include_pad: bool
    ties: Ties = "even"
    row_taps: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.ties != "even" and self.count_include_pad:
            raise ValueError(f"ties {self.ties} are not supported with padding that counts")

    def on_rows(self, part: RowsPart) -> AveragePool:
        """The pool of these rows, with their pads and the `row_taps` of the whole image."""
        counted = self.taps_counted(0, part.source[0])
        taps = min(counted), max(counted)
        size = len(part.rows), self.out_size[1]
        return replace(self, pads=_pads_on(self, part), out_size=size, row_taps=taps)

    def label(self, inputs: tuple[Shape, ...]) -> str:
        """Its windows."""
        return f"average pool {window_text(self.kernel_shape, self.stride)}"

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """One input (H, W, C). Raises ValueError if the windows do not fit it."""
        return _pool_loops(self, inputs)

    def taps_counted(self, dimension: int, size: int) -> tuple[int, ...]:
        """Number of taps in the divisor of every output position along rows (0) or cols (1)."""
        begin, end = self.pads[dimension], self.pads[dimension + 2]
        lo, hi = (-begin, size + end) if self.count_include_pad else (0, size)
        starts = (position * self.stride[dimension] - begin for position in range(self.out_size[dimension]))
        step = self.dilation[dimension]
        taps = range(self.kernel_shape[dimension])
        return tuple(sum(lo <= start + step * tap < hi for tap in taps) for start in starts)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """avgpool_s8 or avgpool_f32, with one factor for every pair of row and column counts.

        Raises ValueError for mixed dtypes, a window with nothing to count, or sums that could overflow.
        """
        (source,) = inputs
        if source.dtype is not output.dtype:
            raise ValueError(f"{operator.name}: {source.dtype} to {output.dtype} is not supported")
        counted = [self.taps_counted(dimension, source.shape[dimension]) for dimension in (0, 1)]
        counted[0] += self.row_taps or ()
        least = [min(taps) for taps in counted]
        if min(least) == 0:
            raise ValueError(
                f"{operator.name}: a window lies wholly in the padding, its average is undefined"
            )
        spans = [
            np.arange(low, max(taps) + 1, dtype=np.int64) for low, taps in zip(least, counted, strict=True)
        ]
        window_taps = np.outer(spans[0], spans[1])
        top, left, bottom, right = self.pads if self.count_include_pad else (0, 0, 0, 0)
        fields = window_fields(self, source) | {
            "counted_top": -top,
            "counted_left": -left,
            "counted_bottom": source.shape[0] + bottom,
            "counted_right": source.shape[1] + right,
            "least_rows": least[0],
            "least_cols": least[1],
            "factor_cols": len(spans[1]),
        }
        scratch = self.kernel_shape[0] * OFFSET_BYTES
        if source.dtype is graph.DType.FLOAT32:
            arrays: Params = {"factors": (1.0 / window_taps).astype(np.float32)}
            return KernelCall("avgpool_f32", arrays | fields, scratch, counts=window_counts(fields, "floats"))
        mean = _mean(operator, (source, output), window_taps, self.ties)
        arithmetic: Params = {
            "shift": mean.shift,
            "input_zero_point": mean.input_zero_point,
            "output_zero_point": mean.output_zero_point,
        }
        params = {"multipliers": mean.multipliers} | fields | arithmetic
        return KernelCall("avgpool_s8", params, scratch, counts=window_counts(fields, "sums"))

    def by_rows(self, inputs: tuple[Shape, ...]) -> AveragePoolByRows | None:
        """The operator with the same mean that reads its input (H, W, C) in blocks of rows.

        None unless there is one window, it counts each pixel once and nothing else, and there are several
        rows.
        """
        source = inputs[0]
        if self.out_size != (1, 1) or source[0] == 1:
            return None
        if self.row_taps not in (None, (source[0], source[0])):
            return None
        for dimension, size in enumerate(source[:2]):
            step, first = self.dilation[dimension], -self.pads[dimension]
            taps = range(first, first + step * self.kernel_shape[dimension], step)
            inside = [tap for tap in taps if 0 <= tap < size]
            if inside != list(range(size)) or self.taps_counted(dimension, size) != (size,):
                return None
        return AveragePoolByRows(self.ties)


@dataclass(frozen=True, slots=True)
class AveragePoolByRows(PlainOperator):
    """y[0, 0, c] = the mean of x over all rows and columns; each step adds a block of rows to its sums.

    x (H, W, C) -> y (1, 1, C), with the bits of the AveragePool of one window without pads.
    """

    kind: ClassVar[str] = "AveragePoolByRows"
    accumulates: ClassVar[bool] = True

    ties: Ties = "even"

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """One input (H, W, C), whose rows are the reduced axis "r"."""
        ((rows, cols, channels),) = inputs
        axes = Axis("c", channels), Axis("r", rows, AxisKind.REDUCED), Axis("s", cols, AxisKind.REDUCED)
        read = Index.of(r=1), Index.of(s=1), Index.of(c=1)
        return LoopNest(axes, (read,), (Index.of(), Index.of(), Index.of(c=1)))

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """avgpool_s8_by_rows or avgpool_f32_by_rows. Raises ValueError for mixed dtypes or large sums."""
        (source,) = inputs
        if source.dtype is not output.dtype:
            raise ValueError(f"{operator.name}: {source.dtype} to {output.dtype} is not supported")
        rows, cols, channels = source.shape
        taps = rows * cols
        fields: Params = {"input_cols": cols, "channels": channels}
        state = channels * SUM_BYTES
        if source.dtype is graph.DType.FLOAT32:
            fields["factor"] = float(np.float32(1.0 / taps))
            return KernelCall(
                "avgpool_f32_by_rows", fields, state_bytes=state, counts=row_counts(source.shape, sums=False)
            )
        mean = _mean(operator, (source, output), np.array([taps], np.int64), self.ties)
        fields |= {
            "bias": -taps * mean.input_zero_point,
            "quant.zero_point": mean.output_zero_point,
            "quant.multiplier": int(mean.multipliers[0]),
            "quant.shift": mean.shift,
        }
        return KernelCall(
            "avgpool_s8_by_rows", fields, state_bytes=state, counts=row_counts(source.shape, sums=True)
        )


@dataclass(frozen=True, slots=True)
class PoolInt16(PlainOperator):
    """The maximum, or the mean, of int16 values x under windows; padding never counts.

    x (H, W, C) -> y (out_size[0], out_size[1], C). Pairs are (rows, cols); pads are (top, left, bottom,
    right). Means round halves away from zero.
    """

    kind: ClassVar[str] = "PoolInt16"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT16})

    average: bool
    kernel_shape: tuple[int, int]
    stride: tuple[int, int]
    pads: tuple[int, int, int, int]
    out_size: tuple[int, int]

    @property
    def _as_max_pool(self) -> MaxPool:
        return MaxPool(self.kernel_shape, self.stride, (1, 1), self.pads, self.out_size)

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """The loop nest of MaxPool."""
        return self._as_max_pool.loops(inputs)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """avgpool_s16 or maxpool_s16. Raises ValueError for other types, and windows without values."""
        (source,) = inputs
        if {source.dtype, output.dtype} != {graph.DType.INT16}:
            raise ValueError(f"{operator.name}: {source.dtype} to {output.dtype} is not supported")
        taps = self.kernel_shape[0] * self.kernel_shape[1]
        if self.average and taps * 2**15 >= 2**31:
            raise ValueError(f"{operator.name}: the sum of {taps} values does not fit an int32")
        fields = window_fields(self._as_max_pool, source)
        windows = Windows(fields)
        if min(windows.rows(Interval(0, self.out_size[0])).min(), windows.cols.min()) < 1:
            raise ValueError(f"{operator.name}: a window lies wholly in the padding")
        scratch = self.kernel_shape[0] * OFFSET_BYTES
        name = "avgpool_s16" if self.average else "maxpool_s16"
        return KernelCall(name, fields, scratch, counts=int16_counts(fields))
