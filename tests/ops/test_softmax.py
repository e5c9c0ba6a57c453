"""Softmax over each axis."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from single_node import (
    Quantized,
    bounded,
    check_float,
    check_quantized,
    kinds,
    node,
    normal,
    quantized_types,
    seeds,
    shapes,
)

from mcudeploy.ir.interval import Interval
from mcudeploy.ops.reduce.softmax import Softmax, exponentials

FULL_RANGE = {np.int8: (1 / 256, -128), np.uint8: (1 / 256, 0)}
"""The output quantisation every converter chooses."""


@given(shape=shapes, axis=st.integers(-3, -1), dtype=quantized_types, seed=seeds)
@bounded
def test_image(shape: tuple[int, ...], axis: int, dtype: type, seed: int) -> None:
    rng = np.random.default_rng(seed)
    what = node("Softmax", "x", axis=axis)
    graph = check_float(what, {"x": 5 * normal(rng, shape)}, float_tolerance=1e-5)
    assert "Softmax" in kinds(graph)
    x = Quantized.draw(rng, shape, dtype)
    check_quantized(what, {"x": x}, output=FULL_RANGE[dtype])


@given(classes=st.integers(2, 300), scale=st.floats(0.001, 0.5), dtype=quantized_types, seed=seeds)
@bounded
def test_classes(classes: int, scale: float, dtype: type, seed: int) -> None:
    rng = np.random.default_rng(seed)
    what = node("Softmax", "x", axis=-1)
    check_float(what, {"x": 5 * normal(rng, (1, classes))}, float_tolerance=1e-5)
    drawn = Quantized.draw(rng, (1, classes), dtype)
    x = Quantized(drawn.values, float(np.float32(scale)), drawn.zero_point)
    check_quantized(what, {"x": x}, output=FULL_RANGE[dtype])
    check_quantized(what, {"x": x})


@pytest.mark.parametrize("count", [1, 2, 1000, 1 << 20])
def test_exponentials_of_a_group_fit_32_bits(count: int) -> None:
    table = exponentials(0.05, count)
    assert table.shape == (256,) and int(table[0]) * count < 2**32
    assert np.all(np.diff(table.astype(np.int64)) <= 0)


def test_over_rows_a_row_reads_all_rows() -> None:
    nest = Softmax(0).loops(((5, 2, 3),))
    assert nest.rows_read(0, Interval(2, 3), 5) == Interval(0, 5)
    assert Softmax(2).loops(((5, 2, 3),)).rows_read(0, Interval(2, 3), 5) == Interval(2, 3)
