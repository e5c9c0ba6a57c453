"""Gradients of functions of one value against float64, in pieces, in place, under sanitizers."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, inf
from typing import Any, get_args

import numpy as np
import pytest
from harness import check_graph
from numpy.typing import NDArray

from mcudeploy.extensions.training.training_unary import (
    PiecewiseGradient,
    Slope,
    SlopedGradient,
    SmoothFunction,
    SmoothGradient,
)
from mcudeploy.ir.graph import DType, Shape
from mcudeploy.ir.one_operator import mixed_operator, one_operator

Array = NDArray[Any]
SHAPE = (5, 3, 7)

SMOOTH: dict[str, Callable[[Array], Array]] = {
    "swish": lambda x: x / (1 + np.exp(-1.5 * x)),
    "gelu": lambda x: 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2))),
    "erf": np.vectorize(erf),
    "softplus": lambda x: np.logaddexp(0, x),
}


def gradient_of(op: PiecewiseGradient | SmoothGradient, values: Array) -> Array:
    """The slope at these values by the kernel."""
    graph = one_operator(op, (SHAPE, SHAPE), DType.FLOAT32)
    gradient = np.random.default_rng(1).normal(0, 1, SHAPE).astype(np.float32)
    result = check_graph(graph, {"x0": gradient, "x1": values.astype(np.float32)})["y"]
    return result / gradient  # type: ignore[no-any-return]


@pytest.mark.parametrize("function", get_args(SmoothFunction))
def test_smooth(function: SmoothFunction) -> None:
    x = np.random.default_rng(0).normal(0, 3, SHAPE).astype(np.float32).astype(np.float64)
    width = 1e-5
    slope = (SMOOTH[function](x + width) - SMOOTH[function](x - width)) / (2 * width)
    alpha = 1.5 if function == "swish" else 1.0
    np.testing.assert_allclose(gradient_of(SmoothGradient(function, alpha), x), slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", get_args(SmoothFunction))
def test_smooth_far_out(function: SmoothFunction) -> None:
    """Exponentials overflow, and slopes are still 0 or 1."""
    x = np.where(np.arange(105) % 2, 3e4, -3e4).reshape(SHAPE)
    wanted = np.zeros(SHAPE) if function == "erf" else x > 0
    np.testing.assert_array_equal(gradient_of(SmoothGradient(function), x), wanted)


@pytest.mark.parametrize(
    "slope",
    [
        Slope(middle=(0.0, 1.0, -1.0)),
        Slope(0.0, 0.0, (0.25, 1.0), upper=1.5),
        Slope(-0.5, 0.75, (0.25, 2.0), (0.5, 0.25, -1.0), 1.0),
        Slope(0.0, inf, (-1.0, 0.5), (0.0, 0.0, 2.0)),
    ],
)
def test_pieces(slope: Slope) -> None:
    values = np.random.default_rng(0).integers(-6, 7, SHAPE) / 4  # on the bounds too
    (a, b), (p, q, r) = slope.lower, slope.middle
    other = np.where(values >= slope.high, slope.upper, p + q * values + r * values**2)
    wanted = np.where(values <= slope.low, a + b * values, other)
    np.testing.assert_allclose(gradient_of(PiecewiseGradient(slope), values), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(5, 3, 7), (1, 1, 10), (4, 2, 8)])
def test_two_slopes(shape: Shape) -> None:
    rng = np.random.default_rng(0)
    inside = rng.random((shape[0], shape[1] * shape[2])) < 0.5
    mask = np.packbits(inside, axis=1, bitorder="little").view(np.int8)[:, np.newaxis]
    gradient, slopes = (rng.normal(0, 1, size).astype(np.float32) for size in (shape, shape[2]))
    inputs = [(shape, DType.FLOAT32), (mask.shape, DType.INT8)]
    graph = mixed_operator(SlopedGradient(), inputs, DType.FLOAT32, {"slopes": slopes})
    result = check_graph(graph, {"x0": gradient, "x1": mask})["y"]
    np.testing.assert_array_equal(result, np.where(inside.reshape(shape), gradient, slopes * gradient))


def test_slopes_of_other_channels_are_refused() -> None:
    inputs = [(SHAPE, DType.FLOAT32), ((5, 1, 3), DType.INT8)]
    graph = mixed_operator(SlopedGradient(), inputs, DType.FLOAT32, {"slopes": np.zeros(3, np.float32)})
    (operator,) = graph.operators
    with pytest.raises(ValueError, match="are not those of 7 channels"):
        operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors["y"])


def test_two_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="is not of"):
        SmoothGradient("gelu").loops(((2, 2, 3), (2, 3, 2)))
