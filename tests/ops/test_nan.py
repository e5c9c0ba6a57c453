"""NaN in comparisons, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plain_node import check
from single_node import normal

X = normal(np.random.default_rng(0), (3, 5, 3))
X[0, 0, 0] = X[1, 0, 1] = X[2, 4, 2] = X[0, 3, 1] = np.nan
Y = X[::-1].copy()
Y[0, 1, 0] = -np.nan
FLOAT, INDEX = np.float32, np.int64


def axes(*given: int) -> dict[str, Any]:
    return {"x": X, "c": np.array(given)}


@pytest.mark.parametrize(
    ("op", "inputs", "kinds", "shape", "attributes"),
    [
        ("Max", {"x": X, "y": Y}, FLOAT, (3, 5, 3), {}),
        ("Min", {"x": X, "y": Y}, FLOAT, (3, 5, 3), {}),
        ("Max", {"x": X, "c": np.zeros((1, 1, 3), np.float32)}, FLOAT, (3, 5, 3), {}),
        ("Sign", {"x": X}, FLOAT, (3, 5, 3), {}),
        ("ReduceMax", axes(0), FLOAT, (1, 5, 3), {}),
        ("ReduceMin", axes(2), FLOAT, (3, 5, 1), {}),
        ("ReduceMax", axes(1), FLOAT, (3, 1, 3), {}),
        ("ArgMax", {"x": X}, INDEX, (3, 1, 3), {"axis": 1}),
        ("ArgMax", {"x": X}, INDEX, (1, 5, 3), {"axis": 0, "select_last_index": 1}),
        ("ArgMin", {"x": X}, INDEX, (3, 5, 1), {"axis": 2}),
        ("Hardmax", {"x": X}, FLOAT, (3, 5, 3), {"axis": 1}),
        ("TopK", axes(3), (FLOAT, INDEX), (3, 3, 3), {"axis": 1}),
        ("TopK", axes(2), (FLOAT, INDEX), (2, 5, 3), {"axis": 0, "largest": 0}),
    ],
)
def test_not_a_number(
    op: str, inputs: dict[str, Any], kinds: Any, shape: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    """Axes are short: along longer ones ONNX Runtime compares vectors, in another order."""
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    check(op, inputs, dict(zip("vi", [(kind, shape) for kind in kinds], strict=False)), **attributes)
