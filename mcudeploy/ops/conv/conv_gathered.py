"""Convolutions by vectors: the windows of some pixels are gathered, then multiplied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import CountsOf, KernelCall, Params
from mcudeploy.ops.common import OFFSET_BYTES
from mcudeploy.ops.conv.conv_constants import without

_MOST_GATHERED_BYTES = 2560
"""Limit in bytes of gathered windows, for the usual number of pixels."""


@dataclass(frozen=True, slots=True)
class VectorKernel:
    """A kernel of conv2d_s8_gathered.h: its name, the instructions it needs, and the counts of its loops."""

    name: str
    isa: Isa
    counts: Callable[[Mapping[str, Any]], CountsOf]
    pixels: tuple[int, ...]
    """Numbers of windows that it can gather at a time, the largest first."""
    read_bytes: int = 0
    """Bytes after the windows that the kernel reads and ignores."""
    takes_columns: bool = False
    """Whether it multiplies windows where they lie, if rows have one, whose taps are contiguous."""


def gathered(
    kernel: VectorKernel,
    records: NDArray[np.int32],
    fields: Params,
    numbers: Params,
    shape: tuple[int, ...],
) -> tuple[KernelCall, ...]:
    """Return a call for each number of pixels, the usual one first; `shape` is that of the weights."""
    _, *kernel_shape, _ = shape
    patch, groups = prod(shape[1:]), fields["groups"]
    assert isinstance(groups, int)
    in_runs = kernel_shape[1] == 1 or (groups == 1 and fields["window.dilation_cols"] == 1)
    inside = columns_inside(fields) if in_runs else {"first_inside": 0, "end_inside": 0}
    facts = {
        "row_values": patch // kernel_shape[0],
        "group_words": records.size // groups,
        "in_runs": int(in_runs),
    } | inside
    facts["is_column"] = int(kernel.takes_columns and _is_column(fields, facts, kernel.read_bytes))
    zero_point = {"input_zero_point": fields["input_zero_point"]}

    def by(pixels: int) -> KernelCall:
        of_patch = {"patch_values": patch, "pixels": pixels} | facts | zero_point
        own_fields = without(fields, *zero_point) | of_patch
        params = {"packed_weights": records, **own_fields, **numbers}
        scratch = kernel_shape[0] * OFFSET_BYTES + pixels * patch + kernel.read_bytes
        counts = kernel.counts(own_fields)
        return KernelCall(kernel.name, params, scratch, mode=str(pixels), isa=kernel.isa, counts=counts)

    usual = next((it for it in kernel.pixels if it * patch <= _MOST_GATHERED_BYTES), kernel.pixels[-1])
    return by(usual), *(by(pixels) for pixels in kernel.pixels if pixels != usual)


def _is_column(fields: Mapping[str, Any], facts: Mapping[str, int], read_bytes: int) -> bool:
    """Whether rows have one window, which reads them as a whole; the next window has what is read in vain."""
    values = fields["dims.input_cols"] * fields["dims.input_channels"]
    whole = fields["groups"] == fields["window.dilation_rows"] == 1 and values == facts["row_values"]
    inside = fields["dims.output_cols"] == facts["end_inside"] - facts["first_inside"] == 1
    in_vain = -fields["window.kernel_rows"] * values % (read_bytes + 1)
    return bool(inside and whole and fields["window.stride_rows"] * values >= in_vain)


def columns_inside(fields: Mapping[str, Any]) -> dict[str, int]:
    """The output columns whose windows have no padding on the left and right."""
    pad, step, outputs = fields["window.pad_left"], fields["window.stride_cols"], fields["dims.output_cols"]
    reach = (fields["window.kernel_cols"] - 1) * fields["window.dilation_cols"] + 1
    last_start = fields["dims.input_cols"] - reach + pad  # from the first window's start
    end = min(last_start // step + 1, outputs) if last_start >= 0 else 0
    return {"first_inside": min(-(-pad // step), end), "end_inside": end}
