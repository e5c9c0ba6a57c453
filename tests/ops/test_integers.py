"""int32 and bool values: casts, gathered rows, the largest elements; against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import check_against_onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper
from plain_node import check, loaded
from single_node import Quantized, bounded, normal, quantized_types, seeds, shapes

from mcudeploy.common.errors import ModelError
from tests.networks.onnx_files import build
from tests.weekly import examples

Array = NDArray[Any]
few = settings(parent=bounded, max_examples=examples(4, 12))


@given(shape=shapes, axis=st.integers(0, 2), count=st.integers(1, 9), kind=st.booleans(), seed=seeds)
@few
def test_gather_with_computed_indices(
    shape: tuple[int, ...], axis: int, count: int, kind: bool, seed: int
) -> None:
    """Of a constant table and of an activation; negative indices count from the end."""
    rng = np.random.default_rng(seed)
    table, size = normal(rng, shape[1:]), shape[1 + axis]
    indices = rng.integers(-size, size, (1, count)).astype(np.int32 if kind else np.int64)
    result = (*shape[1 : 1 + axis], 1, count, *shape[2 + axis :])
    for name in ("c", "x"):
        check("Gather", {name: table, "i": indices}, {"y": (np.float32, result)}, axis=axis)


@given(shape=shapes, seed=seeds, dtype=quantized_types)
@few
def test_an_embedding_is_quantised_as_its_result(shape: tuple[int, ...], seed: int, dtype: type) -> None:
    rng = np.random.default_rng(seed)
    x = Quantized.draw(rng, shape, dtype)
    flat = Quantized(x.values.reshape(-1, shape[3]), x.scale, x.zero_point)
    indices = rng.integers(0, len(flat.values), (2, 3))
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["table"]),
        helper.make_node("Gather", ["table", "i"], ["rows"]),
        helper.make_node("QuantizeLinear", ["rows", "t", "z"], ["y"]),
    ]
    scales = {"s": np.float32(x.scale), "t": np.float32(0.07)}
    parameters = {"q": flat.values, **scales, "z": dtype(x.zero_point)}
    model = build(nodes, {"i": (np.int64, indices.shape)}, {"y": (dtype, (2, 3, shape[3]))}, parameters, 21)
    graph = check_against_onnx(model, {"i": indices})
    assert {operator.op.kind for operator in graph.operators} == {"Reshape", "GatherRows"}


@pytest.mark.parametrize("first", ["Gather", "DequantizeLinear"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_an_embedding_of_8_bits_stays_so_under_floats(first: str, dtype: type) -> None:
    """quantize_dynamic selects rows of integers, and converts these; others convert the table."""
    rng = np.random.default_rng(3)
    table, indices = Quantized.draw(rng, (9, 6), dtype), rng.integers(-9, 9, (2, 3))
    nodes = [
        helper.make_node("Gather", ["q", "i"], ["rows"]),
        helper.make_node("DequantizeLinear", ["rows", "s", "z"], ["y"]),
    ]
    if first == "DequantizeLinear":
        nodes = [
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["table"]),
            helper.make_node("Gather", ["table", "i"], ["y"]),
        ]
    parameters = {"q": table.values, "s": np.float32(table.scale), "z": dtype(table.zero_point)}
    model = build(nodes, {"i": (np.int64, indices.shape)}, {"y": (np.float32, (2, 3, 6))}, parameters, 13)
    graph = check_against_onnx(model, {"i": indices})
    (rows,) = (it for it in graph.operators if it.op.kind == "GatherRows")
    assert rows.constants["table"].dtype == np.int8


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.bool_])
def test_rows_of_a_table_of_bytes_become_floats(dtype: type) -> None:
    rng = np.random.default_rng(4)
    table, indices = rng.integers(0, 200, (9, 6)).astype(dtype), rng.integers(0, 9, (2, 3))
    nodes = [
        helper.make_node("Gather", ["q", "i"], ["rows"]),
        helper.make_node("Cast", ["rows"], ["y"], to=TensorProto.FLOAT),
    ]
    model = build(nodes, {"i": (np.int64, indices.shape)}, {"y": (np.float32, (2, 3, 6))}, {"q": table}, 13)
    check_against_onnx(model, {"i": indices})


@given(shape=shapes, axis=st.integers(1, 3), last=st.booleans(), keep=st.booleans(), seed=seeds)
@few
def test_arg_max_and_arg_min(shape: tuple[int, ...], axis: int, last: bool, keep: bool, seed: int) -> None:
    """If several elements are equal, the first one counts, or the last one."""
    rng = np.random.default_rng(seed)
    kept = [1 if at == axis else size for at, size in enumerate(shape) if keep or at != axis]
    for op in ("ArgMax", "ArgMin"):
        for array in (rng.integers(-2, 3, shape).astype(np.float32), rng.integers(-2, 3, shape, np.int32)):
            out = {"y": (np.int64, tuple(kept))}
            check(op, {"x": array}, out, axis=axis, keepdims=int(keep), select_last_index=int(last))


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"])
@given(
    shape=shapes,
    axes=st.sampled_from([(1,), (-1,), (2, 3), (1, 3), ()]),
    keep=st.booleans(),
    kind=st.sampled_from([np.int32, np.int64]),
    seed=seeds,
)
@few
def test_reductions(
    op: str, shape: tuple[int, ...], axes: tuple[int, ...], keep: bool, kind: type, seed: int
) -> None:
    """Of an odd number of elements as well, and of all of them."""
    rng = np.random.default_rng(seed)
    most = 2 if op == "ReduceProd" else 2**20
    x = rng.integers(-most, most, shape).astype(kind)
    if op == "ReduceProd":
        x = np.where(rng.random(shape) < 0.9, 1, x).astype(kind)
        x.reshape(-1)[20:] = 1
    reduced = {axis % len(shape) for axis in axes} or set(range(len(shape)))
    result = [1 if at in reduced else size for at, size in enumerate(shape) if keep or at not in reduced]
    inputs = {"x": x, "ca": np.array(axes, np.int64)} if axes else {"x": x}
    check(op, inputs, {"y": (kind, tuple(result))}, keepdims=int(keep))


@given(shape=shapes, axis=st.integers(1, 3), largest=st.booleans(), seed=seeds)
@few
def test_top_k(shape: tuple[int, ...], axis: int, largest: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, shape[axis] + 1))
    result = tuple(count if at == axis else size for at, size in enumerate(shape))
    x = rng.choice(np.array([-np.inf, -1.5, -0.0, 0.0, 1.5, np.inf], np.float32), shape)
    outputs = {"y": (np.float32, result), "i": (np.int64, result)}
    check("TopK", {"x": x, "ck": np.array([count])}, outputs, axis=axis, largest=int(largest))


@given(shape=shapes, dtype=quantized_types, seed=seeds)
@few
def test_the_largest_of_quantised_values(shape: tuple[int, ...], dtype: type, seed: int) -> None:
    """It is looked for among the integers."""
    x = Quantized.draw(np.random.default_rng(seed), shape, dtype)
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["real"]),
        helper.make_node("ArgMax", ["real"], ["y"], axis=1),
    ]
    constants = {"s": np.float32(x.scale), "z": dtype(x.zero_point)}
    model = build(nodes, {"x": x.values}, {"y": (np.int64, (1, 1, *shape[2:]))}, constants, 21)
    graph = check_against_onnx(model, {"x": x.values})
    assert "Dequantize" not in {operator.op.kind for operator in graph.operators}


@pytest.mark.parametrize(
    ("source", "target"),
    [("int64", "float32"), ("int32", "float32"), ("uint8", "float32"), ("int8", "int32"), ("bool", "float32"),
     ("float32", "int64"), ("float32", "bool"), ("int32", "bool"), ("bool", "int32"), ("int64", "int32")],
)  # fmt: skip
def test_cast(source: str, target: str) -> None:
    rng = np.random.default_rng(3)
    x: Array = rng.normal(0, 100, (1, 5, 7))
    if source in ("int32", "int64"):
        x = np.concatenate([rng.integers(-(2**31), 2**31, (1, 4, 7)), rng.integers(-1, 2, (1, 1, 7))], 1)
    to = helper.np_dtype_to_tensor_dtype(np.dtype(target))
    check("Cast", {"x": x.astype(source)}, {"y": (np.dtype(target), x.shape)}, to=to)


@pytest.mark.parametrize("op", ["And", "Or", "Xor"])
def test_bool_inputs_and_outputs(op: str) -> None:
    a, b = np.indices((2, 2)).astype(bool)
    check(op, {"a": a, "b": b}, {"y": (np.bool_, (2, 2))})
    check("Where", {"a": a, "x": normal(np.random.default_rng(0), (2, 2)), "c": np.float32([[1, 2], [3, 4]])},
          {"y": (np.float32, (2, 2))})  # fmt: skip
    check("Not", {"a": a}, {"y": (np.bool_, (2, 2))})


@pytest.mark.parametrize(
    ("op", "constants", "attributes", "result"),
    [
        ("Transpose", {}, {"perm": [0, 2, 1]}, (1, 4, 3)),
        ("Pad", {"cp": np.array([0, 1, 0, 0, 0, 2]), "cv": np.int32(-7)}, {}, (1, 4, 6)),
        ("Slice", {"cs": np.array([1]), "ce": np.array([3]), "ca": np.array([1])}, {}, (1, 2, 4)),
        ("Concat", {}, {"axis": 1}, (1, 3, 4)),
    ],
)
def test_int32_values_are_moved(
    op: str, constants: dict[str, Array], attributes: dict[str, Any], result: tuple[int, ...]
) -> None:
    x = np.arange(12, dtype=np.int32).reshape(1, 3, 4) * 200_000_000
    check(op, {"x": x, **constants}, {"y": (np.int32, result)}, **attributes)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32])
def test_constants_are_concatenated_with_integers(dtype: type) -> None:
    ends = np.iinfo(dtype)
    x = np.array([[[ends.min, 1, ends.max]]], dtype)
    constants = {"c": np.array([[[ends.max, 3]]], dtype), "x2": x[..., ::-1].copy(), "c2": x}
    check("Concat", {"x": x, **constants}, {"y": (dtype, (1, 1, 11))}, axis=2)


def _casts(kind: int, x: Array, target: int) -> ModelProto:
    """X through a Cast to a type, and on to the type `made`."""
    nodes = [
        helper.make_node("Cast", ["x"], ["v"], name="first", to=kind),
        helper.make_node("Cast", ["v"], ["y"], name="second", to=target),
    ]
    return build(nodes, {"x": x}, {"y": (target, x.shape)}, opset=21)


@pytest.mark.parametrize("target", [TensorProto.FLOAT, TensorProto.INT32, TensorProto.BOOL])
def test_a_cast_to_float16_rounds(target: int) -> None:
    """Ties go to the even number, also among subnormal numbers; values beyond the largest become infinity."""
    fractions = np.array([0, 0.49, 0.5, 0.51, 1, 1.5], np.float32)
    exponents = np.float32(2.0) ** np.arange(-27, 18, dtype=np.float32)
    x = np.outer(exponents, 1 + fractions / 1024).astype(np.float32)
    x = np.concatenate([x, -x[:, ::-1]])
    if target != TensorProto.INT32:
        x = np.concatenate([x, np.float32([[0, -0.0, np.inf, -np.inf, 65519.99, 65520]])])
    else:
        x = x[np.abs(x).max(axis=1) < 60000]  # the processor determines the result for infinity
    check_against_onnx(_casts(TensorProto.FLOAT16, x, target), {"x": x}, float_tolerance=0)


def test_integers_stay_themselves_or_are_refused() -> None:
    with pytest.raises(ModelError) as caught:
        loaded(_casts(TensorProto.DOUBLE, np.zeros((2, 3), np.int32), TensorProto.INT32))
    (problem,) = caught.value.problems
    assert (problem.node, problem.op) == ("first", "Cast") and "beyond 16,777,216" in problem.reason
    x = np.array([[1.5, -2.5, 3e6]], np.float32)
    check_against_onnx(_casts(TensorProto.DOUBLE, x, TensorProto.INT32), {"x": x})
