"""Constants in the order of the kernels' blocks, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcudeploy.ir.graph import DType, Operator, Quantization, Tensor
from mcudeploy.ir.parameter_table import table_bytes
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.conv.packing import (
    pack_blocks,
    pack_fours,
    pack_fours_and_ones,
    pack_records,
    pack_taps,
    pack_vector_taps,
)
from mcudeploy.ops.requantize import INT32_MAX, Rounding, exact_bias, quantize_sums, settle_channels


def _bytes(words: np.ndarray) -> list[list[int]]:
    return words.astype("<i4").view(np.int8).reshape(len(words), -1).tolist()


def test_a_block_interleaves_its_channels_by_groups_of_four() -> None:
    weights = np.arange(1, 16, dtype=np.int8).reshape(3, 5)
    first, second = _bytes(pack_blocks(weights, groups=1, runs=1, block=2))
    assert first == [1, 2, 3, 4, 6, 7, 8, 9, 5, 0, 0, 0, 10, 0, 0, 0]
    assert second == [11, 12, 13, 14, 0, 0, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0]


def test_every_run_is_filled_up_on_its_own() -> None:
    weights = np.arange(1, 7, dtype=np.int8).reshape(1, 2, 3)
    assert _bytes(pack_blocks(weights, groups=1, runs=2, block=1)) == [[1, 2, 3, 0, 4, 5, 6, 0]]


def test_groups_of_channels_begin_with_a_block() -> None:
    weights = np.arange(1, 7, dtype=np.int8).reshape(6, 1)
    packed = _bytes(pack_blocks(weights, groups=2, runs=1, block=2))
    assert [[row[0], row[4]] for row in packed] == [[1, 2], [3, 0], [4, 5], [6, 0]]


def test_taps_are_mixed_two_by_two() -> None:
    weights = np.array([[10 * channel + tap for tap in range(3)] for channel in range(1, 6)], np.int8)
    first, second = _bytes(pack_taps(weights))
    assert first == [10, 20, 11, 21, 30, 40, 31, 41, 12, 22, 32, 42]
    assert second == [50, 0, 51, 0, 0, 0, 0, 0, 52, 0, 0, 0]


def test_numbers_of_vectors_have_the_sequence_in_which_lanes_widen() -> None:
    """Vectors widen even bytes to halves, then odd ones, and again the even halves first."""
    channels = np.arange(16, dtype=np.int32)
    weights = channels.astype(np.int8).reshape(16, 1)
    bias, taps, multipliers = np.split(pack_vector_taps(channels, weights, channels + 100), [16, 20])
    lanes = [*range(0, 16, 4), *range(2, 16, 4), *range(1, 16, 4), *range(3, 16, 4)]
    assert bias.tolist() == lanes and multipliers.tolist() == [100 + lane for lane in lanes]
    assert taps.view(np.int8).tolist() == channels.tolist()


def test_fours_interleave_their_channels_value_by_value() -> None:
    weights = np.arange(1, 13, dtype=np.float32).reshape(6, 1, 2)
    assert pack_fours(weights, groups=1)[0, 1].tolist() == [[9, 11, 0, 0], [10, 12, 0, 0]]
    by_group = pack_fours(weights, groups=2)
    assert by_group.ravel().tolist() == [1, 3, 5, 0, 2, 4, 6, 0, 7, 9, 11, 0, 8, 10, 12, 0]


def test_a_record_is_biases_weights_multipliers() -> None:
    weights = np.array([[7, 8], [9, 10]], np.int32)
    bias, multipliers = np.array([1, 2, 3], np.int32), np.array([4, 5, 6], np.int32)
    records = pack_records(bias, weights, multipliers, groups=1, block=2)
    assert records.tolist() == [1, 2, 7, 8, 4, 5, 3, 0, 9, 10, 6, 0]


def test_channels_after_the_fours_of_a_group_have_records_of_one_channel() -> None:
    weights = np.arange(1, 11, dtype=np.int8).reshape(10, 1)
    bias, multipliers = np.arange(100, 110, dtype=np.int32), np.arange(200, 210, dtype=np.int32)
    records = pack_fours_and_ones(bias, weights, multipliers, groups=2, runs=1)
    four = [100, 101, 102, 103, 1, 2, 3, 4, 200, 201, 202, 203]
    assert records[:15].tolist() == [*four, 104, 5, 204]
    assert records[15:].tolist() == [105, 106, 107, 108, 6, 7, 8, 9, 205, 206, 207, 208, 109, 10, 209]


@pytest.mark.parametrize("outputs", range(1, 10))
def test_a_dense_layer_takes_no_bytes_of_outputs_that_it_does_not_have(outputs: int) -> None:
    depth = 4096
    x = Tensor("x", (1, 1, depth), DType.INT8, Quantization(0.1, 0))
    y = Tensor("y", (1, 1, outputs), DType.INT8, Quantization(0.1, 0))
    constants = {
        "weights": np.ones((outputs, 1, 1, depth), np.int8),
        "bias": np.zeros(outputs, np.int32),
        "weight_scale": np.full(outputs, 0.001, np.float32),
    }
    numbers: dict[Rounding, int] = {"once": 9, "tflite": 12}  # bias, multiplier, exponent; bias, two factors
    for rounding, number_bytes in numbers.items():
        operator = Operator("dense", Conv2d(outputs, rounding=rounding), ("x",), "y", constants)
        call = operator.op.kernel(operator, (x,), y)
        assert table_bytes(call) <= outputs * (depth + number_bytes) + 3


@given(st.lists(st.floats(1e-9, 1000.0), min_size=1, max_size=5), st.integers(1, 10_000))
def test_multipliers_of_sums_render_their_scales(scales: list[float], largest: int) -> None:
    values = np.array(scales)
    sums = np.full(values.shape, largest, np.int64)
    multipliers, left = quantize_sums("conv", values, sums)
    assert multipliers.min() >= 0 and multipliers.max() <= INT32_MAX
    assert left == 0 or values.max() >= 0.49
    errors = np.abs(multipliers * 2.0 ** (left - 32) - values)
    assert np.all(errors <= 2.0 ** (left - 33))


@given(
    st.floats(1e-9, 3.0), st.integers(-(2**31) + 1, INT32_MAX), st.integers(-127, 127), st.floats(1e-9, 3.0)
)
def test_what_rounds_a_multiplier_is_carried_by_the_bias(
    scale: float, bias: int, weight: int, other: float
) -> None:
    scales = np.array([scale, other])
    assume(abs(bias * scale) < 1000)
    weights, biases = np.array([[weight], [1]], np.int8), np.array([bias, 5], np.int32)
    multipliers, left = quantize_sums("conv", scales, np.zeros(2, np.int64))
    unit = multipliers[0] * 2.0 ** (left - 32)
    exact = exact_bias(weights, biases, scales, multipliers, left)[0]
    if abs(exact) < INT32_MAX - 128 * abs(weight) and unit > 0:
        assert abs(exact * unit - bias * scale) <= 0.501 * unit
    else:
        assert abs(exact * unit) <= abs(bias * scale)


def test_a_dead_channel_gets_a_coarser_scale() -> None:
    """Its multiplier would be 1 instead of 1.4, and no int32 is 1.4 times its bias."""
    weights = np.array([[0, 0], [5, -7], [1, 0]], np.int8)
    bias = np.array([2 * 10**9, 2**30, 100], np.int32)
    scales = np.array([1.4 / 2**32, 0.001, 0.02])
    weights_now, bias_now, scales_now = settle_channels(weights, bias, scales)
    assert weights_now.tolist() == weights.tolist()
    assert bias_now.tolist() == [round(1.4 / 2**32 * 2e9 * 2**16), 2**30, 100]
    assert scales_now.tolist() == [2.0**-16, 0.001, 0.02]
