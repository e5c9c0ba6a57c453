"""Loop counts of the convolution kernels for cores with RISC-V's vectors; see conv_counts.py.

They are those of vectors of 128 bits, which have 32 sums at a time.
"""

from __future__ import annotations

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, CountsOf
from mcudeploy.ops.common import merged, scaled
from mcudeploy.ops.conv_counts import Fields
from mcudeploy.ops.conv_counts_mve import TapLists, gathered, pixel_blocks
from mcudeploy.ops.packing import LANES


def pointwise(fields: Fields) -> CountsOf:
    """conv2d_s8_1x1_rvv: pixels of all rows, three or two at a time, in place."""
    channels, depth = fields["dims.output_channels"], fields["dims.input_channels"]

    def counts(rows: Interval) -> Counts:
        pixels = len(rows) * fields["dims.output_cols"]
        products = _multiplied(pixel_blocks(pixels, 3), channels, depth)
        return {"calls": 1, "rows": len(rows), "pixels": pixels} | products

    return counts


def general(fields: Fields) -> CountsOf:
    """conv2d_s8_rvv: windows are gathered, those in the padding singly, and multiplied."""
    return gathered(fields, _multiplied)


def depthwise(fields: Fields) -> CountsOf:
    """dwconv2d_s8_rvv: windows inside the input share a list of taps; up to three are computed together."""
    lists = TapLists.of(fields)
    taps, channels, at_once = lists.taps, fields["dims.channels"], fields["pixels"]

    def products(windows: int, pixels: int) -> Counts:
        if windows * pixels == 0:
            return {}
        return {"runs": 1} | _multiplied(pixel_blocks(windows, 3), pixels * channels, taps)

    alone = products(1, 1)
    together = merged(products(lists.inner // at_once, at_once), products(1, lists.inner % at_once))

    def counts(rows: Interval) -> Counts:
        listed = lists.counts(rows)
        whole = lists.whole(rows)
        ones = listed["lists"] - (whole if lists.inner else 0)
        return listed | merged(scaled(alone, ones), scaled(together, whole))

    return counts


def _multiplied(blocks: dict[int, int], channels: int, depth: int) -> Counts:
    """Counts of blocks of pixels by as many channels as a vector has sums, and of their values."""
    chunks = -(-channels // LANES)
    counts: Counts = {"blocks": sum(blocks.values())}
    for pixels, times in blocks.items():
        counts |= {f"chunks_{pixels}": times * chunks, f"values_{pixels}": times * chunks * depth}
    return counts
