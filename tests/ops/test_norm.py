"""Normalisations: along channels, over images, in groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import check_against_onnx, check_graph, graph_of
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from reference_node import check_reference
from single_node import Quantized, bounded, check_float, check_quantized, kinds, node, normal, seeds, shapes

from mcudeploy.ir.graph import DType, Quantization, Tensor
from mcudeploy.ops.reduce.norm import LayerNorm, fixed_point
from mcudeploy.verify.reference import Reference
from tests.networks.onnx_files import build, save
from tests.weekly import examples


@given(shape=shapes, axis=st.integers(-3, -1), bias=st.booleans(), seed=seeds)
@settings(parent=bounded, max_examples=examples(4, 8))
def test_layer_normalization(shape: tuple[int, ...], axis: int, bias: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = shape[axis:]
    constants = {"scale": normal(rng, sizes)} | ({"bias": normal(rng, sizes)} if bias else {})
    what = node("LayerNormalization", "x", *constants, constants=constants, axis=axis, epsilon=1e-3)
    graph = check_float(what, {"x": normal(rng, shape)}, float_tolerance=1e-4)
    assert "LayerNorm" in kinds(graph)
    graph = check_quantized(what, {"x": Quantized.draw(rng, shape, np.int8)})
    assert not {"Quantize", "Dequantize"}.intersection(kinds(graph))


@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization"])
@pytest.mark.parametrize(("count", "spread"), [(1, 9), (3, 0), (7, 1), (64, 100), (1000, 127), (64, 2)])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-5, 100.0])
def test_layer_normalization_of_int8(op: str, count: int, spread: int, epsilon: float) -> None:
    """Against double precision: other than ties of float32, every result is rounded as it should be."""
    rng = np.random.default_rng(count + spread)
    values = rng.integers(-spread, spread + 1, (6, 1, count)).astype(np.int8)
    constants = {"scale": normal(rng, (count,)), "bias": normal(rng, (count,))}
    centred = op == "LayerNormalization"
    norm = LayerNorm(epsilon, centred)
    x = Tensor("x", values.shape, DType.INT8, Quantization(0.03, 5))
    y = Tensor("y", values.shape, DType.INT8, Quantization(0.02, -3))
    computed = check_graph(graph_of(norm, x, y, constants=constants), {"x": values})["y"].astype(np.float64)
    real = 0.03 * (values.astype(np.float64) - 5)
    real -= real.mean(axis=2, keepdims=True) if centred else 0
    real /= np.sqrt((real * real).mean(axis=2, keepdims=True) + epsilon)
    wanted = np.clip((real * constants["scale"] + constants["bias"]) / 0.02 - 3, -128, 127)
    assert np.abs(computed - wanted).max() <= 0.5 + 1e-3


@pytest.mark.parametrize(("scale", "int8"), [(1.0, True), (1e4, False)])
def test_a_large_scale_stays_float(scale: float, int8: bool) -> None:
    constants = np.array([1.0, scale], np.float32), np.zeros(2, np.float32)
    assert (fixed_point(*constants, Quantization(0.01, 0)) is not None) == int8


def test_a_parameter_of_one_element_is_that_of_all() -> None:
    rng = np.random.default_rng(0)
    what = node("LayerNormalization", "x", "s", constants={"s": np.array([1.5], np.float32)}, epsilon=1e-3)
    check_float(what, {"x": normal(rng, (1, 5, 6))}, float_tolerance=1e-4)


@pytest.mark.parametrize(
    ("op", "constants", "attributes"),
    [
        ("InstanceNormalization", 4, {"epsilon": 1e-3}),
        ("GroupNormalization", 4, {"num_groups": 2, "epsilon": 1e-3}),
        ("MeanVarianceNormalization", 0, {"axes": [0, 2, 3]}),
        ("MeanVarianceNormalization", 0, {"axes": [0, 1, 2, 3]}),
        ("LRN", 0, {"size": 3, "alpha": 0.5, "bias": 2.0}),
        ("LRN", 0, {"size": 5, "alpha": 0.5, "beta": 0.5}),
        ("LpNormalization", 0, {"axis": 1}),
        ("LpNormalization", 0, {"axis": -1, "p": 1}),
    ],
)
def test_others_are_made_of_sums(op: str, constants: int, attributes: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    parameters = {name: normal(rng, (constants,)) for name in ("scale", "bias")} if constants else {}
    what = node(op, "x", *parameters, constants=parameters, **attributes)
    check_float(what, {"x": normal(rng, (1, 4, 6, 5))}, float_tolerance=1e-4)


@pytest.mark.parametrize(
    ("op", "count", "size"),
    [
        ("LayerNormalization", 2, (6, 5)),
        ("RMSNormalization", 1, (6, 5)),
        ("BatchNormalization", 4, (4,)),
        ("InstanceNormalization", 2, (4,)),
        ("GroupNormalization", 2, (4,)),
    ],
)
def test_parameters_that_are_computed(op: str, count: int, size: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    inputs = {"x": normal(rng, (2, 4, 6, 5))}
    inputs |= {f"p{place}": np.abs(normal(rng, size)) + 0.1 for place in range(count)}
    attributes = {"axis": 2} if len(size) == 2 else {"num_groups": 2} if op.startswith("Group") else {}
    item = helper.make_node(op, list(inputs), ["y"], name="node", epsilon=1e-3, **attributes)
    check_reference(item, inputs, {}, 23)


@pytest.mark.parametrize("axis", [1, -1])
def test_mean_and_deviation(axis: int) -> None:
    rng = np.random.default_rng(3)
    x = normal(rng, (2, 4, 6))
    constants = {"s": normal(rng, x.shape[axis:]), "b": normal(rng, x.shape[axis:])}
    outputs = ["y", "mean", "deviation"]
    item = helper.make_node("LayerNormalization", ["x", "s", "b"], outputs, name="node", axis=axis)
    check_reference(item, {"x": x}, constants, 21)


def test_several_images() -> None:
    rng = np.random.default_rng(4)
    constants = {name: np.abs(normal(rng, (4,))) for name in ("s", "b", "m", "v")}
    check_float(
        node("BatchNormalization", "x", *constants, constants=constants), {"x": normal(rng, (3, 4, 5))}
    )


@pytest.mark.parametrize("opset", [13, 20])
def test_a_constant_image_has_no_deviation(opset: int) -> None:
    """ONNX Runtime's own kernel computes 0 / 0 for it, or divides the rounding error by itself."""
    x = np.ones((1, 3, 7, 9), np.float32) * np.array([0.0, 0.1, 255.3], np.float32).reshape(3, 1, 1)
    x[0, 1, 2, 3] += opset == 20
    item = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], axes=[0, 2, 3])
    check_against_onnx(build([item], {"x": x}, ["y"], opset=opset), {"x": x})


