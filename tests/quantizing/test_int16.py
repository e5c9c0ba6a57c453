"""QDQ models with int16 activations: operators on integers, within one step of ONNX Runtime."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.device.target import Target
from mcudeploy.frontend.load import load
from mcudeploy.ir.graph import DType
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.difference import FLOAT_FLOOR, least_tolerance
from tests import reports
from tests.networks.small import classifier, folder_of, images

HOST, QUICK = Target(load_board("host")), Options(time_limit=0.5)


class QdqGraph:
    """A QDQ graph under construction; names of real values are those that DequantizeLinear makes."""

    def __init__(self, kind: Any = np.int16, zero: int = 0) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self.random = np.random.default_rng(5)
        self.kind, self.zero = kind, zero

    def constant(self, value: Any, dtype: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def node(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"n{len(self.nodes)}", **attributes))
        return name

    def quantized(self, name: str, scale: float, zero: int | None = None) -> str:
        """Integers with this zero point of int8, or those of the graph."""
        stored = self.constant(self.zero, self.kind) if zero is None else self.constant(zero, np.int8)
        parameters = [self.constant(scale, np.float32), stored]
        return self.node("DequantizeLinear", [self.node("QuantizeLinear", [name, *parameters]), *parameters])

    def weights(self, *shape: int, axis: int | None = 0, kind: Any = np.int8) -> str:
        most = int(ml_dtypes.iinfo(kind).max)
        stored = self.constant(self.random.integers(-most, most + 1, shape), kind)
        count = 1 if axis is None else shape[axis]
        scale = self.random.uniform(0.01, 0.02, count if axis is not None else ())
        zeros = self.constant(np.zeros(np.shape(scale)), kind)
        along = {} if axis is None else {"axis": axis}
        return self.node("DequantizeLinear", [stored, self.constant(scale, np.float32), zeros], **along)

    def stored(self, values: Any, scale: float) -> str:
        """A constant of int16."""
        names = [
            self.constant(values, np.int16),
            self.constant(scale, np.float32),
            self.constant(0, np.int16),
        ]
        return self.node("DequantizeLinear", names)

    def save(self, path: Path, inputs: dict[str, Sequence[int]], output: str) -> Path:
        values = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()
        ]
        outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
        graph = helper.make_graph(self.nodes, "g", values, outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        onnx.save(onnx.shape_inference.infer_shapes(model, strict_mode=True), path)
        return path


def reals(draft: QdqGraph, *shape: int) -> NDArray[np.float32]:
    return draft.random.normal(0, 0.4, shape).astype(np.float32)


def conv(d: QdqGraph) -> str:
    bias = d.constant(reals(d, 8), np.float32)
    x = d.quantized("image", 0.0001)
    output = d.node("Conv", [x, d.weights(8, 3, 3, 3), bias], pads=[1, 0, 0, 1], strides=[2, 1])
    return d.quantized(d.node("Relu", [output]), 0.0007)


def groups(d: QdqGraph) -> str:
    x = d.quantized("image", 0.0001)
    output = d.node("Conv", [x, d.weights(6, 1, 3, 3)], group=3, dilations=[2, 2])
    return d.quantized(output, 0.0003)


def of_four_bits(d: QdqGraph) -> str:
    x = d.quantized("image", 0.0001)
    return d.quantized(d.node("Conv", [x, d.weights(8, 3, 3, 3, kind=ml_dtypes.int4)]), 0.0001)


def line(d: QdqGraph) -> str:
    x = d.quantized(d.node("Reshape", ["image", d.constant([1, 3, 80], np.int64)]), 0.0001)
    return d.quantized(d.node("Conv", [x, d.weights(4, 3, 5)], strides=[2], pads=[2, 2]), 0.0004)


def dense(d: QdqGraph) -> str:
    x = d.quantized(d.node("Reshape", ["image", d.constant([1, 240], np.int64)]), 0.0001)
    unit = d.constant(0.002, np.float32)
    bias = d.node("DequantizeLinear", [d.constant(d.random.integers(-99, 99, 7), np.int32), unit])
    first = d.quantized(d.node("Gemm", [x, d.weights(7, 240), bias], transB=1), 0.0009)
    second = d.quantized(
        d.node("Clip", [first, d.constant(-9, np.float32), d.constant(20, np.float32)]), 0.0008
    )
    return d.quantized(d.node("MatMul", [second, d.weights(7, 5, axis=None)]), 0.001)


def product(d: QdqGraph) -> str:
    x = d.quantized(d.node("Reshape", ["image", d.constant([1, 3, 8, 10], np.int64)]), 0.0001)
    other = d.node("Transpose", [x], perm=[0, 1, 3, 2])
    other = d.quantized(other, 0.0001)
    return d.quantized(d.node("MatMul", [x, other]), 0.0005)


def sums(d: QdqGraph) -> str:
    x = d.quantized("image", 0.0001)
    y = d.quantized(d.node("Add", [x, d.stored(d.random.integers(-9999, 9999, (3, 1, 1)), 0.0002)]), 0.00015)
    y = d.quantized(d.node("Sub", [y, x]), 0.0001)
    y = d.quantized(d.node("Mul", [y, x]), 0.0001)
    return d.quantized(d.node("Relu", [d.node("Add", [y, x])]), 0.0002)


def pools(d: QdqGraph) -> str:
    x = d.quantized("image", 0.0001)
    y = d.node("MaxPool", [x], kernel_shape=[3, 3], strides=[1, 2], pads=[1, 1, 1, 1])
    y = d.quantized(y, 0.000_09)
    return d.quantized(d.node("GlobalAveragePool", [y]), 0.000_05)


def means(d: QdqGraph) -> str:
    x = d.quantized("image", 0.0001)
    y = d.quantized(d.node("AveragePool", [x], kernel_shape=[8, 10]), 0.000_02)
    z = d.quantized(d.node("ReduceMean", [x, d.constant([2, 3], np.int64)], keepdims=1), 0.000_02)
    return d.quantized(d.node("Concat", [y, z], axis=1), 0.000_03)


def moves(d: QdqGraph) -> str:
    x = d.quantized("image", 0.0001)
    y = d.quantized(d.node("Transpose", [x], perm=[0, 2, 1, 3]), 0.0001)
    y = d.quantized(d.node("Reshape", [y, d.constant([1, 8, 30], np.int64)]), 0.0002)
    return d.quantized(d.node("Concat", [y, y], axis=2), 0.0002)


def mixed(d: QdqGraph) -> str:
    """int8, int16 and int8 again, with a Relu between the last two."""
    x = d.quantized("image", 0.02, 3)
    y = d.quantized(d.node("Conv", [x, d.weights(8, 3, 3, 3)]), 0.1, -9)
    y = d.quantized(d.node("Conv", [d.quantized(y, 0.0004), d.weights(4, 8, 1, 1)]), 0.001)
    z = d.quantized(d.node("Relu", [d.quantized(y, 0.2, 5)]), 0.15, -128)
    return d.quantized(d.node("Relu", [z]), 0.0006)


def in_float(d: QdqGraph) -> str:
    x = d.quantized("image", 0.0001)
    y = d.quantized(d.node("Sigmoid", [x]), 0.000_03)
    return d.quantized(d.node("Mul", [x, y]), 0.0001)


def scalar(d: QdqGraph) -> str:
    x = d.quantized("image", 0.0001)
    axes = d.constant([0, 1, 2, 3], np.int64)
    return d.quantized(d.node("ReduceMean", [x, axes], keepdims=0), 0.000_005)


CASES: dict[Callable[[QdqGraph], str], set[str]] = {
    conv: {"Conv2dInt16"},
    groups: {"Conv2dInt16"},
    of_four_bits: {"Conv2dInt16"},
    line: {"Conv2dInt16"},
    dense: {"Conv2dInt16", "RescaleInt16"},
    product: {"MatMulInt16"},
    sums: {"BinaryInt16"},
    pools: {"PoolInt16", "RescaleInt16", "MeanInt16"},
    means: {"MeanInt16", "RescaleInt16", "Concat"},
    scalar: {"MeanInt16"},
    moves: {"Concat", "RescaleInt16"},
    mixed: {"Conv2d", "Conv2dInt16", "Lut", "RescaleInt16"},
    in_float: {"Unary", "BinaryInt16"},
}


@pytest.mark.parametrize("make", CASES, ids=lambda it: it.__name__)
def test_operators_are_within_a_step_of_onnx_runtime(make: Callable[[QdqGraph], str], tmp_path: Path) -> None:
    draft = QdqGraph()
    path = draft.save(tmp_path / "m.onnx", {"image": (1, 3, 8, 10)}, make(draft))
    graph = load(path)
    assert {it.op.kind for it in graph.operators} >= CASES[make]
    said = ("between int16 activations Sigmoid is computed in float32",) if make is in_float else ()
    assert graph.notes == said
    if make is not in_float:
        assert {it.op.kind for it in graph.operators} <= {
            *CASES[make],
            *("Cast", "Binary", "QuantizeInt16", "Reshape", "Transpose", "DepthToSpace", "Take"),
        }
    sample = draft.random.normal(0, 1, (1, 3, 8, 10)).astype(np.float32)
    np.save(tmp_path / "x.npy", sample)
    report = reports.run_model(path, HOST, QUICK, inputs=[tmp_path / "x.npy"], expected=[])
    assert report["verified"], report["reason"]
    checks = report["operator_checks"].values()
    assert checks and all(it["max_abs_error"] <= 1 for it in checks)


def test_only_values_of_int16_may_be_a_step_off(tmp_path: Path) -> None:
    """Of float32 values, such as those of a sigmoid, a step would be 1."""
    draft = QdqGraph()
    path = draft.save(tmp_path / "m.onnx", {"image": (1, 3, 8, 10)}, in_float(draft))
    graph = load(path)
    ios = (*graph.references.values(), *graph.outputs)
    assert {it.off_by_one for it in ios} == {False, True}
    for io in ios:
        dtype = graph.tensors[io.tensor].dtype
        assert io.off_by_one == (dtype is DType.INT16)
        assert least_tolerance(io, dtype) == (1 if io.off_by_one else FLOAT_FLOOR)


@pytest.mark.parametrize("make", [conv, pools, sums], ids=lambda it: it.__name__)
def test_images_in_a_batch_are_computed_in_float_where_they_must(
    make: Callable[[QdqGraph], str], tmp_path: Path
) -> None:
    draft = QdqGraph()
    path = draft.save(tmp_path / "m.onnx", {"image": (2, 3, 8, 10)}, make(draft))
    report = reports.run_model(path, HOST, QUICK, inputs=[], expected=[])
    assert report["verified"], report["reason"]
    said = "between int16 activations Conv is computed in float32"
    assert (said in load(path).notes) == (make is conv)


def bias_of_rows(d: QdqGraph) -> str:
    x = d.quantized(d.node("Reshape", ["image", d.constant([5, 48], np.int64)]), 0.0001)
    bias = d.constant(np.arange(5).reshape(5, 1), np.float32)
    return d.quantized(d.node("Gemm", [x, d.weights(48, 5, axis=1), bias]), 0.001)


def weights_of_scale_0(d: QdqGraph) -> str:
    scale, zeros = d.constant(np.zeros(4), np.float32), d.constant(np.zeros(4), np.int8)
    weights = d.node("DequantizeLinear", [d.constant(np.zeros((4, 3, 3, 3)), np.int8), scale, zeros], axis=0)
    x = d.quantized("image", 0.0001)
    return d.quantized(d.node("Conv", [x, weights, d.constant([1, 2, 3, 4], np.float32)]), 0.001)


@pytest.mark.parametrize("make", [bias_of_rows, weights_of_scale_0], ids=lambda it: it.__name__)
def test_biases_without_units_for_each_channel_are_added_in_float(
    make: Callable[[QdqGraph], str], tmp_path: Path
) -> None:
    draft = QdqGraph()
    path = draft.save(tmp_path / "m.onnx", {"image": (1, 3, 8, 10)}, make(draft))
    assert "Conv2d" in {it.op.kind for it in load(path).operators}
    report = reports.run_model(path, HOST, QUICK, inputs=[], expected=[])
    assert report["verified"], report["reason"]


@pytest.mark.parametrize(("kind", "zero"), [(np.int16, 7), (np.uint16, 32768)])
def test_zero_points_are_computed_in_float(kind: Any, zero: int, tmp_path: Path) -> None:
    draft = QdqGraph(kind, zero)
    path = draft.save(tmp_path / "m.onnx", {"image": (1, 3, 8, 10)}, conv(draft))
    graph = load(path)
    assert "Conv2d" in {it.op.kind for it in graph.operators}
    assert any("int16 ones with zero points of 0" in note for note in graph.notes)


def test_quantize_writes_int16_that_runs_in_integers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    classifier(tmp_path / "m.onnx")
    folder_of(tmp_path / "d", images(40))
    arguments = ["quantize", "m.onnx", "--data", "d", "-o", "q.onnx", "--activations", "int16", "--json"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.stderr
    quantised = json.loads(result.stdout)
    assert [it["op"] for it in quantised["float_nodes"]] == ["Softmax"]
    first = next(it for it in quantised["layers"] if it["node"] == "first")
    assert first["input_sqnr_db"] > 80  # 16 bits; 8 have less than 50
    kinds = {it.op.kind for it in load(tmp_path / "q.onnx").operators}
    assert "Conv2dInt16" in kinds and "Conv2d" not in kinds
    report = reports.run_model(tmp_path / "q.onnx", HOST, QUICK, inputs=[], expected=[])
    assert report["verified"], report["reason"]


def test_a_convolution_that_is_the_output_runs_in_integers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The quantiser renames its result, and states no shape for it."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    weights = numpy_helper.from_array(rng.normal(size=(4, 3, 3, 3)).astype(np.float32), "w")
    node = helper.make_node("Conv", ["x", "w"], ["y"], "last", pads=[1, 1, 1, 1])
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, depth, 8, 8))
        for name, depth in (("x", 3), ("y", 4))
    )
    graph = helper.make_graph([node], "last", [x], [y], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "m.onnx")
    np.save("x.npy", rng.normal(size=(20, 1, 3, 8, 8)).astype(np.float32))
    arguments = ["quantize", "m.onnx", "--data", "x.npy", "-o", "q.onnx", "--activations", "int16", "--json"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.stderr
    assert not json.loads(result.stdout)["float_nodes"]
    report = reports.run_model(tmp_path / "q.onnx", HOST, QUICK, inputs=[], expected=[])
    assert report["verified"], report["reason"]
