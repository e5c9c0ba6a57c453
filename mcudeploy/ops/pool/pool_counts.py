"""Counts of the kernels that take the maximum or the average of windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from mcudeploy.ir.graph import Shape
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, CountsOf
from mcudeploy.ops.common import merged, scaled
from mcudeploy.ops.conv.packing import VECTOR
from mcudeploy.ops.conv.windows import Windows

_MOST_SHORT_TAPS = 255


Windowed = Literal["floats", "maxima", "sums"]
"""A kernel's values: floats, int8 maxima or int8 sums. int8 outputs with adjacent taps are one run."""


def window_counts(fields: Mapping[str, Any], of: Windowed) -> CountsOf:
    """Counts of the loops over the taps inside the input, by blocks of channels: vectors, fours and ones.

    Maxima also have blocks of eight, vector sums too, and vector maxima pairs. A core either has vectors or
    not, so its cost table has either the costs of vectors or those of the other blocks.
    """
    windows = Windows(fields)
    channels, kernel_cols = fields["dims.channels"], fields["window.kernel_cols"]
    window = fields["window.kernel_rows"] * kernel_cols
    inside = windows.cols == kernel_cols
    whole = int(inside.sum())
    joined = whole if of != "floats" and fields["window.stride_cols"] == 1 else 0
    alone = windows.cols[~inside] if joined else windows.cols
    runs = [(int(taps), channels) for taps in alone] + [(kernel_cols, joined * channels)] * (joined > 0)
    blocks = [_blocks(run, of) for _, run in runs]
    of_rows = merged(*blocks)
    of_taps = merged(*(scaled(block, taps) for block, (taps, _) in zip(blocks, runs, strict=True)))

    def counts(rows: Interval) -> Counts:
        reading = int(windows.rows(rows).sum())
        loop_counts: Counts = {
            "calls": 1,
            "rows": len(rows),
            "row_taps": reading,
            "pixels": len(rows) * len(runs),
            "border": len(rows) * (windows.outputs - whole),
            "outputs": len(rows) * windows.outputs * channels,
        }
        for name, count in of_rows.items():
            loop_counts |= {
                name: len(rows) * count,
                f"lines_of_{name}": reading * count,
                f"taps_of_{name}": reading * of_taps[name],
            }
        return loop_counts | (_long_sums(loop_counts, window) if of == "sums" else {})

    return counts


def _blocks(channels: int, of: Windowed) -> Counts:
    """Numbers of blocks of the channels of a run."""
    blocks: Counts = {"eights": channels // 8, "ones": channels % 4, "vectors": -(-channels // VECTOR)}
    match of:
        case "sums":
            rest = {"singles": channels % 8, "ragged": -(-(channels % VECTOR) // 8)}
            return blocks | {"fours": channels // 4} | rest
        case "maxima":
            return blocks | {"fours": channels % 8 // 4, "pairs": channels // (2 * VECTOR)}
        case _:
            return blocks | {"fours": channels % 8 // 4}


def _long_sums(counts: Counts, taps: int) -> Counts:
    """Counts of the slower loop for sums of more int8 values than fit 16 bits; see mcud_sum_window."""
    return {"long_taps": counts["taps_of_fours"] if taps > _MOST_SHORT_TAPS else 0}


def row_counts(shape: Shape, *, sums: bool) -> CountsOf:
    """Counts of all rows as one run of pixels; the first row begins the sums, the last ends them."""
    input_rows, cols, channels = shape
    blocks: Counts = {"fours": channels // 4, "ones": channels % 4, "vectors": -(-channels // VECTOR)}
    if sums:
        blocks = _blocks(channels, "sums")

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
    """Counts of the loops over the taps inside the input, for single channels."""
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
