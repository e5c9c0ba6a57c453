"""Loop counts of convolutions whose weights training changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, CountsOf
from mcudeploy.ops.common import merged, scaled
from mcudeploy.ops.conv.conv_counts import gathered, window_rows
from mcudeploy.ops.conv.conv_counts_f32 import copied_floats, depthwise, filled_floats
from mcudeploy.ops.conv.windows import Windows

_LINES = 4
"""Output channels that are summed at a time, and values that a turn of the loop takes."""


def forward_counts(fields: Mapping[str, Any]) -> CountsOf:
    """Counts of conv2d_f32_trained and dwconv2d_f32_trained."""
    if "multiplier" in fields:
        return depthwise(fields, eights=fields["multiplier"] == 1)
    windows, joined = Windows(fields), bool(fields["rows_join"])
    channels, full = fields["dims.output_channels"], fields["window.kernel_cols"]
    inner = dict(windows.col_kinds).get(full, 0)
    border = [taps for taps in windows.cols.tolist() if taps < full]

    def counts(rows: Interval) -> Counts:
        runs_of_rows = 1 if joined else len(rows)
        inside = _pixel_groups(inner * len(rows) // runs_of_rows)
        groups = {**inside, 1: inside[1] + len(border)}
        sizes: Counts = {
            "calls": 1,
            "rows": runs_of_rows,
            "columns": runs_of_rows * (len(border) + int(inner > 0)),
        }
        sizes |= scaled(_blocks_of_pixels(groups, channels), runs_of_rows)
        parts = [_products(_values(fields, full), inside, channels)]
        parts += [_products(_values(fields, taps), {1: 1}, channels) for taps in border]
        return sizes | scaled(merged(*parts), 1 if joined else int(windows.rows(rows).sum()))

    return counts


def gathered_counts(fields: Mapping[str, Any]) -> CountsOf:
    """Counts of conv2d_f32_trained_gathered, which gathers four windows, across rows, and multiplies them."""
    windows = Windows(fields)
    channels, depth = fields["dims.output_channels"], fields["patch_values"]
    of_one_group = {**fields, "groups": 1, "group_inputs": fields["dims.input_channels"]}

    def counts(rows: Interval) -> Counts:
        groups = _pixel_groups(len(rows) * windows.outputs)
        moved = gathered(windows, of_one_group, rows, copied_floats, filled_floats)
        products = merged(_blocks_of_pixels(groups, channels), _products((1, depth), groups, channels))
        return {"calls": 1} | window_rows(windows, rows) | moved | products

    return counts


def _pixel_groups(count: int) -> dict[int, int]:
    """The number of groups of 2 pixels and of 1 pixel, by size, that `count` pixels form."""
    return {2: count // 2, 1: count % 2}


def _blocks_of_pixels(groups: Mapping[int, int], channels: int) -> Counts:
    """Counts of groups of pixels by output channels: four channels at a time, then the last ones singly."""
    blocks, single = divmod(channels, _LINES)
    pixels = sum(size * count for size, count in groups.items())
    return {
        "pixels": pixels,
        "single": pixels * single,
        **{f"blocks_{size}": count * blocks for size, count in groups.items()},
    }


def _products(runs: tuple[int, int], groups: Mapping[int, int], channels: int) -> Counts:
    """Counts of the products of one row of taps for these groups of pixels and all output channels.

    `runs`: the number of contiguous runs in the row of taps, and of values in each.
    """
    number, values = runs
    blocks, single = divmod(channels, _LINES)
    single_runs = number * single * sum(size * count for size, count in groups.items())
    result: Counts = {"single_runs": single_runs, "single_products": single_runs * values}
    for size, count in groups.items():
        times = number * count * blocks
        result |= {
            f"runs_{size}": times,
            f"turns_{size}": times * (values // _LINES),
            f"rest_{size}": times * (values % _LINES),
        }
    return result


def _values(fields: Mapping[str, Any], taps: int) -> tuple[int, int]:
    """The number of contiguous runs in a row of taps, and of values in each."""
    values = fields["dims.input_channels"]
    return (1, taps * values) if fields["window.dilation_cols"] == 1 else (taps, values)
