"""Running sums and products, positions of the largest, NaN, against ONNX Runtime or ONNX's reference."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from reference_node import check_reference
from single_node import check_float, node, normal


@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_running(op: str, axis: int, exclusive: int) -> None:
    x = normal(np.random.default_rng(1), (3, 7, 5))
    constants = {"axis": np.array(axis)}
    for reverse in (0, 1):
        item = helper.make_node(op, ["x", "axis"], ["y"], name="n", exclusive=exclusive, reverse=reverse)
        check_reference(item, {"x": x}, constants, 26)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_first_of_the_largest(axis: int) -> None:
    x = np.rint(normal(np.random.default_rng(2), (4, 3, 5)))
    check_float(node("Hardmax", "x", axis=axis), {"x": x})


@pytest.mark.parametrize(
    ("op", "attributes"),
    [("IsNaN", {}), ("IsInf", {}), ("IsInf", {"detect_negative": 0}), ("IsInf", {"detect_positive": 0})],
)
def test_what_is_not_a_number(op: str, attributes: dict[str, int]) -> None:
    x = np.array([[0.0, np.nan, np.inf, -np.inf, 3.4e38, -1.0]], np.float32)
    item = helper.make_node(op, ["x"], ["y"], name="node", **attributes)
    check_reference(item, {"x": x}, {}, 21)
