"""NonMaxSuppression with a fixed number of rows, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from harness import outputs_of
from numpy.typing import NDArray

from mcudeploy import onnx_backend
from mcudeploy.boards.catalogue import load_board
from mcudeploy.device.target import Target
from mcudeploy.frontend.load import load
from mcudeploy.planner.plan_options import Options
from tests import reports
from tests.networks.onnx_files import build, node, save
from tests.networks.refusals import problems_of

Array = NDArray[Any]
HOST, QUICK = Target(load_board("host")), Options(split=False)
LIMITS = {"most": np.array([3]), "overlap": np.float32([0.3]), "least": np.float32([0.4])}


def drawn(images: int, classes: int, count: int, seed: int = 1) -> dict[str, Array]:
    """Boxes of two corners in any order, of which many overlap and some are equal, and scores with ties."""
    rng = np.random.default_rng(seed)
    boxes = rng.integers(0, 12, (images, count, 4)).astype(np.float32)
    boxes[:, 1::5] = boxes[:, ::5][:, : boxes[:, 1::5].shape[1]]
    scores = rng.integers(0, 9, (images, classes, count)).astype(np.float32) / np.float32(8)
    return {"boxes": boxes, "scores": scores}


def model_of(values: dict[str, Array], limits: dict[str, Array], **attributes: Any) -> onnx.ModelProto:
    inputs = " ".join(name if name in limits else "-" for name in LIMITS)
    nodes = [node("NonMaxSuppression", f"boxes scores {inputs}", "rows", **attributes)]
    return build(nodes, values, ["rows"], limits, opset=attributes.pop("opset", 17))


def returned(model: onnx.ModelProto, values: dict[str, Array]) -> Array:
    """The rows that ONNX Runtime returns."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["rows"], values)[0])


def check(model: onnx.ModelProto, values: dict[str, Array], folder: Path) -> int:
    """Run the kernels on these values, and compare all rows; return how many there are."""
    wanted = returned(model, values)
    computed = outputs_of(load(save(model, folder)), values)
    assert list(computed) == ["rows", "rows_count"]
    np.testing.assert_array_equal(computed["rows"][: len(wanted)], wanted)
    assert computed["rows_count"] == len(wanted) and (computed["rows"][len(wanted) :] == -1).all()
    return len(wanted)


@pytest.mark.parametrize("shape", [(1, 1, 20), (1, 3, 20), (2, 2, 12), (1, 2, 2)])
@pytest.mark.parametrize("center", [0, 1])
def test_rows_are_those_of_onnx_and_then_minus_one(shape: Any, center: int, tmp_path: Path) -> None:
    """With fewer boxes than may be chosen as well."""
    values = drawn(*shape)
    assert check(model_of(values, LIMITS, center_point_box=center), values, tmp_path) > 0


@pytest.mark.parametrize("left_out", [("least",), ("overlap",), ("least", "overlap")])
def test_limits_that_are_left_out(left_out: tuple[str, ...], tmp_path: Path) -> None:
    values = drawn(1, 2, 15)
    limits = {name: value for name, value in LIMITS.items() if name not in left_out}
    check(model_of(values, limits), values, tmp_path)


def test_a_score_that_equals_the_limit_is_left_out(tmp_path: Path) -> None:
    values = drawn(1, 1, 20)
    limits = {**LIMITS, "least": np.float32([values["scores"].max()])}
    assert check(model_of(values, limits), values, tmp_path) == 0


@pytest.mark.parametrize("opset", [10, 11, 13])
def test_older_operator_sets(opset: int, tmp_path: Path) -> None:
    values = drawn(1, 2, 10)
    inputs = "boxes scores most overlap least"
    model = build([node("NonMaxSuppression", inputs, "rows")], values, ["rows"], LIMITS, opset=opset)
    check(model, values, tmp_path)


def test_boxes_of_a_detector(tmp_path: Path) -> None:
    """Rows gathered by the numbers of boxes, where -1 is the last one; an open batch; inner nodes alone."""
    values = drawn(1, 2, 10)
    nodes = [
        node("Sigmoid", "raw", "scores"),
        node("NonMaxSuppression", "boxes scores most overlap least", "rows"),
        node("Gather", "rows two", "number", axis=1),
        node("Squeeze", "number one", "flat"),
        node("Gather", "boxes flat", "chosen", axis=1),
        node("Shape", "rows", "sizes"),
        node("Gather", "sizes zero", "size", axis=0),
        node("Cast", "size", "y", to=1),
    ]
    constants = {**LIMITS, "two": np.array([2]), "one": np.array([1]), "zero": np.array(0)}
    given = {"boxes": values["boxes"], "raw": values["scores"] * 4 - 2}
    model = build(nodes[:5], given, ["chosen"], constants)
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    path = save(model, tmp_path)
    assert [(it.name, it.shape) for it in load(path).outputs] == [
        ("chosen", (1, 6, 4)),
        ("rows_count", (1,)),
    ]
    assert any("the others are -1" in note for note in load(path).notes)
    reports.verified(path, options=QUICK)


@pytest.mark.parametrize("constant", ["boxes", "scores"])
def test_boxes_or_scores_that_are_constant(constant: str, tmp_path: Path) -> None:
    values = drawn(1, 2, 10)
    limits = {**LIMITS, constant: values.pop(constant)}
    nodes = [node("NonMaxSuppression", "boxes scores most overlap least", "rows")]
    check(build(nodes, values, ["rows"], limits), values, tmp_path)


def test_the_backend_returns_the_rows_that_are_counted() -> None:
    values = drawn(1, 3, 20)
    model = model_of(values, LIMITS)
    (rows,) = onnx_backend.run_model(model, values)
    np.testing.assert_array_equal(rows, returned(model, values))


@pytest.mark.parametrize(
    ("limits", "reason"),
    [({}, "max_output_boxes_per_class is 0"), ({"most": np.array([0])}, "max_output_boxes_per_class is 0")],
)
def test_no_boxes_are_wanted(limits: dict[str, Array], reason: str, tmp_path: Path) -> None:
    assert reason in problems_of(save(model_of(drawn(1, 1, 5), limits), tmp_path))[0].reason


def test_a_number_that_a_run_computes(tmp_path: Path) -> None:
    values = {**drawn(1, 1, 5), "most": np.array([2])}
    nodes = [node("NonMaxSuppression", "boxes scores most", "rows")]
    assert (
        "max_output_boxes_per_class must be constant"
        in problems_of(save(build(nodes, values, ["rows"]), tmp_path))[0].reason
    )
