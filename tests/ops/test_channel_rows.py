"""Fully connected layers that make their channels as rows: the bits of the layer that makes them whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import check_graph, check_operator, graph_of, linked, run_graph, run_operator
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from single_node import bounded, seeds

from mcudeploy.ir.graph import DType, Graph, Operator, Quantization, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.conv.conv import Conv2d, Conv2dToRows
from mcudeploy.ops.scalar.elementwise import Binary, Lut
from mcudeploy.ops.scalar.unary import Unary
from mcudeploy.planner.model.channels import channels_as_rows
from tests.weekly import examples


def _tensor(name: str, shape: Shape, dtype: DType, rng: np.random.Generator) -> Tensor:
    if dtype is DType.FLOAT32:
        return Tensor(name, shape, dtype)
    scale = float(np.float32(rng.uniform(0.02, 0.2)))
    return Tensor(name, shape, dtype, Quantization(scale, int(rng.integers(-128, 128))))


@given(
    inputs=st.integers(1, 40),
    rows=st.integers(1, 9),
    channels=st.integers(1, 13),
    clipped=st.booleans(),
    dtype=st.sampled_from([DType.INT8, DType.FLOAT32]),
    seed=seeds,
)
@bounded
def test_same_bits_as_whole(
    inputs: int, rows: int, channels: int, clipped: bool, dtype: DType, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    outputs = rows * channels
    source = _tensor("x", (1, 1, inputs), dtype, rng)
    vector = _tensor("y", (1, 1, outputs), dtype, rng)
    constants: dict[str, ConstantArray] = {
        "weights": rng.integers(-127, 128, (outputs, 1, 1, inputs)).astype(np.int8),
        "bias": rng.integers(-3000, 3000, outputs).astype(np.int32),
        "weight_scale": rng.uniform(0.0005, 0.02, outputs).astype(np.float32),
    }
    x = rng.integers(-128, 128, source.shape).astype(np.int8)
    if dtype is DType.FLOAT32:  # of such different sizes that another order of additions would show
        spread = rng.normal(size=(outputs, 1, 1, inputs)) * 2.0 ** rng.integers(
            -12, 13, (outputs, 1, 1, inputs)
        )
        constants = {
            "weights": spread.astype(np.float32),
            "bias": rng.normal(size=outputs).astype(np.float32),
        }
        x = rng.normal(size=source.shape).astype(np.float32)
    low, high = (0.0, 6.0) if clipped else (-np.inf, np.inf)
    whole = graph_of(Conv2d(outputs, low=low, high=high), source, vector, constants=constants)
    expected = run_operator(whole, whole.operators[0], {"x": x}, seed=seed)
    looked_at = Tensor("y", (rows, 1, channels), dtype, vector.quantization)
    split = graph_of(Conv2dToRows(rows, channels, low, high), source, looked_at, constants=constants)
    computed = check_operator(split, split.operators[0], {"x": x}, seed=seed)
    assert computed.tobytes() == expected.tobytes()


def test_every_row_reads_the_whole_input_and_none_is_lost() -> None:
    nest = Conv2dToRows(6, 8).loops(((1, 1, 30),))
    assert nest.output_shape() == (6, 1, 8) and nest.macs() == 6 * 8 * 30
    assert nest.rows_read(0, Interval(2, 3), 1) == Interval(0, 1)


@pytest.mark.parametrize("shape", [(2, 1, 15), (1, 2, 15)])
def test_an_image_is_refused(shape: Shape) -> None:
    with pytest.raises(ValueError, match="not a vector"):
        Conv2dToRows(6, 8).loops((shape,))


def test_weights_of_another_size_are_refused() -> None:
    op = Conv2dToRows(6, 8)
    source, output = Tensor("x", (1, 1, 3), DType.FLOAT32), Tensor("y", (6, 1, 8), DType.FLOAT32)
    constants = {"weights": np.zeros((40, 1, 1, 3), np.float32), "bias": np.zeros(40, np.float32)}
    with pytest.raises(ValueError, match="weights"):
        op.kernel(Operator("op", op, ("x",), "y", constants), (source,), output)


@given(
    length=st.sampled_from([32, 40, 96, 144]),
    gated=st.booleans(),
    dtype=st.sampled_from([DType.INT8, DType.FLOAT32]),
    seed=seeds,
)
@settings(bounded, max_examples=examples(4, 8))
def test_a_rewritten_graph_has_the_bits_of_the_plain_one(
    length: int, gated: bool, dtype: DType, seed: int
) -> None:
    """Two layers; between them a constant per channel, one for all, a function, a second factor."""
    rng = np.random.default_rng(seed)
    plain = _between(length, gated, dtype, rng)
    rewritten = channels_as_rows(plain)
    assert rewritten.tensors["scaled"].shape[0] > 1 == plain.tensors["scaled"].shape[0]
    x = _values(rng, (1, 1, 12), dtype)
    expected = run_graph(plain, {"x": x}, seed=seed)
    differences = check_graph(rewritten, {"x": x}, seed=seed)
    for name in plain.tensors:
        assert differences[name].tobytes() == expected[name].tobytes(), name


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> NDArray[Any]:
    if dtype is DType.INT8:
        return rng.integers(-128, 128, shape).astype(np.int8)
    return rng.normal(size=shape).astype(np.float32)


def _between(length: int, gated: bool, dtype: DType, rng: np.random.Generator) -> Graph:
    """x -> a -> scaled -> shifted -> bent -> y; gated, b is made from x and multiplied before y."""
    vector = (1, 1, length)
    shapes = {"x": (1, 1, 12), "a": vector, "scaled": vector, "shifted": vector, "bent": vector}
    shapes |= {"b": vector, "gated": vector} if gated else {}
    tensors = {name: _tensor(name, shape, dtype, rng) for name, shape in {**shapes, "y": (1, 1, 3)}.items()}
    q = Quantization(0.05, 3) if dtype is DType.INT8 else None

    def dense(source: str, output: str) -> Operator:
        inputs, outputs = tensors[source].shape[2], tensors[output].shape[2]
        constants: dict[str, ConstantArray] = {
            "weights": _values(rng, (outputs, 1, 1, inputs), dtype),
            "bias": rng.integers(-300, 300, outputs).astype(np.int32 if q else np.float32),
            "weight_scale": rng.uniform(0.0005, 0.002, outputs).astype(np.float32),
        }
        return Operator(f"fc_{output}", Conv2d(outputs), (source,), output, constants)

    def by_constant(op: Binary, source: str, output: str) -> Operator:
        assert op.constant_shape is not None
        return Operator(output, op, (source,), output, {"constant": _values(rng, op.constant_shape, dtype)})

    bend = Operator("bend", Lut(), ("shifted",), "bent", {"table": _values(rng, (256,), DType.INT8)})
    if dtype is DType.FLOAT32:
        bend = Operator("bend", Unary("tanh"), ("shifted",), "bent")
    operators = [
        dense("x", "a"),
        by_constant(Binary("mul", 1, vector, q), "a", "scaled"),
        by_constant(Binary("sub", 0, (1, 1, 1), q), "scaled", "shifted"),
        bend,
    ]
    if gated:
        operators += [dense("x", "b"), Operator("gate", Binary("mul"), ("bent", "b"), "gated")]
    operators.append(dense("gated" if gated else "bent", "y"))
    return linked(operators, [tensors.pop("x"), *tensors.values()])
