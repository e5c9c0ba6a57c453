"""Multipliers, shifts and clamp bounds."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from single_node import bounded

from mcudeploy.ir.graph import DType, Quantization, Tensor
from mcudeploy.ops.requantize import (
    INT32_MAX,
    check_accumulator,
    clamp_bounds,
    quantization_of,
    quantize_scale,
    quantize_value,
)


@pytest.mark.parametrize(
    ("scales", "multipliers", "shift"),
    [
        ([0.25], [2**30], 32),
        ([2.0**-16], [2**16], 32),
        ([0.25, 0.0], [2**30, 0], 32),
        ([0.0], [0], 32),
        ([0.5], [2**30], 31),
        ([1.0, 0.25], [2**30, 2**28], 30),
        ([2.0**-20], [2**30], 50),
        ([2.0**-40], [2**22], 62),
        ([2.0**29], [2**30], 1),
    ],
)
def test_known_scales(scales: list[float], multipliers: list[int], shift: int) -> None:
    computed, found_shift = quantize_scale(np.array(scales))
    assert computed.dtype == np.int32 and (computed.tolist(), found_shift) == (multipliers, shift)


@given(scales=st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=5))
@bounded
def test_multipliers_are_as_exact_as_their_shift_allows(scales: list[float]) -> None:
    values = np.array(scales)
    multipliers, shift = quantize_scale(values)
    assert 1 <= shift <= 62
    assert np.all(np.abs(multipliers - values * 2.0**shift) <= 0.5)
    if shift != 32:
        assert multipliers.max() > INT32_MAX // 2 - 1, "a larger shift would fit"


@pytest.mark.parametrize("scales", [[-1.0], [inf], [float("nan")], [2.0**30], []])
def test_scales_that_cannot_be(scales: list[float]) -> None:
    with pytest.raises(ValueError, match="scale"):
        quantize_scale(np.array(scales))


def test_the_shape_is_kept() -> None:
    assert quantize_scale(np.full((2, 3), 0.1))[0].shape == (2, 3)


def test_values_are_rounded_half_to_even_and_saturate() -> None:
    q = Quantization(0.5, 10)
    assert [quantize_value(v, q) for v in (0.0, 0.25, 0.75, -0.25, 1e9, -1e9)] == [10, 10, 12, 10, 127, -128]
    assert clamp_bounds(q, -inf, inf) == (-128, 127)
    assert clamp_bounds(q, 0.0, 6.0) == (10, 22)


def test_accumulators_are_checked() -> None:
    check_accumulator("conv", np.array([INT32_MAX]), np.array([0.5]))
    with pytest.raises(ValueError, match="channel 1 can reach 2147483648"):
        check_accumulator("conv", np.array([5, INT32_MAX + 1]), np.array([0.5]))
    with pytest.raises(ValueError, match="output scale is too small"):
        check_accumulator("conv", np.array([INT32_MAX]), np.array([1.0]))


def test_a_float_tensor_has_no_quantisation() -> None:
    with pytest.raises(ValueError, match="x is float32"):
        quantization_of(Tensor("x", (1, 1, 1), DType.FLOAT32))
