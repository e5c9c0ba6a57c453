"""Gradients of inputs of convolutions in groups against their definition, in pieces, under sanitizers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import check_graph
from training_cases import grouped_gradient_cases

from mcudeploy.ir.graph import Graph
from mcudeploy.ir.interval import Interval

CASES = list(grouped_gradient_cases())


def kind(graph: Graph) -> str:
    op: Any = graph.operators[0].op
    return f"{op.conv.groups}-groups-{'x'.join(map(str, op.input_shape))}"


@pytest.mark.parametrize("graph", CASES, ids=kind)
def test_definition_pieces_and_counts(graph: Graph) -> None:
    (operator,) = graph.operators
    op: Any = operator.op
    conv, (rows, cols, channels) = op.conv, op.input_shape
    inputs, outputs = channels // conv.groups, conv.out_channels // conv.groups
    weights = operator.constants["weights"].reshape(conv.out_channels, *conv.kernel_shape, inputs)
    gradient = np.random.default_rng(0).normal(0, 1, graph.tensors["x0"].shape).astype(np.float32)
    wanted, pairs = np.zeros(op.input_shape), 0
    for i, j in np.ndindex(gradient.shape[:2]):
        for r, s in np.ndindex(conv.kernel_shape):
            row, col = i * conv.stride[0] + r - conv.pads[0], j * conv.stride[1] + s - conv.pads[1]
            if not (0 <= row < rows and 0 <= col < cols):
                continue
            pairs += conv.out_channels * inputs
            for group in range(conv.groups):
                out, own = slice(group * outputs, (group + 1) * outputs), weights[:, r, s]
                to = slice(group * inputs, (group + 1) * inputs)
                wanted[row, col, to] += gradient[i, j, out].astype(np.float64) @ own[out]
    result = check_graph(graph, {"x0": gradient})["y"]
    np.testing.assert_allclose(result, wanted, rtol=0, atol=2e-6 * max(1.0, float(np.abs(wanted).max())))
    call = op.kernel(operator, graph.input_tensors(operator), graph.tensors["y"])
    counts = call.counts(Interval(0, rows))
    assert 4 * counts["fours"] + counts["single_products"] == pairs
