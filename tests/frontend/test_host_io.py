"""Arrays of the ONNX model to stored tensors and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcudeploy.frontend.onnx.values import image_index
from mcudeploy.ir.graph import DType, GraphIO, Quantization, Tensor
from mcudeploy.ops.host_io import from_device, to_device

STORED = (2, 3, 4)
ORDER = np.ascontiguousarray(image_index(STORED, 4).reshape(-1))
MEANING = Quantization(0.5, -3)


def graph_io(dtype: str) -> GraphIO:
    return GraphIO("t", "x", (1, 4, 2, 3), dtype, ORDER)


@settings(max_examples=30, deadline=None)
@given(
    values=st.lists(st.integers(0, 255), min_size=24, max_size=24), dtype=st.sampled_from(["int8", "uint8"])
)
def test_integers_return(values: list[int], dtype: str) -> None:
    array = np.array(values, np.uint8).view(dtype).reshape(1, 4, 2, 3)
    tensor = Tensor("t", STORED, DType.INT8, MEANING)
    stored = to_device(graph_io(dtype), tensor, array)
    assert stored.shape == STORED
    assert stored.dtype == np.int8
    assert np.array_equal(from_device(graph_io(dtype), tensor, stored), array)
    shift = 128 if dtype == "uint8" else 0
    assert int(stored[1, 2, 3]) == int(array[0, 3, 1, 2]) - shift


def test_floats_are_quantised_half_to_even_and_saturate() -> None:
    tensor = Tensor("t", STORED, DType.INT8, MEANING)
    array = np.zeros((1, 4, 2, 3), np.float32)
    array[0, :, 0, 0] = [0.25, 0.75, 1e30, -np.inf]
    stored = to_device(graph_io("float32"), tensor, array)
    assert stored[0, 0].tolist() == [-3, -1, 127, -128]
    back = from_device(graph_io("float32"), tensor, stored)
    assert back.dtype == np.float32
    assert back[0, :, 0, 0].tolist() == [0.0, 1.0, 65.0, -62.5]


def test_floats_stay_floats() -> None:
    tensor = Tensor("t", STORED, DType.FLOAT32)
    array = np.random.default_rng(1).standard_normal((1, 4, 2, 3)).astype(np.float32)
    stored = to_device(graph_io("float32"), tensor, array)
    assert np.array_equal(stored, array[0].transpose(1, 2, 0))
    assert np.array_equal(from_device(graph_io("float32"), tensor, stored.reshape(-1)), array)


@pytest.mark.parametrize(
    "array", [np.zeros((1, 4, 3, 2), np.int8), np.zeros((1, 4, 2, 3), np.float64), np.zeros(24, np.int8)]
)
def test_wrong_arrays(array: np.ndarray) -> None:
    tensor = Tensor("t", STORED, DType.INT8, MEANING)
    with pytest.raises(ValueError, match=r"'x' needs int8 \[1, 4, 2, 3\], found"):
        to_device(graph_io("int8"), tensor, array)


def test_wrong_tensors() -> None:
    with pytest.raises(ValueError, match="cannot hold"):
        to_device(graph_io("int8"), Tensor("t", STORED, DType.FLOAT32), np.zeros((1, 4, 2, 3), np.int8))
    with pytest.raises(ValueError, match="without a quantisation"):
        to_device(graph_io("float32"), Tensor("t", STORED, DType.INT8), np.zeros((1, 4, 2, 3), np.float32))
    with pytest.raises(ValueError, match="NaN"):
        to_device(
            graph_io("float32"),
            Tensor("t", STORED, DType.INT8, MEANING),
            np.full((1, 4, 2, 3), np.nan, np.float32),
        )
