"""Concatenation along rows, columns and channels; int8 inputs of other quantisations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper
from reference_node import check_reference
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
    sizes,
)

from mcudeploy.ir.interval import Interval
from mcudeploy.ops.move.concat import Concat


@given(
    shape=shapes,
    axis=st.integers(1, 3),
    parts=st.lists(sizes, min_size=2, max_size=4),
    foreign=st.booleans(),
    dtype=quantized_types,
    seed=seeds,
)
@bounded
def test_image(
    shape: tuple[int, ...], axis: int, parts: list[int], foreign: bool, dtype: type, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    names = [f"x{position}" for position in range(len(parts))]
    what = node("Concat", *names, axis=axis)
    drawn = {
        name: tuple(part if position == axis else size for position, size in enumerate(shape))
        for name, part in zip(names, parts, strict=True)
    }
    floats = {name: normal(rng, drawn[name]) for name in names}
    graph = check_float(what, floats, float_tolerance=0)
    assert "Concat" in kinds(graph)
    first = Quantized.draw(rng, (1,), dtype)
    inputs = {
        name: Quantized.draw(rng, drawn[name], dtype)
        if foreign
        else Quantized(Quantized.draw(rng, drawn[name], dtype).values, first.scale, first.zero_point)
        for name in names
    }
    check_quantized(what, inputs, output=(first.scale, first.zero_point), few=0, equal_share=1)


@pytest.mark.parametrize("order", ["c x", "x c y", "c x d e y c", "x y d"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("axis", [1, 2])
def test_constants_between_activations(order: str, dtype: type, axis: int) -> None:
    rng = np.random.default_rng(5)
    shape = [1, 3, 4]
    sizes_of = {"x": 2, "y": 3, "c": 1, "d": 4, "e": 2}
    values = {}
    for name, size in sizes_of.items():
        shape[axis] = size
        values[name] = (9 * rng.normal(size=shape)).astype(dtype)
    names = order.split()
    inputs = {name: values[name] for name in "xy" if name in names}
    constants = {name: values[name] for name in "cde" if name in names}
    check_reference(helper.make_node("Concat", names, ["out"], "node", axis=axis), inputs, constants, 17)


def test_rows_come_from_the_input_they_belong_to() -> None:
    nest = Concat(0).loops(((2, 3, 4), (3, 3, 4)))
    assert nest.output_shape() == (5, 3, 4)
    assert nest.rows_read(0, Interval(3, 4), 2) == Interval(2, 2)
    assert nest.rows_read(1, Interval(3, 4), 3) == Interval(1, 2)
    assert nest.rows_read(0, Interval(1, 3), 2) == Interval(1, 2)
