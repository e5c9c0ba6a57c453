"""Means over axes that include channels, and over the others."""

from __future__ import annotations

import numpy as np
import pytest
from harness import check_against_onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from single_node import (
    Quantized,
    bounded,
    check_float,
    check_quantized,
    node,
    normal,
    quantized_types,
    seeds,
    shapes,
)

from mcudeploy.ir.graph import DType, Quantization, Tensor
from mcudeploy.ops.reduce.reduce import Reduce
from tests.networks.onnx_files import build
from tests.weekly import examples

CHOICES = [(1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (1, 2, 3)]


@given(shape=shapes, axes=st.sampled_from(CHOICES), keep=st.booleans(), dtype=quantized_types, seed=seeds)
@bounded
def test_image(shape: tuple[int, ...], axes: tuple[int, ...], keep: bool, dtype: type, seed: int) -> None:
    rng = np.random.default_rng(seed)
    constants = {"axes": np.array(axes, np.int64)}
    what = node("ReduceMean", "x", "axes", constants=constants, keepdims=int(keep))
    check_float(what, {"x": normal(rng, shape)})
    check_quantized(what, {"x": Quantized.draw(rng, shape, dtype)})


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"])
@given(shape=shapes, axes=st.sampled_from(CHOICES), keep=st.booleans(), seed=seeds)
@settings(parent=bounded, max_examples=examples(4, 8))
def test_other_functions(
    op: str, shape: tuple[int, ...], axes: tuple[int, ...], keep: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    what = node(op, "x", "axes", constants={"axes": np.array(axes, np.int64)}, keepdims=int(keep))
    check_float(what, {"x": normal(rng, shape)})
    check_quantized(what, {"x": Quantized.draw(rng, shape, np.int8)})


@pytest.mark.parametrize("axes", [(0, 2), (1, 3), (-4, -2)])
@pytest.mark.parametrize("keep", [0, 1])
def test_axes_with_others_between_and_beside(axes: tuple[int, ...], keep: int) -> None:
    for op in ("ReduceMean", "ReduceMax"):
        what = node(op, "x", "axes", constants={"axes": np.array(axes)}, keepdims=keep)
        check_float(what, {"x": normal(np.random.default_rng(3), (2, 3, 4, 5))})


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceMax"])
def test_an_axis_whose_parts_were_channels(op: str) -> None:
    """BC-ResNet normalises bands of frequencies apart, as channels, and reduces all frequencies."""
    rng = np.random.default_rng(5)
    constants = {
        "apart": np.array([1, 12, 2, 5]),
        "whole": np.array([1, 3, 8, 5]),
        **{name: np.abs(normal(rng, (12,))) + 0.5 for name in ("g", "b", "m", "v")},
    }
    nodes = [
        helper.make_node("Reshape", ["x", "apart"], ["bands"]),
        helper.make_node("BatchNormalization", ["bands", "g", "b", "m", "v"], ["normal"]),
        helper.make_node("Reshape", ["normal", "whole"], ["r"]),
        helper.make_node(op, ["r"], ["mean"], axes=[2]),
        helper.make_node("Add", ["r", "mean"], ["y"]),
    ]
    model = build(nodes, {"x": (np.float32, (1, 3, 8, 5))}, {"y": (np.float32, (1, 3, 8, 5))}, constants, 13)
    check_against_onnx(model, {"x": normal(rng, (1, 3, 8, 5))})


@pytest.mark.parametrize("channels", [2, 4, 8])
def test_ties_go_to_even(channels: int) -> None:
    """With the same scale in and out, a power of two, every tie is one in ONNX Runtime too."""
    rng = np.random.default_rng(channels)
    x = Quantized(Quantized.draw(rng, (1, channels, 16, 16), np.int8).values, 0.25, 3)
    constants = {"axes": np.array([1], np.int64)}
    check_quantized(node("ReduceMean", "x", "axes", constants=constants), {"x": x}, output=(0.25, 3), few=0)


def test_a_sum_that_could_overflow_is_refused() -> None:
    q = Quantization(0.1, 0)
    x, y = Tensor("x", (1, 3000, 3000), DType.INT8, q), Tensor("y", (1, 1, 1), DType.INT8, q)
    with pytest.raises(ValueError, match="overflow"):
        Reduce((1, 2)).kernel(None, (x,), y)  # type: ignore[arg-type]
