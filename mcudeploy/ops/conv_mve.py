"""The C kernels of int8 convolutions for cores with vectors (Arm's MVE), with their constants packed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall, ParamValue
from mcudeploy.ops import conv_counts_mve
from mcudeploy.ops.common import OFFSET_BYTES, SUM_BYTES
from mcudeploy.ops.conv_constants import without
from mcudeploy.ops.packing import (
    VECTOR,
    pack_blocks,
    pack_records,
    pack_vector_fours,
    pack_vector_taps,
    padded,
)

if TYPE_CHECKING:
    from mcudeploy.ops.conv_constants import ConvConstants

Params = dict[str, ParamValue]

_PAIR = 2
"""Output channels multiplied with pixels at a time."""
_PIXELS = 3
"""Pixels multiplied at a time."""
_MOST_GATHERED_BYTES = 2048
"""Limit in bytes of the windows of these pixels; if windows are deeper, the kernel takes fewer pixels."""


def pointwise(constants: ConvConstants, numbers: Params, fields: Params) -> KernelCall:
    """conv2d_s8_1x1_mve; `fields` belong to conv2d_s8_1x1, without its groups."""
    params = _fours(constants) | fields | numbers
    return KernelCall("conv2d_s8_1x1_mve", params, isa=Isa.MVE, counts=conv_counts_mve.pointwise(fields))


def general(constants: ConvConstants, numbers: Params, fields: Params, groups: int) -> tuple[KernelCall, ...]:
    """conv2d_s8_mve by `pixels` pixels; `fields` are shared by conv2d_s8 and conv2d_s8_deep."""
    _, *kernel_shape, _ = constants.weights.shape
    patch = constants.weights[0].size
    records = _fours(constants, groups)
    in_runs = kernel_shape[1] == 1 or (groups == 1 and fields["window.dilation_cols"] == 1)
    inside = _columns_inside(fields) if in_runs else {"first_inside": 0, "end_inside": 0}
    facts = {
        "row_values": patch // kernel_shape[0],
        "group_words": records["packed_weights"].size // groups,
        "in_runs": int(in_runs),
    } | inside
    zero_point = {"input_zero_point": fields["input_zero_point"]}

    def by(pixels: int) -> KernelCall:
        known = without(fields, *zero_point) | {"patch_values": patch, "pixels": pixels} | facts | zero_point
        scratch = kernel_shape[0] * OFFSET_BYTES + pixels * patch
        params, counts = records | known | numbers, conv_counts_mve.general(known | {"groups": groups})
        return KernelCall("conv2d_s8_mve", params, scratch, form=str(pixels), isa=Isa.MVE, counts=counts)

    usual = max(1, min(_PIXELS, _MOST_GATHERED_BYTES // patch))
    return by(usual), *(by(pixels) for pixels in range(_PIXELS, 0, -1) if pixels != usual)


def full(constants: ConvConstants, numbers: Params, fields: Params, rows: int) -> KernelCall:
    """conv2d_s8_full_mve; `fields` belong to conv2d_s8_full, which reads `rows` rows."""
    params = _records(constants, rows) | fields | numbers
    return KernelCall("conv2d_s8_full_mve", params, isa=Isa.MVE, counts=conv_counts_mve.full(fields))


def by_rows(constants: ConvConstants, numbers: Params, fields: Params, rows: int) -> KernelCall:
    """conv2d_s8_by_rows_mve; `fields` belong to conv2d_s8_by_rows, which reads `rows` rows."""
    outputs = padded(len(constants.weights), _PAIR)
    known = fields | {"padded_outputs": outputs} | without(numbers, "padded_outputs")
    params = _records(constants, rows) | known
    state = outputs * SUM_BYTES
    counts = conv_counts_mve.by_rows(fields, rows)
    return KernelCall("conv2d_s8_by_rows_mve", params, state_bytes=state, isa=Isa.MVE, counts=counts)


def depthwise(
    constants: ConvConstants, numbers: Params, fields: Params, padding: NDArray[np.int8], scratch_bytes: int
) -> tuple[KernelCall, ...]:
    """dwconv2d_s8_mve; `fields` and scratch belong to dwconv2d_s8.

    Empty if the sum of two taps' products could be 2^15: both weights would need to be -128.
    """
    weights = constants.weights.reshape(len(constants.weights), -1)
    lowest = weights == np.iinfo(np.int8).min
    if np.any(lowest[:, :-1] & lowest[:, 1:]):
        return ()
    assert constants.multipliers is not None
    pixels = max(1, VECTOR // len(weights)) if fields["window.stride_cols"] == 1 else 1
    records = pack_vector_taps(
        np.tile(constants.bias, pixels), np.tile(weights, (pixels, 1)), np.tile(constants.multipliers, pixels)
    )
    arrays: Params = {"packed_weights": records, "padding": padding}
    params = arrays | fields | _columns_inside(fields) | {"pixels": pixels} | numbers
    counts = conv_counts_mve.depthwise(params)
    return (KernelCall("dwconv2d_s8_mve", params, scratch_bytes, isa=Isa.MVE, counts=counts),)


def _columns_inside(fields: Mapping[str, Any]) -> dict[str, int]:
    """The output columns whose windows have no padding on the left and right."""
    pad, step, outputs = fields["window.pad_left"], fields["window.stride_cols"], fields["dims.output_cols"]
    reach = (fields["window.kernel_cols"] - 1) * fields["window.dilation_cols"] + 1
    last_start = fields["dims.input_cols"] - reach + pad  # from the first window's start
    end = min(last_start // step + 1, outputs) if last_start >= 0 else 0
    return {"first_inside": min(-(-pad // step), end), "end_inside": end}


def _fours(constants: ConvConstants, groups: int = 1) -> dict[str, NDArray[np.int32]]:
    assert constants.multipliers is not None
    records = pack_vector_fours(constants.bias, constants.weights, constants.multipliers, groups)
    return {"packed_weights": records}


def _records(constants: ConvConstants, runs: int) -> dict[str, NDArray[np.int32]]:
    assert constants.multipliers is not None
    weights = pack_blocks(constants.weights, 1, runs, _PAIR, VECTOR)
    return {"packed_weights": pack_records(constants.bias, weights, constants.multipliers, 1, _PAIR)}
