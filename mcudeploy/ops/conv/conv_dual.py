"""The C kernel of pixels and dense layers by int8 weights of two output channels in a half word.

It is for cores with Arm's DSP extension; see firmware/arith/int8/mcud_dual_s8.h.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall, ParamValue
from mcudeploy.ops import requantize
from mcudeploy.ops.conv import conv_counts
from mcudeploy.ops.conv.conv_constants import ConvConstants
from mcudeploy.ops.conv.packing import EIGHT, pack_dual

_MOST_SUM = 1 << 23
"""Limit of the absolute sums of odd channels."""


def pixels(
    constants: ConvConstants, numbers: dict[str, ParamValue], fields: dict[str, ParamValue]
) -> tuple[KernelCall, ...]:
    """conv2d_s8_1x1_dual, if it is exact for these constants; `fields` are those of conv2d_s8_1x1_direct."""
    known: Mapping[str, Any] = fields
    weights = constants.weights.reshape(len(constants.weights), -1)
    if numbers["quant.left_shift"] != 0 or known["dims.input_channels"] % 4 or (weights == -128).any():
        return ()
    assert constants.multipliers is not None
    largest = requantize.largest_products(weights) + np.abs(constants.bias.astype(np.int64))
    if largest[1::2].max(initial=0) >= _MOST_SUM:
        return ()
    arrays: dict[str, ParamValue] = {
        "packed_weights": pack_dual(constants.bias, weights, constants.multipliers)
    }
    counts = conv_counts.dual(fields, EIGHT)
    return (KernelCall("conv2d_s8_1x1_dual", arrays | fields | numbers, isa=Isa.DSP, counts=counts),)
