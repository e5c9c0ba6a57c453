"""Activations of ONNX Runtime's own domain."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from harness import check_against_onnx
from onnx import TensorProto, helper, numpy_helper
from single_node import normal


@pytest.mark.parametrize("op", ["Gelu", "FastGelu", "BiasGelu", "QuickGelu"])
def test_gelu(op: str) -> None:
    rng = np.random.default_rng(4)
    x = 3 * normal(rng, (1, 5, 24))
    biased = op in ("BiasGelu", "FastGelu")
    item = helper.make_node(op, ["x", "b"] if biased else ["x"], ["y"], "node", domain="com.microsoft")
    graph = helper.make_graph(
        [item],
        "activation",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, x.shape)],
        [numpy_helper.from_array(normal(rng, (24,)), "b")] if biased else [],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    check_against_onnx(model, {"x": x})
