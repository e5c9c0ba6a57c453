"""Operators that are made of others, against ONNX Runtime's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from single_node import Quantized, check_float, check_quantized, kinds, node, normal


@pytest.mark.parametrize("op", ["ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"])
@pytest.mark.parametrize("axes", [(1,), (2, 3), (3,), None])
def test_functions_of_sums(op: str, axes: tuple[int, ...] | None) -> None:
    rng = np.random.default_rng(2)
    x = np.abs(normal(rng, (1, 3, 5, 4))) + 0.5
    constants = {} if axes is None else {"axes": np.array(axes, np.int64)}
    what = node(op, "x", *constants, constants=constants, keepdims=int(axes != (2, 3)))
    check_float(what, {"x": x}, float_tolerance=1e-4)


@pytest.mark.parametrize("op", ["Max", "Min", "Sum", "Mean"])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_functions_of_any_number_of_values(op: str, count: int) -> None:
    rng = np.random.default_rng(count)
    inputs = {f"x{number}": normal(rng, (1, 3, 4, 5)) for number in range(count)}
    check_float(node(op, *inputs), inputs)


@pytest.mark.parametrize("op", ["Max", "Min", "Pow", "PRelu", "Mod"])
@pytest.mark.parametrize("shape", [(1, 3, 4, 5), (3, 1, 1), (1, 1, 1)])
def test_functions_of_two_values(op: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    x, y = normal(rng, (1, 3, 4, 5)), normal(rng, shape)
    if op in ("Pow", "Mod"):
        x, y = np.abs(x) + 0.1, np.abs(y) + 0.5
    attributes = {"fmod": 1} if op == "Mod" else {}
    if op != "PRelu":
        check_float(node(op, "x", "y", **attributes), {"x": x, "y": y})
    check_float(node(op, "x", "y", constants={"y": y}, **attributes), {"x": x})
    if op in ("Max", "Min"):
        check_quantized(
            node(op, "x", "y"),
            {"x": Quantized.draw(rng, x.shape, np.int8), "y": Quantized.draw(rng, y.shape, np.int8)},
        )


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_log_softmax(axis: int) -> None:
    x = 5 * normal(np.random.default_rng(axis), (1, 4, 3, 5))
    check_float(node("LogSoftmax", "x", axis=axis), {"x": x}, float_tolerance=1e-4)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("DepthToSpace", {"blocksize": 2}),
        ("DepthToSpace", {"blocksize": 2, "mode": "CRD"}),
        ("SpaceToDepth", {"blocksize": 2}),
    ],
)
def test_blocks_of_pixels(op: str, attributes: dict[str, Any]) -> None:
    x = normal(np.random.default_rng(0), (1, 8, 4, 6))
    check_float(node(op, "x", **attributes), {"x": x})


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("order", ["cx", "xc", "cxc", "cxyc"])
def test_constants_beside_activations(axis: int, order: str) -> None:
    rng = np.random.default_rng(4)
    shape = [1, 3, 4, 5]
    names, constants, inputs = list[str](), dict[str, np.ndarray](), dict[str, np.ndarray]()
    for number, letter in enumerate(order):
        own = tuple(2 if place == axis and letter == "c" else size for place, size in enumerate(shape))
        names.append(f"{letter}{number}")
        (constants if letter == "c" else inputs)[names[-1]] = normal(rng, own)
    graph = check_float(node("Concat", *names, constants=constants, axis=axis), inputs)
    assert "Pad" in kinds(graph)
