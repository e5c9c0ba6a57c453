"""A small ONNX model with a residual connection and a view, for several units."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def residual_network(path: Path) -> Path:
    """float32 [1,3,12,12] -> conv -> conv, conv -> their sum -> flatten -> matrix [1,5], at `path`."""
    rng = np.random.default_rng(5)
    weights = {
        "w0": rng.normal(size=(4, 3, 3, 3)),
        "w1": rng.normal(size=(4, 4, 3, 3)),
        "w2": rng.normal(size=(4, 4, 1, 1)),
        "w3": rng.normal(size=(576, 5)) / 24,
    }
    nodes = [
        helper.make_node("Conv", ["image", "w0"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["a", "w1"], ["b"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["b", "w2"], ["c"]),
        helper.make_node("Add", ["a", "c"], ["sum"]),
        helper.make_node("Flatten", ["sum"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w3"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "residual",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 12, 12])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 5])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path
