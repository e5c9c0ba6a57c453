"""Add, Sub, Mul, Div with broadcasting; functions of one value in float32 and as int8 tables."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from single_node import (
    Quantized,
    bounded,
    check_float,
    check_quantized,
    kinds,
    node,
    normal,
    quantized_types,
    seeds,
    shapes,
)

from mcudeploy.ir.graph import DType, Quantization, Tensor
from mcudeploy.ops.scalar.elementwise import Binary, _add_arithmetic, broadcast_strides, sum_error

FUNCTIONS = ("Add", "Sub", "Mul", "Div")
masks = st.tuples(st.just(True), st.booleans(), st.booleans(), st.booleans())
"""Which dimensions of an operand are the output's; the others are 1."""


def _masked(shape: tuple[int, ...], mask: tuple[bool, ...]) -> tuple[int, ...]:
    return tuple(size if keep else 1 for size, keep in zip(shape, mask, strict=True))


@pytest.mark.parametrize("function", FUNCTIONS)
@given(shape=shapes, a=masks, b=masks, seed=seeds)
@bounded
def test_float_operands(
    function: str, shape: tuple[int, ...], a: tuple[bool, ...], b: tuple[bool, ...], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    divisor = normal(rng, _masked(shape, b))
    inputs = {"a": normal(rng, _masked(shape, a)), "b": np.sign(divisor) + divisor}
    graph = check_float(node(function, "a", "b"), inputs)
    assert "Binary" in kinds(graph)


@pytest.mark.parametrize("function", FUNCTIONS)
@given(shape=shapes, a=masks, b=masks, dtype=quantized_types, seed=seeds)
@bounded
def test_int8_operands(
    function: str, shape: tuple[int, ...], a: tuple[bool, ...], b: tuple[bool, ...], dtype: type, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    inputs = {
        "a": Quantized.draw(rng, _masked(shape, a), dtype),
        "b": Quantized.draw(rng, _masked(shape, b), dtype),
    }
    output = (float(np.float32(rng.uniform(0.02, 0.2))), int(rng.integers(0, 127)))
    graph = check_quantized(node(function, "a", "b"), inputs, output=output)
    assert "Binary" in kinds(graph)


@pytest.mark.parametrize("function", ["Sub", "Mul", "Div"])
@given(shape=shapes, mask=masks, first=st.booleans(), dtype=quantized_types, seed=seeds)
@bounded
def test_constant_operands(
    function: str, shape: tuple[int, ...], mask: tuple[bool, ...], first: bool, dtype: type, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    order = ("c", "x") if first else ("x", "c")
    constant = normal(rng, _masked(shape, mask))
    float_node = node(function, *order, constants={"c": constant + np.sign(constant)})
    values = normal(rng, shape)
    check_float(float_node, {"x": values + np.sign(values)})
    inputs = {"x": Quantized.draw(rng, shape, dtype)}
    weights = {"c": Quantized.draw(rng, _masked(shape, mask), dtype)}
    check_quantized(node(function, *order), inputs, weights=weights, output=(0.05, 3))


def test_division_of_int8_by_zero_saturates() -> None:
    a = Quantized(np.arange(-4, 4, dtype=np.int8).reshape(1, 1, 1, 8), 0.1, 0)
    b = Quantized(np.full((1, 1, 1, 8), 5, np.int8), 0.1, 5)
    check_quantized(node("Div", "a", "b"), {"a": a, "b": b}, output=(0.1, 2), few=0)


def test_ties_of_an_addition_go_to_even() -> None:
    """Twice the input scale makes every second sum a tie; powers of two make float32 exact."""
    rng = np.random.default_rng(1)
    inputs = {name: Quantized(Quantized.draw(rng, (1, 8, 8, 8), np.int8).values, 0.25, 3) for name in "ab"}
    check_quantized(node("Add", "a", "b"), inputs, output=(0.5, -7), few=0)


@pytest.mark.parametrize(
    ("scales", "ties"),
    [((0.25, 0.25), 1), ((0.5, 0.25), 1), ((0.5, 0.5), 0), ((0.3, 0.25), 1), ((0.3, 0.3), 0)],
)
def test_vectors_take_sums_without_ties_as_such(scales: tuple[float, float], ties: int) -> None:
    a, b = (Tensor("x", (2, 3, 4), DType.INT8, Quantization(scale, 3)) for scale in scales)
    y = Tensor("y", (2, 3, 4), DType.INT8, Quantization(0.5, -7))
    call = Binary("add").kernel(None, (a, b), y)  # type: ignore[arg-type]
    (vectors,) = call.others
    assert vectors.params["has_ties"] == ties


def test_the_clip_after_an_operator_is_its_own() -> None:
    """Values of a fused clip: low and high in the output's quantisation."""
    q = Quantization(0.1, 5)
    x = Tensor("x", (2, 3, 4), DType.INT8, q)
    add = Binary("add", low=0.0, high=6.0)
    call = add.kernel(None, (x, x), x)  # type: ignore[arg-type]
    assert (call.params["act.min"], call.params["act.max"]) == (5, 65)


def test_columns_and_channels_are_one_loop_where_they_can_be() -> None:
    same = broadcast_strides(((4, 5, 6), (4, 5, 6)))
    assert (same["cols"], same["channels"], same["b_channel_step"]) == (1, 30, 1)
    scalar = broadcast_strides(((4, 5, 6), (1, 1, 1)))
    assert (scalar["cols"], scalar["channels"], scalar["b_channel_step"]) == (1, 30, 0)
    per_channel = broadcast_strides(((4, 5, 6), (1, 1, 6)))
    assert (per_channel["cols"], per_channel["channels"], per_channel["b_col_step"]) == (5, 6, 0)


def test_an_operand_that_broadcasts_is_not_overwritten() -> None:
    full, row = Tensor("a", (4, 5, 6), DType.FLOAT32), Tensor("b", (1, 5, 6), DType.FLOAT32)
    assert Binary("add").overwrites((full, row), full) == (0,)
    assert Binary("add").overwrites((full, full), full) == (0, 1)


UNARY: dict[str, dict[str, Any]] = {
    "Relu": {},
    "LeakyRelu": {"alpha": 0.2},
    "Sigmoid": {},
    "Tanh": {},
    "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
    "HardSwish": {},
}


@pytest.mark.parametrize("function", UNARY)
@given(shape=shapes, dtype=quantized_types, seed=seeds)
@bounded
def test_functions_of_one_value(function: str, shape: tuple[int, ...], dtype: type, seed: int) -> None:
    rng = np.random.default_rng(seed)
    what = node(function, "x", **UNARY[function])
    graph = check_float(what, {"x": 4 * normal(rng, shape)})
    assert "Unary" in kinds(graph)
    # Not the scale that just holds -1 to 1: there -1 is a tie, and the last bit of a tanh decides.
    output = (1 / 100, 0) if function in ("Sigmoid", "Tanh") else None
    check_quantized(what, {"x": Quantized.draw(rng, shape, dtype)}, output=output)


@given(shape=shapes, low=st.floats(-2, -0.1), high=st.floats(0.1, 2), dtype=quantized_types, seed=seeds)
@bounded
def test_clip(shape: tuple[int, ...], low: float, high: float, dtype: type, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bounds = {"low": np.float32(low), "high": np.float32(high)}
    what = node("Clip", "x", "low", "high", constants=bounds)
    check_float(what, {"x": normal(rng, shape)}, float_tolerance=0)
    check_quantized(what, {"x": Quantized.draw(rng, shape, dtype)})


@given(st.floats(0.01, 300), st.floats(0.01, 2), st.integers(-128, 127), st.integers(-128, 127))
@bounded
def test_sums_that_do_not_saturate_are_within_their_error(a: float, b: float, za: int, zb: int) -> None:
    first, second, out = Quantization(a, za), Quantization(b, zb), Quantization(1.0, 0)
    error = sum_error(first, second, out)
    computed = _add_arithmetic(first, second, 1, out)
    x, y = (np.arange(-128, 128, dtype=np.int64) for _ in "ab")
    exact = (x - za)[:, np.newaxis] * a + (y - zb) * b
    sums = x[:, np.newaxis] * computed["a_multiplier"] + y * computed["b_multiplier"] + computed["constant"]
    unsaturated = np.abs(exact) <= 255
    gap = np.abs(sums / 2 ** computed["shift"] - exact)[unsaturated]
    assert gap.max(initial=0) <= error * (1 + 1e-9) + 1e-9


def test_a_sum_that_does_not_fit_has_no_error_that_would_do() -> None:
    assert sum_error(Quantization(1e9, 0), Quantization(1.0, 0), Quantization(1.0, 0)) == inf
