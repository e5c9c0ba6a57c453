"""The C kernels of int8 convolutions for cores with vectors (Arm's MVE), with their constants packed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall, Params
from mcudeploy.ops.common import SUM_BYTES
from mcudeploy.ops.conv import conv_counts_mve
from mcudeploy.ops.conv.conv_constants import ConvConstants
from mcudeploy.ops.conv.conv_gathered import VectorKernel, columns_inside, gathered
from mcudeploy.ops.conv.packing import (
    VECTOR,
    pack_blocks,
    pack_records,
    pack_vector_fours,
    pack_vector_taps,
    padded,
)

_MOST_FIRST_CHANNELS = 4
"""The most input channels of conv2d_s8_first_mve."""
_MOST_PLACES = 256
"""The most values that conv2d_s8_first_mve writes to its expanded columns at a time."""
_PAIR = 2
"""Output channels multiplied with pixels at a time."""
_GENERAL = VectorKernel(
    "conv2d_s8_mve",
    Isa.MVE,
    conv_counts_mve.general,
    pixels=(12, 4, 2, 1),
    read_bytes=VECTOR - 1,
    takes_columns=True,
)


def pointwise(constants: ConvConstants, numbers: Params, fields: Params) -> KernelCall:
    """conv2d_s8_1x1_mve; `fields` belong to conv2d_s8_1x1, without its groups."""
    params: Params = {"packed_weights": _fours(constants), **fields, **numbers}
    return KernelCall("conv2d_s8_1x1_mve", params, isa=Isa.MVE, counts=conv_counts_mve.pointwise(fields))


def general(constants: ConvConstants, numbers: Params, fields: Params) -> tuple[KernelCall, ...]:
    """conv2d_s8_mve for each number of pixels, and conv2d_s8_first_mve; conv2d_s8 has the same `fields`."""
    groups = fields["groups"]
    assert isinstance(groups, int)
    by_windows = gathered(_GENERAL, _fours(constants, groups), fields, numbers, constants.weights.shape)
    return (*by_windows, *_first(constants, numbers, fields))


def _first(constants: ConvConstants, numbers: Params, fields: dict[str, Any]) -> tuple[KernelCall, ...]:
    """conv2d_s8_first_mve, if it supports these windows."""
    channels, rows = fields["dims.input_channels"], fields["window.kernel_rows"]
    one_group = fields["groups"] == 1 and fields["window.dilation_cols"] == 1
    moved = max(1, VECTOR // channels) * channels
    if not one_group or channels > _MOST_FIRST_CHANNELS or moved * rows > _MOST_PLACES:
        return ()
    shared: Params = {name: value for name, value in fields.items() if name.startswith(("dims.", "window."))}
    by_columns = replace(constants, weights=constants.weights.transpose(0, 2, 1, 3))
    zero_point = fields["input_zero_point"]
    params = {"packed_weights": _fours(by_columns), **shared, "input_zero_point": zero_point, **numbers}
    columns = (fields["dims.output_cols"] - 1) * fields["window.stride_cols"] + fields["window.kernel_cols"]
    scratch = columns * channels * rows + VECTOR - 1
    counts = conv_counts_mve.first(shared)
    return (KernelCall("conv2d_s8_first_mve", params, scratch, isa=Isa.MVE, counts=counts),)


def full(constants: ConvConstants, numbers: Params, fields: Params, rows: int) -> KernelCall:
    """conv2d_s8_full_mve; `fields` belong to conv2d_s8_full, which reads `rows` rows."""
    params = _records(constants, rows) | fields | numbers
    return KernelCall("conv2d_s8_full_mve", params, isa=Isa.MVE, counts=conv_counts_mve.full(fields))


def by_rows(constants: ConvConstants, numbers: Params, fields: Params, rows: int) -> KernelCall:
    """conv2d_s8_by_rows_mve; `fields` belong to conv2d_s8_by_rows, which reads `rows` rows."""
    outputs = padded(len(constants.weights), _PAIR)
    params = _records(constants, rows) | fields | {"padded_outputs": outputs} | numbers
    state = outputs * SUM_BYTES
    counts = conv_counts_mve.by_rows(fields, rows)
    return KernelCall("conv2d_s8_by_rows_mve", params, state_bytes=state, isa=Isa.MVE, counts=counts)


def depthwise(
    constants: ConvConstants, numbers: Params, fields: Params, padding: NDArray[np.int8], scratch_bytes: int
) -> tuple[KernelCall, ...]:
    """dwconv2d_s8_mve; `fields` and scratch belong to dwconv2d_s8.

    Empty if the sum of two taps' products could be 2^15, which two adjacent weights of -128 make possible.
    """
    weights = constants.weights.reshape(len(constants.weights), -1)
    lowest = weights == np.iinfo(np.int8).min
    if np.any(lowest[:, :-1] & lowest[:, 1:]):
        return ()
    pixels = max(1, VECTOR // len(weights)) if fields["window.stride_cols"] == 1 else 1
    parts = constants.bias, weights, constants.mve_multipliers
    records = pack_vector_taps(*(np.concatenate([part] * pixels) for part in parts))
    arrays: Params = {"packed_weights": records, "padding": padding}
    params = arrays | fields | columns_inside(fields) | {"pixels": pixels} | numbers
    counts = conv_counts_mve.depthwise(params)
    return (KernelCall("dwconv2d_s8_mve", params, scratch_bytes, isa=Isa.MVE, counts=counts),)


def _fours(constants: ConvConstants, groups: int = 1) -> NDArray[np.int32]:
    return pack_vector_fours(constants.bias, constants.weights, constants.mve_multipliers, groups)


def _records(constants: ConvConstants, runs: int) -> dict[str, NDArray[np.int32]]:
    assert constants.multipliers is not None
    weights = pack_blocks(constants.weights, 1, runs, _PAIR, VECTOR)
    return {"packed_weights": pack_records(constants.bias, weights, constants.multipliers, 1, _PAIR)}
