"""Gradients of functions of one value: slopes of the loss in float64, and kernels against float64."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto
from test_gradients import SLOPE_TOLERANCE, drawn, step_of, worst_slope
from test_pool_gradients import largest_error

from mcudeploy.common.errors import ModelError
from tests.networks.onnx_files import save
from tests.networks.trained import Network

FUNCTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "Abs": ("Abs", {}),
    "Celu": ("Celu", {"alpha": 0.5}),
    "Elu": ("Elu", {}),
    "Elu2": ("Elu", {"alpha": 2.0}),
    "Erf": ("Erf", {}),
    "Exp": ("Exp", {}),
    "Gelu": ("Gelu", {}),
    "GeluByTanh": ("Gelu", {"approximate": "tanh"}),
    "HardSigmoid": ("HardSigmoid", {}),
    "HardSwish": ("HardSwish", {}),
    "LeakyRelu": ("LeakyRelu", {"alpha": 0.125}),
    "LeakyRelu0": ("LeakyRelu", {"alpha": 0.0}),
    "Neg": ("Neg", {}),
    "Selu": ("Selu", {}),
    "Sigmoid": ("Sigmoid", {}),
    "Softplus": ("Softplus", {}),
    "Swish": ("Swish", {"alpha": 1.5}),
    "Tanh": ("Tanh", {}),
}


def network(op: str, **attributes: Any) -> Network:
    """Two convolutions with a function of one value between them."""
    net = Network(11, (3, 7, 6))
    net.conv(6, 3)
    net.node(op, [net.value], **attributes)
    net.conv(5, 1)
    net.node("GlobalAveragePool", [net.value])
    net.size = (5, 1, 1)
    net.dense(4)
    return net


def of_newest_opset(model: ModelProto) -> ModelProto:
    """The model with the operators of ONNX's version 24, such as Gelu and Swish."""
    model.opset_import[0].version = 24
    model.ir_version = 11
    return model


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_slopes_of_the_loss(name: str, tmp_path: Path) -> None:
    op, attributes = FUNCTIONS[name]
    model = of_newest_opset(network(op, **attributes).model())
    step = step_of(save(model, tmp_path), "cross-entropy")
    assert worst_slope(step, drawn(step, "cross-entropy", 0)) < SLOPE_TOLERANCE


@pytest.mark.parametrize("first", range(3))
def test_gradients_of_the_kernels(first: int, tmp_path: Path) -> None:
    """A third of the functions, side by side."""
    net = Network(11, (3, 7, 6))
    net.conv(6, 3)
    start, chosen = net.value, list(FUNCTIONS.values())[first::3]
    results = [net.node(op, [start], **attributes) for op, attributes in chosen]
    net.node("Concat", results, axis=1)
    net.size = (6 * len(results), 7, 6)
    net.conv(5, 1)
    net.node("GlobalAveragePool", [net.value])
    net.size = (5, 1, 1)
    net.dense(4)
    assert largest_error(of_newest_opset(net.model()), tmp_path) <= 1e-5


@pytest.mark.parametrize(("op", "kind"), [("HardSwish", "ClipGradient"), ("Elu", "ClipMask")])
def test_a_clip_before_keeps_what_the_slope_reads(op: str, kind: str, tmp_path: Path) -> None:
    """HardSwish reads its argument again, and Elu does not."""
    net = Network(11, (3, 7, 6))
    net.conv(6, 3)
    net.activation("Clip1")
    net.node(op, [net.value])
    net.dense(4)
    step = step_of(save(net.model(), tmp_path), "cross-entropy")
    kinds = Counter(node.op_type for node in step.proto.graph.node)
    assert kinds["ClipMask"] + kinds["ClipGradient"] == kinds[kind] == 1
    assert worst_slope(step, drawn(step, "cross-entropy", 0)) < SLOPE_TOLERANCE


@pytest.mark.parametrize(("update", "kind"), [("full", "PiecewiseGradient"), ("bias", "SlopedGradient")])
def test_leaky_relu_keeps_bits_unless_values_are_read(update: str, kind: str, tmp_path: Path) -> None:
    path = save(network("LeakyRelu", alpha=0.125).model(), tmp_path)
    step = step_of(path, "cross-entropy", update)
    kinds = Counter(node.op_type for node in step.proto.graph.node)
    assert kinds["PiecewiseGradient"] + kinds["SlopedGradient"] == kinds[kind] == 1
    assert worst_slope(step, drawn(step, "cross-entropy", 0)) < SLOPE_TOLERANCE
    assert largest_error(network("LeakyRelu", alpha=0.125).model(), tmp_path, update) <= 1e-5


def test_a_function_that_falls_is_refused(tmp_path: Path) -> None:
    path = save(network("LeakyRelu", alpha=-0.5).model(), tmp_path)
    with pytest.raises(ModelError, match=r"leaky_relu with an alpha of -0.5 does not rise"):
        step_of(path, "cross-entropy")


def test_a_function_without_gradient_is_refused(tmp_path: Path) -> None:
    path = save(network("Floor").model(), tmp_path)
    with pytest.raises(ModelError, match="floor has no gradient here"):
        step_of(path, "cross-entropy")
