"""Counts of loops against loops: blocks of pixels as the kernels take them, and taps one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mcudeploy.ir.graph import DType, Operator, Quantization, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ops.conv import conv_counts, conv_counts_f32, conv_counts_mve, conv_counts_pairs
from mcudeploy.ops.conv.windows import Windows
from mcudeploy.ops.move.transpose import Transpose


def next_pixels(left: int, most: int) -> int:
    """mcud_next_pixels of mcud_dot_s8.h."""
    if left > 4 or left == 3:
        return most
    return 2 if left > 1 else left


def vector_next_pixels(left: int, most: int) -> int:
    """mcud_vector_next_pixels of mcud_dot_vector_s8.h."""
    return min(2 if left == 4 and most == 3 else most, left)


def test_a_transpose_carries_at_the_end_of_every_dimension() -> None:
    """(2, 3, 4) with the last dimension first: runs of 3, two of them in a row of 6."""
    image = Tensor("x", (2, 3, 4), DType.INT8, Quantization(1.0, 0))
    op = Transpose(image.shape, (2, 0, 1), (4, 2, 3))
    output = replace(image, name="y", shape=(4, 2, 3))
    call = op.kernel(Operator("operator", op, ("x",), "y"), (image,), output)
    assert call.counts is not None
    whole, rest = call.counts(Interval(0, 4)), call.counts(Interval(1, 3))
    # the image's rows and columns stay together, so a row of the output is one run
    assert whole == {"calls": 1, "dims": 2, "rows": 4, "runs": 4, "carries": 4, "bytes": 24}
    assert rest == {"calls": 1, "dims": 2, "rows": 2, "runs": 2, "carries": 2, "bytes": 12}
    split = Transpose(image.shape, (1, 2, 0), (3, 4, 2))
    call = split.kernel(Operator("operator", split, ("x",), "y"), (image,), replace(image, shape=(3, 4, 2)))
    assert call.counts is not None
    assert call.counts(Interval(0, 3)) == {
        "calls": 1, "dims": 2, "rows": 3, "runs": 12, "carries": 12, "bytes": 24
    }  # fmt: skip


@pytest.mark.parametrize("pixels", range(1, 40))
def test_blocks_of_pixels_are_those_of_the_kernels(pixels: int) -> None:
    ways = (
        (conv_counts.pixel_blocks, next_pixels, (2, 3)),
        (conv_counts_mve.pixel_blocks, vector_next_pixels, (1, 2, 3)),
    )
    for blocks, take, sizes in ways:
        for most in sizes:
            taken = dict.fromkeys(range(most, 0, -1), 0)
            left = pixels
            while left > 0:
                block = min(take(left, most), left)
                taken[block] += 1
                left -= block
            assert blocks(pixels, most) == taken


def fields(size: int, kernel: int, stride: int, dilation: int, pad: int) -> dict[str, int]:
    outputs = (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    return {
        **dict.fromkeys(("dims.input_rows", "dims.input_cols"), size),
        **dict.fromkeys(("window.kernel_rows", "window.kernel_cols"), kernel),
        **dict.fromkeys(("window.stride_rows", "window.stride_cols"), stride),
        **dict.fromkeys(("window.dilation_rows", "window.dilation_cols"), dilation),
        **dict.fromkeys(("window.pad_top", "window.pad_left"), pad),
        "dims.output_cols": outputs,
    }


SHAPES = ((7, 3, 1, 1, 1), (9, 5, 2, 1, 2), (11, 3, 1, 2, 2), (6, 2, 3, 1, 0), (5, 4, 1, 3, 9))


@pytest.mark.parametrize("shape", SHAPES)
def test_taps_inside_the_input(shape: tuple[int, int, int, int, int]) -> None:
    size, kernel, stride, dilation, pad = shape
    windows = Windows(fields(*shape))
    inside = [
        sum(0 <= at * stride - pad + tap * dilation < size for tap in range(kernel))
        for at in range(windows.outputs)
    ]
    assert windows.cols.tolist() == inside
    assert windows.rows(Interval(0, windows.outputs)).tolist() == inside
    assert windows.rows(Interval(1, len(inside))).tolist() == inside[1:]


@pytest.mark.parametrize("shape", SHAPES)
def test_work_of_rows_adds_up_however_they_are_cut(shape: tuple[int, int, int, int, int]) -> None:
    """Counts that follow from rows and their taps add up; calls, and blocks of pixels across rows, do not."""
    channels = dict.fromkeys(("dims.input_channels", "dims.output_channels", "dims.channels"), 6)
    more = {**channels, "multiplier": 1}
    known = fields(*shape) | more
    rows = known["dims.output_cols"]
    for counts in (
        conv_counts.depthwise(known),
        conv_counts.multiplied(known),
        conv_counts_f32.depthwise(known, eights=True),
    ):
        whole, parts = counts(Interval(0, rows)), [counts(Interval(row, row + 1)) for row in range(rows)]
        summed = {name: sum(part[name] for part in parts) for name in whole}
        assert summed == whole | {"calls": rows}


@pytest.mark.parametrize(
    ("strides", "cols", "channels"), [((1, 1), 5, 7), ((1, 1), 41, 4), ((2, 2), 7, 9), ((3, 1), 6, 5)]
)
def test_pairs_of_rows_compute_every_output_once(strides: tuple[int, int], cols: int, channels: int) -> None:
    known = {
        "dims.input_cols": cols * strides[1] + 2,
        "dims.output_cols": cols,
        "dims.channels": channels,
        "window.stride_rows": strides[0],
        "window.stride_cols": strides[1],
        "window.pad_left": 1,
        "window.pad_top": 1,
        "dims.input_rows": 200,
        "most_outputs": min(cols, 24),
    }
    counts = conv_counts_pairs.by_row_pairs(known)
    in_row = 4 if strides[1] == 1 else 2
    for rows in (1, 2, 3, 16, 17, 40):
        loops = counts(Interval(0, rows))
        together = 2 * loops.get("two_rows", 0) + loops.get("two_rows_last", 0)
        alone = in_row * loops["one_row"] + loops["one_row_last"]
        assert 2 * together + alone == rows * cols * channels


@pytest.mark.parametrize(("stride", "kernel_rows"), [(1, 5), (1, 4), (2, 5), (2, 7), (3, 7)])
def test_pairs_of_rows_are_expanded_once_for_windows_that_begin_together(
    stride: int, kernel_rows: int
) -> None:
    """Rows whose windows begin at even rows use the same pairs, and those at odd rows."""
    known = {
        "dims.input_cols": 9,
        "dims.output_cols": 9,
        "dims.channels": 4,
        "window.stride_rows": stride,
        "window.stride_cols": 1,
        "window.pad_left": 2,
        "kernel_rows": kernel_rows,
        "kernel_cols": 5,
        "most_outputs": 12,
    }
    counts = conv_counts_pairs.by_pair_windows(known)
    pairs = (kernel_rows + 1) // 2
    for rows in (1, 2, 3, 8):
        tops = [row * stride for row in range(rows)]
        loops = counts(Interval(0, rows))
        assert loops["outputs"] == rows * 4 * 3
        assert loops["products"] == loops["outputs"] * pairs
        assert loops["pairs"] == len({top + 2 * pair for top in tops for pair in range(pairs)})
