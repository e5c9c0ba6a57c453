"""Nodes that cannot be deployed are listed, all of them, each with its reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from mcudeploy.common.errors import ModelError, Problem, causes
from mcudeploy.frontend.load import load
from tests.networks.onnx_files import build, node, save

X = np.ones((1, 4, 6, 6), np.float32)
W = np.ones((3, 4, 3, 3), np.float32)


def problems(model: onnx.ModelProto, folder: Path) -> tuple[Problem, ...]:
    with pytest.raises(ModelError) as caught:
        load(save(model, folder))
    assert caught.value.exit_code == 4
    assert caught.value.__notes__ == [str(cause) for cause in causes(caught.value.problems)]
    return caught.value.problems


def test_all_nodes_are_listed(tmp_path: Path) -> None:
    nodes = [
        node("Bernoulli", "x", "a"),
        node("Conv", "a w", "b"),
        node("Pad", "b p", "c", mode="mirror"),
        node("Relu", "c", "d"),
        node("RandomNormalLike", "d", "e"),
        helper.make_node("Bernoulli", ["e"], ["y"]),
    ]
    constants = {"w": W, "p": np.array([0, 0, 1, 1, 0, 0, 1, 1])}
    listed = problems(build(nodes, {"x": X}, ["y"], constants), tmp_path)
    assert [problem.op for problem in listed] == ["Bernoulli", "Pad", "RandomNormalLike", "Bernoulli"]
    assert [problem.node for problem in listed] == ["Bernoulli_a", "Pad_c", "RandomNormalLike_e", "#5"]
    assert "mirror" in listed[1].reason


def test_the_operator_of_the_file_is_named(tmp_path: Path) -> None:
    """The message names the node's operator, not its replacement."""
    nodes = [node("ReduceL1", "x", "a", axes=[1]), node("Cast", "a", "y", to=1)]
    model = build(nodes, {"x": X.astype(np.int32)}, ["y"])
    (problem,) = problems(model, tmp_path)
    assert problem.op == "ReduceL1" and problem.reason.endswith("(in the ReduceSum that replaces it)")


def test_other_domains(tmp_path: Path) -> None:
    model = build([node("Relu", "x", "y")], {"x": X}, ["y"])
    model.graph.node[0].domain = "com.example"
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    (problem,) = problems(model, tmp_path)
    assert problem.op == "com.example::Relu"


@pytest.mark.parametrize(
    ("item", "constants", "reason"),
    [
        (node("Conv", "z w", "y"), {"w": W}, "batch is 17"),
        (node("NonZero", "x", "y"), {}, "known at run time only"),
        (node("LeakyRelu", "x", "y", alpha=np.nan), {}, "alpha is not a finite number"),
        (node("HardSigmoid", "x", "y", beta=np.inf), {}, "beta is not a finite number"),
        (node("Clip", "x k", "y"), {"k": np.array(np.nan, np.float32)}, "not NaN"),
        (node("Dropout", "x - on", "y"), {"on": np.array(True)}, "training mode"),
        (node("Resize", "x - k", "y", mode="lanczos"), {"k": np.array([1, 1, 2, 2], np.float32)}, "lanczos"),
        (
            node("Resize", "x - k", "y", mode="linear", coordinate_transformation_mode="align_corners"),
            {"k": np.array([1, 1, 2, 0.4], np.float32)},
            "align_corners with a scale that makes",
        ),
        (
            node("Pad", "x k", "y", mode="reflect"),
            {"k": np.array([0, 0, 6, 0, 0, 0, 0, 0])},
            "reflect more than",
        ),
        (node("Cast", "x", "y", to=3), {}, "casting"),
        (node("Gather", "x k", "y", axis=2), {"k": np.array([0, 9, 4])}, "outside an axis of 6"),
        (
            node("Conv", "x k", "y", auto_pad="SAME_UPPER", strides=[3, 3]),
            {"k": W[:, :, :1, :1]},
            "runtimes begin it at different places",
        ),
        (
            node("Conv", "x w", "y", pads=[3, 0, 3, 0], strides=[9, 1]),
            {"w": W},
            "every window lies in the padding",
        ),
        (
            node("MaxPool", "x", "y", kernel_shape=[2, 2], dilations=[7, 1], pads=[1, 0, 2, 0]),
            {},
            "its maximum",
        ),
        (
            node("BatchNormalization", "x k k k k", "y m v", training_mode=1),
            {"k": np.ones(4, np.float32)},
            "training",
        ),
    ],
)
def test_reasons(item: Any, constants: dict[str, Any], reason: str, tmp_path: Path) -> None:
    inputs = {"x": X, "z": np.ones((17, 4, 6, 6), np.float32)}
    constants = {name: value for name, value in constants.items() if name in item.input}
    used = {name: array for name, array in inputs.items() if name in item.input}
    model = build([item], used, [name for name in item.output if name], constants)
    (problem,) = problems(model, tmp_path)
    assert reason in problem.reason


def test_integers_with_a_scale_for_each_channel(tmp_path: Path) -> None:
    constants = {"s": np.full(4, 0.05, np.float32), "z": np.zeros(4, np.int16)}
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "y")]
    listed = problems(build(nodes, {"x": X}, ["y"], constants, 21), tmp_path)
    assert "int16 activations" in listed[0].reason


def test_a_model_that_is_constant(tmp_path: Path) -> None:
    model = build([node("Relu", "x", "y"), node("Relu", "k", "z")], {"x": X}, ["z"], {"k": X})
    (problem,) = problems(model, tmp_path)
    assert (problem.node, problem.op) == ("z", "output")
    assert "it does not depend on the inputs, as no output does" in problem.reason


@pytest.mark.parametrize("domain", ["onnx.brevitas", "qonnx.custom_op.general"])
@pytest.mark.parametrize("imported", [False, True])
def test_other_operators_of_qonnx_are_refused(domain: str, imported: bool, tmp_path: Path) -> None:
    model = build([node("FloatQuant", "x s z b", "y")], {"x": X}, ["y"], dict.fromkeys("szb", np.float32(4)))
    model.graph.node[0].domain = domain
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, X.shape))
    if imported:
        model.opset_import.append(helper.make_opsetid(domain, 1))
    with pytest.raises(ModelError, match="qonnx-convert --output-style qcdq"):
        load(save(model, tmp_path))
