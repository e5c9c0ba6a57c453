"""int8 convolutions with weights of four bits, which stay packed: twins of kernels with int8 weights.

See firmware/arith/int8/mcud_s4w.h. A layer has them if all its weights fit, whatever their type in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.opdef import S4W, Counts, CountsOf, KernelCall, Params
from mcudeploy.ops.conv import conv_counts
from mcudeploy.ops.conv.conv_constants import ConvConstants, without
from mcudeploy.ops.conv.packing import GROUP, pack_s4w, padded

S4W_TWINS = frozenset(
    f"{name}{S4W}" for name in ("conv2d_s8", "conv2d_s8_1x1", "conv2d_s8_1x1_direct", "conv2d_s8_deep")
)
"""The kernels with weights of four bits, printed from the sources of those with int8 weights."""
_CHANNELS = 4
"""Output channels of a record."""
_PIXELS = 2
"""Pixels multiplied at a time."""
_EXPANDED_BYTES = 2
"""Bytes of one int8 value in a block of pixels that is multiplied."""
_MOST_SUM, _MOST_OFFSET_SUM = 1 << 19, 1 << 23
"""Limits of absolute sums without bias: of the last channel of a record; of the third, with weights + 8."""
_UNROLLED = 4
"""Groups in a turn of two pixels, or pairs of groups in a turn of one pixel; see mcud_s4w_dsp.h."""


def fits_four_bits(weights: NDArray[Any]) -> bool:
    """Whether weights are integers of four bits, not all of them 0."""
    return bool(weights.dtype == np.int8 and weights.min() >= -8 and weights.max() <= 7 and weights.any())


def can_stay_packed(weights: NDArray[Any], groups: int = 1) -> bool:
    """Whether weights [K, ...] of `groups` groups of channels have four bits, and all sums fit."""
    if not fits_four_bits(weights):
        return False
    by_group = weights.reshape(groups, len(weights) // groups, -1).astype(np.int64)
    last, third = np.abs(by_group[:, 3::_CHANNELS]), by_group[:, 2::_CHANNELS] + 8
    return bool(
        128 * last.sum(axis=2).max(initial=0) < _MOST_SUM
        and 128 * third.sum(axis=2).max(initial=0) < _MOST_OFFSET_SUM
    )


def direct(constants: ConvConstants, numbers: Params, fields: dict[str, Any]) -> tuple[KernelCall, ...]:
    """conv2d_s8_1x1_direct_s4w, if it supports the depth and is exact for these constants.

    `fields` are those of conv2d_s8_1x1_direct.
    """
    if fields["dims.input_channels"] % GROUP or not can_stay_packed(constants.weights):
        return ()
    counts = conv_counts.direct(fields, _fours)
    return (
        KernelCall(f"conv2d_s8_1x1_direct{S4W}", _records(constants, 1) | fields | numbers, counts=counts),
    )


def pointwise(constants: ConvConstants, numbers: Params, fields: dict[str, Any]) -> tuple[KernelCall, ...]:
    """conv2d_s8_1x1_s4w and conv2d_s8_1x1_direct_s4w; `fields` are those of conv2d_s8_1x1."""
    if not can_stay_packed(constants.weights):
        return ()
    scratch = padded(fields["dims.input_channels"], GROUP) * _PIXELS * _EXPANDED_BYTES
    params, counts = _records(constants, 1) | fields | numbers, conv_counts.pointwise(fields, _blocks)
    call = KernelCall(f"conv2d_s8_1x1{S4W}", params, scratch, counts=counts)
    return call, *direct(constants, numbers, without(fields, "groups"))


def general(constants: ConvConstants, usual: KernelCall) -> tuple[KernelCall, ...]:
    """conv2d_s8_s4w; `usual` is conv2d_s8 by two pixels."""
    fields: Mapping[str, Any] = usual.params
    runs = fields["window.kernel_rows"] * fields["row_runs"]
    return _twin(constants, usual, runs, conv_counts.general(fields, _blocks))


def deep(constants: ConvConstants, usual: KernelCall) -> tuple[KernelCall, ...]:
    """conv2d_s8_deep_s4w; `usual` is conv2d_s8_deep."""
    return _twin(constants, usual, 1, conv_counts.deep(usual.params, _fours))


def _twin(constants: ConvConstants, call: KernelCall, runs: int, counts: CountsOf) -> tuple[KernelCall, ...]:
    """A call with packed weights for `runs` runs of each window, if it is exact."""
    groups = call.params["groups"]
    assert isinstance(groups, int)
    if not can_stay_packed(constants.weights, groups):
        return ()
    params = dict(call.params) | _records(constants, runs, groups)
    return (KernelCall(f"{call.kernel}{S4W}", params, call.scratch_bytes, counts=counts),)


def _records(constants: ConvConstants, runs: int, groups: int = 1) -> Params:
    assert constants.multipliers is not None
    records = pack_s4w(constants.bias, constants.weights, constants.multipliers, groups, runs)
    return {"packed_weights": records}


def _blocks(pixels: int, most: int, channels: int, groups: int) -> Counts:
    """Counts of mcud_multiply_s4w for pixels two at a time, and a last one."""
    twos, one = divmod(pixels, _PIXELS)
    fours, rest = -(-channels // _CHANNELS), int(channels % _CHANNELS > 0)
    records = (twos + one) * fours
    return {
        "blocks": twos + one,
        "summed": (twos + one) * groups,
        "records": records,
        "groups": records * groups,
        "turns": records * -(-groups // _UNROLLED),
        "apart": twos * rest + one * fours,
    }


def _fours(channels: int, values: int) -> Counts:
    """Counts of mcud_pixel_s4w."""
    groups, records = values // GROUP, -(-channels // _CHANNELS)
    return {
        "summed": groups,
        "records": records,
        "groups": records * groups,
        "turns": records * -(-(groups // 2) // _UNROLLED),
        "single": records * (groups % 2),
        "apart": int(channels % _CHANNELS > 0),
    }
