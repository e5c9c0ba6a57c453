"""BatchNormalization on its own: Affine on int8 values, against ONNX Runtime and in exact arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from single_node import (
    Quantized,
    bounded,
    check_quantized,
    kinds,
    node,
    normal,
    quantized_types,
    seeds,
    shapes,
)

from mcudeploy.ir.graph import Quantization
from mcudeploy.ops.conv.affine import affine_records

Array = NDArray[Any]


def _parameters(rng: np.random.Generator, channels: int, steepness: float) -> dict[str, Array]:
    return {
        "scale": steepness * normal(rng, (channels,)),
        "bias": normal(rng, (channels,)),
        "mean": normal(rng, (channels,)),
        "variance": rng.uniform(1e-3, 4, channels).astype(np.float32),
    }


@given(shape=shapes, steepness=st.sampled_from([0.01, 1.0, 5.0]), dtype=quantized_types, seed=seeds)
@bounded
def test_batch_normalization(shape: tuple[int, ...], steepness: float, dtype: type, seed: int) -> None:
    rng = np.random.default_rng(seed)
    parameters = _parameters(rng, shape[1], steepness)
    what = node("BatchNormalization", "x", *parameters, constants=parameters)
    graph = check_quantized(what, {"x": Quantized.draw(rng, shape, dtype)}, few=0)
    assert kinds(graph) == {"Affine"}


@pytest.mark.parametrize("seed", range(20))
def test_results_are_exact_before_they_are_rounded(seed: int) -> None:
    """For all inputs, and channels whose slopes are orders of magnitude apart."""
    rng = np.random.default_rng(seed)
    source, output = Quantization(0.03, int(rng.integers(-128, 128))), Quantization(0.05, 7)
    slopes = np.concatenate([rng.choice([-1, 1], 60) * 2.0 ** rng.uniform(-12, 11, 60), [0.0]])
    factor, offset = slopes * output.scale / source.scale, rng.normal(0, 20, 61)
    factor, offset = factor.astype(np.float32), offset.astype(np.float32)
    records = affine_records(factor, offset, source, output)
    assert records is not None
    m, b, shift = records.astype(np.int64).T
    x = np.arange(-128, 128, dtype=np.int64)[:, np.newaxis]
    real = (
        factor.astype(np.float64) * (x - source.zero_point) * source.scale + offset
    ) / output.scale + output.zero_point
    sums = x * m + b
    assert max(np.abs(sums).max(), np.abs(x * m).max()) < 2**31
    telling = (real > -130) & (real < 129)
    wrong = np.abs(sums / 2.0**shift - 0.5 - real)[telling]
    assert np.all(wrong <= np.broadcast_to((64 + np.abs(slopes) / 2) / 2**22, real.shape)[telling])
    computed, want = np.clip(sums >> shift, -128, 127), np.clip(np.floor(real + 0.5), -128, 127)
    assert np.all((computed == want) | (np.abs(real + 0.5 - np.rint(real + 0.5)) < 1e-3))


@pytest.mark.parametrize("factor", [1e5, np.inf, np.nan])
def test_a_slope_that_32_bits_do_not_resolve(factor: float) -> None:
    q = Quantization(0.03, 0)
    assert affine_records(np.array([1, factor], np.float32), np.zeros(2, np.float32), q, q) is None
