"""Kernel calls for some columns of one row, or for some channels of its only pixel.

A *cell* is one such column or channel. The call for some cells is the call for all, with other parameters.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mcudeploy.ir.graph import Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import ArrayPointer, KernelCall, Params
from mcudeploy.ops.conv.conv_constants import FOUR
from mcudeploy.ops.conv.conv_kernels import PAIR
from mcudeploy.ops.conv.packing import EIGHT, padded

BY_WINDOWS = frozenset({
    "conv2d_s8", "conv2d_s8_deep", "conv2d_s8_first_mve", "conv2d_s8_first_wide", "conv2d_s8_wide",
    "conv2d_f32", "conv2d_f32_gathered", "conv2d_f32_s8w",
    "dwconv2d_s8", "dwconv2d_s8_pairs", "dwconv2d_s8_rows", "dwconv2d_s8_multiplied", "dwconv2d_f32",
    "dwconv2d_f32_s8w", "conv2d_s8_asymmetric", "dwconv2d_s8_asymmetric", "conv2d_s8_s4w",
    "conv2d_s8_deep_s4w",
})  # fmt: skip
"""Kernels whose windows begin `pad_left` to the left of an input row."""
_BY_PAIRS = frozenset({"conv2d_s8_1x1", "conv2d_s8_1x1_wide"})
"""Kernels whose records have two output channels, not four."""
_BY_EIGHTS = frozenset({"conv2d_s8_1x1_dual"})
"""Kernels whose records have eight output channels."""
BY_PIXELS = _BY_PAIRS | _BY_EIGHTS | {
    "conv2d_s8_1x1_direct", "conv2d_s8_1x1_s4w", "conv2d_s8_1x1_direct_s4w", "conv2d_f32_1x1",
    "conv2d_f32_1x1_s8w",
}  # fmt: skip
"""Kernels that advance by `pixel_step` values between pixels of an input row."""
_BY_CHANNELS = BY_PIXELS | {
    "conv2d_s8_full", "conv2d_f32_full", "conv2d_f32_full_s8w", "dense_f32", "dense_f32_blocks",
}  # fmt: skip
"""Kernels whose constants are stored in blocks of output channels."""
_UNPADDED = frozenset({"conv2d_s8_full", "conv2d_s8_1x1_direct"})
"""Kernels whose last one to three channels have records of one channel each."""
_BLOCKED = ("packed_weights", "weights", "scale", "zero", "bias")


def column_alignment(call: KernelCall, output: Tensor, part_bytes: int) -> int:
    """The number of cells of which the first cell of a part is a multiple; 0 if rows cannot be divided.

    Parts of columns then begin at multiples of `part_bytes`; parts of channels at a record of constants.
    """
    if output.shape[1] == 1:
        if call.once in _BY_EIGHTS:
            return EIGHT
        if call.kernel == "dense_f32" and output.shape[2] % FOUR == 1:
            return 0  # its last part would be a layer of one channel, whose weights are not in a block
        return FOUR if call.once in _BY_CHANNELS else 0
    if call.kernel not in BY_WINDOWS | BY_PIXELS:
        return 0
    return next(count for count in range(1, part_bytes + 1) if count * output.cell_bytes % part_bytes == 0)


def part_of(call: KernelCall, output: Tensor, cells: Interval) -> tuple[KernelCall, int]:
    """The call that computes only these cells of one row, and the number of input values that it skips.

    Its output begins at the first of these cells.
    """
    if output.shape[1] == 1:
        return replace(call, params=_channels(call, cells)), 0
    params = dict(call.params) | {"dims.output_cols": len(cells)}
    if call.once in BY_PIXELS:
        return replace(call, params=params), cells.lo * _integer(call, "pixel_step")
    first = cells.lo * _integer(call, "window.stride_cols")
    params["window.pad_left"] = _integer(call, "window.pad_left") - first
    return replace(call, params=params), 0


def _channels(call: KernelCall, channels: Interval) -> Params:
    """The parameters for these output channels, the first of which begins a record of constants."""
    block = PAIR if call.once in _BY_PAIRS else EIGHT if call.once in _BY_EIGHTS else FOUR
    count = next(it for it in ("dims.output_channels", "output_channels", "channels") if it in call.params)
    stored = _integer(call, count) if call.once in _UNPADDED else padded(_integer(call, count), block)
    params = dict(call.params) | {count: len(channels)}
    for name in _BLOCKED:
        array = call.params.get(name)
        if array is not None:
            assert isinstance(array, np.ndarray)
            params[name] = ArrayPointer(array, channels.lo * array.size // stored)
    return params


def _integer(call: KernelCall, name: str) -> int:
    """The integer parameter with this name."""
    value = call.params[name]
    assert isinstance(value, int)
    return value
