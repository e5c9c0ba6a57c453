"""Samples of integers: what does not fit is said before anything is built; what float32 changes is seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import UsageError
from mcudeploy.device.target import Target
from mcudeploy.frontend.load import load
from mcudeploy.frontend.onnx.input_choices import AS_IN_FILE
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.samples import NamedArray, load_samples
from mcudeploy.verify.verdict import conversion_reasons, in_own_floats
from tests import reports


def _saved(nodes: list[onnx.NodeProto], folder: Path, kind: int, size: int) -> Path:
    """A model from x [1, 4] to y, with a table of ten rows."""
    table = numpy_helper.from_array(np.arange(30, dtype=np.float32).reshape(10, 3), "table")
    inputs = [helper.make_tensor_value_info("x", kind, [1, 4])]
    outputs = [helper.make_tensor_value_info("y", size, None)]
    graph = helper.make_graph(nodes, "integers", inputs, outputs, [table])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=9)
    path = folder / "model.onnx"
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return path


@pytest.mark.parametrize(
    ("indices", "fault"),
    [
        ([0, -10, 9, 3], ""),
        ([0, 10, 0, 0], r"'x' has indices from 0 to 10: its table has 10 rows"),
        ([0, -11, 0, 0], "from -11 to 0"),
        ([0, 2**32, 0, 0], "beyond 32 bits"),
    ],
)
def test_indices_are_those_of_rows(indices: list[int], fault: str, tmp_path: Path) -> None:
    gather = [helper.make_node("Gather", ["table", "x"], ["y"])]
    graph = load(_saved(gather, tmp_path, TensorProto.INT64, TensorProto.FLOAT))
    file = tmp_path / "x.npy"
    np.save(file, np.array([indices]))
    if fault:
        with pytest.raises(UsageError, match=fault):
            load_samples(graph, [file], [], 0)
    else:
        (sample,) = load_samples(graph, [file], [], 0)
        assert sample.inputs["x"].tolist() == [indices]


def test_several_samples_of_a_number(tmp_path: Path) -> None:
    path = _saved(
        [helper.make_node("Gather", ["table", "x"], ["y"])], tmp_path, TensorProto.INT64, TensorProto.FLOAT
    )
    model = onnx.load(path)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    model.graph.input[0].type.tensor_type.shape.SetInParent()
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [3]))
    onnx.save(model, path)
    np.save(tmp_path / "x.npy", np.array([2, 9]))
    report = reports.verified(path, inputs=[tmp_path / "x.npy"])
    assert [it["values"] for it in report["outputs"]] == [[6, 7, 8], [27, 28, 29]]


def test_integers_that_float32_changes_are_seen(tmp_path: Path) -> None:
    """2049 is 2048 in float16, an error that the tolerance of floats lets pass."""
    casts = [
        helper.make_node("Cast", ["x"], ["half"], to=TensorProto.FLOAT16),
        helper.make_node("Concat", ["half"], ["size"], axis=1),
        helper.make_node("Cast", ["size"], ["y"], to=TensorProto.INT32),
    ]
    path = _saved(casts, tmp_path, TensorProto.FLOAT, TensorProto.INT32)
    (sample,) = load_samples(load(path, True), [], [], 0)
    given = np.array([[2048, 2049, 1, 2]], np.float32)
    reference = in_own_floats(path, ["y"], AS_IN_FILE)
    for value, wrong in ((given, 1), (given - 1, 0)):
        values = {"y": value.astype(np.int32)}
        reasons = conversion_reasons(0, reference, {**sample.inputs, "x": value}, values)
        assert len(reasons) == wrong


@pytest.mark.parametrize(
    ("values", "coarse"),
    [
        ([[1, 2, 3, 3e38], [1, 2, 3, 4]], True),
        ([[1e4, -2e4, 1, 3e4], [1, 2, 3, 4]], True),  # of the second sample
        ([[3e38, 2e38, 0, 0]], False),
        ([[1e-9, 1e-9, 1e-9, 1]], False),
    ],
)
def test_a_tolerance_that_exceeds_most_values_of_a_sample(
    values: list[list[float]], coarse: bool, tmp_path: Path
) -> None:
    """The tolerance of floats is a share of their range over all samples."""
    negated = [helper.make_node("Neg", ["x"], ["y"])]
    report = reports.run_model(
        _saved(negated, tmp_path, TensorProto.FLOAT, TensorProto.FLOAT),
        Target(load_board("host")),
        Options(split=False),
        inputs=[NamedArray("x", np.array([row], np.float32)) for row in values],
        expected=[],
    )
    assert report["verified"] and list(report["coarse_tolerances"]) == ["y"] * coarse
