"""Functions of integers: wrap-around, division by zero, broadcasting, masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import run_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto
from plain_node import check, check_by_definition, loaded, model
from single_node import bounded, seeds, shapes

from tests.weekly import examples

Array = NDArray[Any]
few = settings(parent=bounded, max_examples=examples(4, 10))
ENDS = (-(2**31), 2**31 - 1, -1, 0, 1)


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Numbers of the whole range, and many small ones."""
    info = np.iinfo(dtype)
    small = rng.integers(max(info.min, -4), 5, shape)
    large = rng.integers(info.min, info.max + 1, shape)
    return np.where(rng.integers(0, 2, shape), small, large).astype(dtype)


@given(shape=shapes, repeated=st.integers(0, 7), constant=st.integers(0, 2), seed=seeds)
@few
def test_int32_as_onnx_runtime(shape: tuple[int, ...], repeated: int, constant: int, seed: int) -> None:
    """Operands that repeat along any axes, one of them constant or neither."""
    rng = np.random.default_rng(seed)
    other = tuple(1 if repeated >> axis & 1 else size for axis, size in enumerate(shape[1:]))
    a, b = _drawn(rng, shape, "int32"), _drawn(rng, other, "int32")
    names = ("ca" if constant == 1 else "a", "cb" if constant == 2 else "b")
    for op, kind in (("Add", np.int32), ("Mul", np.int32), ("Max", np.int32), ("Less", np.bool_)):
        check(op, dict(zip(names, (a, b), strict=True)), {"y": (kind, shape)})
    safe = np.where((b == 0) | (b == -1), 3, b).astype(np.int32)
    for op in ("Div", "Mod"):
        check(op, dict(zip(names, (a, safe), strict=True)), {"y": (np.int32, shape)})


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    "op", ["Add", "Sub", "Mul", "Min", "Equal", "LessOrEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor"]
)
def test_bytes_wrap_around(op: str, dtype: str) -> None:
    a, b = (_drawn(np.random.default_rng(seed), (1, 5, 3, 7), dtype) for seed in (1, 2))
    kind = np.bool_ if op in ("Equal", "LessOrEqual") else np.dtype(dtype)
    check_by_definition(op, {"a": a, "b": b}, {"y": (kind, a.shape)})


def test_shifts() -> None:
    a = np.array([[1, 200, 255, 255]], np.uint8)
    b = np.array([[3, 1, 7, 0]], np.uint8)
    for direction in ("LEFT", "RIGHT"):
        check("BitShift", {"a": a, "b": b}, {"y": (np.uint8, a.shape)}, direction=direction)


@pytest.mark.parametrize("op", ["Abs", "Neg", "Sign", "Relu", "BitwiseNot"])
def test_functions_of_one_integer(op: str) -> None:
    for x in (np.array([ENDS], np.int32), np.arange(-128, 128, dtype=np.int8).reshape(1, 32, 8)):
        check_by_definition(op, {"x": x}, {"y": (x.dtype, x.shape)})
    if op in ("Abs", "Sign", "BitwiseNot"):
        x = np.arange(256, dtype=np.uint8).reshape(1, 32, 8)
        check_by_definition(op, {"x": x}, {"y": (x.dtype, x.shape)})


def test_clips_of_integers() -> None:
    x = np.array([[*ENDS, -7, 90]], np.int32)
    for low in ("l", "cl"):
        bounds = {low: np.array(-5, np.int32), "ch": np.array(80, np.int32)}
        check("Clip", {"x": x, **bounds}, {"y": (np.int32, x.shape)})


def test_a_division_by_zero_is_zero() -> None:
    """Whatever ONNX leaves open, nothing traps: on the host the sanitizers look on."""
    ends = np.array([ENDS], np.int32)
    for op in ("Div", "Mod"):
        for divisor in (0, -1):
            wanted = np.zeros_like(ends) if divisor == 0 or op == "Mod" else 0 - ends
            assert np.array_equal(_computed(op, ends, np.full_like(ends, divisor)), wanted), (op, divisor)


def test_a_cast_of_floats_beyond_int32_saturates() -> None:
    """ONNX leaves them open; a NaN is 0."""
    x = np.array([[2.0**31, np.inf, 2.0**31 - 128, -(2.0**31), -np.inf, -2.5, np.nan, 7.9]], np.float32)
    graph = loaded(model("Cast", {"x": x}, {"y": (np.int32, x.shape)}, to=TensorProto.INT32))
    shape = graph.tensors[graph.inputs[0].tensor].shape
    y = run_graph(graph, {graph.inputs[0].tensor: x.reshape(shape)})[graph.outputs[0].tensor]
    most, least = 2**31 - 1, -(2**31)
    assert y.ravel().tolist() == [most, most, most - 127, least, least, -2, 0, 7]


def _computed(op: str, a: Array, b: Array) -> Array:
    graph = loaded(model(op, {"a": a, "b": b}, {"y": (np.int32, a.shape)}))
    shape = graph.tensors[graph.inputs[0].tensor].shape
    values = {io.tensor: it.reshape(shape) for io, it in zip(graph.inputs, (a, b), strict=True)}
    return run_graph(graph, values)[graph.outputs[0].tensor].reshape(a.shape)


@given(shape=shapes, repeated=st.integers(0, 7), constant=st.integers(0, 3), seed=seeds)
@few
def test_where_of_integers(shape: tuple[int, ...], repeated: int, constant: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    other = tuple(1 if repeated >> axis & 1 else size for axis, size in enumerate(shape[1:]))
    for dtype in ("int32", "uint8"):
        arrays = (
            rng.integers(0, 2, other).astype(np.bool_),
            _drawn(rng, shape, dtype),
            _drawn(rng, other, dtype),
        )
        names = ["m", "x", "z"]
        if constant < 3:
            names[constant] = "c"
        check("Where", dict(zip(names, arrays, strict=True)), {"y": (np.dtype(dtype), shape)})


@pytest.mark.parametrize(
    ("base", "exponent"), [("float32", "int64"), ("int32", "float32"), ("int32", "int32")]
)
def test_powers_of_mixed_types(base: str, exponent: str) -> None:
    x, n = np.array([[1, 2, 3, 5]]).astype(base), np.array([[4, 0, 3, 2]]).astype(exponent)
    check("Pow", {"x": x, "n": n}, {"y": (np.dtype(base), x.shape)}, tolerance=1e-5)
