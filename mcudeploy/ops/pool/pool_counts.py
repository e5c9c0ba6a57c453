"""Counts of the kernels that take the maximum or the average of windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcudeploy.ir.graph import Shape
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, CountsOf
from mcudeploy.ops.conv.packing import VECTOR
from mcudeploy.ops.conv.windows import Windows

_MOST_SHORT_TAPS = 255


def window_counts(fields: Mapping[str, Any], *, sums: bool) -> CountsOf:
    """Loops over the taps inside the input, for blocks of channels: vectors, fours and single ones; maxima
    take eights first, vector sums take eights.

    A core either has vectors or not, so a table holds costs of one of them.
    """
    windows = Windows(fields)
    channels = fields["dims.channels"]
    blocks = {"eights": channels // 8, "ones": channels % 4, "vectors": -(-channels // VECTOR)}
    blocks |= {"fours": channels // 4, "singles": channels % 8} if sums else {"fours": channels % 8 // 4}
    window = fields["window.kernel_rows"] * fields["window.kernel_cols"]
    border = int((windows.cols < fields["window.kernel_cols"]).sum())
    cols = int(windows.cols.sum())

    def counts(rows: Interval) -> Counts:
        reading = int(windows.rows(rows).sum())
        pixels = len(rows) * windows.outputs
        loop_counts: Counts = {
            "calls": 1,
            "rows": len(rows),
            "row_taps": reading,
            "pixels": pixels,
            "border": len(rows) * border,
            "outputs": pixels * channels,
        }
        for name, count in blocks.items():
            loop_counts |= {
                name: pixels * count,
                f"lines_of_{name}": reading * windows.outputs * count,
                f"taps_of_{name}": reading * cols * count,
            }
        return loop_counts | (_long_sums(loop_counts, window) if sums else {})

    return counts


def _long_sums(counts: Counts, taps: int) -> Counts:
    """Counts of the slower loop for sums of more int8 values than fit 16 bits; see mcud_sum_window."""
    return {"long_taps": counts["taps_of_fours"] if taps > _MOST_SHORT_TAPS else 0}


def row_counts(shape: Shape, *, sums: bool) -> CountsOf:
    """All rows as one run of pixels, for blocks of channels; the first begin the sums, the last end them."""
    input_rows, cols, channels = shape
    blocks = {"fours": channels // 4, "ones": channels % 4, "vectors": -(-channels // VECTOR)}
    if sums:
        blocks |= {"eights": channels // 8, "singles": channels % 8}

    def counts(rows: Interval) -> Counts:
        pixels = len(rows) * cols
        loop_counts: Counts = {"calls": 1, "outputs": channels}
        for name, count in blocks.items():
            loop_counts |= {name: count, f"taps_of_{name}": pixels * count}
        begun = {"begun": channels} if rows.lo == 0 else {}
        ended = {"ended": channels} if rows.hi == input_rows else {}
        return loop_counts | begun | ended | (_long_sums(loop_counts, pixels) if sums else {})

    return counts


def int16_counts(fields: Mapping[str, Any]) -> CountsOf:
    """Loops over the taps inside the input, for single channels."""
    windows, channels = Windows(fields), fields["dims.channels"]

    def counts(rows: Interval) -> Counts:
        reading = int(windows.rows(rows).sum())
        pixels = len(rows) * windows.outputs
        return {
            "calls": 1,
            "rows": len(rows),
            "row_taps": reading,
            "pixels": pixels,
            "outputs": pixels * channels,
            "lines": reading * windows.outputs * channels,
            "taps": reading * int(windows.cols.sum()) * channels,
        }

    return counts
