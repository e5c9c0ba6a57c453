"""Selection of the C kernels of int8 depthwise convolutions, and packing of their constants."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import Tensor
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall, Params
from mcudeploy.ops import requantize
from mcudeploy.ops.common import OFFSET_BYTES
from mcudeploy.ops.conv import conv_counts, conv_counts_mve, conv_counts_pairs, conv_mve, conv_rvv
from mcudeploy.ops.conv.conv_constants import FOUR, ConvConstants, without
from mcudeploy.ops.conv.packing import VECTOR, by_tap, pack_lines, padded
from mcudeploy.ops.conv.windows import Windowing, window_fields, with_one_depth

_TAP_BYTES = 8
"""Bytes of one tap in the lists of the depthwise kernels: two words, or a pointer."""
_MOST_STRIDE = 2
_MOST_OUTPUTS = 32
"""Outputs in a row that dwconv2d_s8_rows takes at a time: more need more scratch, and save little."""
_PAIR_COLUMN_BYTES = 32
"""Bytes of an expanded column of four rows and four channels."""
_PAIRED_COLS = (5, 7)
"""Columns of the windows of dwconv2d_s8_pairs."""
_MOST_PAIRED_ROWS = 16
"""Rows of the windows of dwconv2d_s8_pairs."""
_PAIRED_OUTPUTS = 24
"""Outputs in a row that dwconv2d_s8_pairs takes at a time with a stride of 1."""
_WINDOW_COLUMN_BYTES = 16
"""Bytes of an expanded column of two rows and four channels."""
_LEAST_LINE_TAPS = 9
"""Windows of up to nine taps have faster kernels."""
_MOST_LINE_ROWS = 16
_MOST_LINE_BYTES = 128
"""Bytes of a line to its last output: more need more scratch, and save little."""
_FOUR_ROWS_BYTES = 64
"""Bytes of an interleaved column of four rows and 16 channels."""
_MOST_BLOCKS = 8
_MOST_COLUMNS = 36
"""Interleaved columns of all blocks, unless one block has more."""
_FIXED = tuple(f"window.{name}_{along}" for name in ("kernel", "dilation") for along in ("rows", "cols"))
"""Parameters that kernels for windows without dilation do not have."""


def depthwise_kernel(
    conv: Windowing, constants: ConvConstants, numbers: Params, source: Tensor, output: Tensor
) -> KernelCall:
    """dwconv2d_s8, or dwconv2d_s8_multiplied if an input channel has several output channels."""
    channels = source.shape[2]
    zero_point = requantize.quantization_of(source).zero_point
    taps = conv.kernel_shape[0] * conv.kernel_shape[1]
    scratch = conv.kernel_shape[0] * OFFSET_BYTES + taps * _TAP_BYTES
    fields = window_fields(conv, source, output)
    if conv.out_channels > channels:
        fields |= {"multiplier": conv.out_channels // channels, "input_zero_point": zero_point}
        assert constants.multipliers is not None
        arrays: Params = {"weights": by_tap(constants.weights), "bias": constants.bias}
        arrays |= {"multipliers": np.ascontiguousarray(constants.multipliers.T).ravel()}
        params, counts = arrays | fields | numbers, conv_counts.multiplied(fields)
        return KernelCall("dwconv2d_s8_multiplied", params, scratch, counts=counts)
    fields = with_one_depth(fields)
    padding = np.full(channels, zero_point, np.int8)
    arrays = constants.packed_taps() | {"padding": padding}
    scratch += OFFSET_BYTES
    vectors = [
        *conv_mve.depthwise(constants, numbers, fields, padding, scratch),
        *_by_lines(conv, constants, numbers, fields, padding),
        conv_rvv.depthwise(constants, numbers, fields, padding, scratch),
    ]
    params, counts = arrays | fields | numbers, conv_counts.depthwise(fields)
    by_rows = _by_rows(conv, constants, numbers, fields, padding)
    by_pairs = _by_pairs(conv, constants, numbers, fields, zero_point)
    return KernelCall("dwconv2d_s8", params, scratch, counts=counts, others=(*by_rows, *by_pairs, *vectors))


def _by_rows(
    conv: Windowing,
    constants: ConvConstants,
    numbers: Params,
    fields: Params,
    padding: NDArray[np.int8],
) -> tuple[KernelCall, ...]:
    """dwconv2d_s8_rows and dwconv2d_s8_rows_mve, if they support these windows."""
    stride, cols = conv.stride[1], fields["dims.output_cols"]
    small = conv.kernel_shape == (3, 3) and conv.dilation == (1, 1) and stride <= _MOST_STRIDE
    if not small or numbers["quant.left_shift"] != 0:
        return ()
    assert isinstance(cols, int)
    most = min(cols, padded(-(-cols // -(-cols // _MOST_OUTPUTS)), FOUR))
    shared = without(fields, *_FIXED) | {"most_outputs": most}
    params = constants.packed_row_pairs() | shared | {"input_zero_point": int(padding[0])} | numbers
    scratch = ((most - 1) * stride + 3) * _PAIR_COLUMN_BYTES
    counts = conv_counts_pairs.by_row_pairs(params)
    by_pairs = KernelCall("dwconv2d_s8_rows", params, scratch, mode=str(stride), counts=counts)
    step = 2 if stride == 1 else FOUR
    columns = padded(most, step) * stride + 2
    blocks = min(_MOST_BLOCKS, max(1, _MOST_COLUMNS // columns))
    arrays = constants.packed_four_rows() | {"padding": padding}
    params = arrays | shared | {"most_blocks": blocks, "columns": columns} | numbers
    vectors = KernelCall(
        "dwconv2d_s8_rows_mve",
        params,
        blocks * columns * _FOUR_ROWS_BYTES,
        mode=str(stride),
        isa=Isa.MVE,
        counts=conv_counts_mve.by_four_rows(params),
    )
    return by_pairs, vectors


def _by_lines(
    conv: Windowing,
    constants: ConvConstants,
    numbers: Params,
    fields: Params,
    padding: NDArray[np.int8],
) -> tuple[KernelCall, ...]:
    """dwconv2d_s8_lines_mve, if it supports these windows and they have more than _LEAST_LINE_TAPS taps."""
    (rows, cols), stride, channels = conv.kernel_shape, conv.stride[1], len(padding)
    outputs = fields["dims.output_cols"]
    assert isinstance(outputs, int)
    height = rows + rows % 2
    window = height * cols
    few = rows * cols <= _LEAST_LINE_TAPS or outputs < FOUR or channels % 2 != 0
    large = window > FOUR * VECTOR or height > _MOST_LINE_ROWS or stride > _MOST_STRIDE
    if few or large or conv.dilation != (1, 1) or numbers["quant.left_shift"] != 0:
        return ()
    vectors = 2 if window <= 2 * VECTOR else FOUR
    parts = -(-(outputs - 1) * stride * height // _MOST_LINE_BYTES)
    most = min(outputs, padded(-(-outputs // parts), FOUR))
    line = (most - 1) * stride * height + vectors * VECTOR
    shape = {
        "kernel_rows": rows,
        "kernel_cols": cols,
        "height": height,
        "rows": 2 if rows < height and conv.stride[0] == 1 else 1,
        "vectors": vectors,
        "most_outputs": most,
        "line": line,
    }
    weights = constants.weights.reshape(channels, rows, cols)
    records = pack_lines(constants.bias, weights, constants.mve_multipliers, height, vectors)
    arrays: Params = {"packed_weights": records, "padding": padding}
    params = arrays | without(fields, *_FIXED) | shape | numbers
    scratch = min(channels, VECTOR) * line
    counts = conv_counts_mve.by_lines(params)
    mode = f"{shape['rows']}by{vectors}"
    return (KernelCall("dwconv2d_s8_lines_mve", params, scratch, mode=mode, isa=Isa.MVE, counts=counts),)


def _by_pairs(
    conv: Windowing,
    constants: ConvConstants,
    numbers: Params,
    fields: Params,
    zero_point: int,
) -> tuple[KernelCall, ...]:
    """dwconv2d_s8_pairs, if it supports these windows."""
    (rows, cols), stride = conv.kernel_shape, conv.stride[1]
    small = cols in _PAIRED_COLS and rows <= _MOST_PAIRED_ROWS and stride <= _MOST_STRIDE
    if not small or conv.dilation != (1, 1) or numbers["quant.left_shift"] != 0:
        return ()
    outputs = fields["dims.output_cols"]
    assert isinstance(outputs, int)
    parts = -(-outputs * stride // _PAIRED_OUTPUTS)
    most = padded(-(-outputs // parts), FOUR)
    shape = {"kernel_rows": rows, "kernel_cols": cols, "most_outputs": most, "input_zero_point": zero_point}
    params = constants.packed_pair_windows(stride) | without(fields, *_FIXED) | shape | numbers
    scratch = -(-rows // 2) * ((most - 1) * stride + cols) * _WINDOW_COLUMN_BYTES
    counts = conv_counts_pairs.by_pair_windows(params)
    mode = f"{cols}by{stride}"
    return (KernelCall("dwconv2d_s8_pairs", params, scratch, mode=mode, isa=Isa.DSP, counts=counts),)
