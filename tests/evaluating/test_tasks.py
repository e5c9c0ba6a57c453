"""Outputs that are not scores of classes: one score, reconstructions, values, and class numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from numpy.typing import NDArray
from onnx import TensorProto, helper

import mcudeploy
from mcudeploy.cli.main import cli
from mcudeploy.common.errors import UsageError


def network(path: Path, op: str, elements: int, kind: int = TensorProto.FLOAT) -> Path:
    """One operator from x [1, elements] to y."""
    size = 1 if op in ("ReduceSum", "ArgMax") else elements
    attributes: dict[str, Any] = {"axis": 1, "keepdims": 0} if op == "ArgMax" else {}
    node = helper.make_node(op, ["x"], ["y"], name="n", **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, elements])],
        [helper.make_tensor_value_info("y", kind, [1] if op == "ArgMax" else [1, size])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=7), path)
    return path


def evaluated(model: Path, x: NDArray[Any], y: NDArray[Any] | None) -> Any:
    data = model.with_suffix(".npz")
    np.savez(data, x=x.astype(np.float32), **({} if y is None else {"y": y}))
    return mcudeploy.evaluate(model, data=data, time_limit=0.2)


@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_one_score_has_an_area_under_the_curve(kind: Any, tmp_path: Path) -> None:
    x = np.array([[-3.0], [0.3], [2], [-0.2], [1]])
    report = evaluated(network(tmp_path / "m.onnx", "Sigmoid", 1), x, np.array([0, 0, 1, 1, 1], kind))
    (device, reference) = report["models"]
    assert report["task"] == "two classes" and device["confusion"] == [[1, 1], [1, 2]]
    assert device["auc"] == pytest.approx(5 / 6) and device["accuracy"] == reference["accuracy"] == 0.6


def test_a_reconstruction_is_scored_by_its_error(tmp_path: Path) -> None:
    """The identity of what is positive: samples with negative values are anomalies."""
    x = np.array([[1.0, 2, 3], [0, 1, 0], [-1, 2, -2], [4, -1, 5]])
    report = evaluated(network(tmp_path / "m.onnx", "Relu", 3), x, np.array([0, 0, 1, 1]))
    device = report["models"][0]
    assert report["task"] == "anomaly" and device["auc"] == 1.0 and device["accuracy"] is None
    assert device["mse"] == pytest.approx((0 + 0 + 5 / 3 + 1 / 3) / 4)
    unlabelled = evaluated(network(tmp_path / "n.onnx", "Relu", 3), x, None)
    assert unlabelled["models"][0]["mse"] == pytest.approx(0.5) and not unlabelled["labelled"]


def test_values_have_errors(tmp_path: Path) -> None:
    x = np.array([[1.0, 2], [3, 4]])
    report = evaluated(network(tmp_path / "m.onnx", "Neg", 2), x, np.array([[-1.0, -2], [-3, -6]]))
    device = report["models"][0]
    assert report["task"] == "values" and device["mse"] == 1.0 and device["mae"] == 0.5
    assert [it["number"] for it in report["worst"]] == [1]


def test_python_has_the_choices_of_the_command(tmp_path: Path) -> None:
    x, model = (
        np.array([[-3.0], [0.3], [2], [-0.2], [1]], np.float32),
        network(tmp_path / "m.onnx", "Sigmoid", 1),
    )
    np.savez(tmp_path / "d.npz", x=x, y=np.array([0, 0, 1, 1, 1]))
    report = mcudeploy.evaluate(
        model, data=tmp_path / "d.npz", classes=("no", "yes"), threshold=0.4, min_accuracy=90, time_limit=0.2
    )
    assert report["models"][0]["confusion"] == [[1, 1], [0, 3]] and report["classes"] == ["no", "yes"]
    assert not report["passed"] and len(report["failures"]) == 1
    few = mcudeploy.evaluate(model, data=tmp_path / "d.npz", samples=3, output="y", top=1, time_limit=0.2)
    assert few["samples"] == 3
    with pytest.raises(UsageError, match="max_drop=101"):
        mcudeploy.evaluate(model, data=tmp_path / "d.npz", max_drop=101)


def test_class_numbers_without_scores(tmp_path: Path) -> None:
    x = np.array([[1.0, 2, 0], [3, 1, 0], [0, 1, 2]])
    model = network(tmp_path / "m.onnx", "ArgMax", 3, TensorProto.INT64)
    report = evaluated(model, x, np.array([1, 0, 1]))
    assert report["task"] == "class number"
    assert report["models"][0]["accuracy"] == pytest.approx(2 / 3)
    assert report["models"][0]["confusion"] == [[1, 0, 0], [0, 1, 1], [0, 0, 0]]
    page = tmp_path / "page.html"
    assert end(model, "--report", str(page)).exit_code == 0
    assert page.read_text().count('class="own"') == 3


def end(model: Path, *options: str) -> Result:
    """The command for the data that `evaluated` has written."""
    arguments = ["evaluate", str(model), "--board", "host", "--data", str(model.with_suffix(".npz"))]
    return CliRunner().invoke(cli, [*arguments, "--time-limit", "0.2", *options])


def test_limits_are_kept_exactly_or_refused(tmp_path: Path) -> None:
    score = network(tmp_path / "score.onnx", "Sigmoid", 1)
    evaluated(score, np.where(np.arange(100) < 29, 1.0, -1.0).reshape(-1, 1), np.ones(100, np.int64))
    assert [end(score, "--min-accuracy", least).exit_code for least in ("29", "29.01")] == [0, 11]
    rebuilt = network(tmp_path / "rebuilt.onnx", "Relu", 3)
    evaluated(rebuilt, np.eye(3), np.zeros(3, np.int64))
    result = end(rebuilt, "--min-accuracy", "90")
    assert result.exit_code == 2 and "needs samples of both classes: all labels are 0" in result.output


@pytest.mark.parametrize("kind", [np.uint8, np.bool_, np.float32])
def test_rows_with_a_single_1_are_classes_and_a_tie_may_be_wrong(kind: Any, tmp_path: Path) -> None:
    x = np.array([[1.0, 0, 1], [3, 1, 0]])
    report = evaluated(network(tmp_path / "m.onnx", "Softmax", 3), x, np.eye(3, dtype=kind)[[2, 0]])
    assert report["task"] == "classes" and report["models"][0]["accuracy"] == 0.5
    assert [(it["number"], it["computed"], it["loss"]) for it in report["worst"]] == [(0, 0, 0.0)]
