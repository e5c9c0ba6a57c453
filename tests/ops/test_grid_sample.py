"""GridSample: every mode and padding, inside the image and far outside."""

from __future__ import annotations

import numpy as np
import pytest
from harness import run_operator
from hypothesis import given
from hypothesis import strategies as st
from single_node import Quantized, bounded, check_float, check_quantized, node, normal, seeds, sizes

from mcudeploy.ops.image.grid_sample import PADDINGS


@given(
    image=st.tuples(st.just(1), sizes, sizes, sizes),
    size=st.tuples(sizes, sizes),
    mode=st.sampled_from(["nearest", "linear", "cubic"]),
    padding=st.sampled_from(PADDINGS),
    align=st.integers(0, 1),
    seed=seeds,
)
@bounded
def test_grid_sample(
    image: tuple[int, ...], size: tuple[int, int], mode: str, padding: str, align: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    inputs = {"x": normal(rng, image), "grid": 1.2 * normal(rng, (1, *size, 2))}
    what = node("GridSample", "x", "grid", mode=mode, padding_mode=padding, align_corners=align)
    check_float(what, inputs, float_tolerance=1e-4)


def test_a_quantised_image() -> None:
    rng = np.random.default_rng(0)
    shapes = {"x": (1, 3, 4, 5), "g": (1, 2, 6, 2)}
    inputs = {name: Quantized.draw(rng, shape, np.int8) for name, shape in shapes.items()}
    check_quantized(node("GridSample", "x", "g"), inputs)


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_places_that_are_not_numbers_read_nothing_outside(mode: str, padding: str) -> None:
    rng = np.random.default_rng(0)
    grid = np.zeros((1, 2, 4, 2), np.float32)
    x = normal(rng, (1, 2, 3, 3))
    what = node("GridSample", "x", "grid", mode=mode, padding_mode=padding)
    graph = check_float(what, {"x": x, "grid": grid}, float_tolerance=1e-4)
    operator = graph.operators[-1]
    grid[0, :, :, 0] = [[np.nan, np.inf, -np.inf, 3e38], [1e30, -3e38, 2**31, -(2.0**31)]]
    values = x[0].transpose(1, 2, 0).copy(), grid[0]
    computed = run_operator(graph, operator, dict(zip(operator.inputs, values, strict=True)))
    assert computed.shape == (2, 4, 2)
