"""Nodes that rules do not take stay, and are refused by their name; whatever they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.load import load
from mcudeploy.planner.model.model import load_model
from tests.networks.onnx_files import build, node, save

X = np.ones((1, 4, 6, 6), np.float32)
W = np.ones((4, 3, 3, 3), np.float32)


def refused(model: onnx.ModelProto, folder: Path, label: str) -> None:
    """One error that names the node, or a size beyond any microcontroller."""
    with pytest.raises(ModelError) as caught:
        load(save(model, folder))
    error = caught.value
    assert error.exit_code == 4
    named = label in str(error) or [problem.node for problem in error.problems] == [label]
    assert named or "the limit is" in str(error)


@pytest.mark.parametrize(
    ("item", "constants"),
    [
        (node("ConvTranspose", "x w", "y", strides=[2**30, 2**30]), {"w": W}),
        (node("ConvTranspose", "x w", "y", strides=[2, 2], dilations=[2**30, 1]), {"w": W}),
        (node("ConvTranspose", "x v", "y"), {"v": np.ones((3, 3, 3, 3), np.float32)}),
        (node("GroupNormalization", "x s s", "y", num_groups=3), {"s": np.ones(4, np.float32)}),
        (node("DepthToSpace", "x", "y", blocksize=3), {}),
        (node("SpaceToDepth", "x", "y", blocksize=5), {}),
    ],
)
def test_attributes_that_do_not_fit(item: Any, constants: dict[str, Any], tmp_path: Path) -> None:
    model = raw(item, constants)
    refused(model, tmp_path, item.name)


@pytest.mark.parametrize(
    ("item", "constants", "reason"),
    [
        (node("ConvTranspose", "x x", "y"), {}, "the weights must be constant"),
        (
            node("GroupNormalization", "x s s", "y", num_groups=3),
            {"s": X[0, :, 0, 0]},
            "do not make 3 groups",
        ),
        (node("LpPool", "x", "y", kernel_shape=[2, 2], p=-1), {}, "p -1 is not supported"),
        (node("DepthToSpace", "x", "y", blocksize=3), {}, "4 channels do not make blocks of 3 x 3"),
        (node("ReduceL1", "x", "y", noop_with_empty_axes=1), {}, "runtimes differ"),
    ],
)
def test_the_reason_is_told(item: Any, constants: dict[str, Any], reason: str, tmp_path: Path) -> None:
    model = raw(item, constants)
    with pytest.raises(ModelError) as caught:
        load(save(model, tmp_path))
    assert [problem.node for problem in caught.value.problems] == [item.name]
    assert reason in caught.value.problems[0].reason


def raw(item: onnx.NodeProto, constants: dict[str, Any]) -> onnx.ModelProto:
    """A model of one node; the sizes of its result are open."""
    model = build([node("Relu", "x", "y")], {"x": X}, ["y"], constants)
    del model.graph.node[:], model.graph.value_info[:], model.graph.output[:]
    model.graph.node.append(item)
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, list("abcd")))
    model.opset_import[0].version = 21
    return model


@pytest.mark.parametrize("op", ["QLinearConcat", "QLinearAdd", "QGemm", "QLinearSigmoid", "QuantizeLinear"])
@pytest.mark.parametrize("inputs", ["x", "x x", "x x x x"])
def test_integer_operators_without_their_inputs(op: str, inputs: str, tmp_path: Path) -> None:
    """The ONNX checker does not know operators of other domains."""
    item = node(op, inputs, "y")
    item.domain = "com.microsoft"
    model = raw(item, {})
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    refused(model, tmp_path, item.name)


def test_a_state_of_another_size_is_refused(tmp_path: Path) -> None:
    """A kernel would read beyond it."""
    constants = {
        "w": np.ones((1, 8, 6), np.float32),
        "r": np.ones((1, 8, 2), np.float32),
        "h": np.ones((1, 1, 1), np.float32),
    }
    item = helper.make_node("LSTM", ["s", "w", "r", "", "", "h"], ["y"], name="lstm", hidden_size=2)
    model = raw(item, constants)
    model.graph.node.insert(0, helper.make_node("Reshape", ["x", "to"], ["s"], name="reshape"))
    to = onnx.numpy_helper.from_array(np.array([24, 1, 6]), "to")
    model.graph.initializer.append(to)
    path = save(model, tmp_path)
    with pytest.raises(ModelError, match="initial need the shape"):
        load_model(path)
