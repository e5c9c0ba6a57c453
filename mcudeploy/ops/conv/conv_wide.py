"""The C kernels of int8 convolutions with weights of 16 bits, for cores with Arm's DSP extension.

They take fewer cycles than kernels that widen weights of 8 bits at run time, and twice the flash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall, Params
from mcudeploy.ops.conv import conv_counts_wide
from mcudeploy.ops.conv.conv_constants import ConvConstants, without
from mcudeploy.ops.conv.packing import GROUP, pack_blocks, pack_records, padded

_CHANNELS = 2
"""Output channels of a record."""
_PAIR_BYTES = 4
"""Bytes of two expanded values."""
_MOST_FIRST_CHANNELS = 4
"""The most input channels of conv2d_s8_first_wide."""
_PART_COLS = 12
"""Output columns of each part of a long row, in conv2d_s8_first_wide."""
_PIXELS = (4, 3)
"""Pixels multiplied at a time."""


def pointwise(constants: ConvConstants, numbers: Params, fields: Params) -> tuple[KernelCall, ...]:
    """conv2d_s8_1x1_wide by four or three pixels; `fields` belong to conv2d_s8_1x1."""
    if numbers["quant.left_shift"] != 0:
        return ()
    channels = constants.weights.shape[-1]
    pairs = padded(channels, GROUP) // 2
    records = _records(constants, _by_fours(pack_blocks(constants.weights, 1, 1, _CHANNELS)))
    dims = {name: value for name, value in fields.items() if name.startswith("dims.")}

    def by(pixels: int) -> KernelCall:
        own_fields = dims | {"pairs": pairs, "most_pixels": pixels} | without(fields, *dims, "groups")
        params, counts = records | own_fields | numbers, conv_counts_wide.pointwise(own_fields)
        scratch, mode = pixels * pairs * _PAIR_BYTES, str(pixels)
        return KernelCall("conv2d_s8_1x1_wide", params, scratch, mode=mode, isa=Isa.DSP, counts=counts)

    return tuple(map(by, _PIXELS))


def general(constants: ConvConstants, usual: KernelCall) -> tuple[KernelCall, ...]:
    """conv2d_s8_wide by four or three pixels; `usual` is conv2d_s8, whose parameters it has."""
    fields: Mapping[str, Any] = usual.params
    if fields["quant.left_shift"] != 0:
        return ()
    groups, runs = fields["groups"], fields["window.kernel_rows"] * fields["row_runs"]
    records = _records(constants, _by_fours(pack_blocks(constants.weights, groups, runs, _CHANNELS)), groups)
    pixel_bytes = 2 * fields["patch_groups"] * _PAIR_BYTES

    def by(pixels: int) -> KernelCall:
        params = dict(usual.params) | records | {"most_pixels": pixels}
        scratch = usual.scratch_bytes + (pixels - fields["most_pixels"]) * pixel_bytes
        counts = conv_counts_wide.general(params)
        return KernelCall("conv2d_s8_wide", params, scratch, mode=str(pixels), isa=Isa.DSP, counts=counts)

    return tuple(map(by, _PIXELS))


def first(constants: ConvConstants, numbers: Params, fields: dict[str, Any]) -> tuple[KernelCall, ...]:
    """conv2d_s8_first_wide by whole rows, and by parts of long ones, if it supports these windows.

    conv2d_s8 has the same `fields`.
    """
    channels, rows = fields["dims.input_channels"], fields["window.kernel_rows"]
    one_group = fields["groups"] == 1 and fields["window.dilation_cols"] == 1
    if numbers["quant.left_shift"] != 0 or not one_group or channels > _MOST_FIRST_CHANNELS:
        return ()
    column_pairs = padded(rows * channels, 2) // 2
    records = _records(constants, _by_columns(constants.weights))
    shared = {name: value for name, value in fields.items() if name.startswith(("dims.", "window."))}

    def by(part: int, mode: str = "") -> KernelCall:
        part_params = {"column_pairs": column_pairs, "part_cols": part}
        part_params["input_zero_point"] = fields["input_zero_point"]
        params = records | shared | part_params | numbers
        counts = conv_counts_wide.first(shared | part_params)
        columns = (part - 1) * fields["window.stride_cols"] + fields["window.kernel_cols"]
        scratch = columns * column_pairs * _PAIR_BYTES
        return KernelCall("conv2d_s8_first_wide", params, scratch, mode=mode, isa=Isa.DSP, counts=counts)

    outputs = fields["dims.output_cols"]
    parts = (by(_PART_COLS, "parts"),) if outputs > _PART_COLS else ()
    return (by(outputs), *parts)


def _by_columns(weights: NDArray[np.int8]) -> NDArray[np.int8]:
    """[K, rows, cols, C] -> pairs [blocks][pairs][channels][2] in the order of conv2d_s8_first_wide.h."""
    outputs, rows, cols, channels = weights.shape
    by_column = weights.transpose(0, 2, 1, 3)
    two = by_column[:, :, : rows // 2 * 2].reshape(outputs, cols, rows // 2, 2, channels)
    one = by_column[:, :, rows // 2 * 2 :].reshape(outputs, cols, -1)
    two = two.transpose(0, 1, 2, 4, 3).reshape(outputs, cols, -1)
    columns = np.concatenate([two, np.pad(one, ((0, 0), (0, 0), (0, one.shape[2] % 2)))], axis=2)
    full = np.pad(columns, ((0, outputs % _CHANNELS), (0, 0), (0, 0)))
    return full.reshape(-1, _CHANNELS, columns[0].size // 2, 2).transpose(0, 2, 1, 3)


def _by_fours(words: NDArray[np.int32]) -> NDArray[np.int8]:
    """Words of four values, [blocks][words][channels], to pairs [blocks][pairs][channels][2].

    Values 0 and 2 of a word are a pair, and values 1 and 3.
    """
    values = np.ascontiguousarray(words.astype("<i4")).view(np.int8).reshape(len(words), -1, _CHANNELS, 2, 2)
    return values.transpose(0, 1, 4, 2, 3).reshape(len(words), -1, _CHANNELS, 2)


def _records(constants: ConvConstants, pairs: NDArray[np.int8], groups: int = 1) -> Params:
    """Records of two channels, of weights [groups * blocks][pairs][channels][2]."""
    assert constants.multipliers is not None
    words = np.ascontiguousarray(pairs.astype("<i2")).view("<i4").astype(np.int32).reshape(len(pairs), -1)
    return {"packed_weights": pack_records(constants.bias, words, constants.multipliers, groups, _CHANNELS)}
