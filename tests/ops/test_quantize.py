"""QuantizeLinear and DequantizeLinear that stay in the graph, and requantisation."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import check_graph, graph_of
from hypothesis import given
from hypothesis import strategies as st
from single_node import Quantized, bounded, normal, seeds

from mcudeploy.ir.graph import DType, Quantization, Tensor
from mcudeploy.ir.opdef import OperatorDef
from mcudeploy.ops.move.quantize import Dequantize, Quantize
from mcudeploy.ops.requantize import dequantize, quantize, requantization_table
from mcudeploy.ops.scalar.elementwise import Lut

quantizations = st.builds(Quantization, st.floats(0.0009765625, 8, width=32), st.integers(-128, 127))
INT8 = np.arange(-128, 128, dtype=np.int16).astype(np.int8).reshape(4, 8, 8)


def _run(op: OperatorDef, x: np.ndarray, x_q: Any, y_q: Any, **constants: np.ndarray) -> np.ndarray:
    x_type, y_type = (DType.FLOAT32 if q is None else DType.INT8 for q in (x_q, y_q))
    tensors = Tensor("x", x.shape, x_type, x_q), Tensor("y", x.shape, y_type, y_q)
    graph = graph_of(op, *tensors, constants=constants)
    return check_graph(graph, {"x": x})["y"]


@given(quantization=quantizations, seed=seeds)
@bounded
def test_quantize(quantization: Quantization, seed: int) -> None:
    x = 100 * np.float32(quantization.scale) * normal(np.random.default_rng(seed), (5, 3, 7))
    assert np.array_equal(_run(Quantize(), x, None, quantization), quantize(x, quantization))


def test_values_without_an_int8_saturate_and_ties_go_to_even() -> None:
    """As ONNX Runtime on x86: a NaN becomes the lowest value."""
    x = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 0.5, 1.5, 2.5, -0.5, -1.5, 1e-40, 0], np.float32)
    computed = _run(Quantize(), x.reshape(2, 2, 3), None, Quantization(1.0, 3))
    assert computed.ravel().tolist() == [-128, 127, -128, 127, -128, 3, 5, 5, 3, 1, 3, 3]


@given(quantization=quantizations)
@bounded
def test_dequantize(quantization: Quantization) -> None:
    computed = _run(Dequantize(), INT8, quantization, None)
    assert np.array_equal(computed, dequantize(INT8, quantization))


@given(source=quantizations, target=quantizations)
@bounded
def test_requantise_by_table(source: Quantization, target: Quantization) -> None:
    computed = _run(Lut(), INT8, source, target, table=requantization_table(source, target))
    assert np.array_equal(computed, quantize(dequantize(INT8, source), target))


def test_a_drawn_tensor_has_the_range_of_its_type() -> None:
    drawn = Quantized.draw(np.random.default_rng(0), (1000,), np.uint8)
    assert drawn.values.min() < 10 and drawn.values.max() > 245
