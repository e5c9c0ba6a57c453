"""Files that break a rule of ONNX, and that ONNX Runtime or ONNX's converter reads."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
import reports
from evaluate import assert_same, kinds
from harness import outputs_of
from onnx import TensorProto, helper, numpy_helper

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import ModelError
from mcudeploy.device.target import Target
from mcudeploy.frontend.load import load
from mcudeploy.planner.plan_options import Options
from tests.networks.onnx_files import build, node, save
from tests.networks.refusals import problems_of

X = np.random.default_rng(0).normal(size=(1, 3, 6, 6)).astype(np.float32)


def chain(count: int = 3) -> onnx.ModelProto:
    """A model of several functions in turn."""
    names = ["x", *(f"v{number}" for number in range(1, count)), "y"]
    pairs = itertools.pairwise(names)
    return build([node("Relu" if a == "x" else "Tanh", a, b) for a, b in pairs], {"x": X}, ["y"])


@pytest.mark.parametrize("order", [(2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_nodes_in_any_order(order: tuple[int, ...], tmp_path: Path) -> None:
    model = chain()
    nodes = [onnx.NodeProto.FromString(each.SerializeToString()) for each in model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes[at] for at in order)
    assert_same(save(model, tmp_path), {"x": X})


def test_an_output_without_a_type(tmp_path: Path) -> None:
    model = chain()
    model.graph.output[0].ClearField("type")
    assert load(save(model, tmp_path)).outputs[0].shape == X.shape


def test_an_output_whose_type_does_not_follow(tmp_path: Path) -> None:
    model = chain()
    model.graph.node[-1].domain = "com.example"
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    model.graph.output[0].ClearField("type")
    with pytest.raises(ModelError, match="graph output 'y' has no type"):
        load(save(model, tmp_path))


def test_a_file_of_another_domain_alone(tmp_path: Path) -> None:
    constants = {"s": np.float32(0.1), "z": np.uint8(3)}
    names = ["a", "s", "z", "b", "s", "z", "s", "z"]
    item = helper.make_node("QLinearAdd", names, ["y"], "node", domain="com.microsoft")
    values = [helper.make_tensor_value_info(name, TensorProto.UINT8, (1, 8)) for name in ("a", "b", "y")]
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph([item], "sum", values[:2], values[2:], held)
    opsets = [helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    drawn = np.random.default_rng(1).integers(0, 256, (2, 1, 8)).astype(np.uint8)
    assert_same(save(model, tmp_path), {"a": drawn[0], "b": drawn[1]})


def test_layer_normalization_before_opset_17(tmp_path: Path) -> None:
    """ONNX Runtime has the operator in every opset, and exporters write it."""
    x = X.reshape(1, 18, 6)
    constants = {"scale": np.linspace(0.5, 2, 6, dtype=np.float32), "bias": np.ones(6, np.float32)}
    model = build([node("LayerNormalization", "x scale bias", "y")], {"x": x}, ["y"], constants)
    model.opset_import[0].version = 12
    assert kinds(load(save(model, tmp_path))) == {"LayerNorm": 1}
    report = reports.run_model(
        tmp_path / "model.onnx", Target(load_board("host")), Options(split=False), inputs=[], expected=[]
    )
    assert report["verified"], report["reason"]


@pytest.mark.parametrize(("opset", "axis"), [(1, 1), (5, 1), (6, 1), (6, -3)])
def test_broadcasts_along_an_axis(opset: int, axis: int, tmp_path: Path) -> None:
    """Before opset 7 a node states from which axis on its second operand is broadcast, also from the end."""
    held = {"d": np.float32(255), "b": np.array([1, -2, 3], np.float32), "r": np.arange(6, dtype=np.float32)}
    nodes = [
        node("Div", "x d", "scaled", broadcast=1),
        node("Add", "scaled b", "sum", broadcast=1, axis=axis),
        node("Mul", "sum r", "y", broadcast=1),
    ]
    model = build([node("Relu", "x", "y")], {"x": X}, ["y"], held)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.opset_import[0].version = opset
    model.ir_version = 3
    model.graph.input.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape) for name, value in held.items()
    )
    path = save(model, tmp_path)
    graph = assert_same(path, {"x": X})
    wanted = (X / 255 + held["b"].reshape(3, 1, 1)) * held["r"]
    assert np.allclose(outputs_of(graph, {"x": X})["y"], wanted, atol=1e-5)


ROW = X.reshape(1, 108)
WEIGHTS = {
    "w": np.random.default_rng(2).normal(size=(8, 108)).astype(np.float32),
    "b": np.ones(8, np.float32),
}
NORM = {name: np.linspace(0.5, at, 3, dtype=np.float32) for at, name in enumerate("sbmv", 1)}
NORMAL = (X - NORM["m"][:, None, None]) / np.sqrt(NORM["v"] + 1e-5)[:, None, None]
NORMALIZED = NORMAL * NORM["s"][:, None, None] + NORM["b"][:, None, None]


def of_ir_3(
    item: onnx.NodeProto, shape: Sequence[int | str], held: dict[str, np.ndarray], listed: bool
) -> onnx.ModelProto:
    """A file of opset 6 and of IR version 3, which lists constants as inputs."""
    values = {"x": (np.float32, shape), **(held if listed else {})}
    model = build([item], values, dict.fromkeys(item.output, (np.float32, None)), held, 6)
    model.ir_version = 3
    return model


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("batch", [1, "N"])
@pytest.mark.parametrize("attributes", [{"broadcast": 1}, {}])
def test_gemm_of_opset_6(attributes: dict[str, int], batch: int | str, listed: bool, tmp_path: Path) -> None:
    item = helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1, **attributes)
    graph = load(save(of_ir_3(item, [batch, 108], WEIGHTS, listed), tmp_path))
    assert np.allclose(outputs_of(graph, {"x": ROW})["y"], ROW @ WEIGHTS["w"].T + 1, atol=1e-4)


@pytest.mark.parametrize("attributes", [{"is_test": 1}, {"is_test": 0}, {}, {"is_test": 1, "spatial": 1}])
def test_batch_normalization_of_opset_6(attributes: dict[str, int], tmp_path: Path) -> None:
    """Its mode is that of its outputs."""
    item = helper.make_node("BatchNormalization", ["x", *NORM], ["y"], **attributes)
    graph = load(save(of_ir_3(item, [1, 3, 6, 6], NORM, True), tmp_path))
    assert np.allclose(outputs_of(graph, {"x": X})["y"], NORMALIZED, atol=1e-4)


def test_old_nodes_that_are_refused_are_named(tmp_path: Path) -> None:
    training = helper.make_node("BatchNormalization", ["x", *NORM], list("yefgh"), "bn")
    wrong = helper.make_node("Gemm", ["x", "w", "b"], ["y"], "fc", transB=1, broadcast=1)
    held = WEIGHTS | {"b": np.ones(5, np.float32)}
    cases = [(training, [1, 3, 6, 6], NORM, "training mode"), (wrong, [1, 108], held, "does not fit")]
    for item, shape, constants, why in cases:
        (problem,) = problems_of(save(of_ir_3(item, shape, constants, True), tmp_path))
        assert problem.node == item.name and why in problem.reason
