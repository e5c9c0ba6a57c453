"""Operators beside attention, and spectra, against ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from reference_node import check_reference
from single_node import normal


@pytest.mark.parametrize("attributes", [{}, {"interleaved": 1}, {"rotary_embedding_dim": 4}])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("ids", [False, True])
def test_rotary_embedding(attributes: dict[str, int], flat: bool, ids: bool) -> None:
    rng = np.random.default_rng(1)
    x = normal(rng, (2, 5, 24) if flat else (2, 3, 5, 8))
    half = attributes.get("rotary_embedding_dim", 8) // 2
    angles = rng.uniform(0, 6, (20, half) if ids else (2, 5, half))
    constants: dict[str, Any] = {
        "cos": np.cos(angles).astype(np.float32),
        "sin": np.sin(angles).astype(np.float32),
    }
    constants |= {"ids": rng.integers(0, 20, (2, 5))} if ids else {}
    more = {"num_heads": 3} if flat else {}
    item = helper.make_node("RotaryEmbedding", ["x", *constants], ["y"], name="node", **more, **attributes)
    check_reference(item, {"x": x}, constants, 23)
    if ids:
        check_reference(item, {"x": x, "ids": constants.pop("ids")}, constants, 23)


@pytest.mark.parametrize("alpha", [1.0, 1.7])
def test_swiglu(alpha: float) -> None:
    rng = np.random.default_rng(2)
    item = helper.make_node("SwiGLU", ["a", "b"], ["y"], name="node", alpha=alpha)
    check_reference(item, {name: normal(rng, (2, 3, 4)) for name in "ab"}, {}, 28)


@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("activation", ["none", "silu"])
def test_a_convolution_of_what_came_before(past: bool, activation: str) -> None:
    rng = np.random.default_rng(3)
    inputs = {"x": normal(rng, (1, 3, 6))} | ({"past": normal(rng, (1, 3, 3))} if past else {})
    constants = {"w": normal(rng, (3, 1, 4)), "b": normal(rng, (3,))}
    names = ["x", "w", "b", *(["past"] if past else [])]
    item = helper.make_node("CausalConvWithState", names, ["y", "now"], name="n", activation=activation)
    check_reference(item, inputs, constants, 27)


@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        ((2, 10, 1), {}),
        ((2, 10, 2), {}),
        ((2, 10, 2), {"inverse": 1}),
        ((2, 10, 1), {"onesided": 1}),
        ((2, 6, 2), {"onesided": 1, "inverse": 1}),
        ((2, 10, 4, 1), {"axis": 1}),
        ((2, 10, 1), {"length": 16, "onesided": 1}),
        ((2, 10, 2), {"length": 7}),
    ],
)
def test_spectra(shape: tuple[int, ...], attributes: dict[str, int]) -> None:
    given = {"axis": -2, **attributes}
    constants = {name: np.array(given.pop(name)) for name in ("length", "axis") if name in given}
    names = ["x", *(name if name in constants else "" for name in ("length", "axis"))]
    item = helper.make_node("DFT", names, ["y"], name="node", **given)
    check_reference(item, {"x": normal(np.random.default_rng(4), shape)}, constants, 20)
