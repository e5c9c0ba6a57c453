"""Gradients of pools against their definition, in pieces, under sanitizers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import check_graph
from numpy.typing import NDArray
from training_cases import pool_gradient_cases

from mcudeploy.extensions.training.training_pools import AveragePoolGradient, MaxPoolGradient, MaxPoolTaps
from mcudeploy.ir.graph import DType, Graph
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.one_operator import mixed_operator, one_operator
from mcudeploy.ops.pool.pool import AveragePool, MaxPool

Array = NDArray[Any]
CASES = list(pool_gradient_cases())


def kind(graph: Graph) -> str:
    """The kind and the shape of the output."""
    return f"{graph.operators[0].op.kind}-{'x'.join(map(str, graph.tensors['y'].shape))}"


def places(
    pool: MaxPool | AveragePool, size: tuple[int, ...], row: int, col: int
) -> list[tuple[int, int, int]]:
    """(tap, row, column) of the taps of one window that lie inside, in row-major order."""
    result = []
    for tap, (r, s) in enumerate(np.ndindex(pool.kernel_shape)):
        i = row * pool.stride[0] - pool.pads[0] + r * pool.dilation[0]
        j = col * pool.stride[1] - pool.pads[1] + s * pool.dilation[1]
        if 0 <= i < size[0] and 0 <= j < size[1]:
            result.append((tap, i, j))
    return result


def taps_of(pool: MaxPool, x: Array) -> Array:
    """The tap of the first largest value of each window."""
    taps = np.zeros((*pool.out_size, x.shape[2]), np.uint8)
    for row, col in np.ndindex(pool.out_size):
        inside = places(pool, x.shape, row, col)
        values = np.stack([x[i, j] for _, i, j in inside])
        taps[row, col] = np.array([tap for tap, _, _ in inside])[values.argmax(0)]
    return taps


def spread(op: MaxPoolGradient | AveragePoolGradient, gradient: Array, taps: Array | None) -> Array:
    """The gradient of the input: of a maximum by taps, of a mean to all values."""
    result = np.zeros(op.input_shape)
    for row, col in np.ndindex(op.pool.out_size):
        for tap, i, j in places(op.pool, op.input_shape, row, col):
            chosen = 1.0 if taps is None else taps[row, col] == tap
            result[i, j] += gradient[row, col].astype(np.float64) * chosen
    return result


def drawn(graph: Graph) -> dict[str, Array]:
    """Values for the inputs: few values, so that there are ties, for maxima; any bytes for taps."""
    rng = np.random.default_rng(0)
    values = {}
    for io in graph.inputs:
        tensor = graph.tensors[io.tensor]
        few = rng.integers(-3, 4, tensor.shape) / 4
        reals = few if isinstance(graph.operators[0].op, MaxPoolTaps) else rng.normal(0, 1, tensor.shape)
        taps = rng.integers(-128, 128, tensor.shape)
        values[tensor.name] = (reals if tensor.dtype is DType.FLOAT32 else taps).astype(tensor.dtype.value)
    return values


@pytest.mark.parametrize("graph", CASES, ids=kind)
def test_definition_and_pieces(graph: Graph) -> None:
    op, values = graph.operators[0].op, drawn(graph)
    if isinstance(op, MaxPoolGradient):  # half of the taps are of the window, the others are any bytes
        rng = np.random.default_rng(1)
        own = taps_of(op.pool, rng.normal(0, 1, op.input_shape)).view(np.int8)
        values["x1"] = np.where(rng.random(own.shape) < 0.5, own, values["x1"]).astype(np.int8)
    result = check_graph(graph, values)["y"]
    if isinstance(op, MaxPoolTaps):
        np.testing.assert_array_equal(result.view(np.uint8), taps_of(op.pool, values["x0"]))
    elif isinstance(op, MaxPoolGradient):
        wanted = spread(op, values["x0"], values["x1"].view(np.uint8))
        np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-5)
    else:
        assert isinstance(op, AveragePoolGradient)
        wanted = op.factor * spread(op, values["x0"], None)
        np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("graph", CASES, ids=kind)
def test_counts(graph: Graph) -> None:
    """Counts of rows add up to those of the whole, and values are counted where the definition has them."""
    (operator,), output = graph.operators, graph.tensors["y"]
    call = operator.op.kernel(operator, graph.input_tensors(operator), output)
    assert call.counts is not None
    whole = call.counts(Interval(0, output.shape[0]))
    parts = [call.counts(Interval(row, row + 1)) for row in range(output.shape[0])]
    for name, count in whole.items():
        assert count == sum(part[name] for part in parts) or name == "calls", name
    op: Any = operator.op
    size = graph.tensors["x0"].shape if isinstance(op, MaxPoolTaps) else op.input_shape
    taps = sum(len(places(op.pool, size, *at)) for at in np.ndindex(op.pool.out_size)) * size[2]
    if isinstance(op, MaxPoolTaps):
        assert whole["taps"] == taps
    elif isinstance(op, AveragePoolGradient):
        assert whole["values"] == taps


def test_minus_infinity_has_a_tap_inside() -> None:
    pool = MaxPool((2, 2), (2, 2), (1, 1), (1, 1, 1, 1), (2, 2))
    graph = mixed_operator(MaxPoolTaps(pool), [((2, 2, 1), DType.FLOAT32)], DType.INT8)
    result = check_graph(graph, {"x0": np.full((2, 2, 1), -np.inf, np.float32)})["y"]
    np.testing.assert_array_equal(result[..., 0], [[3, 2], [1, 0]])


def test_large_windows_are_refused() -> None:
    pool = MaxPool((16, 17), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1))
    with pytest.raises(ValueError, match="16 x 17 has more than 256 taps"):
        MaxPoolTaps(pool)


def test_a_gradient_of_another_shape_is_refused() -> None:
    mean = AveragePool((2, 2), (2, 2), (1, 1), (0, 0, 0, 0), (2, 2), False)
    with pytest.raises(ValueError, match="is not the shape of the output"):
        one_operator(AveragePoolGradient(mean, (4, 4, 3), 0.25), ((3, 2, 3),), DType.FLOAT32)
