"""Loop counts of convolutions whose weights training changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, CountsOf
from mcudeploy.ops.common import merged, scaled
from mcudeploy.ops.conv_counts_f32 import depthwise
from mcudeploy.ops.windows import Windows

_LINES = 4
"""Output channels that are summed at a time, and values that a turn of the loop takes."""


def forward_counts(fields: Mapping[str, Any]) -> CountsOf:
    """Counts of conv2d_f32_trained and dwconv2d_f32_trained."""
    if "multiplier" in fields:
        return depthwise(fields, eights=fields["multiplier"] == 1)
    windows, joined = Windows(fields), bool(fields["rows_join"])
    blocks, single = divmod(fields["dims.output_channels"], _LINES)
    full = fields["window.kernel_cols"]
    inner = dict(windows.col_kinds).get(full, 0)
    border = [taps for taps in windows.cols.tolist() if taps < full]

    def counts(rows: Interval) -> Counts:
        runs_of_rows = 1 if joined else len(rows)
        pairs, odd = divmod(inner * len(rows) // runs_of_rows, 2)
        pixels = len(rows) * windows.outputs
        sizes: Counts = {
            "calls": 1,
            "rows": runs_of_rows,
            "columns": runs_of_rows * (len(border) + int(inner > 0)),
            "pixels": pixels,
            "blocks_2": runs_of_rows * pairs * blocks,
            "blocks_1": runs_of_rows * (odd + len(border)) * blocks,
            "single": pixels * single,
        }
        by_two = scaled(_runs(fields, full, 2), pairs)
        by_one = merged(scaled(_runs(fields, full, 1), odd), *(_runs(fields, taps, 1) for taps in border))
        alone = merged(
            scaled(_single_runs(fields, full), 2 * pairs + odd),
            *(_single_runs(fields, taps) for taps in border),
        )
        row = merged(scaled(by_two, blocks), scaled(by_one, blocks), scaled(alone, single))
        return sizes | scaled(row, 1 if joined else int(windows.rows(rows).sum()))

    return counts


def _runs(fields: Mapping[str, Any], taps: int, pixels: int) -> Counts:
    """Counts of one row of taps by four output channels; values are taken four at a time."""
    runs, values = _values(fields, taps)
    return {
        f"runs_{pixels}": runs,
        f"turns_{pixels}": runs * (values // 4),
        f"rest_{pixels}": runs * (values % 4),
    }


def _single_runs(fields: Mapping[str, Any], taps: int) -> Counts:
    """Counts of one row of taps by one output channel."""
    runs, values = _values(fields, taps)
    return {"single_runs": runs, "single_products": runs * values}


def _values(fields: Mapping[str, Any], taps: int) -> tuple[int, int]:
    """The runs of contiguous values that a row of taps is, and the values in each."""
    values = fields["dims.input_channels"]
    return (1, taps * values) if fields["window.dilation_cols"] == 1 else (taps, values)
