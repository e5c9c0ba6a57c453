"""The harness itself: it passes a right kernel and catches each kind of wrong one."""

from __future__ import annotations

import numpy as np
from harness import check_graph, run_graph

from mcudeploy.graph import Border, DType, Graph, Operator, Quantization, Tensor
from mcudeploy.ops.conv import Conv2d


def _conv_graph() -> tuple[Graph, dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    conv = Conv2d(out_channels=5, kernel_shape=(3, 3), stride=(2, 1), pads=(1, 1, 0, 1))
    out = conv.loops(((9, 7, 3),)).output_shape()
    x = Tensor("x", (9, 7, 3), DType.INT8, Quantization(0.05, 3))
    y = Tensor("y", out, DType.INT8, Quantization(0.4, -5))
    constants = {
        "weights": rng.integers(-127, 128, (5, 3, 3, 3)).astype(np.int8),
        "bias": rng.integers(-500, 500, 5).astype(np.int32),
        "weight_scale": rng.uniform(0.01, 0.02, 5).astype(np.float32),
    }
    operator = Operator("conv", conv, ("x",), "y", constants)
    border_x = Border("x", "x", (1, 3, 9, 7), "int8", np.arange(9 * 7 * 3, dtype=np.int32))
    border_y = Border("y", "y", (1, 5, *out[:2]), "int8", np.arange(y.elements, dtype=np.int32))
    graph = Graph("g", {"x": x, "y": y}, (operator,), (border_x,), (border_y,))
    return graph, {"x": rng.integers(-128, 128, (9, 7, 3)).astype(np.int8)}


def test_convolution_in_pieces() -> None:
    graph, values = _conv_graph()
    found = check_graph(graph, values)
    again = run_graph(graph, values, lambda operator, rows: 2, seed=7)
    assert found["y"].tobytes() == again["y"].tobytes()
    assert len(np.unique(found["y"])) > 10
