"""int8 convolutions whose results are rounded twice, as by TFLite's reference kernels.

Each rounding is a multiplication, which takes one instruction. The first, by multiplier / 2^31, adds
sum * (2 * multiplier - 2^32) / 2^32 to the sum. The second multiplies by 2^(32 - shift), which rounds halves
up. The factor 2^(32 - shift) + 1 adds the value itself to the fraction: it rounds halves away from zero if
values are less than 2^(32 - shift). See mcud_simd.h. With a shift of 1 the second factor would be 2^31. An
int32 has -2^31 alone, so such a channel has the opposite weights and bias, too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import TWICE, Counts, CountsOf, KernelCall, Params
from mcudeploy.ops import requantize
from mcudeploy.ops.conv.conv_constants import ConvConstants
from mcudeploy.ops.conv.conv_s4w import S4W_TWINS

TWINS = frozenset({
    "conv2d_s8", "conv2d_s8_1x1", "conv2d_s8_1x1_direct", "conv2d_s8_1x1_dual", "conv2d_s8_1x1_mve",
    "conv2d_s8_1x1_sums", "conv2d_s8_1x1_wide", "conv2d_s8_by_rows", "conv2d_s8_by_rows_mve",
    "conv2d_s8_deep", "conv2d_s8_first_mve", "conv2d_s8_first_wide", "conv2d_s8_full", "conv2d_s8_full_mve",
    "conv2d_s8_mve", "conv2d_s8_w1x4", "conv2d_s8_w2x4", "conv2d_s8_w4x4", "conv2d_s8_w4x4_mve",
    "conv2d_s8_wide", "dwconv2d_s8", "dwconv2d_s8_lines_mve", "dwconv2d_s8_multiplied", "dwconv2d_s8_mve",
    "dwconv2d_s8_pairs", "dwconv2d_s8_rows", "dwconv2d_s8_rows_mve", *S4W_TWINS,
})  # fmt: skip
"""The kernels that have a twin, printed from their source."""
_CONSTANT_SHIFT = 8
_LEAST_SHIFT = 2
_OPPOSITE_SHIFT = 1
_WITHOUT_OPPOSITE = (-128, -8)
"""Weights whose opposite needs more than eight bits, or more than four."""
_MOST_RESULT = (1 << 18) - 256
"""Larger results, less room for a zero point, take a shift to the left: see the products in mcud_simd_c.h."""
_SATURATED_SHIFT = 12
"""Up to this shift, a value of 2^(32 - shift) saturates."""
_WORD_BITS = 32


def settled(constants: ConvConstants, numbers: Params, output: Tensor) -> tuple[ConvConstants, Params] | None:
    """Constants with two factors of each channel, and their `numbers` (see numbers_of).

    None if two multiplications would not round all results as TFLite does. Channels with a constant result
    become a bias alone.
    """
    assert constants.multipliers is not None and constants.exponents is not None
    zero_point = requantize.quantization_of(output).zero_point
    constants = _without_constant(constants, numbers, zero_point)
    assert constants.multipliers is not None and constants.exponents is not None
    multipliers, shifts = constants.multipliers.astype(np.int64), -constants.exponents.astype(np.int64)
    if shifts.min() < 0:
        return None
    low = numbers["act.min"]
    assert isinstance(low, int)
    halves_up = low >= zero_point  # negative results are clipped
    sums = np.maximum(*np.abs(_sums(constants)))
    opposite = (shifts == _OPPOSITE_SHIFT) & halves_up & _has_opposite(constants, sums)
    is_large = np.any(sums * multipliers >> 31 + shifts >= _MOST_RESULT)
    left = max(int(is_large), _LEAST_SHIFT - int(shifts[~opposite].min(initial=_LEAST_SHIFT)))
    if left > 0:
        opposite[:] = False  # all second factors fit
    shifts += left
    values = (sums * multipliers >> 31) + 1 << left
    is_exact = (values < 1 << _WORD_BITS - shifts) | (shifts <= _SATURATED_SHIFT)
    if values.max() >= 1 << 31 or not (halves_up or is_exact.all()):
        return None
    powers = (1 << _WORD_BITS - shifts) + (0 if halves_up else 1)
    powers[opposite] *= -1
    constants = _with_opposite(constants, opposite)
    factors = np.stack([2 * multipliers - (1 << _WORD_BITS), powers], axis=1).astype(np.int32)
    settled_constants = replace(constants, multipliers=factors, exponents=None)
    return settled_constants, {"quant.left_shift": left, **numbers}


def _sums(constants: ConvConstants) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The lowest and the highest sum of each channel."""
    weights = constants.weights.reshape(len(constants.weights), -1).astype(np.int64)
    above, below = np.maximum(weights, 0).sum(axis=1), np.minimum(weights, 0).sum(axis=1)
    bias = constants.bias.astype(np.int64)
    return bias - 128 * above + 127 * below, bias + 127 * above - 128 * below


