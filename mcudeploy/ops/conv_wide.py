"""The C kernels of int8 convolutions by weights of 16 bits, for cores with Arm's DSP extension.

They take fewer cycles than those by weights of 8 bits, which are widened at run time, and twice the flash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.opdef import Isa, KernelCall, ParamValue
from mcudeploy.ops import conv_counts_wide
from mcudeploy.ops.conv_constants import without
from mcudeploy.ops.packing import GROUP, pack_blocks, pack_records, padded

if TYPE_CHECKING:
    from mcudeploy.ops.conv_constants import ConvConstants

Params = dict[str, ParamValue]

_CHANNELS = 2
"""Output channels of a record."""
_PAIR_BYTES = 4
"""Bytes of two expanded values."""
_PIXELS = (4, 3)
"""Pixels multiplied at a time."""


def pointwise(constants: ConvConstants, numbers: Params, fields: Params) -> tuple[KernelCall, ...]:
    """conv2d_s8_1x1_wide by four or three pixels; `fields` belong to conv2d_s8_1x1."""
    if numbers["quant.left_shift"] != 0:
        return ()
    channels = constants.weights.shape[-1]
    pairs = padded(channels, GROUP) // 2
    records = _records(constants, pack_blocks(constants.weights, 1, 1, _CHANNELS))
    dims = {name: value for name, value in fields.items() if name.startswith("dims.")}

    def by(pixels: int) -> KernelCall:
        known = dims | {"pairs": pairs, "most_pixels": pixels} | without(fields, *dims, "groups")
        params, counts = records | known | numbers, conv_counts_wide.pointwise(known)
        scratch, form = pixels * pairs * _PAIR_BYTES, str(pixels)
        return KernelCall("conv2d_s8_1x1_wide", params, scratch, form=form, isa=Isa.DSP, counts=counts)

    return tuple(map(by, _PIXELS))


def general(constants: ConvConstants, usual: KernelCall) -> tuple[KernelCall, ...]:
    """conv2d_s8_wide by four or three pixels; `usual` is conv2d_s8, whose parameters it has."""
    fields: Mapping[str, Any] = usual.params
    if fields["quant.left_shift"] != 0:
        return ()
    groups, runs = fields["groups"], fields["window.kernel_rows"] * fields["row_runs"]
    records = _records(constants, pack_blocks(constants.weights, groups, runs, _CHANNELS), groups)
    pixel_bytes = 2 * fields["patch_groups"] * _PAIR_BYTES

    def by(pixels: int) -> KernelCall:
        params = dict(usual.params) | records | {"most_pixels": pixels}
        scratch = usual.scratch_bytes + (pixels - fields["most_pixels"]) * pixel_bytes
        counts = conv_counts_wide.general(params)
        return KernelCall("conv2d_s8_wide", params, scratch, form=str(pixels), isa=Isa.DSP, counts=counts)

    return tuple(map(by, _PIXELS))


def _records(constants: ConvConstants, words: NDArray[np.int32], groups: int = 1) -> Params:
    """Records of two channels, of packed words of four values each, [groups of values][2 channels]."""
    assert constants.multipliers is not None
    values = np.ascontiguousarray(words.astype("<i4")).view(np.int8).reshape(len(words), -1, _CHANNELS, 2, 2)
    pairs = values.transpose(0, 1, 4, 2, 3).astype("<i2")  # values 0 and 2 of each channel, then 1 and 3
    wide = np.ascontiguousarray(pairs).view("<i4").astype(np.int32).reshape(len(words), -1)
    return {"packed_weights": pack_records(constants.bias, wide, constants.multipliers, groups, _CHANNELS)}
