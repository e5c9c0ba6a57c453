"""Loop counts of the convolution kernels with weights of 16 bits; see conv_counts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, CountsOf
from mcudeploy.ops.common import counts_of_rows, merged, scaled
from mcudeploy.ops.conv.conv_counts import Fields, expanded, windows_expanded

_UNROLLED_CHANNELS = (1, 3)
"""Numbers of input channels for which conv2d_s8_first_wide has the loop over channels unrolled."""
_UNROLLED = 8
"""Pairs of values in a turn, a pass of the unrolled loop of mcud_wide_s8_dsp.h."""


def pixel_blocks(pixels: int, most: int) -> dict[int, int]:
    """Numbers of blocks of 4, 3 and 1 pixels; see mcud_wide_next."""
    if most == 3:
        return {3: pixels // 3, 1: pixels % 3}
    threes = {0: 0, 1: 3, 2: 2, 3: 1}[pixels % 4] if pixels >= 3 and pixels != 5 else 0
    fours = (pixels - 3 * threes) // 4
    return {4: fours, 3: threes, 1: pixels - 4 * fours - 3 * threes}


def pointwise(fields: Fields) -> CountsOf:
    """conv2d_s8_1x1_wide: pixels of all rows are expanded, up to four at a time, and multiplied."""
    cols, read = fields["dims.output_cols"], expanded(fields["dims.input_channels"])

    def counts(rows: Interval) -> Counts:
        pixels = len(rows) * cols
        blocks = pixel_blocks(pixels, fields["most_pixels"])
        products = multiplied(blocks, fields["dims.output_channels"], fields["pairs"])
        return {"calls": 1, "rows": len(rows)} | merged(products, scaled(read, pixels))

    return counts


def general(fields: Fields) -> CountsOf:
    """conv2d_s8_wide: windows are expanded as for conv2d_s8, and multiplied."""
    read = windows_expanded(fields)

    def counts(rows: Interval) -> Counts:
        blocks = pixel_blocks(len(rows) * fields["dims.output_cols"], fields["most_pixels"])
        products = multiplied(blocks, fields["group_outputs"], 2 * fields["patch_groups"])
        return {"calls": 1, "groups": fields["groups"]} | scaled(
            merged(read(rows), products), fields["groups"]
        )

    return counts


def first(fields: Fields) -> CountsOf:
    """conv2d_s8_first_wide: parts of rows are expanded, and multiplied up to three windows at a time."""
    outputs, part = fields["dims.output_cols"], fields["part_cols"]
    parts = [_first_part(fields, Interval(col, min(outputs, col + part))) for col in range(0, outputs, part)]
    each = merged(*parts)
    return counts_of_rows({"rows": 1} | each)


def _first_part(fields: Fields, outputs: Interval) -> Counts:
    """Counts of some output columns of a row."""
    channels = fields["dims.input_channels"]
    kernel_rows, kernel_cols = fields["window.kernel_rows"], fields["window.kernel_cols"]
    columns = (len(outputs) - 1) * fields["window.stride_cols"] + kernel_cols
    column = np.arange(columns) + outputs.lo * fields["window.stride_cols"] - fields["window.pad_left"]
    inside = int(((column >= 0) & (column < fields["dims.input_cols"])).sum())
    loops = channels if channels in _UNROLLED_CHANNELS else "any"
    odd = min(kernel_rows, 3) if kernel_rows % 2 else 0  # rows expanded at a time, after pairs of rows
    expansions = {"two": (kernel_rows - odd) // 2, "one": int(odd == 1), "three": int(odd == 3)}
    each: Counts = {"parts": 1, "expansions": sum(expansions.values())}
    for rows_at_once, times in expansions.items():
        each[f"{rows_at_once}_{loops}"] = times * inside
        if loops == "any":
            each[f"{rows_at_once}_values"] = times * inside * channels
    each |= {"filled": (columns - inside) * 2 * fields["column_pairs"], "kernel_rows": kernel_rows}
    return each | multiplied(
        pixel_blocks(len(outputs), 3), fields["dims.output_channels"], kernel_cols * fields["column_pairs"]
    )


def multiplied(blocks: Mapping[int, int], channels: int, pairs: int) -> Counts:
    """Counts of products: of two channels at a time with several pixels, of four with one pixel.

    `records`: the number of these groups of channels, over all blocks.
    """
    counts: Counts = {}
    for pixels, times in blocks.items():
        together = 4 if pixels == 1 else 2
        records = times * -(-channels // together)
        counts |= {
            f"blocks_{pixels}": times,
            f"records_{pixels}": records,
            f"pairs_{pixels}": records * pairs,
            f"turns_{pixels}": records * -(-pairs // _UNROLLED),
            f"rest_{pixels}": times * (channels % together > 0),
        }
    return counts
