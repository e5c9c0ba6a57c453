"""Slice and Pad, which only move elements and keep the quantisation. Transpose is in transpose.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, CountsOf, Index, KernelCall, LoopNest, Params, PlainOperator, RowsPart
from mcudeploy.ops.common import (
    AXIS_NAMES,
    ELEMENTWISE,
    WIDE_INTEGERS,
    counts_of_rows,
    filled,
    is_int8,
    merged,
    moved,
    require_same_values,
    scaled,
    spatial_axes,
)
from mcudeploy.ops.requantize import quantization_of, quantize_value

Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Slice(PlainOperator):
    """Elements start, start + step, ... of each dimension; steps may be negative, but not 0."""

    kind: ClassVar[str] = "Slice"
    moves: ClassVar[bool] = True
    takes_rows: ClassVar[bool] = True
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS

    start: Triple
    step: Triple
    out_shape: Shape

    def on_rows(self, part: RowsPart) -> Slice:
        """The operator that takes all of these rows."""
        return replace(self, start=(0, *self.start[1:]), out_shape=(len(part.rows), *self.out_shape[1:]))

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Output element i of a dimension reads input element start + step * i."""
        (shape,) = inputs
        for axis, (size, start, step, count) in enumerate(
            zip(shape, self.start, self.step, self.out_shape, strict=True)
        ):
            last = start + step * (count - 1)
            if count < 1 or step == 0 or not (0 <= start < size and 0 <= last < size):
                raise ValueError(f"axis {axis} has {size} elements, not {count} from {start} by {step}")
        row, col, ch = (
            Index.of(start, **{name: step})
            for name, start, step in zip(AXIS_NAMES, self.start, self.step, strict=True)
        )
        return LoopNest(spatial_axes(self.out_shape), ((row, col, ch),), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `slice`."""
        require_same_values(inputs[0], output)
        in_channels = inputs[0].shape[2]
        cols, channels = output.shape[1:]
        col_step, channel_step = self.step[1] * in_channels, self.step[2]
        if col_step == channels * channel_step:
            cols, channels = 1, cols * channels
        params: Params = {
            "first_row": self.start[0],
            "row_step": self.step[0],
            "first_element": self.start[1] * in_channels + self.start[2],
            "cols": cols,
            "col_step": col_step,
            "channels": channels,
            "channel_step": channel_step,
            "element_bytes": output.dtype.size_bytes,
        }
        size = output.dtype.size_bytes
        row = {"taken": cols * channels, "runs": cols} if channel_step != 1 else moved(channels * size, cols)
        return KernelCall("slice", params, counts=counts_of_rows({"rows": 1} | row))


@dataclass(frozen=True, slots=True)
class Pad(PlainOperator):
    """`before` and `after` elements of the real value `value` around each dimension; negative ones crop."""

    kind: ClassVar[str] = "Pad"
    takes_rows: ClassVar[bool] = True
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS

    before: Triple
    after: Triple
    value: float = 0.0

    def on_rows(self, part: RowsPart) -> Pad:
        """The operator with the rows of padding above and below these rows."""
        return replace(self, before=(part.above, *self.before[1:]), after=(part.below, *self.after[1:]))

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Output element i of a dimension reads input element i - before if there is one."""
        (shape,) = inputs
        rows, cols, channels = (
            size + before + after for size, before, after in zip(shape, self.before, self.after, strict=True)
        )
        if min(rows, cols, channels) < 1:
            raise ValueError(f"nothing is left of {shape} padded by {self.before} and {self.after}")
        row, col, ch = (
            Index.of(-before, **{name: 1}) for name, before in zip(AXIS_NAMES, self.before, strict=True)
        )
        return LoopNest(spatial_axes((rows, cols, channels)), ((row, col, ch),), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `pad`."""
        (source,) = inputs
        require_same_values(source, output)
        rows, cols, channels = source.shape
        before_row, before_col, before_channel = self.before
        out_cols, out_channels = output.shape[1:]
        if before_channel == 0 and channels == out_channels:
            # Without padding between its columns, a row is one run of elements.
            before_col, before_channel = 0, before_col * channels
            cols, channels, out_cols, out_channels = 1, cols * channels, 1, out_cols * channels
        params: Params = {
            "rows": rows,
            "row_before": before_row,
            "cols": cols,
            "col_before": before_col,
            "out_cols": out_cols,
            "channels": channels,
            "channel_before": before_channel,
            "out_channels": out_channels,
            "element_bytes": output.dtype.size_bytes,
            "fill": self._fill_bits(output),
        }
        return KernelCall("pad", params, counts=_pad_counts(params))

    def _fill_bits(self, output: Tensor) -> int:
        """The bits of the padding element as an int32: of the float32 value, or of the integer."""
        if is_int8(output):
            return quantize_value(self.value, quantization_of(output))
        if output.dtype in ("int16", "int32"):
            return int(self.value)
        return int(np.array([self.value], np.float32).view(np.int32)[0])


def _pad_counts(params: Mapping[str, Any]) -> CountsOf:
    """Counts of copying the input, and of filling rows, columns and ends of channels outside.

    Bytes are set faster than words.
    """
    size = params["element_bytes"]
    out_cols, out_channels, before = params["out_cols"], params["out_channels"], params["channel_before"]
    first, end = max(before, 0), min(before + params["channels"], out_channels)
    last_col = min(params["cols"] + params["col_before"], out_cols)
    inner = max(last_col - max(params["col_before"], 0), 0)

    def fill(elements: int, times: int) -> Counts:
        return filled(elements, times) if size == 1 else {"fills": times, "set": elements * times}

    inside = [moved((end - first) * size, inner), fill(first, inner), fill(out_channels - end, inner)]
    if end <= first:
        inside = [fill(out_channels, inner)]
    row = merged({"cols": inner}, fill(out_channels, out_cols - inner), *inside)

    def counts(rows: Interval) -> Counts:
        reading = len(rows.clip(params["row_before"], params["row_before"] + params["rows"]))
        outside = fill(out_cols * out_channels, len(rows) - reading)
        return {"calls": 1, "rows": len(rows)} | merged(scaled(row, reading), outside)

    return counts