def _has_opposite(constants: ConvConstants, sums: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the opposite of a channel's sums, which are at most `sums`, gives the same results.

    The first multiplication would round halves down, so none may occur: sum * multiplier = 2^30 modulo 2^31.
    """
    assert constants.multipliers is not None
    multipliers = constants.multipliers.astype(np.int64)
    lowest = constants.weights.reshape(len(sums), -1).min(axis=1)
    return (sums * (multipliers & -multipliers) < 1 << 30) & ~np.isin(lowest, _WITHOUT_OPPOSITE)


def _with_opposite(constants: ConvConstants, opposite: NDArray[np.bool_]) -> ConvConstants:
    """The constants with the opposite weights and bias of some channels."""
    signs = np.where(opposite, -1, 1)
    along = signs.reshape(-1, *[1] * (constants.weights.ndim - 1))
    return replace(
        constants,
        weights=(constants.weights * along).astype(constants.weights.dtype),
        bias=(constants.bias * signs).astype(np.int32),
    )


def _without_constant(constants: ConvConstants, numbers: Params, zero_point: int) -> ConvConstants:
    """The constants with channels whose result is always the same as a bias without weights."""
    assert constants.multipliers is not None and constants.exponents is not None
    least, most = numbers["act.min"], numbers["act.max"]
    ends = np.array([
        [requantize.rounded_twice(sums, int(multiplier), int(exponent)) for sums in both]
        for both, multiplier, exponent in zip(
            np.stack(_sums(constants), axis=1), constants.multipliers, constants.exponents, strict=True
        )
    ])
    assert isinstance(least, int) and isinstance(most, int)
    lowest, highest = np.clip(ends + zero_point, least, most).T
    constant = lowest == highest
    along = constant.reshape(-1, *[1] * (constants.weights.ndim - 1))
    bias = (lowest - zero_point) << (_CONSTANT_SHIFT + 1)
    return replace(
        constants,
        weights=np.where(along, 0, constants.weights).astype(constants.weights.dtype),
        bias=np.where(constant, bias, constants.bias).astype(np.int32),
        multipliers=np.where(constant, 1 << 30, constants.multipliers).astype(np.int32),
        exponents=np.where(constant, -_CONSTANT_SHIFT, constants.exponents).astype(np.int8),
    )


def twin(call: KernelCall, output: Tensor) -> KernelCall:
    """The call of the twin of a kernel; its others are the twins of the kernel's others."""
    twins = [
        replace(it, kernel=it.kernel + TWICE, counts=_counts(it.counts, output), others=())
        for it in (call, *call.others)
        if it.kernel in TWINS
    ]
    return replace(twins[0], others=tuple(twins[1:]))


def _counts(once: CountsOf | None, output: Tensor) -> CountsOf:
    assert once is not None
    _, cols, channels = output.shape

    def counts(rows: Interval) -> Counts:
        return once(rows) | {"twice": len(rows) * cols * channels}

    return counts
