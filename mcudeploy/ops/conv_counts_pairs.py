"""Loop counts of the depthwise kernel by pairs of rows for larger windows; see conv_counts."""

from __future__ import annotations

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, CountsOf
from mcudeploy.ops.conv_counts import Fields

_INPUT_ROWS = 32
"""Input rows that dwconv2d_s8_pairs takes at a time."""


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
    most_rows = (_INPUT_ROWS - kernel_rows) // stride_rows + 1
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
