"""Operators on integers, against the same float operators between quantisations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from harness import check_against_onnx
from onnx import TensorProto, helper

from mcudeploy.frontend.decompose.reference_rules import for_reference
from mcudeploy.verify.reference import Reference
from tests.networks.onnx_files import build

RNG = np.random.default_rng(0)
X = RNG.integers(0, 256, (1, 4, 6, 6)).astype(np.uint8)
SCALES = {"xs": np.float32(0.05137), "xz": np.uint8(120), "ys": np.float32(0.0973), "yz": np.uint8(130)}


def model_of(
    op: str, order: str, constants: dict[str, Any], domain: str = "", **attributes: Any
) -> onnx.ModelProto:
    """A model of one such operator on uint8 x, and y if it is read."""
    names = order.split()
    node = helper.make_node(op, names, ["out"], name="node", domain=domain, **attributes)
    inputs = [name for name in ("x", "y") if name in names]
    every = {**SCALES, **constants}
    return build(
        [node],
        dict.fromkeys(inputs, X),
        {"out": (np.uint8, None)},
        {name: every[name] for name in dict.fromkeys(names) if name in every},
    )


def check(model: onnx.ModelProto) -> None:
    inputs = {value.name: X for value in model.graph.input}
    plain = for_reference(model)
    session = onnxruntime.InferenceSession(plain.SerializeToString(), providers=["CPUExecutionProvider"])
    (computed,) = session.run(None, inputs)
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("out", TensorProto.UINT8, computed.shape))
    check_against_onnx(model, inputs)


WEIGHTS = {
    "w": RNG.integers(-127, 128, (5, 4, 3, 3)).astype(np.int8),
    "ws": RNG.uniform(0.001, 0.01, 5).astype(np.float32),
    "wz": np.zeros(5, np.int8),
    "b": RNG.integers(-999, 999, 5).astype(np.int32),
}


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("bias", ["", " b"])
def test_convolution(per_channel: bool, bias: str) -> None:
    constants = dict(WEIGHTS)
    if not per_channel:
        constants |= {"ws": np.array([0.00413], np.float32), "wz": np.array([0], np.int8)}
    check(model_of("QLinearConv", "x xs xz w ws wz ys yz" + bias, constants, pads=[1, 1, 1, 1]))


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_two_tensors(op: str) -> None:
    check(model_of(op, "x xs xz y xs xz ys yz", {}, "com.microsoft"))


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("QLinearAveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("QLinearGlobalAveragePool", {}),
        ("QLinearLeakyRelu", {"alpha": 0.2}),
        ("QLinearSigmoid", {}),
    ],
)
def test_one_tensor(op: str, attributes: dict[str, Any]) -> None:
    check(model_of(op, "x xs xz ys yz", {}, "com.microsoft", **attributes))


def test_concat() -> None:
    check(model_of("QLinearConcat", "ys yz x xs xz y ys yz", {}, "com.microsoft", axis=1))


def test_a_dense_layer() -> None:
    constants = {
        "g": RNG.integers(-127, 128, (7, 144)).astype(np.int8),
        "gs": np.float32(0.004),
        "gz": np.int8(0),
    }
    model = model_of(
        "QGemm",
        "v xs xz g gs gz c ys yz",
        {**constants, "c": np.arange(7, dtype=np.int32)},
        "com.microsoft",
        transB=1,
    )
    model.graph.node.insert(0, helper.make_node("Flatten", ["x"], ["v"], name="flat"))
    model.graph.input.append(helper.make_tensor_value_info("x", TensorProto.UINT8, X.shape))
    check(model)


def test_a_model_without_them_stays_as_it_is(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"], name="relu")
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 2)) for name in "xy"]
    model = helper.make_model(helper.make_graph([node], "g", infos[:1], infos[1:]))
    assert for_reference(model) is model


@pytest.mark.parametrize("opset", [10, 12])
def test_a_bias_before_opset_13(opset: int, tmp_path: Path) -> None:
    """DequantizeLinear has no axis there. Small weights: the kernel of ONNX Runtime may saturate inside."""
    constants = {**WEIGHTS, "w": WEIGHTS["w"] // 4}
    model = model_of("QLinearConv", "x xs xz w ws wz ys yz b", constants, pads=[1, 1, 1, 1])
    model.opset_import[0].version = opset
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {"x": X})
    computed = Reference(tmp_path / "model.onnx", ["out"]).run({"x": X})["out"]
    assert np.abs(computed.astype(int) - wanted.astype(int)).max() <= 1
