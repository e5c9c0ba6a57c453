"""Files of quantize_dynamic: products of floats by weights that stay int8."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.load import load
from mcudeploy.planner.plan_options import Options
from tests import reports
from tests.frontend.tflite.programs import HOST, QUICK
from tests.networks.onnx_files import build

ROUNDED = 0.05
"""Share of the range by which ONNX Runtime differs, which rounds activations to uint8."""


def save(folder: Path, nodes: list[onnx.NodeProto], shape: list[int], constants: dict[str, Any]) -> Path:
    model = build(nodes, {"x": (np.float32, shape)}, {"y": (np.float32, None)}, constants)
    onnx.save(model, folder / "float.onnx")
    return folder / "float.onnx"


def layers(folder: Path) -> Path:
    """A convolution and a dense layer."""
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv", pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("Flatten", ["r"], ["f"], "flat"),
        helper.make_node("MatMul", ["f", "v"], ["m"], "dense"),
        helper.make_node("Add", ["m", "a"], ["y"], "add"),
    ]
    shapes = {"w": (5, 3, 3, 3), "b": (5,), "v": (80, 7), "a": (7,)}
    constants = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return save(folder, nodes, [1, 3, 8, 8], constants)


def recurrent(folder: Path) -> Path:
    rng = np.random.default_rng(1)
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r", "b"], ["", "h"], "lstm", hidden_size=8),
        helper.make_node("Squeeze", ["h"], ["y"], "squeeze"),
    ]
    shapes = {"w": (1, 32, 6), "r": (1, 32, 8), "b": (1, 64)}
    constants = {name: 0.4 * rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return save(folder, nodes, [4, 1, 6], constants)


@pytest.mark.parametrize("make", [layers, recurrent])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8])
def test_weights_stay_int8(make: Any, per_channel: bool, kind: QuantType, tmp_path: Path) -> None:
    source, path = make(tmp_path), tmp_path / "dynamic.onnx"
    quantize_dynamic(source, path, per_channel=per_channel, weight_type=kind)
    reports.verified(path)
    (cause,) = reports.check_model(path, None, Options())["in_float"]
    if kind is QuantType.QInt8:  # the others, less their zero points, may not be int8
        assert cause["least_weights_bytes"] < 0.6 * cause["weights_bytes"]
    (note,) = load(path).notes
    assert "dynamic quantisation" in note


def test_results_are_near_those_of_onnx_runtime(tmp_path: Path) -> None:
    source, path = layers(tmp_path), tmp_path / "dynamic.onnx"
    quantize_dynamic(source, path)
    x = np.random.default_rng(2).normal(size=(1, 3, 8, 8)).astype(np.float32)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {"x": x})
    np.save(tmp_path / "x.npy", x)
    report = reports.run_model(path, HOST, QUICK, inputs=[tmp_path / "x.npy"], expected=[])
    (output,) = report["outputs"]
    assert np.abs(np.array(output["values"]) - wanted.reshape(-1)).max() <= ROUNDED * np.ptp(wanted)


def test_other_readers_of_the_integers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "dynamic.onnx"
    quantize_dynamic(layers(tmp_path), path)
    model = onnx.load(path)
    (product,) = (node for node in model.graph.node if node.op_type == "MatMulInteger")
    model.graph.output.append(helper.make_tensor_value_info(product.output[0], TensorProto.INT32, [1, 7]))
    onnx.save(model, path)
    with pytest.raises(ModelError, match="scales that are computed at run time"):
        load(path)


@pytest.mark.parametrize("make", [layers, recurrent])
def test_damaged_nodes_are_refused(make: Any, tmp_path: Path) -> None:
    """Nodes without inputs and outputs, or without some."""
    path = tmp_path / "dynamic.onnx"
    quantize_dynamic(make(tmp_path), path)
    model = onnx.load(path)
    for node in model.graph.node:
        for field in (node.input, node.output):
            whole = list(field)
            for count in range(1, len(whole)):  # the last ones may be optional
                field[:] = whole[:count]
                onnx.save(model, path)
                with suppress(ModelError):
                    load(path)
            del field[:]
            onnx.save(model, path)
            with pytest.raises(ModelError):
                load(path)
            field[:] = whole


@pytest.mark.parametrize("make", [layers, recurrent])
def test_weights_without_dimensions_are_refused(make: Any, tmp_path: Path) -> None:
    path = tmp_path / "dynamic.onnx"
    quantize_dynamic(make(tmp_path), path)
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.INT8 and len(tensor.dims) > 1:
            tensor.CopyFrom(numpy_helper.from_array(np.int8(1), tensor.name))
    onnx.save(model, path)
    with pytest.raises(ModelError):
        load(path)


@pytest.mark.parametrize("changed", ["v_scale", "v_zero_point"])
def test_parameters_along_another_axis_are_refused(changed: str, tmp_path: Path) -> None:
    """A column of scales multiplies rows of a product, and a zero point needs a scale."""
    path = tmp_path / "dynamic.onnx"
    quantize_dynamic(layers(tmp_path), path, per_channel=True)
    model = onnx.load(path)
    (tensor,) = (it for it in model.graph.initializer if it.name == changed)
    values = numpy_helper.to_array(tensor)
    other = values.reshape(-1, 1) if changed == "v_scale" else values[0]
    tensor.CopyFrom(numpy_helper.from_array(other, changed))
    onnx.save(model, path)
    with pytest.raises(ModelError):
        load(path)
