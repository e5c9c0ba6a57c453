"""Loop counts of the float32 convolution kernels; see conv_counts.py."""

from __future__ import annotations

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, CountsOf
from mcudeploy.ops.common import counts_of_rows, merged, scaled
from mcudeploy.ops.conv.conv_counts import Fields, gathered, window_rows
from mcudeploy.ops.conv.windows import Windows

_PIXELS = 4
"""Pixels in a block."""


def pointwise(fields: Fields) -> CountsOf:
    """conv2d_f32_1x1: four pixels at a time, across contiguous rows."""
    channels, depth = fields["dims.output_channels"], fields["dims.input_channels"]
    block, pixel = _block(channels, depth), _pixel(channels, depth)

    def counts(rows: Interval) -> Counts:
        runs = 1 if fields["rows_join"] else len(rows)
        fours, ones = divmod(len(rows) // runs * fields["dims.output_cols"], _PIXELS)
        return {"calls": 1, "runs": runs} | merged(scaled(block, runs * fours), scaled(pixel, runs * ones))

    return counts


def dense(fields: Fields) -> CountsOf:
    """dense_f32: one pixel."""
    channels, depth = fields["channels"], fields["depth"]
    if channels == 1:
        return lambda _: {"calls": 1, "values_of_one": depth}
    return counts_of_rows(_pixel(channels, depth))


def general(fields: Fields) -> CountsOf:
    """conv2d_f32: four pixels at a time if no column of their windows is padding."""
    windows = Windows(fields)
    kernel_cols, values = fields["window.kernel_cols"], fields["group_inputs"]
    channels = fields["group_outputs"]
    records = -(-channels // 4)
    cols = windows.cols.tolist()
    blocks, singles = 0, []
    col = 0
    while col < len(cols):
        together = cols[col : col + _PIXELS]
        if len(together) == _PIXELS and min(together) == kernel_cols:
            blocks += 1
            col += _PIXELS
        else:
            singles.append(cols[col])
            col += 1
    one_run = fields["one_run"]
    block_sums = _sums(kernel_cols * values, 4) if one_run else scaled(_sums(values, 4), kernel_cols)
    by_line = merged(
        scaled(block_sums | {"lines_4": 1}, blocks),
        *(_sums(taps * values, 1) if one_run else scaled(_sums(values, 1), taps) for taps in singles),
        {"lines_1": len(singles)},
    )
    each_row: Counts = {
        "blocks_4": blocks,
        "records_4": blocks * records,
        "blocks_1": len(singles),
        "records_1": len(singles) * records,
    } | _finished(channels, len(cols))

    def counts(rows: Interval) -> Counts:
        window_rows_read = int(windows.rows(rows).sum())
        products = merged(scaled(each_row, len(rows)), scaled(by_line, window_rows_read * records))
        looked_up = window_rows(windows, rows)
        return (
            {"calls": 1, "groups": len(rows) * fields["groups"]}
            | looked_up
            | scaled(products, fields["groups"])
        )

    return counts


def patches(fields: Fields) -> CountsOf:
    """conv2d_f32_gathered: four windows are gathered, across rows, and multiplied."""
    windows = Windows(fields)
    channels, depth = fields["group_outputs"], fields["patch_values"]
    block, pixel = _block(channels, depth), _pixel(channels, depth)

    def counts(rows: Interval) -> Counts:
        fours, ones = divmod(len(rows) * windows.outputs, _PIXELS)
        products = merged(window_rows(windows, rows), scaled(block, fours), scaled(pixel, ones))
        moved = gathered(windows, fields, rows, copied_floats, filled_floats)
        return {"calls": 1, "groups": fields["groups"]} | moved | scaled(products, fields["groups"])

    return counts


def depthwise(fields: Fields, *, eights: bool) -> CountsOf:
    """dwconv2d_f32: `eights`, channels eight at a time and the last ones singly, or all singly."""
    windows = Windows(fields)
    channels = fields["dims.input_channels"]
    blocks = {"ones": fields["dims.output_channels"]}
    if eights:
        blocks = {"eights": channels // 8, "ones": channels % 8}
    taps_in_row = int(windows.cols.sum())

    def counts(rows: Interval) -> Counts:
        window_rows_read = int(windows.rows(rows).sum())
        loop_counts = window_rows(windows, rows) | {"calls": 1, "pixels": len(rows) * windows.outputs}
        for name, count in blocks.items():
            loop_counts |= {
                name: len(rows) * windows.outputs * count,
                f"lines_of_{name}": window_rows_read * windows.outputs * count,
                f"taps_of_{name}": window_rows_read * taps_in_row * count,
            }
        return loop_counts

    return counts


def full(fields: Fields) -> CountsOf:
    """conv2d_f32_full: every row by every four channels."""
    rows, values, channels = fields["input_rows"], fields["row_values"], fields["output_channels"]
    records = -(-channels // 4)
    sums = scaled(_sums(values, 1), records * rows)
    return lambda _: {"calls": 1, "rows": rows, "records_1": records} | sums | _finished(channels)


def by_rows(fields: Fields, input_rows: int) -> CountsOf:
    """conv2d_f32_by_rows: all rows form one run; the first begins the sums, the last ends them."""
    channels = fields["output_channels"]
    records = -(-channels // 4)

    def counts(rows: Interval) -> Counts:
        sums = scaled(_sums(len(rows) * fields["row_values"], 1), records)
        begun = {"begun": records} if rows.lo == 0 else {}
        ended = {"ended": records} | _finished(channels) if rows.hi == input_rows else {}
        return {"calls": 1} | sums | begun | ended

    return counts


def to_rows(fields: Fields) -> CountsOf:
    """conv2d_f32_to_rows: every row is a pixel with separate weights."""
    pixel = _pixel(fields["row_channels"], fields["input_channels"])
    return counts_of_rows({"rows": 1} | pixel)


def copied_floats(values: int, times: int) -> Counts:
    return {"moves": times, "copied": times * values}


def filled_floats(values: int, times: int) -> Counts:
    return {"fills": times, "filled": times * values}


def _sums(values: int, pixels: int) -> Counts:
    """Counts of one run of values by four channels: four pixels take two values at a time, one pixel four."""
    at_once = 2 if pixels == _PIXELS else 4
    return {
        f"sums_{pixels}": 1,
        f"turns_{pixels}": values // at_once,
        f"rest_{pixels}": values % at_once,
    }


def _finished(channels: int, pixels: int = 1) -> Counts:
    """Counts of clamping sums, four at a time or singly; see mcud_finish_f32."""
    return {"clamped_4": pixels * (channels // 4), "clamped_1": pixels * (channels % 4)}


def _block(channels: int, depth: int) -> Counts:
    """Counts of four pixels by all channels; see mcud_pixels_f32."""
    records = -(-channels // 4)
    sums = scaled(_sums(depth, _PIXELS), records)
    return {"blocks_4": 1} | sums | _finished(channels, _PIXELS)


def _pixel(channels: int, depth: int) -> Counts:
    """Counts of one pixel by eight channels at a time, then by four; see mcud_pixel_f32."""
    eights, fours = channels // 8, -(-(channels % 8) // 4)
    return (
        {
            "blocks_1": 1,
            "eights": eights,
            "eight_turns": eights * (depth // 4),
            "eight_rest": eights * (depth % 4),
        }
        | scaled(_sums(depth, 1), fours)
        | _finished(channels % 8)
    )
