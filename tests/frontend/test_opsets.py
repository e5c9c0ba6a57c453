"""Old and new operator sets, and functions of the file's own: read as ONNX Runtime runs them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from evaluate import assert_same
from onnx import helper

from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.load import load
from mcudeploy.frontend.passes.versions import OPSETS
from tests.networks.onnx_files import build, node, save
from tests.networks.refusals import problems_of

X = np.random.default_rng(0).normal(size=(1, 3, 6, 6)).astype(np.float32)


def model_of(*nodes: onnx.NodeProto, opset: int = 17) -> onnx.ModelProto:
    """A model from x to y of these nodes, which may be older than the shapes that `build` infers."""
    model = build([node("Relu", "x", "y")], {"x": X}, ["y"], {})
    del model.graph.node[:], model.graph.value_info[:]
    model.graph.node.extend(nodes)
    model.opset_import[0].version = opset
    return model


def test_an_opset_that_was_not_tested_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(model_of(node("Relu", "x", "y")), tmp_path)
    assert not load(path).notes
    monkeypatch.setattr("mcudeploy.frontend.passes.versions._NEWEST_TESTED", 16)
    assert load(path).notes == (
        "opset 17 is newer than 16, the newest that was tested: where results differ, export the model with "
        "opset 16",
    )


@pytest.mark.parametrize(
    ("op", "opset", "why"),
    [("Unknown", 6, "converter does not convert it"), ("Relu", OPSETS.stop, "torch.onnx.export")],
)
def test_opsets_that_are_not_read(op: str, opset: int, why: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=rf"opset {opset}; opsets 7 to {OPSETS.stop - 1} are read.*{why}"):
        load(save(model_of(node(op, "x", "y"), opset=opset), tmp_path))


def test_operators_of_another_set_are_named(tmp_path: Path) -> None:
    model = model_of(helper.make_node("FeatureVectorizer", ["x"], ["y"], domain="ai.onnx.ml"))
    model.opset_import[0].domain = "ai.onnx.ml"
    (problem,) = problems_of(save(model, tmp_path))
    assert problem.op == "ai.onnx.ml::FeatureVectorizer"
    assert "0 widths do not fit 1 inputs" in problem.reason


def test_versions_that_are_stated_twice(tmp_path: Path) -> None:
    """skl2onnx writes equal entries; ONNX Runtime reads them."""
    learned = helper.make_node("FeatureVectorizer", ["x"], ["y"], "learned", domain="ai.onnx.ml")
    model = model_of(node("Relu", "x", "y"))
    model.opset_import.extend([helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)])
    assert load(save(model, tmp_path)).operators
    del model.graph.node[:]
    model.graph.node.append(learned)
    (problem,) = problems_of(save(model, tmp_path))
    assert (problem.node, problem.op) == ("learned", "ai.onnx.ml::FeatureVectorizer")
    assert "0 widths do not fit 1 inputs" in problem.reason
    model.opset_import.append(helper.make_opsetid("ai.onnx", 13))
    with pytest.raises(ModelError, match="the versions 13 and 17 of the ONNX operator set"):
        load(save(model, tmp_path))


def test_axes_and_bounds_were_attributes(tmp_path: Path) -> None:
    nodes = (
        node("Clip", "x", "c", min=0.0, max=6.0),
        node("Unsqueeze", "c", "u", axes=[0]),
        node("Squeeze", "u", "y", axes=[0]),
    )
    graph = assert_same(save(model_of(*nodes, opset=9), tmp_path), {"x": X})
    assert [operator.op.kind for operator in graph.operators] == ["Unary"]


def test_an_old_softmax_is_over_all_axes_after_its_own(tmp_path: Path) -> None:
    """The conversion adds values that the file lacks: no reference may request them."""
    assert_same(save(model_of(node("Softmax", "x", "y", axis=1), opset=8), tmp_path), {"x": X})


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("opset", [8, 9])
def test_upsampling_is_what_it_was(mode: str, opset: int, tmp_path: Path) -> None:
    """The converter of onnx would change the interpolation."""
    scales = np.array([1, 1, 2, 1.5], np.float32)
    up = node("Upsample", "r s", "y", mode=mode)
    if opset < 9:
        up = node("Upsample", "r", "y", mode=mode, scales=scales.tolist())
    model = model_of(node("Relu", "x", "r"), up, opset=opset)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 3, 12, 9]))
    if opset == 9:
        model.graph.initializer.append(onnx.numpy_helper.from_array(scales, "s"))
    assert_same(save(model, tmp_path), {"x": X})


def function(name: str, nodes: list[onnx.NodeProto]) -> onnx.FunctionProto:
    """A function from a to b."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, ["a"], ["b"], nodes, opsets)


def with_functions(called: str, functions: list[onnx.FunctionProto]) -> onnx.ModelProto:
    """A model that calls one of them."""
    model = model_of(helper.make_node(called, ["x"], ["y"], name="call", domain="own"))
    model.functions.extend(functions)
    model.opset_import.append(helper.make_opsetid("own", 1))
    return model


def test_a_function_is_replaced_by_its_body(tmp_path: Path) -> None:
    body = [helper.make_node("Relu", ["a"], ["inner"]), helper.make_node("Sigmoid", ["inner"], ["b"])]
    assert_same(save(with_functions("F", [function("F", body)]), tmp_path), {"x": X})


def test_functions_that_grow_without_limit_are_refused(tmp_path: Path) -> None:
    """Forty levels that call the next one twice: onnx would visit all 2^40 nodes."""
    functions = [function("F0", [helper.make_node("Relu", ["a"], ["b"])])]
    for level in range(1, 41):
        called = f"F{level - 1}"
        twice = [
            helper.make_node(called, ["a"], ["inner"], domain="own"),
            helper.make_node(called, ["inner"], ["b"], domain="own"),
        ]
        functions.append(function(f"F{level}", twice))
    with pytest.raises(ModelError, match="come to more than 65536 nodes"):
        load(save(with_functions("F40", functions), tmp_path))


def test_a_function_that_calls_itself_is_refused(tmp_path: Path) -> None:
    body = [helper.make_node("F", ["a"], ["b"], domain="own")]
    with pytest.raises(ModelError, match="F calls itself"):
        load(save(with_functions("F", [function("F", body)]), tmp_path))


def test_the_mask_of_an_old_dropout_is_left_out(tmp_path: Path) -> None:
    """The file states floats for it, where opset 13 has truth values; nothing reads it."""
    model = model_of(node("Dropout", "x", "d mask"), node("Relu", "d", "y"), opset=9)
    model.graph.value_info.append(helper.make_tensor_value_info("mask", 1, X.shape))
    assert_same(save(model, tmp_path), {"x": X})


def test_axes_of_a_reduction_may_be_computed_from_constants(tmp_path: Path) -> None:
    nodes = (
        node("Shape", "x", "sizes"),
        node("Constant", "", "two", value=helper.make_tensor("v", 7, [1], [2])),
        node("Div", "sizes sizes", "ones"),
        node("ReduceSum", "ones", "four", keepdims=1),
        node("Sub", "four two", "axes"),
        node("ReduceMean", "x axes", "m", keepdims=1),
        node("Sub", "x m", "y"),
    )
    assert_same(save(model_of(*nodes, opset=18), tmp_path), {"x": X})
