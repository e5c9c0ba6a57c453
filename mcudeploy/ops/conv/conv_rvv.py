"""The C kernels of int8 convolutions for cores with RISC-V's vectors, with their constants packed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall, Params
from mcudeploy.ops.common import SUM_BYTES
from mcudeploy.ops.conv import conv_counts_rvv
from mcudeploy.ops.conv.conv_constants import ConvConstants
from mcudeploy.ops.conv.conv_gathered import VectorKernel, columns_inside, gathered
from mcudeploy.ops.conv.packing import LANES, pack_lanes

_GENERAL = VectorKernel("conv2d_s8_rvv", Isa.RVV, conv_counts_rvv.general, pixels=(3, 2, 1))


def pointwise(constants: ConvConstants, numbers: Params, fields: Params) -> KernelCall:
    """conv2d_s8_1x1_rvv; `fields` belong to conv2d_s8_1x1, without its groups."""
    params: Params = {"packed_weights": _records(constants), **fields, **numbers}
    return KernelCall("conv2d_s8_1x1_rvv", params, isa=Isa.RVV, counts=conv_counts_rvv.pointwise(fields))


def general(constants: ConvConstants, numbers: Params, fields: Params) -> tuple[KernelCall, ...]:
    """conv2d_s8_rvv by one to three pixels; `fields` are shared by conv2d_s8 and conv2d_s8_deep."""
    groups = fields["groups"]
    assert isinstance(groups, int)
    return gathered(_GENERAL, _records(constants, groups), fields, numbers, constants.weights.shape)


def full(constants: ConvConstants, numbers: Params, fields: Params) -> KernelCall:
    """conv2d_s8_full_rvv; `fields` belong to conv2d_s8_full."""
    params: Params = {"packed_weights": _records(constants), **fields, **numbers}
    scratch, counts = len(constants.weights) * SUM_BYTES, conv_counts_rvv.full(fields)
    return KernelCall("conv2d_s8_full_rvv", params, scratch, isa=Isa.RVV, counts=counts)


def by_rows(constants: ConvConstants, numbers: Params, fields: Params, rows: int) -> KernelCall:
    """conv2d_s8_by_rows_rvv; `fields` belong to conv2d_s8_by_rows, which reads `rows` rows."""
    params = {"packed_weights": _records(constants), **fields, **numbers}
    state, counts = len(constants.weights) * SUM_BYTES, conv_counts_rvv.by_rows(fields, rows)
    return KernelCall("conv2d_s8_by_rows_rvv", params, state_bytes=state, isa=Isa.RVV, counts=counts)


def depthwise(
    constants: ConvConstants, numbers: Params, fields: Params, padding: NDArray[np.int8], scratch_bytes: int
) -> KernelCall:
    """dwconv2d_s8_rvv; `fields` and scratch belong to dwconv2d_s8."""
    channels = len(constants.weights)
    pixels = max(1, LANES // channels) if fields["window.stride_cols"] == 1 else 1
    arrays: Params = {"packed_weights": _records(constants, pixels=pixels), "padding": padding}
    params = arrays | fields | columns_inside(fields) | {"pixels": pixels} | numbers
    counts = conv_counts_rvv.depthwise(params)
    return KernelCall("dwconv2d_s8_rvv", params, scratch_bytes, isa=Isa.RVV, counts=counts)


def _records(constants: ConvConstants, groups: int = 1, pixels: int = 1) -> NDArray[np.int32]:
    """The records, with all channels as often as there are `pixels`."""
    assert constants.multipliers is not None
    bias, multipliers = (np.concatenate([it] * pixels) for it in (constants.bias, constants.multipliers))
    weights = np.tile(constants.weights.reshape(len(constants.weights), -1), (pixels, 1))
    return pack_lanes(bias, weights, multipliers, groups)
