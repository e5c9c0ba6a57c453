"""Loop counts of the convolution kernels for cores with vectors; see conv_counts.py."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, CountsOf
from mcudeploy.ops.common import merged, scaled
from mcudeploy.ops.conv.conv_counts import Fields, window_rows
from mcudeploy.ops.conv.packing import VECTOR
from mcudeploy.ops.conv.windows import Windows

_POINTERS = 4
"""Pointers of a list of taps that fill a vector."""


def pixel_blocks(pixels: int, most: int) -> dict[int, int]:
    """Return the number of blocks of each size, up to `most` pixels; see mcud_vector_next_pixels."""
    blocks = dict.fromkeys(range(most, 0, -1), 0)
    blocks[most], left = divmod(pixels, most)
    if most == 3 and left == 1 and pixels > 1:
        blocks[3], blocks[2], left = blocks[3] - 1, 2, 0
    if left:
        blocks[left] += 1
    return blocks


Multiplied = Callable[[dict[int, int], int, int], Counts]
"""The counts of the products of runs of pixels (their number, by length), for some channels and a depth."""


def pointwise(fields: Fields) -> CountsOf:
    """conv2d_s8_1x1_mve: pixels of rows that follow each other in memory are one run."""
    channels, depth = fields["dims.output_channels"], fields["dims.input_channels"]
    cols = fields["dims.output_cols"]
    joined = fields["stride_rows"] == 1 and fields["pixel_step"] == depth

    def counts(rows: Interval) -> Counts:
        runs = {len(rows) * cols: 1} if joined else {cols: len(rows)}
        return {"calls": 1, "rows": len(rows)} | multiplied(runs, channels, depth, reads_on=False)

    return counts


def general(fields: Fields) -> CountsOf:
    """conv2d_s8_mve: windows are gathered, those with padding one by one, and multiplied; those of a column
    where they lie.
    """
    usual = gathered(fields, multiplied)
    windows, depth = Windows(fields), fields["patch_values"]

    def counts(rows: Interval) -> Counts:
        first, end = _without_padding(windows, fields["window.kernel_rows"], rows)
        padded = [usual(part) for part in (Interval(rows.lo, first), Interval(end, rows.hi)) if part]
        runs = {end - first: 1} if end > first else {}
        products = multiplied(runs, fields["group_outputs"], depth, reads_on=False)
        return merged(*padded, {"rows": len(runs)} | products) | {"calls": 1, "groups": 1}

    return counts if fields["is_column"] else usual


def _without_padding(windows: Windows, kernel_rows: int, rows: Interval) -> tuple[int, int]:
    """The first and end of the rows whose windows have no padding above and below."""
    (inside,) = np.nonzero(windows.rows(rows) == kernel_rows)
    return (rows.lo + int(inside[0]), rows.lo + int(inside[-1]) + 1) if len(inside) else (rows.hi, rows.hi)


def gathered(fields: Fields, multiplied: Multiplied) -> CountsOf:
    """The loops of conv2d_s8_gathered.h."""
    windows = Windows(fields)
    kernel_rows, values = fields["window.kernel_rows"], fields["group_inputs"]
    inner = fields["end_inside"] - fields["first_inside"]
    patch, pixels_at_once = whole_vectors(fields["patch_values"]), fields["pixels"]

    def copies(columns: range) -> Counts:
        piece_counts: list[Counts] = []
        for col in columns:
            taps = int(windows.cols[col])
            runs, size = (1, taps * values) if fields["in_runs"] else (taps, values)
            piece_counts.append({"copies": runs, "copied": runs * whole_vectors(size), "lines": 1})
        return merged({"copies": 0, "copied": 0, "lines": 0}, *piece_counts)

    # Counts of copying one kernel row of windows: of all, of those inside the input, and of the others.
    anywhere = copies(range(windows.outputs))
    within = copies(range(fields["first_inside"], fields["end_inside"]))
    around = {name: anywhere[name] - within[name] for name in anywhere}

    def counts(rows: Interval) -> Counts:
        inside = windows.rows(rows)
        whole = int((inside == kernel_rows).sum())  # output rows whose windows are inside
        part = int(inside.sum()) - whole * kernel_rows  # kernel rows inside, of the other output rows
        pixels = len(rows) * windows.outputs
        joined = whole * inner  # windows inside the input
        products = multiplied(
            pixel_blocks(pixels, pixels_at_once), fields["group_outputs"], fields["patch_values"]
        )
        each: list[Counts] = [
            window_rows(windows, rows),
            scaled(around, whole * kernel_rows),
            scaled(anywhere, part),
            {"border": pixels - joined, "filled": (pixels - joined) * patch},
            {"inner": joined, "inner_lines": joined * kernel_rows},
            {"inner_vectors": joined * kernel_rows * whole_vectors(fields["row_values"])},
            {"takes": -(-joined // pixels_at_once) + whole * int(inner > 0)},
            products,
        ]
        return {"calls": 1, "groups": fields["groups"]} | scaled(merged(*each), fields["groups"])

    return counts


def first(fields: Fields) -> CountsOf:
    """conv2d_s8_first_mve: the columns under a row of windows are written row by row, and multiplied."""
    windows, channels = Windows(fields), fields["dims.input_channels"]
    kernel_rows, outputs = fields["window.kernel_rows"], fields["dims.output_cols"]
    columns = (outputs - 1) * fields["window.stride_cols"] + fields["window.kernel_cols"]
    start = -fields["window.pad_left"]
    inside = max(0, min(start + columns, fields["dims.input_cols"]) - max(0, start))
    at_once = VECTOR // channels * channels
    # Vectors of padding of a row of windows: of all columns, or of those outside the input.
    whole, part = (whole_vectors(it * channels * kernel_rows) for it in (columns, columns - inside))
    depth = channels * kernel_rows * fields["window.kernel_cols"]
    products = multiplied({outputs: 1}, fields["dims.output_channels"], depth)

    def counts(rows: Interval) -> Counts:
        read_rows = windows.rows(rows)  # input rows under each row of windows
        full = int((read_rows == kernel_rows).sum())
        taps = int(read_rows.sum())
        moved = {"taps": taps, "moves": taps * -(-inside * channels // at_once)}
        filled = {"filled": full * part + (len(rows) - full) * whole}
        return {"calls": 1, "rows": len(rows)} | moved | filled | scaled(products, len(rows))

    return counts


def full(fields: Fields) -> CountsOf:
    """conv2d_s8_full_mve: every row by every two channels."""
    pairs, rows = -(-fields["output_channels"] // 2), fields["input_rows"]
    lines = pairs * rows
    vectors = lines * whole_vectors(fields["row_values"])
    return lambda _: {"calls": 1, "pairs": pairs, "lines": lines, "vectors": vectors}


def by_rows(fields: Fields, input_rows: int) -> CountsOf:
    """conv2d_s8_by_rows_mve: the first rows begin the sums, the last ones end them."""
    outputs = fields["output_channels"]
    pairs = -(-outputs // 2)

    def counts(rows: Interval) -> Counts:
        lines = len(rows) * pairs
        begun = {"begun": pairs} if rows.lo == 0 else {}
        ended = {"ended": outputs} if rows.hi == input_rows else {}
        vectors = lines * whole_vectors(fields["row_values"])
        return {"calls": 1, "rows": len(rows), "lines": lines, "vectors": vectors} | begun | ended

    return counts


@dataclass(frozen=True, slots=True)
class TapLists:
    """The lists of taps of dwconv2d_s8_taps.h: windows inside the input share one in each row."""

    windows: Windows
    kernel_rows: int
    kernel_cols: int
    inner: int
    """Output columns whose windows have no padding on the left and right."""

    @classmethod
    def of(cls, fields: Fields) -> TapLists:
        """Return the lists of taps of a call."""
        inner = fields["end_inside"] - fields["first_inside"]
        return cls(Windows(fields), fields["window.kernel_rows"], fields["window.kernel_cols"], inner)

    @property
    def taps(self) -> int:
        """The taps of a window."""
        return self.kernel_rows * self.kernel_cols

    def joined(self, counts: CountsOf, products: Callable[[int, int], Counts]) -> CountsOf:
        """Return `counts`, in which rows of one window without padding share the list of the first one.

        `products`: of a number of windows, by the pixels of each.
        """
        if self.windows.outputs > 1 or self.inner == 0:
            return counts

        def of_column(rows: Interval) -> Counts:
            first, end = _without_padding(self.windows, self.kernel_rows, rows)
            if end - first < 2:
                return counts(rows)
            listed = [counts(part) for part in (Interval(rows.lo, first + 1), Interval(end, rows.hi)) if part]
            return merged(*listed, products(end - first - 1, 1)) | {"calls": 1}

        return of_column

    def whole(self, rows: Interval) -> int:
        """Return the number of rows whose windows have no padding above and below."""
        return int((self.windows.rows(rows) == self.kernel_rows).sum())

    def counts(self, rows: Interval) -> Counts:
        """Return the counts of the lists."""
        whole, outputs = self.whole(rows), self.windows.outputs
        lists = whole * (outputs - self.inner + min(self.inner, 1)) + (len(rows) - whole) * outputs
        return window_rows(self.windows, rows) | {
            "calls": 1,
            "lists": lists,
            "list_rows": lists * self.kernel_rows,
            "list_vectors": lists * self.kernel_rows * -(-self.kernel_cols // _POINTERS),
        }


def depthwise(fields: Fields) -> CountsOf:
    """dwconv2d_s8_mve: windows inside the input share a list of taps; a vector holds several of few
    channels.
    """
    tap_lists = TapLists.of(fields)
    taps, channels, at_once = tap_lists.taps, fields["dims.channels"], fields["pixels"]
    inner = tap_lists.inner

    def products(windows: int, pixels: int) -> Counts:
        if windows * pixels == 0:
            return {}
        blocks = windows * whole_vectors(pixels * channels)
        ragged = windows * int(pixels * channels % VECTOR > 0)
        return {
            "runs": 1,
            "ragged_runs": int(ragged > 0),
            "ragged": ragged,
            "windows": windows,
            "blocks": blocks,
            "pairs": blocks * (taps // 2),
            "odd": blocks * (taps % 2),
        }

    alone = products(1, 1)
    together = merged(products(inner // at_once, at_once), products(1, inner % at_once))

    def counts(rows: Interval) -> Counts:
        listed, whole = tap_lists.counts(rows), tap_lists.whole(rows)
        ones = listed["lists"] - (whole if inner else 0)
        return listed | merged(scaled(alone, ones), scaled(together, whole))

    return tap_lists.joined(counts, products)


def by_four_rows(fields: Fields) -> CountsOf:
    """dwconv2d_s8_rows_mve: in parts of the columns, blocks of rows are interleaved and multiplied."""
    stride, cols, most_cols = fields["window.stride_cols"], fields["dims.output_cols"], fields["most_outputs"]
    widths = [min(most_cols, cols - col) for col in range(0, cols, most_cols)]
    lefts = [part * most_cols * stride - fields["window.pad_left"] for part in range(len(widths))]
    spans = [(left, left + (width - 1) * stride + 3) for left, width in zip(lefts, widths, strict=True)]
    inside = sum(max(0, min(right, fields["dims.input_cols"]) - max(0, left)) for left, right in spans)
    # Outputs of a row that a step computes, and rows that it computes together.
    step, pair = (2, 2 if fields["window.stride_rows"] == 1 else 1) if stride == 1 else (4, 1)
    channels, most_blocks = fields["dims.channels"], fields["most_blocks"]
    sixteens = whole_vectors(channels)

    def counts(rows: Interval) -> Counts:
        pairs, singles = divmod(len(rows), pair)
        blocks = pairs + singles
        most = max(1, min(pairs, most_blocks))
        calls = -(-pairs // most) + singles
        return {
            "calls": 1,
            "parts": len(widths),
            "blocks": blocks * len(widths),
            "groups": calls * sixteens * len(widths),
            "columns": blocks * sixteens * inside,
            "channels": calls * channels * len(widths),
            "rows": blocks * channels * len(widths),
            "twos": blocks * channels * sum(width // step // 2 for width in widths),
            "steps": blocks * channels * sum(width // step % 2 + (width % step > 0) for width in widths),
        }

    return counts


def by_lines(fields: Fields) -> CountsOf:
    """dwconv2d_s8_lines_mve: in parts of the columns, pairs of rows are written to lines, and multiplied."""
    cols, most, stride = fields["dims.output_cols"], fields["most_outputs"], fields["window.stride_cols"]
    columns = [*range(0, cols - most, most), cols - most]  # all parts are as wide, so the last may overlap
    lefts = [col * stride - fields["window.pad_left"] for col in columns]
    width = (most - 1) * stride + fields["kernel_cols"]
    inside = sum(max(0, min(left + width, fields["dims.input_cols"]) - max(0, left)) for left in lefts)
    channels, at_once = fields["dims.channels"], fields["rows"]
    pairs = whole_vectors(channels) * fields["height"] // 2
    parts, together = len(columns), at_once if fields["vectors"] == 2 else 1
    filled = whole_vectors(min(channels, VECTOR) * fields["line"])

    def counts(rows: Interval) -> Counts:
        blocks = -(-len(rows) // at_once)
        twos = len(rows) // 2 if together == 2 else 0
        runs = (twos + len(rows) - 2 * twos) * parts * channels
        steps = (twos * -(-most // 2) + (len(rows) - 2 * twos) * -(-most // 4)) * parts * channels
        return {
            "calls": 1,
            "parts": parts,
            "filled": parts * filled,
            "blocks": blocks * parts,
            "groups": blocks * parts * whole_vectors(channels),
            "pairs": blocks * parts * pairs,
            "columns": blocks * inside * pairs,
            "channels": blocks * parts * channels,
            "runs": runs,
            "steps": steps,
        }

    return counts


def whole_vectors(values: int) -> int:
    """The vectors that values fill, the last one in part."""
    return -(-values // VECTOR)


def multiplied(runs: dict[int, int], channels: int, depth: int, *, reads_on: bool = True) -> Counts:
    """Counts of runs of pixels (their number, by length) by fours of channels, the last four copied.

    Unless a kernel `reads_on` past the end of the last pixel, it takes that pixel of a ragged depth alone.
    """
    fours = -(-channels // 4)
    counts: dict[str, int] = defaultdict(int)
    vectors = whole_vectors(depth)
    for pixels, times in runs.items():
        counts["runs"] += times
        counts["copied_pixels"] += pixels * times if channels % 4 else 0
        left, alone = pixels, int(depth % VECTOR > 0 and not reads_on)
        if depth <= 2 * VECTOR:
            size, name = (3, "shallow") if depth <= VECTOR else (2, "middle")
            blocks, left = divmod(pixels, size)
            if left == 2:  # a third pixel is another one again
                blocks, left = blocks + 1, 0
            if blocks:
                counts["blocks"] += blocks * times
                counts[name] += blocks * times * fours
        else:
            for size in (4, 2):
                blocks = (left - alone) // size
                left -= blocks * size
                if blocks:  # not every kernel takes blocks of each size
                    counts["blocks"] += blocks * times
                    counts[f"fours_{size}"] += blocks * times * fours
                    counts[f"vectors_{size}"] += blocks * times * fours * vectors
        if left:
            counts["singles"] += left * times
            counts["fours_1"] += left * times * fours
            counts["vectors_1"] += left * times * fours * vectors
    return dict(counts)
