"""Matrix products of two activations."""

from __future__ import annotations

import numpy as np
import pytest
from harness import check_graph, graph_of
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
    sizes,
)

from mcudeploy.ir.graph import DType, Operator, Quantization, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ops.matrix.matmul import MatMul


@given(heads=st.integers(0, 4), m=sizes, k=st.integers(1, 20), n=sizes, dtype=quantized_types, seed=seeds)
@bounded
def test_against_onnx(heads: int, m: int, k: int, n: int, dtype: type, seed: int) -> None:
    """`heads` 0: [1, M, K] x [1, K, N]; else [1, heads, M, K] x [1, heads, K, N]."""
    rng = np.random.default_rng(seed)
    lead = (1, heads) if heads else (1,)
    what = node("MatMul", "a", "b")
    graph = check_float(what, {"a": normal(rng, (*lead, m, k)), "b": normal(rng, (*lead, k, n))})
    assert "MatMul" in kinds(graph)
    inputs = {
        "a": Quantized.draw(rng, (*lead, m, k), dtype),
        "b": Quantized.draw(rng, (*lead, k, n), dtype),
    }
    check_quantized(what, inputs)


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("int8", [False, True])
@given(heads=st.integers(1, 4), m=sizes, k=st.integers(1, 20), n=sizes, seed=seeds)
@bounded
def test_transposed(batched: bool, int8: bool, heads: int, m: int, k: int, n: int, seed: int) -> None:
    """B stored by its columns gives the same bits as B."""
    rng = np.random.default_rng(seed)
    a, b = normal(rng, (heads, m, k)), normal(rng, (heads, k, n))
    if int8:
        a, b = (rng.integers(-128, 128, array.shape).astype(np.int8) for array in (a, b))
    plain = _product(MatMul(batched), a, b)
    turned = _product(MatMul(batched, transpose_b=True), a, np.ascontiguousarray(b.transpose(0, 2, 1)))
    if int8:
        assert np.array_equal(plain, turned)
    np.testing.assert_allclose(plain, turned, rtol=0, atol=1e-4)


def _product(op: MatMul, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of each head: (h, M, N)."""
    if not op.batched:
        a, b = (np.ascontiguousarray(np.swapaxes(array, 0, 1)) for array in (a, b))
    dtype = DType.INT8 if a.dtype == np.int8 else DType.FLOAT32
    quantizations = [Quantization(0.05, 7), Quantization(0.02, -9), Quantization(0.3, 1)]
    shapes = {"a": a.shape, "b": b.shape, "y": op.loops((a.shape, b.shape)).output_shape()}
    tensors = [
        Tensor(name, shape, dtype, quantization if dtype is DType.INT8 else None)
        for (name, shape), quantization in zip(shapes.items(), quantizations, strict=True)
    ]
    computed = check_graph(graph_of(op, *tensors), {"a": a, "b": b})["y"]
    return computed if op.batched else np.swapaxes(computed, 0, 1)


@given(seed=seeds, tokens=st.integers(2, 9), heads=st.integers(2, 4), int8=st.booleans())
@bounded
def test_heads_in_columns_give_the_same_bits(seed: int, tokens: int, heads: int, int8: bool) -> None:
    rng = np.random.default_rng(seed)
    a, b = normal(rng, (heads, tokens, 5)), normal(rng, (heads, 5, 6))
    if int8:
        a, b = (rng.integers(-128, 128, array.shape).astype(np.int8) for array in (a, b))
    np.testing.assert_array_equal(_product(MatMul(True), a, b), _product(MatMul(False), a, b))


def test_a_row_needs_its_row_of_a_and_all_of_b() -> None:
    nest = MatMul().loops(((5, 1, 6), (6, 1, 7)))
    assert nest.output_shape() == (5, 1, 7) and nest.macs() == 5 * 6 * 7
    assert nest.rows_read(0, Interval(2, 3), 5) == Interval(2, 3)
    assert nest.rows_read(1, Interval(2, 3), 6) == Interval(0, 6)
    batched = MatMul(batched=True, transpose_b=True).loops(((4, 5, 6), (4, 7, 6)))
    assert batched.rows_read(1, Interval(2, 3), 4) == Interval(2, 3)


@pytest.mark.parametrize(
    ("isa", "scale", "kernels"),
    [
        (Isa.DSP, 2.0, {"matmul_s8_bt", "matmul_s8_wide"}),
        (Isa.MVE, 2.0, {"matmul_s8_bt", "matmul_s8_mve"}),
        (Isa.MVE, 2e-5, {"matmul_s8_bt"}),
        (Isa.DSP, 2e-5, {"matmul_s8_bt"}),
        (Isa.ANY, 2.0, {"matmul_s8_bt"}),
    ],
)
def test_blocks_are_for_scales_below_a_half(isa: Isa, scale: float, kernels: set[str]) -> None:
    a, b = (Tensor(name, (4, 2, 8), DType.INT8, Quantization(0.01, 3)) for name in "ab")
    y = Tensor("y", (4, 2, 4), DType.INT8, Quantization(scale, 0))
    op = MatMul(transpose_b=True)
    call = op.kernel(Operator("op", op, ("a", "b"), "y"), (a, b), y)
    assert {each.kernel for each in call.variants(isa)} == kernels


def test_shapes_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match="cannot be multiplied"):
        MatMul().loops(((5, 1, 6), (7, 1, 6)))
