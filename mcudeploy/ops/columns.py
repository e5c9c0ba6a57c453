"""Some columns of one row: the call of a kernel that computes them, as its parameters say it."""

from __future__ import annotations

from dataclasses import replace

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall

_BY_WINDOWS = frozenset({
    "conv2d_s8", "conv2d_s8_deep", "conv2d_f32", "conv2d_f32_gathered",
    "dwconv2d_s8", "dwconv2d_s8_multiplied", "dwconv2d_f32",
})  # fmt: skip
"""Kernels whose windows begin `pad_left` to the left of an input row."""
_BY_PIXELS = frozenset({"conv2d_s8_1x1", "conv2d_s8_1x1_direct", "conv2d_f32_1x1"})
"""Kernels that go from one pixel of an input row to the next by `pixel_step` values."""


def takes_columns(call: KernelCall) -> bool:
    """Whether `columns_of` knows the kernel."""
    return call.kernel in _BY_WINDOWS | _BY_PIXELS


def columns_of(call: KernelCall, columns: Interval) -> tuple[KernelCall, int]:
    """The call for these columns of a row whose output begins at the first of them, and how many values later
    its input begins. For one row at a time: rows of the output are apart.
    """
    params = dict(call.params) | {"output_cols": len(columns)}
    if call.kernel in _BY_PIXELS:
        return replace(call, params=params), columns.lo * _whole(call, "pixel_step")
    params["pad_left"] = _whole(call, "pad_left") - columns.lo * _whole(call, "stride_cols")
    return replace(call, params=params), 0


def _whole(call: KernelCall, name: str) -> int:
    value = call.params[name]
    assert isinstance(value, int)
    return value
