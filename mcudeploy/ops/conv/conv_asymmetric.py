"""The C kernels of int8 convolutions whose weights take nine bits: uint8 minus a zero point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import Operator, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, KernelCall, Params
from mcudeploy.ops import requantize
from mcudeploy.ops.common import OFFSET_BYTES, merged
from mcudeploy.ops.conv import conv_counts
from mcudeploy.ops.conv.conv_constants import ConvConstants
from mcudeploy.ops.conv.conv_counts_f32 import depthwise
from mcudeploy.ops.conv.packing import GROUP, by_tap, padded
from mcudeploy.ops.conv.windows import Windowing, group_fields, window_fields


def is_asymmetric(operator: Operator) -> bool:
    """Whether the weights of a convolution of integers take nine bits."""
    weights = operator.constants.get("weights")
    return weights is not None and weights.dtype == np.int16


def asymmetric_kernel(
    conv: Windowing, constants: ConvConstants, numbers: Params, source: Tensor, output: Tensor
) -> KernelCall:
    """conv2d_s8_asymmetric or dwconv2d_s8_asymmetric. `constants` have int16 weights of nine bits."""
    small, offsets = in_bytes(constants)
    zero_point = requantize.quantization_of(source).zero_point
    rounding: Params = {"quant.left_shift": 0} | numbers
    fields = window_fields(conv, source, output)
    scratch = conv.kernel_shape[0] * OFFSET_BYTES
    if conv.is_depthwise(source.shape[2]):
        fields["multiplier"] = conv.out_channels // source.shape[2]
        unfolded = _unfolded(constants, zero_point)
        arrays: Params = {
            "weights": by_tap(small.weights),
            "offsets": offsets,
            "bias": unfolded,
            "multipliers": constants.multipliers,
            "exponents": constants.exponents,
        }
        params = arrays | fields | {"input_zero_point": zero_point} | rounding
        counts = depthwise(fields, eights=False)
        return KernelCall("dwconv2d_s8_asymmetric", params, scratch, mode=_mode(constants), counts=counts)
    group_inputs = source.shape[2] // conv.groups
    values = conv.kernel_shape[0] * conv.kernel_shape[1] * group_inputs
    fields |= group_fields(conv, source) | {
        "window_values": values,
        "patch_groups": -(-values // GROUP),
        "input_zero_point": zero_point,
    }
    packed = small.packed_fours(runs=1, groups=conv.groups)
    params = packed | {"offsets": offsets, "exponents": constants.exponents} | fields | rounding
    products = conv_counts.deep(fields)
    windows = output.shape[1] * conv.groups

    def counts_of(rows: Interval) -> Counts:
        gathered = len(rows) * windows
        of_offsets = {"windows": gathered, "summed": gathered * values, "offsets": gathered * len(offsets)}
        return merged(products(rows), of_offsets)

    scratch += padded(values, GROUP)
    return KernelCall("conv2d_s8_asymmetric", params, scratch, mode=_mode(constants), counts=counts_of)


def in_bytes(constants: ConvConstants) -> tuple[ConvConstants, NDArray[np.int16]]:
    """Constants with int8 weights, and an offset for each channel, whose sum are the int16 weights.

    Raises ValueError if the weights of a channel take more than 8 bits, or sums could exceed 32 bits.
    """
    rows = constants.weights.reshape(len(constants.weights), -1)
    offsets = (rows.min(axis=1) + 128).astype(np.int16)
    if np.any(rows.max(axis=1) - offsets > 127):
        raise ValueError("the weights of a channel take more than 8 bits")
    weights = (rows - offsets[:, None]).astype(np.int8).reshape(constants.weights.shape)
    small = replace(constants, weights=weights)
    _require_range(small, offsets)
    return small, offsets


def _require_range(constants: ConvConstants, offsets: NDArray[np.int16]) -> None:
    """Raise ValueError if a sum of products, with int8 weights or with offsets, could exceed 32 bits."""
    rows = np.abs(constants.weights.reshape(len(offsets), -1).astype(np.int64))
    parts = rows.sum(axis=1) + rows.shape[1] * np.abs(offsets.astype(np.int64))
    if np.any(np.abs(constants.bias.astype(np.int64)) + 256 * parts > requantize.INT32_MAX):
        raise ValueError("its sums could exceed 32 bits: convert the model with int8 weights")


def _mode(constants: ConvConstants) -> str:
    return "once" if constants.exponents is None else "twice"


def _unfolded(constants: ConvConstants, zero_point: int) -> NDArray[np.int32]:
    """The bias without the input's zero point, which the depthwise kernel subtracts from each value."""
    sums = constants.weights.reshape(len(constants.weights), -1).sum(axis=1, dtype=np.int64)
    return np.asarray(constants.bias.astype(np.int64) + zero_point * sums, np.int32)
