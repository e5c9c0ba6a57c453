"""Loop counts of the kernels of training steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, CountsOf
from mcudeploy.ops.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Mapping

_LINES = 4
"""Output channels, or input channels of a gradient, that are summed at a time."""


def forward_counts(fields: Mapping[str, Any]) -> CountsOf:
    """Counts of conv2d_f32_trained and dwconv2d_f32_trained."""
    windows, dense = Windows(fields), "multiplier" not in fields
    inputs, outputs = fields["dims.input_channels"], fields["dims.output_channels"]
    cols, col_taps = windows.outputs, int(windows.cols.sum())
    col_runs = cols if fields["window.dilation_cols"] == 1 else col_taps
    blocks, single = divmod(outputs, _LINES)

    def counts(rows: Interval) -> Counts:
        tap_rows = int(windows.rows(rows).sum())
        pixels, taps = len(rows) * cols, tap_rows * col_taps
        sizes: Counts = {"calls": 1, "rows": len(rows), "pixels": pixels}
        if not dense:
            return sizes | {"taps": taps, "tap_inputs": taps * inputs, "products": taps * outputs}
        return sizes | {
            "blocks": pixels * blocks,
            "runs": tap_rows * col_runs * blocks,
            "fours": taps * inputs * blocks,
            "single": pixels * single,
            "single_runs": tap_rows * col_runs * single,
            "single_products": taps * inputs * single,
        }

    return counts


def input_gradient_counts(fields: Mapping[str, Any]) -> CountsOf:
    """Counts of conv2d_f32_input_gradient and dwconv2d_f32_input_gradient."""
    reach = _TapReach.of(fields)
    dense = "multiplier" not in fields
    inputs, outputs = fields["dims.input_channels"], fields["dims.output_channels"]
    blocks, single = divmod(inputs, _LINES)
    kernel_rows, kernel_cols = fields["window.kernel_rows"], fields["window.kernel_cols"]

    def counts(rows: Interval) -> Counts:
        tap_rows = sum(1 for row in range(rows.lo, rows.hi) for places in reach.rows if row in places)
        pixels = tap_rows * reach.col_pixels
        sizes: Counts = {
            "calls": 1,
            "rows": len(rows),
            "row_values": len(rows) * fields["dims.input_cols"] * inputs,
            "tests": len(rows) * kernel_rows,
            "tap_rows": tap_rows,
            "tap_cols": tap_rows * kernel_cols,
            "pixels": pixels,
        }
        if not dense:
            return sizes | {"tap_inputs": pixels * inputs, "products": pixels * outputs}
        return sizes | {
            "blocks": pixels * blocks,
            "fours": pixels * blocks * outputs,
            "single": pixels * single,
            "single_products": pixels * single * outputs,
        }

    return counts


def update_counts(fields: Mapping[str, Any]) -> CountsOf:
    """Counts of conv2d_f32_update and dwconv2d_f32_update."""
    reach = _TapReach.of(fields)
    inputs, outputs = fields["dims.input_channels"], fields["dims.output_channels"]
    kernel_rows, kernel_cols = fields["window.kernel_rows"], fields["window.kernel_cols"]
    taps = kernel_rows * kernel_cols
    rows = sum(map(len, reach.rows)) * kernel_cols
    pixels = sum(map(len, reach.rows)) * reach.col_pixels
    sizes: Counts = {"calls": 1, "taps": taps, "tap_rows": rows}
    if "multiplier" in fields:
        products = {"sums": taps * outputs, "sum_rows": rows * outputs, "products": pixels * outputs}
    else:
        blocks, single = divmod(inputs, _LINES)
        one_pixel = fields["output_rows"] == fields["dims.output_cols"] == 1
        alone = pixels * outputs if one_pixel else 0  # lines of taps with one product for each weight
        if one_pixel:
            taps, rows, pixels = taps - pixels, rows - pixels, 0
        products = {
            "pixel_lines": alone,
            "pixel_fours": alone * blocks,
            "pixel_single": alone * single,
            "lines": taps * outputs,
            "blocks": taps * outputs * blocks,
            "block_rows": rows * outputs * blocks,
            "fours": pixels * outputs * blocks,
            "rest": taps * outputs * int(single > 0),
            "single": taps * outputs * single,
            "single_rows": rows * outputs * single,
            "single_products": pixels * outputs * single,
        }
    return lambda _: sizes | products


def bias_update_counts(fields: Mapping[str, Any]) -> CountsOf:
    """Counts of bias_f32_update."""
    rows, pixels = fields["rows"], fields["rows"] * fields["cols"]
    blocks, single = divmod(fields["channels"], _LINES)
    sizes: Counts = {
        "calls": 1,
        "blocks": blocks,
        "block_rows": rows * blocks,
        "fours": pixels * blocks,
        "single": single,
        "single_rows": rows * single,
        "single_pixels": pixels * single,
    }
    return lambda _: sizes


@dataclass(frozen=True, slots=True)
class _TapReach:
    """The input rows at which each tap row is inside, and the number of output columns at which a tap column
    is inside, over all tap columns.
    """

    rows: tuple[range, ...]
    col_pixels: int

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> _TapReach:
        rows = _places(fields, "rows", "top", fields["output_rows"])
        cols = _places(fields, "cols", "left", fields["dims.output_cols"])
        return cls(rows, sum(map(len, cols)))


def _places(fields: Mapping[str, Any], along: str, before: str, outputs: int) -> tuple[range, ...]:
    """For each tap, the positions of the input that it has over all positions of the output."""
    size, count, far, stride = (
        fields[f"{name}_{along}"]
        for name in ("dims.input", "window.kernel", "window.dilation", "window.stride")
    )
    starts: NDArray[np.int64] = np.arange(count) * far - fields[f"window.pad_{before}"]
    places = []
    for start in starts.tolist():
        first = max(0, -(start // stride))
        end = min(outputs, max(first, -((start - size) // stride)))
        places.append(range(start + first * stride, start + end * stride, stride))
    return tuple(places)
