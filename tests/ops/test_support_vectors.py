"""Support vector machines of ai.onnx.ml, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from harness import check_against_onnx
from onnx import TensorProto, helper

from tests.networks.onnx_files import build
from tests.networks.refusals import problems_of

WIDTH = 5
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


def model_of(op: str, outputs: list[tuple[str, int, Any]], rows: int = 1, **attributes: Any) -> Any:
    names = [name for name, _, _ in outputs]
    node = helper.make_node(op, ["x"], names, "node", domain="ai.onnx.ml", **attributes)
    return build([node], {"x": (np.float32, (rows, WIDTH))}, {name: kind for name, *kind in outputs})


def vectors(rng: np.random.Generator, count: int, kernel: str) -> dict[str, Any]:
    return {
        "support_vectors": rng.normal(size=count * WIDTH).tolist(),
        "kernel_type": kernel,
        "kernel_params": [0.2, 0.3, 3.0],
        "post_transform": "NONE",
    }


def classifier(sizes: list[int], kernel: str, labels: list[int], rows: int = 1, **attributes: Any) -> Any:
    rng, count = np.random.default_rng(len(sizes)), len(sizes)
    pairs = count * (count - 1) // 2
    facts = {
        **vectors(rng, sum(sizes), kernel),
        "coefficients": rng.normal(size=(count - 1) * sum(sizes)).tolist(),
        "rho": rng.normal(0, 0.3, pairs).tolist(),
        "vectors_per_class": sizes,
        "classlabels_ints": labels,
        **attributes,
    }
    scores = 2 if pairs == 1 or "prob_a" in facts else pairs
    outputs = [("label", TensorProto.INT64, (rows,)), ("scores", TensorProto.FLOAT, (rows, scores))]
    return model_of("SVMClassifier", outputs, rows, **facts)


def rows(count: int) -> list[dict[str, Any]]:
    drawn = np.random.default_rng(1).normal(size=(count, 1, WIDTH)).astype(np.float32)
    return [{"x": row} for row in drawn]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_regression(kernel: str, one_class: int) -> None:
    rng = np.random.default_rng(2)
    facts = {**vectors(rng, 9, kernel), "coefficients": rng.normal(size=9).tolist(), "rho": [0.1]}
    outputs = [("y", TensorProto.FLOAT, (1, 1))]
    model = model_of("SVMRegressor", outputs, n_supports=9, one_class=one_class, **facts)
    for inputs in rows(4):
        check_against_onnx(model, inputs)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("sizes", [[4, 3], [3, 5, 2], [2, 1, 3, 4]])
def test_votes_of_pairs(kernel: str, sizes: list[int]) -> None:
    model = classifier(sizes, kernel, [7, 3, 11, 2][: len(sizes)])
    for inputs in rows(6):
        check_against_onnx(model, inputs)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"rows": 2}, "2 rows in a run"),
        ({"prob_a": [1.0], "prob_b": [0.0]}, "probability=False"),
        ({"post_transform": "PROBIT"}, "PROBIT"),
        ({"kernel_type": "COSINE"}, "the kernel COSINE"),
        ({"vectors_per_class": [4, 4]}, "do not fit 8 vectors of 2 classes"),
    ],
)
def test_what_is_refused(attributes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    onnx.save(classifier([4, 3], **{"kernel": "RBF", "labels": [0, 1], **attributes}), tmp_path / "m.onnx")
    assert reason in " ".join(problem.reason for problem in problems_of(tmp_path / "m.onnx"))
