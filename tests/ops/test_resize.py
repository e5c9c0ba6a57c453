"""Resize of rows and columns: every supported mode, by scales and by sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from single_node import (
    Node,
    Quantized,
    bounded,
    check_float,
    check_quantized,
    kinds,
    node,
    normal,
    quantized_types,
    seeds,
)

from mcudeploy.ir.interval import Interval
from mcudeploy.ops.image.resample import Filter, Resample, resize_taps
from mcudeploy.ops.image.resize import COORDINATE_MODES, NEAREST_MODES, Resize, ResizedAxis, resize_samples

sizes = st.tuples(st.integers(2, 7), st.integers(2, 7))
targets = st.tuples(st.integers(1, 14), st.integers(1, 14))


def _resize(
    shape: tuple[int, ...], target: tuple[int, int], by_scales: bool, **attributes: float | str
) -> Node:
    if by_scales:
        factors = [1, 1, *(out / size for out, size in zip(target, shape[2:], strict=True))]
        # A little more, so that rounding down gives the size wanted.
        scales = np.array(factors, np.float32) * np.array([1, 1, 1.0001, 1.0001], np.float32)
        return node("Resize", "x", "", "scales", constants={"scales": scales}, **attributes)
    sizes = np.array([*shape[:2], *target], np.int64)
    return node("Resize", "x", "", "", "sizes", constants={"sizes": sizes}, **attributes)


@dataclass(frozen=True)
class Way:
    """The sizes of an image before and after, and how a node states them."""

    size: tuple[int, int]
    target: tuple[int, int]
    by_scales: bool
    coordinates: str

    def node(self, shape: tuple[int, ...], **attributes: float | str) -> Node:
        """The Resize of an input of this shape."""
        coordinates = {"coordinate_transformation_mode": self.coordinates}
        return _resize(shape, self.target, self.by_scales, **coordinates, **attributes)


ways = st.builds(Way, sizes, targets, st.booleans(), st.sampled_from(COORDINATE_MODES)).filter(
    lambda it: it.target != it.size  # else ONNX Runtime copies, whatever the scales
)


@given(way=ways, nearest=st.sampled_from(NEAREST_MODES), dtype=quantized_types, seed=seeds)
@bounded
def test_nearest(way: Way, nearest: str, dtype: type, seed: int) -> None:
    rng, shape = np.random.default_rng(seed), (1, 3, *way.size)
    what = way.node(shape, mode="nearest", nearest_mode=nearest)
    check_float(what, {"x": normal(rng, shape)}, float_tolerance=0)
    x = Quantized.draw(rng, shape, dtype)
    check_quantized(what, {"x": x}, output=(x.scale, x.zero_point), few=0, equal_share=1)


@given(way=ways, same=st.booleans(), dtype=quantized_types, seed=seeds)
@bounded
def test_linear(way: Way, same: bool, dtype: type, seed: int) -> None:
    rng, shape = np.random.default_rng(seed), (1, 5, *way.size)
    what = way.node(shape, mode="linear")
    check_float(what, {"x": normal(rng, shape)}, float_tolerance=1e-5)
    x = Quantized.draw(rng, shape, dtype)
    check_quantized(what, {"x": x}, output=(x.scale, x.zero_point) if same else None)


filters = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(["linear", "cubic"]),
        "antialias": st.integers(0, 1),
        "exclude_outside": st.integers(0, 1),
        "cubic_coeff_a": st.sampled_from([-0.75, -0.5]),
    }
)


_ANTIALIASED = {"mode": "linear", "antialias": 1, "exclude_outside": 0, "cubic_coeff_a": -0.75}
"""An axis that keeps its size is copied, although its scale is not exactly 1."""


@given(way=ways, attributes=filters, seed=seeds)
@example(way=Way((5, 4), (5, 7), True, "half_pixel"), attributes=_ANTIALIASED, seed=0)
@example(way=Way((4, 6), (3, 6), True, "align_corners"), attributes=_ANTIALIASED, seed=1)
@bounded
def test_sums_of_neighbours(way: Way, attributes: dict[str, float | str], seed: int) -> None:
    rng, shape = np.random.default_rng(seed), (1, 3, *way.size)
    outside = attributes["exclude_outside"] if attributes["mode"] == "cubic" else 0
    what = way.node(shape, **{**attributes, "exclude_outside": outside})
    check_float(what, {"x": normal(rng, shape)}, float_tolerance=1e-5)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_a_part_of_the_image(mode: str) -> None:
    constants = {
        "roi": np.array([0, 0, -0.1, 0.3, 1, 1, 0.8, 1.2], np.float32),
        "sizes": np.array([1, 2, 5, 4], np.int64),
    }
    crop = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0}
    what = node("Resize", "x", "roi", "", "sizes", constants=constants, mode=mode, **crop)
    x = normal(np.random.default_rng(0), (1, 2, 6, 5))
    graph = check_float(what, {"x": x}, float_tolerance=1e-5)
    assert kinds(graph) == {"Resample"}
    check_quantized(what, {"x": Quantized.draw(np.random.default_rng(1), x.shape, np.int8)})


def test_rows_of_an_antialiased_image_are_few() -> None:
    taps = resize_taps(ResizedAxis(16, 4, 0.25), Filter(cubic=False, antialias=True))
    nest = Resample(taps, taps).loops(((16, 16, 2),))
    assert nest.rows_read(0, Interval(1, 2), 16) == Interval(2, 10)


def test_twice_the_size_has_no_element_that_differs() -> None:
    """Every sixteenth value is a tie: they fall as in ONNX Runtime, whatever the scale."""
    x = Quantized.draw(np.random.default_rng(2), (1, 8, 12, 12), np.int8)
    what = _resize(
        x.values.shape, (24, 24), False, mode="linear", coordinate_transformation_mode="half_pixel"
    )
    graph = check_quantized(what, {"x": x}, output=(x.scale, x.zero_point), few=0, equal_share=1)
    assert "Resize" in kinds(graph)


def test_rows_are_read_through_the_tables() -> None:
    rows = resize_samples(4, 8, 2.0, mode="linear")
    cols = resize_samples(3, 3, 1.0, mode="linear")
    nest = Resize("linear", rows, cols).loops(((4, 3, 2),))
    assert nest.output_shape() == (8, 3, 2)
    assert nest.rows_read(0, Interval(0, 1), 4) == Interval(0, 1)
    assert nest.rows_read(0, Interval(1, 3), 4) == Interval(0, 2)
    assert nest.rows_read(0, Interval(7, 8), 4) == Interval(3, 4)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("mode", "cubic"), ("coordinates", "tf_crop_and_resize"), ("nearest_mode", "simple")],
)
def test_what_is_not_supported_is_named(attribute: str, value: str) -> None:
    with pytest.raises(ValueError, match=value):
        resize_samples(4, 8, 2.0, **{"mode": "nearest", attribute: value})
