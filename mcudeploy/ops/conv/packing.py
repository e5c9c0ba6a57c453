"""Packing of constants for kernels: weights in the order of the blocks in which they are multiplied.

A group is four values along the depth, in one 32-bit word, little-endian; incomplete groups and blocks of
channels are filled up with 0. See mcud_dot_s8.h, mcud_dot_row_s8.h and mcud_simd.h; for vectors,
mcud_dot_vector_s8.h.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.opdef import ConstantArray

_Number = TypeVar("_Number", np.int8, np.float32)
_Integer = TypeVar("_Integer", np.int8, np.int32)

GROUP = 4
"""Values in a group."""
EIGHT = 8
"""Output channels of a record whose half words hold the weights of two channels."""
VECTOR = 16
"""int8 values in a vector."""
LANES = 32
"""int32 sums that RISC-V's vectors of 128 bits have in eight registers."""


def padded(size: int, multiple: int) -> int:
    """Round up to the next multiple."""
    return -(-size // multiple) * multiple


def pack_records(
    bias: NDArray[np.int32],
    weights: NDArray[np.int32],
    multipliers: NDArray[np.int32],
    groups: int,
    block: int,
) -> NDArray[np.int32]:
    """One record for every `block` channels of each group: biases, packed weights, multipliers [K] or [K][2].

    `weights` [groups * blocks][words of a block] are those of these records. Missing channels are 0.
    """
    parts = [_by_block(bias, groups, block), weights, _by_block(multipliers, groups, block)]
    return np.ascontiguousarray(np.concatenate(parts, axis=1).ravel())


def _by_block(values: NDArray[np.int32], groups: int, block: int) -> NDArray[np.int32]:
    """int32 [groups * n] -> [groups * blocks][block], filled up with zeros after each group's n values.

    [groups * n][2], factors of results that are rounded twice -> [groups * blocks][2 * block].
    """
    if values.ndim > 1:
        return np.concatenate([_by_block(each, groups, block) for each in values.T], axis=1)
    by_group = values.reshape(groups, -1)
    missing = padded(by_group.shape[1], block) - by_group.shape[1]
    return np.pad(by_group, ((0, 0), (0, missing))).reshape(-1, block)


def pack_fours_and_ones(
    bias: NDArray[np.int32],
    weights: NDArray[np.int8],
    multipliers: NDArray[np.int32],
    groups: int,
    runs: int,
) -> NDArray[np.int32]:
    """For each group, records of four channels, then a record for each of the last one to three.

    See mcud_dot_row_s8.h. `weights` [K, ...] and `runs` as for `pack_blocks`. Every channel takes the same
    number of words.
    """
    whole = len(bias) // groups // GROUP * GROUP

    def records(block: int, chosen: slice) -> NDArray[np.int32]:
        biases, factors = _of_groups(bias, groups, chosen), _of_groups(multipliers, groups, chosen)
        if not biases.size:
            return np.empty((groups, 0), np.int32)
        blocks = pack_blocks(_of_groups(weights, groups, chosen), groups, runs, block)
        return pack_records(biases, blocks, factors, groups, block).reshape(groups, -1)

    parts = [records(GROUP, slice(whole)), records(1, slice(whole, None))]
    return np.ascontiguousarray(np.concatenate(parts, axis=1).ravel())


def _of_groups(values: NDArray[_Integer], groups: int, chosen: slice) -> NDArray[_Integer]:
    """The chosen channels of each group of [K, ...]."""
    by_group = values.reshape(groups, -1, *values.shape[1:])
    return by_group[:, chosen].reshape(-1, *values.shape[1:])


def pack_blocks(
    weights: NDArray[np.int8], groups: int, runs: int, block: int, side_by_side: int = GROUP
) -> NDArray[np.int32]:
    """Pack weights [K, ...] for blocks of `block` output channels; K is `groups` groups of channels.

    The depth after K is `runs` equal runs, each filled up to whole groups of `side_by_side` values, a
    multiple of four. Returns words [groups * blocks][words of a block].
    """
    outputs = len(weights) // groups
    by_run = weights.reshape(groups, outputs, runs, -1)
    missing_outputs = padded(outputs, block) - outputs
    missing_values = padded(by_run.shape[3], side_by_side) - by_run.shape[3]
    full = np.pad(by_run, ((0, 0), (0, missing_outputs), (0, 0), (0, missing_values)))
    blocks = full.reshape(groups, -1, block, full.shape[2] * full.shape[3] // side_by_side, side_by_side)
    return _words(blocks.transpose(0, 1, 3, 2, 4)).reshape(groups * blocks.shape[1], -1)


def pack_vector_fours(
    bias: NDArray[np.int32], weights: NDArray[np.int8], multipliers: NDArray[np.int32], groups: int
) -> NDArray[np.int32]:
    """Pack weights [K, ...] for blocks of four output channels by vectors; K is `groups` groups of channels.

    See mcud_dot_vector_s8.h.
    """
    by_group = weights.reshape(groups, len(weights) // groups, -1)
    missing = (-by_group.shape[1] % 4, -by_group.shape[2] % VECTOR)
    full = np.pad(by_group, ((0, 0), (0, missing[0]), (0, missing[1])))
    by_pair = full.reshape(-1, 2, 2, full.shape[2] // VECTOR, VECTOR).transpose(0, 2, 3, 1, 4)
    words = _words(by_pair).reshape(len(by_pair), -1)
    parts = [words, _by_block(bias, groups, 4), _by_block(multipliers, groups, 4)]
    return np.ascontiguousarray(np.concatenate(parts, axis=1).ravel())


def pack_s4w(
    bias: NDArray[np.int32], weights: NDArray[np.int8], multipliers: NDArray[np.int32], groups: int, runs: int
) -> NDArray[np.int32]:
    """Pack weights [K, ...] of four bits in records of four output channels; see mcud_s4w.h.

    `groups` and `runs` as for `pack_blocks`.
    """
    words = pack_blocks(weights, groups, runs, GROUP)
    values = words.astype("<i4").view(np.int8).reshape(len(words), -1, GROUP, 2, 2)  # [channel][half][odd]
    nibbles = values.transpose(0, 1, 4, 3, 2).astype(np.int32) + np.array([8, 8, 8, 0]) & 15
    halves = (nibbles << (0, 4, 8, 12)).sum(axis=-1).astype("<u2")
    parts = [halves.reshape(len(words), -1).view("<i4"), _by_block(bias, groups, GROUP)]
    parts.append(_by_block(multipliers, groups, GROUP))
    return np.ascontiguousarray(np.concatenate(parts, axis=1).ravel(), np.int32)


def pack_lanes(
    bias: NDArray[np.int32], weights: NDArray[np.int8], multipliers: NDArray[np.int32], groups: int
) -> NDArray[np.int32]:
    """Pack weights [K, ...] in one record for each of `groups` groups of channels; see mcud_lanes_s8.h."""
    by_depth = weights.reshape(groups, len(weights) // groups, -1).transpose(0, 2, 1).reshape(groups, -1)
    full = np.pad(by_depth, ((0, 0), (0, -by_depth.shape[1] % GROUP)))
    channels = len(weights) // groups
    parts = [_by_block(it, groups, channels) for it in (bias, multipliers)]
    parts.append(_words(full).reshape(groups, -1))
    return np.ascontiguousarray(np.concatenate(parts, axis=1).ravel())


def pack_fours(values: NDArray[_Number], groups: int) -> NDArray[_Number]:
    """[K, ...] -> [groups][fours of channels][depth][4]; K is `groups` groups of channels.

    Incomplete fours of a group are filled with 0. Biases have depth 1.
    """
    by_group = values.reshape(groups, len(values) // groups, -1)
    missing = padded(by_group.shape[1], 4) - by_group.shape[1]
    full = np.pad(by_group, ((0, 0), (0, missing), (0, 0)))
    fours = full.reshape(groups, -1, 4, full.shape[2]).transpose(0, 1, 3, 2)
    return np.ascontiguousarray(fours)


def scaled_weights(integers: NDArray[np.int8], scale: NDArray[np.float32]) -> NDArray[np.float32]:
    """The float32 values of int8 weights [K, ...] with a scale for each channel [K]."""
    along = (-1,) + (1,) * (integers.ndim - 1)
    return np.asarray(integers.astype(np.float32) * scale.reshape(along), np.float32)


def pack_taps(weights: NDArray[np.int8]) -> NDArray[np.int32]:
    """Depthwise weights [C, taps] -> words [fours of channels][taps].

    Taps go in pairs: channels 0 and 1 of both taps, then channels 2 and 3 of both. An odd last tap has its
    four channels in one word.
    """
    channels, taps = weights.shape
    fours = np.pad(weights, ((0, padded(channels, 4) - channels), (0, 0))).reshape(-1, 4, taps)
    even = taps // 2 * 2
    # [fours][half of the channels][2 channels][pair of taps][2 taps]
    pairs = fours[:, :, :even].reshape(len(fours), 2, 2, even // 2, 2).transpose(0, 3, 1, 4, 2)
    odd = fours[:, :, even:].reshape(len(fours), -1)
    return _words(np.concatenate([pairs.reshape(len(fours), -1), odd], axis=1)).reshape(len(fours), taps)


def by_tap(weights: ConstantArray) -> ConstantArray:
    """[K, kh, kw, 1] -> [kh * kw, K]: the channels of one tap become adjacent."""
    taps = weights.reshape(len(weights), -1).T
    if weights.dtype == np.int8:
        return np.ascontiguousarray(taps, np.int8)
    return np.ascontiguousarray(taps, np.float32)


def pack_row_pairs(
    bias: NDArray[np.int32], weights: NDArray[np.int8], multipliers: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Depthwise constants, weights [C, 3, 3], in a record for each channel; see mcud_row_pairs_s8.h."""
    words = _words(weights[:, [0, 1, 1, 2]].transpose(0, 2, 1)).reshape(-1, 3)
    return pack_records(bias, words, multipliers, 1, 1)


def pack_pair_windows(
    bias: NDArray[np.int32], weights: NDArray[np.int8], multipliers: NDArray[np.int32], stride: int
) -> NDArray[np.int32]:
    """Depthwise constants, weights [C, rows, cols], in a record for each channel; see mcud_pair_windows_s8.h.

    `stride` is that of the columns.
    """
    channels, rows, cols = weights.shape
    by_phase = weights[:, :, [col for phase in range(stride) for col in range(phase, cols, stride)]]
    full = np.pad(by_phase, ((0, 0), (0, rows % 2), (0, cols % 2)))
    pairs = full.reshape(channels, full.shape[1] // 2, 2, full.shape[2] // 2, 2).transpose(0, 1, 3, 2, 4)
    words = _words(pairs.reshape(channels, -1)).reshape(channels, -1)
    return np.concatenate([bias[:, None], _by_block(multipliers, 1, 1), words], axis=1).ravel()


def pack_dual(
    bias: NDArray[np.int32], weights: NDArray[np.int8], multipliers: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Weights [K, depth], none of them -128, two channels in a half word; see mcud_dual_s8.h."""
    missing = padded(len(weights), EIGHT) - len(weights)
    full = (
        np.pad(weights, ((0, missing), (0, 0))).astype(np.int32).reshape(-1, EIGHT // 2, 2, weights.shape[1])
    )
    halves = (full[:, :, 0] + 256 * full[:, :, 1]).astype("<i2")  # [eights][pairs][depth]
    by_group = halves.reshape(*halves.shape[:2], -1, 2, 2).transpose(
        0, 2, 4, 1, 3
    )  # [groups][odd][pairs][half]
    words = np.ascontiguousarray(by_group).view("<i4").astype(np.int32).reshape(len(full), -1)
    biases = np.pad(bias.astype(np.int64), (0, missing)).reshape(-1, EIGHT // 2, 2)
    even = biases[:, :, 0]
    both = (even + 256 * biases[:, :, 1]).astype(np.int32)  # modulo 2^32
    parts = [both, even.astype(np.int32), words, _by_block(multipliers, 1, EIGHT)]
    return np.ascontiguousarray(np.concatenate(parts, axis=1).ravel(), np.int32)


def pack_four_rows(
    bias: NDArray[np.int32], weights: NDArray[np.int8], multipliers: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Depthwise constants, weights [C, 3, 3], in a record for each channel; see mcud_four_rows_s8.h."""
    words = _words(np.pad(weights, ((0, 0), (0, 1), (0, 1))).transpose(0, 2, 1)).reshape(-1, 4)
    return np.concatenate([bias[:, None], _by_block(multipliers, 1, 1), words], axis=1).ravel()


def pack_lines(
    bias: NDArray[np.int32],
    weights: NDArray[np.int8],
    multipliers: NDArray[np.int32],
    height: int,
    vectors: int,
) -> NDArray[np.int32]:
    """Depthwise constants, weights [C, rows, cols], in a record for each channel; see mcud_lines_s8.h."""
    channels, rows, cols = weights.shape
    columns = np.pad(weights, ((0, 0), (0, height - rows), (0, 0))).transpose(0, 2, 1).reshape(channels, -1)
    full = np.pad(columns, ((0, 0), (0, VECTOR * vectors - cols * height)))
    words = _words(full).reshape(channels, -1)
    return np.concatenate([bias[:, None], _by_block(multipliers, 1, 1), words], axis=1).ravel()


def pack_vector_taps(
    bias: NDArray[np.int32], weights: NDArray[np.int8], multipliers: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Depthwise constants, weights [C, taps], for vectors of 16 channels; see dwconv2d_s8_mve.h."""
    channels, taps = weights.shape
    missing = padded(channels, VECTOR) - channels
    by_tap = np.pad(weights, ((0, missing), (0, 0))).reshape(-1, VECTOR, taps).transpose(0, 2, 1)
    parts = [_by_lane(bias, missing), _words(by_tap).reshape(len(by_tap), -1), _by_lane(multipliers, missing)]
    return np.ascontiguousarray(np.concatenate(parts, axis=1).ravel())


def _by_lane(values: NDArray[np.int32], missing: int) -> NDArray[np.int32]:
    """Values of channels [C] -> [sixteens][16], in the order in which vectors widen their lanes.

    [C][2] -> [sixteens][32], as _by_block.
    """
    if values.ndim > 1:
        return np.concatenate([_by_lane(each, missing) for each in values.T], axis=1)
    lanes = [first + step for first in (0, 2, 1, 3) for step in range(0, VECTOR, 4)]
    return np.pad(values, (0, missing)).reshape(-1, VECTOR)[:, lanes]


def _words(weights: NDArray[np.int8]) -> NDArray[np.int32]:
    """The bytes as little-endian words."""
    return np.ascontiguousarray(weights).view("<i4").astype(np.int32).ravel()
