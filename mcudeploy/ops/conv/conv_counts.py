"""Loop counts of the convolution kernels; the cost of a call is their weighted sum.

Each function follows one kernel of firmware/kernels: its blocks of pixels and channels, and the padding in
its windows. To *expand* int8 values is to widen them to 16 bits in scratch. A "turn" is a pass of an
unrolled loop: several groups of values, or one of the last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, CountsOf
from mcudeploy.ops.common import filled, merged, moved, scaled
from mcudeploy.ops.conv.packing import GROUP
from mcudeploy.ops.conv.windows import Windows

Fields = Mapping[str, Any]
"""Parameters of a kernel, by name."""
RunCounts = Callable[[int, int], Counts]
"""Counts by two numbers: of a product, by its channels and values; of copies, by their size and number."""
Blocks = Callable[[int, int, int, int], Counts]
"""Counts of products, by the number of pixels, the most pixels at a time, channels, and groups of values."""

_UNROLLED_PIXELS = 4
"""Groups in a turn of a block of pixels, see mcud_simd_dsp.h."""
_UNROLLED_DUAL = 4
"""Groups in a turn, see mcud_dual_dsp.h."""
_UNROLLED_PIXEL = 8
"""Groups in a turn of one pixel by four channels."""


def pixel_blocks(pixels: int, most: int) -> dict[int, int]:
    """Numbers of blocks of 3, 2 and 1 pixels that conv2d_s8 and conv2d_s8_1x1 take; see mcud_next_pixels."""
    if most < 3:
        return {2: pixels // 2, 1: pixels % 2}
    twos = {0: 0, 1: 2, 2: 1}[pixels % 3] if pixels > 1 else 0
    threes = max(0, pixels - 2 * twos) // 3
    return {3: threes, 2: twos, 1: pixels - 3 * threes - 2 * twos}


def pointwise(fields: Fields, multiplied: Blocks | None = None) -> CountsOf:
    """conv2d_s8_1x1: pixels of all rows are expanded, three or two at a time, and multiplied."""
    multiply = multiplied or _multiplied
    depth, cols = fields["dims.input_channels"], fields["dims.output_cols"]

    def counts(rows: Interval) -> Counts:
        pixels = len(rows) * cols
        products = multiply(pixels, 3, fields["dims.output_channels"], fields["groups"])
        return {"calls": 1, "rows": len(rows)} | merged(products, scaled(expanded(depth), pixels))

    return counts


def general(fields: Fields, multiplied: Blocks | None = None) -> CountsOf:
    """conv2d_s8: windows are expanded, `most_pixels` at a time and across rows, and multiplied."""
    read, multiply = windows_expanded(fields), multiplied or _multiplied

    def counts(rows: Interval) -> Counts:
        pixels = len(rows) * fields["dims.output_cols"]
        products = multiply(pixels, fields["most_pixels"], fields["group_outputs"], fields["patch_groups"])
        each = merged(read(rows), products)
        return {"calls": 1, "groups": fields["groups"]} | scaled(each, fields["groups"])

    return counts


def windows_expanded(fields: Fields) -> CountsOf:
    """Counts of expanding the windows of one group of conv2d_s8."""
    values, channels = fields["run_values"], fields["dims.input_channels"]
    all_groups = -(-values // GROUP)
    in_one_run = fields["row_runs"] == 1
    windows = Windows(fields)
    border = windows.cols < fields["window.kernel_cols"] if in_one_run else windows.cols >= 0
    inner, outer = int((~border).sum()), int(border.sum())
    parts: list[Counts] = []
    for taps in windows.cols[border].tolist():
        if not in_one_run:
            outside = fields["window.kernel_cols"] - taps
            inside = scaled(expanded(values), taps)
            parts.append(merged(inside, {"padding": outside * all_groups, "runs": outside}))
        elif taps == 0:
            parts.append({"padding": all_groups, "runs": 1})
        elif channels % GROUP:
            parts.append(merged(expanded(values), filled(values), _copied(taps * channels)))
        else:
            outside = (values - taps * channels) // GROUP
            parts.append(merged(expanded(taps * channels), {"padding": outside, "runs": 2}))
    # Counts of one row of all windows of an output row: inside the input, and in the padding.
    reached = merged(*parts, scaled(expanded(values), inner))
    runs = inner + outer * fields["row_runs"]
    missed = {"padding": runs * all_groups, "runs": runs}

    def counts(rows: Interval) -> Counts:
        inside = windows.rows(rows)
        reading = int(inside.sum())
        return merged(
            {"rows": len(rows), "row_taps": reading, "inner": len(rows) * inner, "border": len(rows) * outer},
            scaled(reached, reading),
            scaled(missed, len(rows) * fields["window.kernel_rows"] - reading),
        )

    return counts


def deep(fields: Fields, multiplied: RunCounts | None = None) -> CountsOf:
    """conv2d_s8_deep: windows are gathered in turn and multiplied to four channels at a time."""
    windows = Windows(fields)
    values = 4 * fields["patch_groups"]

    def counts(rows: Interval) -> Counts:
        pixels = len(rows) * fields["dims.output_cols"] * fields["groups"]
        products = (multiplied or _fours)(fields["group_outputs"], values)
        read = window_rows(windows, rows) | gathered(windows, fields, rows, moved, filled)
        return {"calls": 1} | read | scaled(products, pixels)

    return counts


def direct(fields: Fields, multiplied: RunCounts | None = None) -> CountsOf:
    """conv2d_s8_1x1_direct: each pixel is multiplied in place, to four channels at a time."""

    def counts(rows: Interval) -> Counts:
        pixels = len(rows) * fields["dims.output_cols"]
        products = (multiplied or _fours)(fields["dims.output_channels"], fields["dims.input_channels"])
        return {"calls": 1, "rows": len(rows), "pixels": pixels} | scaled(products, pixels)

    return counts


def dual(fields: Fields, together: int) -> CountsOf:
    """conv2d_s8_1x1_dual: each pixel is multiplied in place, to `together` channels at a time."""
    cols, groups = fields["dims.output_cols"], fields["dims.input_channels"] // GROUP
    channels = fields["dims.output_channels"]

    def counts(rows: Interval) -> Counts:
        pixels = len(rows) * cols
        records = pixels * -(-channels // together)
        return {
            "calls": 1,
            "rows": len(rows),
            "pixels": pixels,
            "records": records,
            "groups": records * groups,
            "turns": records * -(-groups // _UNROLLED_DUAL),
            "last": pixels * int(channels % together > 0),
        }

    return counts


def full(fields: Fields) -> CountsOf:
    """conv2d_s8_full: rows are contiguous if they are whole groups."""
    rows, values = fields["input_rows"], fields["row_values"]
    together = rows == 1 or values % GROUP == 0
    outputs = fields["output_channels"]
    products = _fours(outputs, rows * values) if together else _dots(outputs, values, rows)
    return lambda _: {"calls": 1} | products


def by_rows(fields: Fields, input_rows: int) -> CountsOf:
    """conv2d_s8_by_rows: rows of whole groups form one run; the first row begins the sums, the last ends
    them.
    """
    outputs, values = fields["output_channels"], fields["row_values"]
    records = outputs // 4 + outputs % 4

    def counts(rows: Interval) -> Counts:
        runs, length = (1, len(rows) * values) if values % GROUP == 0 else (len(rows), values)
        begun = {"begun": records} if rows.lo == 0 else {}
        ended = {"ended": records, "results": outputs} if rows.hi == input_rows else {}
        return {"calls": 1, "runs": runs} | _dots(outputs, length, runs, finish=False) | begun | ended

    return counts


def with_total(counts: CountsOf, fields: Fields) -> CountsOf:
    """conv2d_s8_by_rows of weights of nine bits: also the sum of the input, and its products."""
    values, outputs = fields["row_values"], fields["output_channels"]
    return lambda rows: counts(rows) | {"summed": len(rows) * values, "offsets": outputs}


def to_rows(fields: Fields) -> CountsOf:
    """conv2d_s8_to_rows: rows of whole fours of channels form one run."""
    depth, channels = fields["input_channels"], fields["row_channels"]

    def counts(rows: Interval) -> Counts:
        together = len(rows) if channels % 4 == 0 else 1
        pixels = len(rows) // together
        return {"calls": 1, "pixels": pixels} | scaled(_fours(together * channels, depth), pixels)

    return counts


def depthwise(fields: Fields) -> CountsOf:
    """dwconv2d_s8: windows inside the input share a list of taps, which are multiplied in pairs."""
    windows = Windows(fields)
    kernel_rows, kernel_cols = fields["window.kernel_rows"], fields["window.kernel_cols"]
    taps, channels = kernel_rows * kernel_cols, fields["dims.channels"]
    fours, rest = divmod(channels, 4)
    inner = int((windows.cols == kernel_cols).sum())
    lists_inside = windows.outputs - inner + min(inner, 1)
    taps_in_row = int(windows.cols.sum())
    taps_inside = taps_in_row - max(inner - 1, 0) * kernel_cols

    def counts(rows: Interval) -> Counts:
        inside = windows.rows(rows)
        whole = int((inside == kernel_rows).sum())
        lists = whole * lists_inside + (len(rows) - whole) * windows.outputs
        pixels = len(rows) * windows.outputs
        return window_rows(windows, rows) | {
            "calls": 1,
            "lists": lists,
            "list_rows": lists * kernel_rows,
            "listed": lists * taps,
            "found": whole * kernel_rows * taps_inside
            + int(inside[inside < kernel_rows].sum()) * taps_in_row,
            "pixels": pixels,
            "records": pixels * fours,
            "pairs": pixels * fours * (taps // 2),
            "turns": pixels * fours * _turns(taps // 2, 4),
            "odd": pixels * fours * (taps % 2),
            "last": pixels * rest,
            "last_pairs": pixels * rest * (taps // 2),
            "last_odd": pixels * rest * (taps % 2),
        }

    return counts


def multiplied(fields: Fields) -> CountsOf:
    """dwconv2d_s8_multiplied: taps inside and in the padding are listed when they change."""
    windows = Windows(fields)
    cols, taps = windows.cols, fields["window.kernel_rows"] * fields["window.kernel_cols"]
    lists_in_row = 1 + int((cols[1:] != cols[:-1]).sum())
    outputs = fields["dims.output_channels"]

    def counts(rows: Interval) -> Counts:
        reading = int(windows.rows(rows).sum()) * int(cols.sum())
        pixels = len(rows) * windows.outputs
        return window_rows(windows, rows) | {
            "calls": 1,
            "lists": len(rows) * lists_in_row,
            "listed": len(rows) * lists_in_row * taps,
            "pixels": pixels,
            "pixel_channels": pixels * fields["dims.input_channels"],
            "outputs": pixels * outputs,
            "taps": reading * outputs,
            "padding": (pixels * taps - reading) * outputs,
        }

    return counts


def _copied(values: int) -> Counts:
    """Counts of copying a part of a window: 16 bytes at a time, then words, and the rest."""
    return {
        "moves": 1,
        "copied_16": values // 16,
        "copied_words": values % 16 // 4,
        "copied_rest": values % 4,
    }


def _turns(groups: int, unrolled: int) -> int:
    return groups // unrolled + groups % unrolled


def expanded(values: int) -> Counts:
    """Counts of expanding a run of values to 16 bits: eight, then four, then the rest."""
    return {
        "runs": 1,
        "eights": values // 8,
        "four": values % 8 // GROUP,
        "rest": int(values % GROUP > 0),
    }


def _multiplied(pixels: int, most: int, channels: int, groups: int) -> Counts:
    """Counts of multiplying blocks of pixels to two channels at a time."""
    pairs, blocks = -(-channels // 2), pixel_blocks(pixels, most)
    counts: Counts = {}
    for size, times in blocks.items():
        counts |= {
            f"blocks_{size}": times,
            f"records_{size}": times * pairs,
            f"groups_{size}": times * pairs * groups,
            f"turns_{size}": times * pairs * _turns(groups, _UNROLLED_PIXELS),
        }
    return counts | {"odd": channels % 2 * sum(blocks.values())}


def _fours(channels: int, values: int) -> Counts:
    """Counts of multiplying a pixel of `values` values to four channels at a time; see mcud_pixel_s8."""
    if values % GROUP:
        return _dots(channels, values, 1)
    (records, ones), groups = divmod(channels, 4), values // GROUP
    return {
        "records": records,
        "groups": records * groups,
        "turns": records * _turns(groups, _UNROLLED_PIXEL),
        "ones": ones,
        "one_groups": ones * groups,
    }


def _dots(channels: int, values: int, runs: int, *, finish: bool = True) -> Counts:
    """Counts of multiplying `runs` runs of `values` to four channels at a time, then to one.

    Each run may end with a part of a group.
    """
    (fours, ones), groups = divmod(channels, 4), values // GROUP
    counts: Counts = {
        "dots": fours * runs,
        "groups": fours * runs * groups,
        "turns": fours * runs * _turns(groups, _UNROLLED_PIXEL),
        "tails": (fours + ones) * runs * int(values % GROUP > 0),
        "ones": ones * runs,
        "one_groups": ones * runs * groups,
    }
    return counts | {"sums": fours + ones, "results": channels} if finish else counts


def window_rows(windows: Windows, rows: Interval) -> Counts:
    """Counts of looking up the rows of the input under each row of the output."""
    return {"rows": len(rows), "row_taps": int(windows.rows(rows).sum())}


def gathered(
    windows: Windows, fields: Fields, rows: Interval, copied: RunCounts, filled: RunCounts
) -> Counts:
    """mcud_gather for every pixel and group: rows of windows are copied, and filled if taps are missing.

    `copied` and `filled` take the length of a run and the number of runs.
    """
    kernel_rows, kernel_cols = fields["window.kernel_rows"], fields["window.kernel_cols"]
    values = fields["group_inputs"]
    one_run = fields["window.dilation_cols"] * fields["dims.input_channels"] == fields["group_inputs"]
    reading = int(windows.rows(rows).sum())
    missing = len(rows) * kernel_rows - reading
    copies = [
        copied(taps * values, times) if one_run else copied(values, taps * times)
        for taps, times in windows.col_kinds
    ]
    fills = reading * int((windows.cols < kernel_cols).sum()) + missing * windows.outputs
    pixels = len(rows) * windows.outputs
    each = merged(
        {"pixels": pixels, "window_rows": pixels * kernel_rows},
        scaled(merged(*copies), reading),
        filled(kernel_cols * values, fills),
    )
    return scaled(each, fields["groups"])
