"""Loop counts of the convolution kernels for cores with RISC-V's vectors; see conv_counts.py.

They hold for vectors of 128 bits, which compute 32 sums at a time.
"""

from __future__ import annotations

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, CountsOf
from mcudeploy.ops.common import merged, scaled
from mcudeploy.ops.conv.conv_counts import Fields
from mcudeploy.ops.conv.conv_counts_mve import TapLists, gathered, pixel_blocks
from mcudeploy.ops.conv.packing import LANES


def pointwise(fields: Fields) -> CountsOf:
    """conv2d_s8_1x1_rvv: pixels of all rows, three or two at a time, in place."""
    channels, depth = fields["dims.output_channels"], fields["dims.input_channels"]

    def counts(rows: Interval) -> Counts:
        pixels = len(rows) * fields["dims.output_cols"]
        products = _multiplied(pixel_blocks(pixels, 3), channels, depth)
        return {"calls": 1, "rows": len(rows), "pixels": pixels} | products

    return counts


def general(fields: Fields) -> CountsOf:
    """conv2d_s8_rvv: windows are gathered, those with padding one by one, and multiplied."""
    return gathered(fields, _multiplied)


def full(fields: Fields) -> CountsOf:
    """conv2d_s8_full_rvv: contiguous rows are added at once."""
    chunks = _chunks(fields["output_channels"])
    values = chunks * fields["input_rows"] * fields["row_values"]
    return lambda _: {"calls": 1, "chunks": chunks, "values": values}


def by_rows(fields: Fields, input_rows: int) -> CountsOf:
    """conv2d_s8_by_rows_rvv: the first rows begin the sums, the last ones end them."""
    chunks = _chunks(fields["output_channels"])

    def counts(rows: Interval) -> Counts:
        begun = {"begun": chunks} if rows.lo == 0 else {}
        ended = {"ended": chunks} if rows.hi == input_rows else {}
        values = len(rows) * chunks * fields["row_values"]
        return {"calls": 1, "chunks": chunks, "values": values} | begun | ended

    return counts


def depthwise(fields: Fields) -> CountsOf:
    """dwconv2d_s8_rvv: windows inside the input share a list of taps; up to three are computed together."""
    lists = TapLists.of(fields)
    taps, channels, at_once = lists.taps, fields["dims.channels"], fields["pixels"]

    def products(windows: int, pixels: int) -> Counts:
        if windows * pixels == 0:
            return {}
        counts: Counts = {"runs": 1}
        for count, times in pixel_blocks(windows, 3).items():
            chunks = times * _chunks(pixels * channels)
            counts |= {f"chunks_{count}": chunks, f"taps_{count}": chunks * taps}
        return counts

    alone = products(1, 1)
    together = merged(products(lists.inner // at_once, at_once), products(1, lists.inner % at_once))

    def counts(rows: Interval) -> Counts:
        listed = lists.counts(rows)
        whole = lists.whole(rows)
        ones = listed["lists"] - (whole if lists.inner else 0)
        return listed | merged(scaled(alone, ones), scaled(together, whole))

    return lists.joined(counts, products)


def _multiplied(blocks: dict[int, int], channels: int, depth: int) -> Counts:
    """Counts of blocks of pixels by LANES channels at a time; values are taken by four."""
    chunks = _chunks(channels)
    counts: Counts = {"blocks": sum(blocks.values())}
    for pixels, times in blocks.items():
        passes = times * chunks
        counts |= {f"chunks_{pixels}": passes, f"fours_{pixels}": passes * (depth // 4)}
        counts[f"ones_{pixels}"] = passes * (depth % 4)
    return counts


def _chunks(channels: int) -> int:
    return -(-channels // LANES)
