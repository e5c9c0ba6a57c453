"""Loop counts of the gradients and updates of training steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, CountsOf

WIDENED = 64
"""Input channels whose int8 weights a gradient widens at a time."""
_LINES = 4
"""Channels that are summed at a time."""


def input_gradient_counts(fields: Mapping[str, Any]) -> CountsOf:
    """Counts of conv2d_f32_input_gradient, and of its forms for grouped and for depthwise weights."""
    dense, groups = "multiplier" not in fields, fields.get("groups", 1)
    inputs, outputs = fields["dims.input_channels"], fields["dims.output_channels"] // groups
    eights = inputs // 8 if groups == 1 else 0
    blocks, single = (groups * count for count in divmod(inputs // groups - 8 * eights, _LINES))

    def products(pixels: int, pairs: int) -> Counts:
        if not dense and inputs == outputs:
            return {"eights": pixels * (inputs // 8), "ones": pixels * (inputs % 8)}
        if not dense:
            return {"tap_inputs": pixels * inputs, "products": pixels * outputs}
        if groups > 1:  # grouped weights multiply single pixels
            by_pairs, single_pixels = {"groups": pixels * groups}, pixels
        else:
            single_pixels = pixels - 2 * pairs
            by_pairs = {
                "pair_blocks": pairs * blocks,
                "pair_fours": pairs * blocks * outputs,
                **_lines_of_eight(pairs * eights, outputs, 2),
                **_lines_of_eight(single_pixels * eights, outputs, 1),
            }
        return {
            **by_pairs,
            "blocks": single_pixels * blocks,
            "fours": single_pixels * blocks * outputs,
            "single": pixels * single,
            "single_products": pixels * single * outputs,
        }

    plain = _gradient_counts(fields, products)
    if dense or inputs != outputs:
        return plain

    def counts(rows: Interval) -> Counts:
        sizes = plain(rows)
        lines = {"lines_of_eights": inputs // 8, "lines_of_ones": inputs % 8}
        return sizes | {name: sizes["tap_cols"] * count for name, count in lines.items()}

    return counts


def _lines_of_eight(count: int, outputs: int, pixels: int) -> Counts:
    """Counts of `count` blocks of eight input channels; each takes all output channels, four at a time."""
    return {
        f"eights_{pixels}": count,
        f"turns_{pixels}": count * (outputs // _LINES),
        f"rest_{pixels}": count * (outputs % _LINES),
    }


def packed_gradient_counts(fields: Mapping[str, Any]) -> CountsOf:
    """Counts of conv2d_f32_packed_gradient."""
    inputs, outputs = fields["dims.input_channels"], fields["dims.output_channels"]
    blocks = -(-outputs // _LINES)

    def products(pixels: int, _: int) -> Counts:
        return {
            "blocks": pixels * blocks,
            "incomplete": pixels * int(outputs % _LINES > 0),
            "sixteens": pixels * blocks * (inputs // _LINES),
            "single": pixels * blocks * (inputs % _LINES),
        }

    return _gradient_counts(fields, products)


def widened_gradient_counts(fields: Mapping[str, Any]) -> CountsOf:
    """Counts of conv2d_f32_packed_gradient_s8w."""
    inputs, outputs = fields["dims.input_channels"], fields["dims.output_channels"]
    blocks, parts = -(-outputs // _LINES), -(-inputs // WIDENED)
    taps = fields["window.kernel_cols"]
    plain = packed_gradient_counts(fields)

    def counts(rows: Interval) -> Counts:
        sizes = plain(rows)
        lines = sizes["tap_rows"] * taps * blocks
        repeated = {name: sizes[name] * parts for name in ("blocks", "incomplete")}
        return {**sizes, **repeated, "lines": lines * parts, "widened": lines * inputs}

    return counts


def _gradient_counts(fields: Mapping[str, Any], products: Callable[[int, int], Counts]) -> CountsOf:
    """Counts of the walk over rows, taps and columns. `products`: a function from the number of pixels, and
    of pairs among these, to the counts of their products.
    """
    reach = _TapReach.of(fields)
    inputs = fields["dims.input_channels"]
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
        return sizes | products(pixels, tap_rows * reach.col_pairs)

    return counts


def pool_gradient_counts(fields: Mapping[str, Any]) -> CountsOf:
    """Counts of maxpool_f32_gradient and avgpool_f32_gradient."""
    reach, largest = _TapReach.of(fields), "dims.channels" in fields
    channels = fields["dims.channels" if largest else "dims.input_channels"]
    kernel_rows, kernel_cols = fields["window.kernel_rows"], fields["window.kernel_cols"]

    def counts(rows: Interval) -> Counts:
        tap_rows = sum(1 for row in range(rows.lo, rows.hi) for places in reach.rows if row in places)
        pixels = tap_rows * (fields["dims.output_cols"] if largest else reach.col_pixels)
        sizes: Counts = {
            "calls": 1,
            "rows": len(rows),
            "row_values": len(rows) * fields["dims.input_cols"] * channels,
            "tests": len(rows) * kernel_rows,
            "tap_rows": tap_rows,
            "pixels": pixels,
            "values": pixels * channels,
        }
        return sizes if largest else sizes | {"tap_cols": tap_rows * kernel_cols}

    return counts


def update_counts(fields: Mapping[str, Any], *, by_rows: bool = False) -> CountsOf:
    """Counts of conv2d_f32_update and dwconv2d_f32_update.

    `by_rows`: a step takes a block of rows of the gradient, else all of them.
    """
    reach = _TapReach.of(fields)
    every = Interval(0, fields["output_rows"])
    inputs, outputs = fields["dims.input_channels"], fields["dims.output_channels"]
    kernel_cols, dense = fields["window.kernel_cols"], "multiplier" not in fields
    one_pixel = fields["output_rows"] == fields["dims.output_cols"] == 1
    count = outputs * (inputs if dense else 1)
    parts = _blocks(outputs, inputs) if dense else _channels(fields)

    def counts(rows: Interval) -> Counts:
        step = rows if by_rows else every
        tap_rows = [reach.rows_in(tap, step) for tap in range(fields["window.kernel_rows"])]
        has_sums = bool(fields["in_place"]) or len(step) < len(every)
        taps = kernel_cols * (sum(1 for each in tap_rows if each) if has_sums else len(tap_rows))
        rows_of_taps, pixels = sum(tap_rows) * kernel_cols, sum(tap_rows) * reach.col_pixels
        joined = sum(each - 1 for each in tap_rows if each) * reach.joined_cols
        sizes: Counts = {"calls": 1, "taps": taps, "tap_rows": rows_of_taps}
        runs = rows_of_taps - joined
        sizes |= _sum_counts(fields, count * kernel_cols * len(tap_rows), (step, every))
        if dense and one_pixel:
            lines = pixels * outputs  # each weight has one product
            sizes |= {
                "pixel_lines": lines,
                "pixel_fours": lines * (inputs // _LINES),
                "pixel_single": lines * (inputs % _LINES),
            }
            taps, runs, pixels = taps - pixels, runs - pixels, 0
        return sizes | {
            "results": taps * count * int(not has_sums),
            **{name: taps * number for name, number in parts.items()},
            **{f"{name}_runs": runs * number for name, number in parts.items()},
            **{f"{name}_pixels": pixels * number for name, number in parts.items()},
        }

    return counts


def _sum_counts(fields: Mapping[str, Any], count: int, rows: tuple[Interval, Interval]) -> Counts:
    """Counts of the sums, out of `count`, that a step clears, decays and ends; `rows`: of it, and all."""
    step, every = rows
    in_scratch = fields["in_place"] == 0
    return {
        "cleared": count * int(in_scratch and step.lo == 0 and step.hi < every.hi),
        "decayed": count * int(not in_scratch and step.lo == 0),
        "ended": count * int(in_scratch and step.hi == every.hi and step.lo > 0),
    }


def _blocks(outputs: int, inputs: int) -> dict[str, int]:
    """The numbers of 4 x 4 blocks, of lines of 16 and of 4, and of single weights at a tap of dense weights.
    """
    (of_outputs, outputs_left), (of_inputs, inputs_left) = divmod(outputs, _LINES), divmod(inputs, _LINES)
    longest, shorter = divmod(of_outputs, 4)
    return {
        "blocks": of_outputs * of_inputs,
        "sixteens": longest * inputs_left,
        "lines": shorter * inputs_left + outputs_left * of_inputs,
        "single": outputs_left * inputs_left,
    }


def _channels(fields: Mapping[str, Any]) -> dict[str, int]:
    """The numbers of lines of 8 and of single weights at a tap of depthwise weights."""
    outputs = fields["dims.output_channels"]
    lines = outputs // 8 if fields["multiplier"] == 1 else 0
    return {"lines": lines, "single": outputs - 8 * lines}


def bias_update_counts(fields: Mapping[str, Any], rows: int) -> CountsOf:
    """Counts of bias_f32_update; `rows`: the number of rows of the gradient."""
    cols, channels = fields["cols"], fields["channels"]
    blocks, single = divmod(channels, _LINES)

    def counts(step: Interval) -> Counts:
        has_sums = bool(fields["in_place"]) or rows > 1
        in_scratch = fields["in_place"] == 0
        return {
            "calls": 1,
            "cleared": channels * int(has_sums and in_scratch and step.lo == 0),
            "decayed": channels * int(not in_scratch and step.lo == 0),
            "ended": channels * int(has_sums and in_scratch and step.hi == rows),
            "results": channels * int(not has_sums),
            "blocks": blocks,
            "block_rows": len(step) * blocks,
            "fours": len(step) * cols * blocks,
            "single": single,
            "single_rows": len(step) * single,
            "single_pixels": len(step) * cols * single,
        }

    return counts


@dataclass(frozen=True, slots=True)
class _TapReach:
    """Where the taps of a window lie inside the image.

    For each tap row, `output_rows` are the output rows at which it lies inside, and `rows` the input rows
    that it reads there. `col_pixels`, `col_pairs`: the number of output columns, and of pairs of these,
    summed over the tap columns. `joined_cols`: the number of tap columns whose rows form one run in memory.
    """

    output_rows: tuple[range, ...]
    rows: tuple[range, ...]
    col_pixels: int
    col_pairs: int
    joined_cols: int

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> _TapReach:
        """Read the fields of a kernel."""
        rows = _places(fields, "rows", "top", fields["output_rows"])
        cols = _places(fields, "cols", "left", fields["dims.output_cols"])
        outputs, inputs = zip(*rows, strict=True)
        counts = [len(columns) for columns, _ in cols]
        size = fields["dims.input_cols"]
        steps_by_one = fields["window.stride_rows"] == fields["window.stride_cols"] == 1
        joined = counts.count(size) if steps_by_one and fields["dims.output_cols"] == size else 0
        return cls(outputs, inputs, sum(counts), sum(count // 2 for count in counts), joined)

    def rows_in(self, tap: int, step: Interval) -> int:
        """The number of output rows of a step at which a tap row lies inside the image."""
        rows = self.output_rows[tap]
        return max(0, min(rows.stop, step.hi) - max(rows.start, step.lo))


def _places(
    fields: Mapping[str, Any], along: str, before: str, outputs: int
) -> tuple[tuple[range, range], ...]:
    """For each tap along an axis: the output positions at which it lies inside the image, and the input
    positions that it reads there.
    """
    size, count, dilation, stride = (
        fields[f"{name}_{along}"]
        for name in ("dims.input", "window.kernel", "window.dilation", "window.stride")
    )
    starts: NDArray[np.int64] = np.arange(count) * dilation - fields[f"window.pad_{before}"]
    places = []
    for start in starts.tolist():
        first = max(0, -(start // stride))
        end = min(outputs, max(first, -((start - size) // stride)))
        inputs = range(start + first * stride, start + end * stride, stride)
        places.append((range(first, end), inputs))
    return tuple(places)