@pytest.mark.parametrize(
    ("op", "opset", "attributes"),
    [("InstanceNormalization", 8, {}), ("GroupNormalization", 21, {"num_groups": 2})],
)
def test_a_constant_image_is_the_bias(
    op: str, opset: int, attributes: dict[str, Any], tmp_path: Path
) -> None:
    """Without corrections, both the program and ONNX Runtime are off by 0.1 and more."""
    x = np.full((2, 4, 16, 16), 255.3, np.float32)
    x[1] = normal(np.random.default_rng(7), x[1].shape)
    parameters = {"s": np.full(4, 1.5, np.float32), "b": np.full(4, 0.25, np.float32)}
    item = helper.make_node(op, ["x", "s", "b"], ["y"], **attributes)
    model = build([item], {"x": x}, ["y"], parameters, opset=opset)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, x.shape))
    check_against_onnx(model, {"x": x})
    expected = Reference(save(model, tmp_path), ["y"]).run({"x": x})["y"]
    assert np.abs(expected[0] - 0.25).max() < 1e-6


def test_default_axes() -> None:
    """ONNX's checker fails on the node without them."""
    x = normal(np.random.default_rng(5), (2, 3, 4, 5))
    check_float(node("MeanVarianceNormalization", "x"), {"x": x}, float_tolerance=1e-4)
