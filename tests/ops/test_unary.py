"""Functions of one value: float32 kernels, and tables over int8."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from single_node import (
    Array,
    Quantized,
    bounded,
    check_float,
    check_quantized,
    kinds,
    node,
    normal,
    seeds,
    shapes,
)

from mcudeploy.frontend.onnx.scalar_functions import FUNCTIONS

ATTRIBUTES: dict[str, tuple[dict[str, Any], ...]] = {
    "Celu": ({"alpha": 0.7},),
    "Elu": ({}, {"alpha": 0.3}),
    "Gelu": ({}, {"approximate": "tanh"}),
    "HardSigmoid": ({}, {"alpha": 0.3, "beta": 0.4}),
    "LeakyRelu": ({}, {"alpha": 0.2}),
    "Selu": ({}, {"alpha": 1.2, "gamma": 0.9}),
    "Shrink": ({}, {"lambd": 0.4, "bias": 0.2}),
    "ThresholdedRelu": ({"alpha": 0.4},),
}
WITHIN = {
    "Acos": (-1.0, 1.0),
    "Acosh": (1.0, 9.0),
    "Asin": (-1.0, 1.0),
    "Atanh": (-0.9, 0.9),
    "Log": (0.01, 20.0),
    "Reciprocal": (0.1, 9.0),
    "Sqrt": (0.0, 9.0),
    "Tan": (-1.2, 1.2),
}
"""Domains in which functions are defined, and no value dominates all others."""
NONE_AT_ZERO = {"Acosh", "Reciprocal"}
NEW = {"Not", "Swish"}  # of truth values; of an opset that ONNX Runtime may not have
CASES = [(op, each) for op in sorted(FUNCTIONS.keys() - NEW) for each in ATTRIBUTES.get(op, ({},))]


def _values(op: str, values: Array) -> Array:
    low, high = WITHIN.get(op, (-4.0, 4.0))
    return (low + (high - low) / (1 + np.exp(-values))).astype(np.float32)


@pytest.mark.parametrize(("op", "attributes"), CASES, ids=str)
@given(shape=shapes, seed=seeds)
@settings(parent=bounded, max_examples=4)
def test_float(op: str, attributes: dict[str, Any], shape: tuple[int, ...], seed: int) -> None:
    x = _values(op, 2 * normal(np.random.default_rng(seed), shape))
    graph = check_float(node(op, "x", **attributes), {"x": x})
    assert kinds(graph) <= {"Unary", "Reshape"}


@pytest.mark.parametrize(
    ("op", "attributes"), [case for case in CASES if case[0] not in NONE_AT_ZERO], ids=str
)
def test_int8(op: str, attributes: dict[str, Any]) -> None:
    low, high = WITHIN.get(op, (-4.0, 4.0))
    scale = float(np.float32((high - low) / 255))
    x = Quantized(np.arange(-128, 128, dtype=np.int8).reshape(1, 4, 8, 8), scale, round(-128 - low / scale))
    allowed = {"Lut", "Reshape", "Slice"}  # a function that changes nothing copies its input
    assert kinds(check_quantized(node(op, "x", **attributes), {"x": x})) <= allowed


@pytest.mark.parametrize("exponent", [-1.0, 0.5, 1.7, 2.0, 3.0])
def test_constant_powers(exponent: float) -> None:
    x = np.abs(normal(np.random.default_rng(0), (1, 3, 4, 5))) + 0.1
    what = node("Pow", "x", "e", constants={"e": np.array(exponent, np.float32)})
    assert "Unary" in kinds(check_float(what, {"x": x}))
