"""Convolutions by Winograd's tiles have the bits of the direct ones, for all values and cuts."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest
from harness import check_operator, graph_of, run_operator
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from single_node import bounded, seeds

from mcudeploy.ir.graph import DType, Graph, Operator, Quantization, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ops.conv.conv import Conv2d, window_positions

KERNELS = ("conv2d_s8_w1x4", "conv2d_s8_w2x4", "conv2d_s8_w4x4")
Array = NDArray[Any]


def convolution(
    weights: Array,
    size: tuple[int, int],
    *,
    pads: tuple[int, int, int, int] = (1, 1, 1, 1),
    scale: float = 1e-4,
) -> Graph:
    """A convolution of [K, 3, 3, C] over an image, with zero points, a bias and an activation."""
    outputs, _, _, depth = weights.shape
    rows, cols = (window_positions(size[at], 3, 1, 1, (pads[at], pads[at + 2])) for at in range(2))
    x = Tensor("x", (*size, depth), DType.INT8, Quantization(1.0, 7))
    y = Tensor("y", (rows, cols, outputs), DType.INT8, Quantization(1.0, -3))
    constants: dict[str, Array] = {
        "weights": weights.astype(np.int8),
        "bias": np.arange(outputs, dtype=np.int32) * 321 - 500,
        "weight_scale": np.full(outputs, scale, np.float32) * (1 + np.arange(outputs, dtype=np.float32) / 10),
    }
    op = Conv2d(outputs, (3, 3), pads=pads, low=-inf, high=100.0)
    return graph_of(op, x, y, constants=constants)


def offered(graph: Graph) -> dict[str, KernelCall]:
    """The kernels by tiles of a graph's only operator."""
    (operator,) = graph.operators
    call = operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors["y"])
    return {it.kernel: it for it in call.others if it.kernel in KERNELS}


@given(
    depth=st.integers(1, 5).map(lambda fours: 4 * fours),
    outputs=st.integers(1, 9),
    size=st.tuples(st.integers(1, 10), st.integers(1, 10)),
    pads=st.tuples(*[st.integers(0, 2)] * 4),
    seed=seeds,
)
@bounded
def test_the_bits_are_those_of_the_direct_convolution(
    depth: int, outputs: int, size: tuple[int, int], pads: tuple[int, int, int, int], seed: int
) -> None:
    """Also row by row and in any other blocks."""
    random = np.random.default_rng(seed)
    size = (
        max(size[0], 4 - pads[0] - pads[2]),
        max(size[1], 3 - pads[1] - pads[3]),
    )  # larger than the kernel
    graph = convolution(random.integers(-128, 128, (outputs, 3, 3, depth)), size, pads=pads)
    assert set(offered(graph)) == set(KERNELS)
    (operator,) = graph.operators
    values = {"x": random.integers(-128, 128, (*size, depth), np.int8)}
    whole = check_operator(graph, operator, values, seed=seed)
    others = operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors["y"]).others
    for number in (at for at, it in enumerate(others, 1) if it.kernel in KERNELS):
        height = int(random.integers(2, 7))
        assert np.array_equal(run_operator(graph, operator, values, height, variant=number), whole)


def extremes() -> list[Array]:
    """Values at the ends of int8: equal, and alternating in ways that make sums largest."""
    signs = np.array([1, -1])
    checkered = np.multiply.outer(np.tile(signs, 4)[:6], np.tile(signs, 4)[:6])[:, :, None] * np.ones(8, int)
    striped = np.tile(signs, 3)[:, None, None] * np.ones((6, 6, 8), int)
    ends = [np.full((6, 6, 8), end) for end in (-128, 127)]
    return [*ends, *(np.where(it > 0, 127, -128) for it in (checkered, striped, -striped))]


@pytest.mark.parametrize("weights", range(5))
def test_the_largest_values_overflow_nothing(weights: int) -> None:
    kernel = np.stack([extremes()[weights][:3, :3], -1 - extremes()[weights][:3, :3]])
    graph = convolution(kernel, (6, 6))
    for number, x in enumerate(extremes()):
        check_operator(graph, graph.operators[0], {"x": x.astype(np.int8)}, seed=number)


@pytest.mark.parametrize(("depth", "kernels"), [(212, 3), (220, 2), (860, 2), (868, 1)])
def test_sums_that_would_not_fit_are_refused(depth: int, kernels: int) -> None:
    graph = convolution(np.full((1, 3, 3, depth), -128), (3, 3), scale=1e-6)
    assert tuple(offered(graph)) == KERNELS[:kernels]


@pytest.mark.parametrize(
    ("op", "depth", "scale"),
    [
        (Conv2d(4, (3, 3), stride=(1, 2), pads=(1, 1, 1, 1)), 8, 1e-4),
        (Conv2d(4, (3, 3), dilation=(2, 1), pads=(2, 1, 2, 1)), 8, 1e-4),
        (Conv2d(4, (3, 3), pads=(1, 1, 1, 1)), 6, 1e-4),
        (Conv2d(4, (3, 3), pads=(1, 1, 1, 1)), 8, 0.9),  # needs a shift to the left
    ],
)
def test_other_windows_are_left_to_other_kernels(op: Conv2d, depth: int, scale: float) -> None:
    graph = convolution(np.ones((4, 3, 3, depth)), (6, 6), scale=scale)
    (operator,) = graph.operators
    other = Operator("conv", op, ("x",), "y", operator.constants)
    rows, cols, _ = op.loops((graph.tensors["x"].shape,)).output_shape()
    y = Tensor("y", (rows, cols, 4), DType.INT8, Quantization(1.0, -3))
    call = op.kernel(other, (graph.tensors["x"],), y)
    assert not {it.kernel for it in call.others}.intersection(KERNELS)


def test_weights_take_the_flash_that_is_stated() -> None:
    calls = offered(convolution(np.ones((8, 3, 3, 16)), (8, 8)))
    weights = 8 * 9 * 16
    for kernel, each in zip(KERNELS, (4, 16 / 3, 8), strict=True):
        array = calls[kernel].params["packed_weights"]
        assert isinstance(array, np.ndarray) and array.nbytes == pytest.approx(each * weights)


def test_a_row_costs_a_row_with_tiles_of_one() -> None:
    """Tiles of several rows are transformed as a whole, even if one row is needed."""
    calls = offered(convolution(np.ones((8, 3, 3, 16)), (8, 8)))
    pairs = {
        name: [call.counts(Interval(0, rows))["pairs"] for rows in (1, 8)] for name, call in calls.items()
    }  # type: ignore[misc]
    assert [whole / row for row, whole in pairs.values()] == [8, 4, 2]


@pytest.mark.parametrize(("depth", "offers"), [(8, True), (12, False), (40, True)])
def test_vectors_take_depths_of_eights(depth: int, offers: bool) -> None:
    graph = convolution(np.ones((4, 3, 3, depth)), (8, 8))
    (operator,) = graph.operators
    call = operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors["y"])
    names = {isa: {it.kernel for it in call.variants(isa)} for isa in Isa}
    takers = {isa.core for isa, kernels in names.items() if "conv2d_s8_w4x4_mve" in kernels}
    assert takers == ({Isa.MVE} if offers else set())
