"""Gradients of resizes against their definition, in pieces, under sanitizers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import check_graph
from numpy.typing import NDArray
from training_cases import resize_gradient_cases

from mcudeploy.extensions.training.training_resize import ResizeGradient
from mcudeploy.ir.graph import DType, Graph
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.one_operator import one_operator
from mcudeploy.ops.image.resize import ResizeSamples, resize_samples

CASES = list(resize_gradient_cases())


def shares(samples: ResizeSamples, size: int) -> NDArray[Any]:
    """[results, positions]."""
    matrix = np.zeros((len(samples.first), size + 1))
    for row, first, fraction in zip(matrix, samples.first, samples.fraction, strict=True):
        row[first : first + 2] = 1 - fraction, fraction
    return matrix[:, :size]


@pytest.mark.parametrize("graph", CASES, ids=lambda graph: str(graph.tensors["x0"].shape))
def test_definition_pieces_and_counts(graph: Graph) -> None:
    (operator,) = graph.operators
    op: Any = operator.op
    rows, cols, channels = op.input_shape
    gradient = np.random.default_rng(0).normal(0, 1, graph.tensors["x0"].shape).astype(np.float32)
    wanted = np.einsum("oi,opc,pj->ijc", shares(op.rows, rows), gradient, shares(op.cols, cols))
    result = check_graph(graph, {"x0": gradient})["y"]
    np.testing.assert_allclose(result, wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())
    counts = op.kernel(operator, graph.input_tensors(operator), graph.tensors["y"]).counts
    pairs = np.count_nonzero(shares(op.rows, rows)) * np.count_nonzero(shares(op.cols, cols))
    assert counts(Interval(0, rows))["values"] == pairs * channels
    assert sum(counts(Interval(row, row + 1))["values"] for row in range(rows)) == pairs * channels


def test_another_size_is_refused() -> None:
    samples = resize_samples(4, 8, 2.0, mode="linear")
    with pytest.raises(ValueError, match="is not of the results"):
        one_operator(ResizeGradient(samples, samples, (4, 4, 3)), ((8, 7, 3),), DType.FLOAT32)
    with pytest.raises(ValueError, match="reach beyond the input"):
        one_operator(ResizeGradient(samples, samples, (3, 4, 3)), ((8, 8, 3),), DType.FLOAT32)
