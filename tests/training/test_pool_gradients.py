"""Gradients of pools: slopes of the loss in float64, kernels against float64, what they keep."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from float64_steps import Float64Step
from harness import outputs_of
from onnx import ModelProto
from test_gradients import SLOPE_TOLERANCE, drawn, step_of, worst_slope
from test_training_programs import LARGE_RATE

from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.load import load
from tests.networks.onnx_files import save
from tests.networks.trained import Network

POOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "halves": ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "overlapping": ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "every": ("MaxPool", {"kernel_shape": [3, 2], "strides": [1, 1], "pads": [1, 0, 1, 1]}),
    "ceil": ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "apart": ("MaxPool", {"kernel_shape": [2, 2], "strides": [3, 3]}),
    "dilated": ("MaxPool", {"kernel_shape": [2, 2], "strides": [1, 1], "dilations": [2, 2]}),
    "whole": ("GlobalMaxPool", {}),
    "mean": ("AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "mean-inside": ("AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "mean-padded": (
        "AveragePool",
        {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1], "count_include_pad": 1},
    ),
    "mean-ceil": ("AveragePool", {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1}),
    "mean-apart": ("AveragePool", {"kernel_shape": [2, 2], "strides": [3, 3]}),
}


def pooled(name: str, *, relu: bool = True) -> Network:
    """Two convolutions with a pool between them."""
    net = Network(7, (3, 10, 9))
    net.conv(6, 3)
    net.activation("Relu" if relu else "")
    op, attributes = POOLS[name]
    net.node(op, [net.value], **attributes)
    net.node("Conv", [net.value, net.weights(5, 6, 1, 1), net.weights(5)])
    net.node("GlobalAveragePool", [net.value])
    net.size = (5, 1, 1)
    net.dense(4)
    return net


@pytest.mark.parametrize("name", POOLS)
def test_gradients_are_slopes_of_the_loss(name: str, tmp_path: Path) -> None:
    step = step_of(save(pooled(name).model(), tmp_path), "cross-entropy")
    assert worst_slope(step, drawn(step, "cross-entropy", 0)) < SLOPE_TOLERANCE


def largest_error(model: ModelProto, folder: Path, update: str = "full") -> float:
    """The largest error of a gradient of the kernels against float64, relative to the largest of its
    parameter; they have the same bits in pieces, in place and whole.
    """
    step = step_of(save(model, folder), "cross-entropy", update, LARGE_RATE)
    inputs, reference = drawn(step, "cross-entropy", 2), Float64Step(step)
    values = outputs_of(load(save(step.proto, folder, "step"), keep_constant=True), inputs)
    wanted = reference.gradients(inputs, reference.initial, LARGE_RATE)
    assert all(np.any(gradient) for gradient in wanted.values())
    errors = [0.0]
    for name, following in step.parameters.items():
        gradient = (reference.initial[name] - values[following].astype(np.float64)) / LARGE_RATE
        errors.append(float(np.abs(gradient - wanted[name]).max() / np.abs(wanted[name]).max()))
    return max(errors)


@pytest.mark.parametrize("kinds", [("MaxPool", "GlobalMaxPool"), ("AveragePool",)])
def test_gradients_of_the_kernels(kinds: tuple[str, ...], tmp_path: Path) -> None:
    """All maxima, or all averages, side by side, each before a layer and a mean."""
    net = Network(7, (3, 10, 9))
    net.conv(6, 3)
    start = net.node("Relu", [net.value])
    results = []
    for op, attributes in [it for it in POOLS.values() if it[0] in kinds]:
        net.node(op, [start], **attributes)
        net.node("Conv", [net.value, net.weights(2, 6, 1, 1), net.weights(2)])
        net.activation("Tanh")
        results.append(net.node("GlobalAveragePool", [net.value]))
    net.node("Concat", results, axis=1)
    net.size = (2 * len(results), 1, 1)
    net.dense(4)
    assert largest_error(net.model(), tmp_path) <= 1e-5


def test_of_equal_values_the_first_gets_the_gradient(tmp_path: Path) -> None:
    """Weights of zero make all values under a window equal."""
    net = pooled("overlapping", relu=False)
    weights = next(array for array in net.constants.values() if array.ndim == 4)
    weights[...] = 0
    assert largest_error(net.model(), tmp_path) <= 1e-5


def test_bits_and_taps_are_kept(tmp_path: Path) -> None:
    """The clip before a maximum keeps bits, as the gradient reads no values."""
    step = step_of(save(pooled("halves").model(), tmp_path), "cross-entropy")
    kinds = Counter(node.op_type for node in step.proto.graph.node)
    assert kinds["MaxPoolTaps"] == kinds["MaxPoolGradient"] == kinds["ClipMask"] == 1
    assert kinds["ClipGradient"] == 0


def test_a_large_window_is_refused(tmp_path: Path) -> None:
    net = Network(7, (3, 20, 20))
    net.conv(4, 3)
    net.node("GlobalMaxPool", [net.value])
    net.size = (4, 1, 1)
    net.dense(3)
    path = save(net.model(), tmp_path)
    with pytest.raises(ModelError, match="20 x 20 has more than 256 taps"):
        step_of(path, "cross-entropy")
    step_of(path, "cross-entropy", "last:1")


def test_a_mean_that_counts_no_end_is_refused(tmp_path: Path) -> None:
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1, "count_include_pad": 1}
    net = Network(7, (3, 9, 9))
    net.conv(4, 3)
    net.node("AveragePool", [net.value], **attributes)
    net.size = (4, 5, 5)
    net.dense(3)
    with pytest.raises(ModelError, match="beyond padding that counts"):
        step_of(save(net.model(), tmp_path), "cross-entropy")
