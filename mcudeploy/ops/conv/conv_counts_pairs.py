"""Loop counts of the depthwise kernels by pairs of rows; see conv_counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, CountsOf
from mcudeploy.ops.conv.conv_counts import Fields

_INPUT_ROWS = 18
"""Input rows that dwconv2d_s8_rows takes at a time."""
_PAIRED_INPUT_ROWS = 32
"""Input rows that dwconv2d_s8_pairs takes at a time."""


@dataclass(frozen=True, slots=True)
class _RowParts:
    """The parts of an output row.

    `widths`: the outputs of each part. `inside`, `beside`: the expanded columns of all parts together, in
    the input and in padding.
    """

    widths: tuple[int, ...]
    inside: int
    beside: int

    @classmethod
    def of(cls, fields: Fields, kernel_cols: int) -> Self:
        """Return the parts of at most `most_outputs` outputs."""
        cols, most, stride = fields["dims.output_cols"], fields["most_outputs"], fields["window.stride_cols"]
        widths = tuple(min(most, cols - col) for col in range(0, cols, most))
        lefts = [col * stride - fields["window.pad_left"] for col in range(0, cols, most)]
        columns = [(width - 1) * stride + kernel_cols for width in widths]
        inside = sum(
            max(0, min(left + count, fields["dims.input_cols"]) - max(0, left))
            for left, count in zip(lefts, columns, strict=True)
        )
        return cls(widths, inside, sum(columns) - inside)

    def blocks(self, channels: int) -> int:
        """Return the number of blocks of up to four channels in all parts."""
        return -(-channels // 4) * len(self.widths)


def by_row_pairs(fields: Fields) -> CountsOf:
    """dwconv2d_s8_rows (3x3): pairs of input rows are expanded and multiplied, in parts of rows and columns.

    A part of one output row whose three input rows have no padding expands these at once.
    """
    strides = fields["window.stride_rows"], fields["window.stride_cols"]
    in_row = 4 if strides[1] == 1 else 2  # outputs of one row computed at a time
    parts, channels = _RowParts.of(fields, 3), fields["dims.channels"]
    widths, inside, blocks = parts.widths, parts.inside, parts.blocks(channels)
    whole, rest = divmod(channels, 4)
    most_rows = (_INPUT_ROWS - 3) // strides[0] + 1

    def counts(rows: Interval) -> Counts:
        firsts = range(rows.lo, rows.hi, most_rows)
        heights = [min(most_rows, rows.hi - first) for first in firsts]
        tops_of_ones = [
            first * strides[0] - fields["window.pad_top"]
            for first, height in zip(firsts, heights, strict=True)
            if height == 1
        ]
        alone = sum(0 <= top <= fields["dims.input_rows"] - 3 for top in tops_of_ones)
        threes = alone * whole * len(widths)
        twos, ones = divmod(len(rows), 2) if strides == (1, 1) else (0, len(rows))  # output rows together
        pairs, singles = ones, ones  # input rows expanded together
        if strides == (1, 1):
            pairs += twos + sum(height > 1 for height in heights)
        elif strides == (2, 2):
            singles = len(heights)
        together = {
            "two_rows": twos * channels * sum(width // 2 for width in widths),
            "two_rows_last": twos * channels * sum(width % 2 for width in widths),
        }
        looked_up = sum((height - 1) * strides[0] + 3 for height in heights)
        return {
            "calls": 1,
            "parts": len(heights) * len(widths),
            "rows": looked_up * len(widths),
            "padding": len(heights) * parts.beside,
            "blocks": len(heights) * blocks,
            "steps": (twos + ones) * blocks - threes,
            "threes": threes,
            "three_columns": alone * whole * inside,
            "pairs": pairs * blocks - threes,
            "pair_columns": (pairs - alone) * whole * inside,
            "single_columns": (singles - alone) * whole * inside,
            "rest_columns": (pairs + singles) * (rest > 0) * inside,
            "rest_values": (2 * pairs + singles) * rest * inside,
            "channels": (twos + ones) * channels * len(widths),
            "one_row": ones * channels * sum(width // in_row for width in widths),
            "one_row_last": ones * channels * sum(width % in_row for width in widths),
        } | (together if strides[1] == 1 else {})

    return counts


def by_pair_windows(fields: Fields) -> CountsOf:
    """dwconv2d_s8_pairs: pairs of input rows are expanded and multiplied, in parts of rows and columns."""
    stride_rows, kernel_rows = fields["window.stride_rows"], fields["kernel_rows"]
    parts, channels = _RowParts.of(fields, fields["kernel_cols"]), fields["dims.channels"]
    widths, inside, blocks = parts.widths, parts.inside, parts.blocks(channels)
    whole, rest = divmod(channels, 4)
    pairs = -(-kernel_rows // 2)
    most_rows = (_PAIRED_INPUT_ROWS - kernel_rows) // stride_rows + 1
    row_step = 1 + stride_rows % 2  # with an odd stride every other row is computed, then the rest
    later = row_step * stride_rows // 2  # pairs from a window to the next one
    fours = channels * sum(-(-width // 4) for width in widths)

    def counts(rows: Interval) -> Counts:
        # Pairs lie in a ring; a window whose pairs continue at its start is multiplied in two parts.
        heights = [min(most_rows, len(rows) - row) for row in range(0, len(rows), most_rows)]
        passes = [len(range(first, height, row_step)) for height in heights for first in range(row_step)]
        expanded = sum(pairs + (times - 1) * min(later, pairs) for times in passes if times)
        wrapped = sum(place * later % pairs > 0 for times in passes for place in range(times))
        return {
            "calls": 1,
            "parts": len(heights) * len(widths),
            "rows": sum((height - 1) * stride_rows + kernel_rows for height in heights) * len(widths),
            "padding": len(heights) * pairs * parts.beside,
            "blocks": len(heights) * blocks,
            "steps": len(rows) * blocks,
            "pairs": expanded * blocks,
            "columns": expanded * whole * inside,
            "rest_columns": expanded * (rest > 0) * inside,
            "rest_values": expanded * rest * inside,
            "channels": len(rows) * channels * len(widths),
            "outputs": len(rows) * fours,
            "products": len(rows) * fours * pairs,
            "again": wrapped * fours,
        }

    return counts
