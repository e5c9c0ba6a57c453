"""Models in element types other than float32, int8 and uint8, converted to these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from evaluate import assert_same, kinds
from onnx import TensorProto, helper, numpy_helper

from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.load import load
from mcudeploy.ir.graph import DType
from mcudeploy.verify.reference import Reference
from tests.networks.onnx_files import Array, build, node, save
from tests.networks.refusals import problems_of

RANDOM = np.random.default_rng(3)
IMAGE = RANDOM.standard_normal((1, 3, 6, 6)).astype(np.float32)
BYTES = RANDOM.integers(0, 256, (1, 3, 6, 6)).astype(np.uint8)


def weights(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def product(item: onnx.NodeProto, constants: dict[str, Array], domain: str = "", **added: Any) -> Any:
    """A model of one node of another domain, from x [2, 40] to y [2, 6]."""
    model = build(
        [node("Identity", "x", "y")], {"x": RANDOM.standard_normal((2, 40)).astype(np.float32)}, ["y"]
    )
    del model.graph.node[:]
    model.graph.node.append(item)
    model.graph.initializer.extend(numpy_helper.from_array(each, name) for name, each in constants.items())
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 6
    model.opset_import.append(helper.make_opsetid(domain or "com.microsoft", 1))
    return model


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_floats_are_float32_inside(dtype: Any, tmp_path: Path) -> None:
    nodes = [
        node("Conv", "x w b", "c", pads=[1] * 4),
        node("Relu", "c", "r"),
        node("GlobalAveragePool", "r", "g"),
        node("Cast", "g", "y", to=TensorProto.FLOAT),
    ]
    constants = {"w": weights(8, 3, 3, 3).astype(dtype), "b": weights(8).astype(dtype)}
    path = save(build(nodes, {"x": IMAGE.astype(dtype)}, ["y", "g"], constants), tmp_path)
    graph = assert_same(path, {"x": IMAGE.astype(dtype)})
    assert {tensor.dtype for tensor in graph.tensors.values()} == {DType.FLOAT32}
    assert [io.dtype for io in (*graph.inputs, *graph.outputs)] == [
        np.dtype(dtype).name,
        "float32",
        np.dtype(dtype).name,
    ]
    assert any(np.dtype(dtype).name in note for note in graph.notes)


def test_a_model_in_half_precision_is_that_of_the_file(tmp_path: Path) -> None:
    nodes = [node("MatMul", "x w", "m"), node("Softmax", "m", "y")]
    x = weights(2, 8)
    path = save(
        build(nodes, {"x": x.astype(np.float16)}, ["y"], {"w": weights(8, 5).astype(np.float16)}), tmp_path
    )
    wanted = Reference(path, ["y"], own_floats=True).run({"x": x.astype(np.float16)})["y"]
    computed = Reference(path, ["y"]).run({"x": x.astype(np.float16)})["y"]
    assert (wanted.dtype, computed.dtype) == (np.float16, np.float32)
    assert 0 < np.abs(wanted - computed).max() <= 2e-3


def test_masks_of_the_largest_number_stay_finite(tmp_path: Path) -> None:
    constants = {"m": np.array(-np.finfo(np.float64).max)}
    model = build([node("Max", "x m", "y")], {"x": IMAGE.astype(np.float64)}, ["y"], constants)
    assert_same(save(model, tmp_path), {"x": IMAGE.astype(np.float64)})


def grid(source: str, scale: str, zero: str, out: str) -> list[onnx.NodeProto]:
    return [
        node("QuantizeLinear", f"{source} {scale} {zero}", f"{out}_q"),
        node("DequantizeLinear", f"{out}_q {scale} {zero}", out),
    ]


@pytest.mark.parametrize(("kind", "zero"), [(np.int16, 7), (np.uint16, 30000), (ml_dtypes.int4, -2)])
def test_activations_on_the_grid_of_other_integers(kind: Any, zero: int, tmp_path: Path) -> None:
    """The rounding of the file is kept: outputs are on its grid, and clipped to its range."""
    step = 4.0 / {np.int16: 2**15, np.uint16: 2**15}.get(kind, 8)
    nodes = [
        *grid("x", "s", "z", "a"),
        node("DequantizeLinear", "w sw", "wd", axis=0),
        node("Conv", "a wd", "c"),
        node("MaxPool", "c", "p", kernel_shape=[2, 2]),
        *grid("p", "s", "z", "b"),
        node("Sigmoid", "b", "d"),
        *grid("d", "s", "z", "y"),
    ]
    integers = RANDOM.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
    constants = {
        "s": np.float32(step),
        "z": np.array(zero, kind),
        "w": integers,
        "sw": RANDOM.uniform(0.001, 0.01, 4).astype(np.float32),
    }
    path = save(build(nodes, {"x": IMAGE}, ["y"], constants, opset=21), tmp_path)
    graph = assert_same(path, {"x": IMAGE}, step)
    assert any("4 bytes of RAM" in note for note in graph.notes)


def test_int16_at_the_borders(tmp_path: Path) -> None:
    nodes = [
        node("DequantizeLinear", "x s z", "a"),
        node("Mul", "a a", "b"),
        node("QuantizeLinear", "b s z", "q"),
        node("Transpose", "q", "y", perm=[0, 2, 3, 1]),
    ]
    constants = {"s": np.float32(2e-3), "z": np.array(7, np.int16)}
    integers = RANDOM.integers(-(2**15), 2**15, IMAGE.shape).astype(np.int16)
    graph = assert_same(
        save(build(nodes, {"x": integers}, ["y"], constants, opset=21), tmp_path), {"x": integers}
    )
    assert [io.dtype for io in (*graph.inputs, *graph.outputs)] == ["int16", "int16"]


def test_arithmetic_on_int16_itself_is_refused(tmp_path: Path) -> None:
    model = build([node("Add", "x x", "y")], {"x": BYTES.astype(np.int16)}, ["y"])
    assert "int16" in problems_of(save(model, tmp_path))[0].reason


def test_int4_weights_with_a_scale_for_each_channel_are_int8(tmp_path: Path) -> None:
    nodes = [
        node("DequantizeLinear", "x sx zx", "a"),
        node("DequantizeLinear", "w sw zw", "wd", axis=0),
        node("Conv", "a wd", "c"),
        node("QuantizeLinear", "c sy zx", "y"),
    ]
    constants = {
        "sx": np.float32(0.05),
        "zx": np.array(120, np.uint8),
        "w": RANDOM.integers(-8, 8, (5, 3, 3, 3)).astype(ml_dtypes.int4),
        "zw": RANDOM.integers(-8, 8, 5).astype(ml_dtypes.int4),
        "sw": RANDOM.uniform(0.01, 0.1, 5).astype(np.float32),
        "sy": np.float32(0.2),
    }
    graph = assert_same(save(build(nodes, {"x": BYTES}, ["y"], constants, opset=21), tmp_path), {"x": BYTES})
    assert kinds(graph) == {"Conv2d": 1}
    assert {tensor.dtype for tensor in graph.tensors.values()} == {DType.INT8}


@pytest.mark.parametrize("zero", [True, False])
def test_weights_quantised_in_blocks_stay_packed(tmp_path: Path, zero: bool) -> None:
    constants = {
        "w": RANDOM.integers(0, 16, (22, 7)).astype(ml_dtypes.uint4),
        "s": RANDOM.uniform(0.01, 0.1, (3, 7)).astype(np.float32),
        **({"z": RANDOM.integers(0, 16, (3, 7)).astype(ml_dtypes.uint4)} if zero else {}),
    }
    nodes = [
        node("DequantizeLinear", f"w s{' z' * zero}", "wd", axis=0, block_size=8),
        node("MatMul", "x wd", "y"),
    ]
    x = weights(3, 22)
    graph = assert_same(save(build(nodes, {"x": x}, ["y"], constants, opset=21), tmp_path), {"x": x})
    size = 22 * 7 // 2 + 3 * 7 * 5  # scales, and zero points: of two's complement, 0 is -8
    assert any(f"{size} B of flash" in note and "stay packed" in note for note in graph.notes)


@pytest.mark.parametrize("zeros", ["none", "packed", "float"])
def test_products_with_weights_of_few_bits(tmp_path: Path, zeros: str) -> None:
    attributes = {"K": 40, "N": 6, "bits": 4, "block_size": 16, "accuracy_level": 4}
    names = ["x", "w", "s", *([] if zeros == "none" else ["z"])]
    item = helper.make_node("MatMulNBits", names, ["y"], domain="com.microsoft", **attributes)
    constants: dict[str, Array] = {
        "w": RANDOM.integers(0, 256, (6, 3, 8)).astype(np.uint8),
        "s": RANDOM.uniform(0.01, 0.1, 18).astype(np.float32),
    }
    if zeros == "packed":
        constants["z"] = RANDOM.integers(0, 256, 12).astype(np.uint8)
    if zeros == "float":
        constants["z"] = RANDOM.uniform(6, 9, 18).astype(np.float32)
    assert_same(save(product(item, constants), tmp_path), {"x": weights(2, 40)})


@pytest.mark.parametrize("places", ["flat", "by axis"])
def test_sparse_initializers(tmp_path: Path, places: str) -> None:
    model = build([node("MatMul", "x w", "y")], {"x": weights(2, 6)}, ["y"], {"w": weights(6, 4)})
    del model.graph.initializer[:]
    indices = np.array([1, 14, 20] if places == "flat" else [[0, 1], [3, 2], [5, 0]])
    values = numpy_helper.from_array(np.array([1, 2, 3], np.float32), "w")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(indices, "w_at"), [6, 4])
    model.graph.sparse_initializer.append(sparse)
    assert_same(save(model, tmp_path), {"x": weights(2, 6)})


@pytest.mark.parametrize(
    ("shape", "places", "reason"),
    [([2**30, 2**30], [1], "the limit is"), ([2, 2], [4], "outside"), ([-2, 2], [0], "the limit is")],
)
def test_malformed_sparse_initializers(
    tmp_path: Path, shape: list[int], places: list[int], reason: str
) -> None:
    model = build([node("MatMul", "x w", "y")], {"x": weights(2, 2)}, ["y"], {"w": weights(2, 2)})
    del model.graph.initializer[:]
    values = numpy_helper.from_array(np.ones(1, np.float32), "w")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array(places), "w_at"), shape)
    model.graph.sparse_initializer.append(sparse)
    with pytest.raises(ModelError, match=reason):
        load(save(model, tmp_path))


@pytest.mark.parametrize("zero", [128, 113])
def test_products_of_integers(zero: int, tmp_path: Path) -> None:
    """The sums, int32 in the file, are floats from the start; with weights that fit, int8 inside."""
    nodes = [
        node("ConvInteger", "x w zx zw", "c", strides=[2, 2]),
        node("Cast", "c", "f", to=TensorProto.FLOAT),
        node("Mul", "f s", "m"),
        node("QuantizeLinear", "m sy zx", "y"),
    ]
    constants = {
        "w": RANDOM.integers(0, 256, (5, 3, 3, 3)).astype(np.uint8),
        "zw": np.array(zero, np.uint8),
        "zx": np.array(100, np.uint8),
        "s": RANDOM.uniform(1e-4, 1e-3, (5, 1, 1)).astype(np.float32),
        "sy": np.float32(0.2),
    }
    graph = assert_same(save(build(nodes, {"x": BYTES}, ["y"], constants), tmp_path), {"x": BYTES})
    assert "Quantize" not in kinds(graph)


def test_matrices_of_integers(tmp_path: Path) -> None:
    nodes = [
        node("MatMulInteger", "x w zx zw", "c"),
        node("Cast", "c", "f", to=TensorProto.FLOAT),
        node("Mul", "f s", "y"),
    ]
    x = RANDOM.integers(-128, 128, (3, 9)).astype(np.int8)
    constants = {
        "w": RANDOM.integers(-100, 100, (9, 4)).astype(np.int8),
        "zw": RANDOM.integers(-9, 9, 4).astype(np.int8),
        "zx": np.array(3, np.int8),
        "s": np.float32(0.01),
    }
    assert_same(save(build(nodes, {"x": x}, ["y"], constants), tmp_path), {"x": x})


def test_scales_of_the_run_are_refused_once(tmp_path: Path) -> None:
    nodes = [
        node("DynamicQuantizeLinear", "x", "q s z"),
        node("MatMulInteger", "q w z", "c"),
        node("Cast", "c", "f", to=TensorProto.FLOAT),
        node("Mul", "f s", "y"),
    ]
    model = build(nodes, {"x": weights(2, 4)}, ["y"], {"w": np.ones((4, 3), np.int8)})
    (problem,) = problems_of(save(model, tmp_path))
    assert problem.op == "DynamicQuantizeLinear"
    assert "mcudeploy quantize" in problem.reason


@pytest.mark.parametrize(
    ("kind", "way_out"),
    [
        (TensorProto.STRING, "Encode text"),
        (TensorProto.COMPLEX64, "two inputs"),
        (TensorProto.UINT64, "int32 inputs"),
    ],
)
def test_inputs_of_other_types_name_the_way_out(kind: int, way_out: str, tmp_path: Path) -> None:
    model = build(
        [node("Identity", "x", "r"), node("Reshape", "r k", "y")], {"x": IMAGE}, ["y"], {"k": np.array([-1])}
    )
    model.graph.input[0].type.tensor_type.elem_type = kind
    model.graph.output[0].type.tensor_type.elem_type = kind
    assert way_out in problems_of(save(model, tmp_path))[0].reason
