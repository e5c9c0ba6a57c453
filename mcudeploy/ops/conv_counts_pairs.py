"""Loop counts of the depthwise kernels by pairs of rows; see conv_counts."""

from __future__ import annotations

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, CountsOf
from mcudeploy.ops.conv_counts import Fields

_INPUT_ROWS = 18
"""Input rows that dwconv2d_s8_rows takes at a time."""
_PAIRED_INPUT_ROWS = 32
"""Input rows that dwconv2d_s8_pairs takes at a time."""


def by_row_pairs(fields: Fields) -> CountsOf:
    """dwconv2d_s8_rows: of parts of rows and columns, pairs of rows are expanded and multiplied."""
    strides = fields["window.stride_rows"], fields["window.stride_cols"]
    cols, most_cols = fields["dims.output_cols"], fields["most_outputs"]
    widths = [min(most_cols, cols - col) for col in range(0, cols, most_cols)]
    in_row = 4 if strides[1] == 1 else 2  # outputs of one row computed at a time
    lefts = [part * most_cols * strides[1] - fields["window.pad_left"] for part in range(len(widths))]
    rights = [left + (width - 1) * strides[1] + 3 for left, width in zip(lefts, widths, strict=True)]
    inside = sum(
        max(0, min(right, fields["dims.input_cols"]) - max(0, left))
        for left, right in zip(lefts, rights, strict=True)
    )
    beside = sum(rights) - sum(lefts) - inside
    channels = fields["dims.channels"]
    whole, rest = divmod(channels, 4)
    blocks = (whole + (rest > 0)) * len(widths)
    most_rows = (_INPUT_ROWS - 3) // strides[0] + 1

    def counts(rows: Interval) -> Counts:
        firsts = range(rows.lo, rows.hi, most_rows)
        heights = [min(most_rows, rows.hi - first) for first in firsts]
        tops = [
            first * strides[0] - fields["window.pad_top"]
            for first, height in zip(firsts, heights, strict=True)
            if height == 1
        ]
        alone = sum(0 <= top <= fields["dims.input_rows"] - 3 for top in tops)
        threes = alone * whole * len(widths)
        twos, ones = divmod(len(rows), 2) if strides == (1, 1) else (0, len(rows))
        pairs, singles = ones, ones  # expanded
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
            "padding": len(heights) * beside,
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
    """dwconv2d_s8_pairs: of parts of rows and columns, pairs of rows are expanded and multiplied."""
    stride_rows, stride_cols = fields["window.stride_rows"], fields["window.stride_cols"]
    kernel_rows, kernel_cols = fields["kernel_rows"], fields["kernel_cols"]
    cols, most_cols = fields["dims.output_cols"], fields["most_outputs"]
    widths = [min(most_cols, cols - col) for col in range(0, cols, most_cols)]
    inside = beside = 0
    for part, width in enumerate(widths):
        left = part * most_cols * stride_cols - fields["window.pad_left"]
        right = left + (width - 1) * stride_cols + kernel_cols
        within = max(0, min(right, fields["dims.input_cols"]) - max(0, left))
        inside, beside = inside + within, beside + right - left - within
    channels, pairs = fields["dims.channels"], -(-kernel_rows // 2)
    whole, rest = divmod(channels, 4)
    blocks = (whole + (rest > 0)) * len(widths)
    most_rows = (_PAIRED_INPUT_ROWS - kernel_rows) // stride_rows + 1
    apart = 1 + stride_rows % 2
    later = apart * stride_rows // 2
    quads = channels * sum(-(-width // 4) for width in widths)

    def counts(rows: Interval) -> Counts:
        heights = [min(most_rows, len(rows) - row) for row in range(0, len(rows), most_rows)]
        passes = [len(range(first, height, apart)) for height in heights for first in range(apart)]
        expanded = sum(pairs + (times - 1) * min(later, pairs) for times in passes if times)
        again = sum(place * later % pairs > 0 for times in passes for place in range(times))
        return {
            "calls": 1,
            "parts": len(heights) * len(widths),
            "rows": sum((height - 1) * stride_rows + kernel_rows for height in heights) * len(widths),
            "padding": len(heights) * pairs * beside,
            "blocks": len(heights) * blocks,
            "steps": len(rows) * blocks,
            "pairs": expanded * blocks,
            "columns": expanded * whole * inside,
            "rest_columns": expanded * (rest > 0) * inside,
            "rest_values": expanded * rest * inside,
            "channels": len(rows) * channels * len(widths),
            "outputs": len(rows) * quads,
            "products": len(rows) * quads * pairs,
            "again": again * quads,
        }

    return counts
