"""Results that are rounded twice: the bits of TFLite Micro, and where they are not possible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flat_files import NONE, RELU, RELU6, SAME, VALID, FlatFile, litert
from flat_variables import CHANNELS, mixed_kernels
from micro import run_micro
from programs import results

import mcudeploy
from mcudeploy.frontend.load import load
from mcudeploy.frontend.lower.tidy_depthwise import join_depthwise
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.planner.plan_options import Options
from tests.networks.refusals import problems_of

WINDOW = {"StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}


def convolution(f: FlatFile, *, padding: int = SAME, activation: int = NONE) -> Any:
    x, y = f.int8(1, 7, 6, 5), f.int8(1, *((7, 6) if padding == SAME else (5, 4)), 9, scale=0.4)
    weights = f.weights(9, 3, 3, 5)
    operands = [x, weights, f.bias(x, weights, 9)]
    f.operator("CONV_2D", operands, y, Padding=padding, FusedActivationFunction=activation, **WINDOW)
    return [x], [y]


def depthwise(f: FlatFile, *, multiplier: int = 1) -> Any:
    x, y = f.int8(1, 8, 5, 6), f.int8(1, 8, 5, 6 * multiplier, scale=0.2, zero=9)
    weights = f.weights(1, 3, 3, 6 * multiplier, axis=3)
    operands = [x, weights, f.bias(x, weights, 6 * multiplier)]
    options = {"Padding": SAME, "DepthMultiplier": multiplier, "FusedActivationFunction": RELU6, **WINDOW}
    f.operator("DEPTHWISE_CONV_2D", operands, y, **options)
    return [x], [y]


def dense(f: FlatFile) -> Any:
    x, y = f.int8(1, 50), f.int8(1, 11, scale=0.3)
    weights = f.weights(11, 50, axis=None)
    f.operator("FULLY_CONNECTED", [x, weights, f.bias(x, weights, 11)], y, FusedActivationFunction=RELU)
    return [x], [y]


def logistic(f: FlatFile) -> Any:
    x = f.int8(1, 256, scale=0.07, zero=20)
    y = f.operator("LOGISTIC", [x], f.int8(1, 256, scale=1 / 256, zero=-128))
    unsigned = f.add(1, 256, kind="UINT8", scale=(1 / 256,), zero_point=(0,))
    f.operator("QUANTIZE", [y], unsigned)
    return [x], [unsigned]


def softmax(f: FlatFile, *, scale: float, count: int = 60) -> Any:
    """Of 5 groups."""
    x, y = f.int8(1, 5, count, scale=scale), f.int8(1, 5, count, scale=1 / 256, zero=-128)
    f.operator("SOFTMAX", [x], y, Beta=1.0)
    return [x], [y]


def function(f: FlatFile, *, op: str, scale: float, zero: int) -> Any:
    x, y = f.int8(1, 256, scale=0.03, zero=-20), f.int8(1, 256, scale=scale, zero=zero)
    f.operator(op, [x], y)
    return [x], [y]


def two_operands(f: FlatFile, *, op: str, constant: str = "", activation: int = NONE) -> Any:
    """Of the input and a convolution of it, a constant of its shape, or one for each channel."""
    x, y = f.int8(1, 5, 4, 8, scale=0.07, zero=4), f.int8(1, 5, 4, 8, scale=0.11, zero=-9)
    if constant:
        values = f.random.integers(-128, 128, (1, 5, 4, 8) if constant == "whole" else (8,))
        other = f.constant(values, np.int8, scale=(0.031,), zero_point=(11,))
    else:
        weights = f.weights(8, 1, 1, 8)
        operands, other = [x, weights, f.bias(x, weights, 8)], f.int8(1, 5, 4, 8, scale=0.3, zero=30)
        f.operator("CONV_2D", operands, other, Padding=VALID, FusedActivationFunction=NONE, **WINDOW)
    f.operator(op, [x, other], y, FusedActivationFunction=activation)
    return [x], [y]


def mean(f: FlatFile, *, axes: tuple[int, ...], keep: bool = True, scale: float = 0.02) -> Any:
    sizes = (1, 5, 7, 6)
    x = f.int8(*sizes, scale=0.05, zero=-7)
    kept = [1 if at in axes else size for at, size in enumerate(sizes)]
    shape = kept if keep else [size for at, size in enumerate(sizes) if at not in axes]
    y = f.int8(*shape, scale=scale, zero=3)
    f.operator("MEAN", [x, f.constant(axes)], y, KeepDims=keep)
    return [x], [y]


def change_of_scale(f: FlatFile, *, scale: float) -> Any:
    x = f.int8(1, 256, scale=0.07, zero=20)
    return [x], [f.operator("QUANTIZE", [x], f.int8(1, 256, scale=scale, zero=-3))]


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (two_operands, {"op": "ADD"}),
        (two_operands, {"op": "SUB", "activation": RELU6}),
        (two_operands, {"op": "MUL"}),
        (two_operands, {"op": "ADD", "constant": "whole"}),
        (two_operands, {"op": "SUB", "constant": "channel"}),
        (two_operands, {"op": "MUL", "constant": "channel", "activation": RELU}),
        (mean, {"axes": (1, 2)}),
        (mean, {"axes": (1, 2), "keep": False, "scale": 0.05}),
        (mean, {"axes": (1,)}),
        (mean, {"axes": (3,)}),
        (change_of_scale, {"scale": 0.14}),
        (change_of_scale, {"scale": 0.031}),
        (convolution, {}),
        (convolution, {"padding": VALID, "activation": RELU}),
        (depthwise, {}),
        (depthwise, {"multiplier": 3}),
        (dense, {}),
        (logistic, {}),
        (softmax, {"scale": 0.02}),
        (softmax, {"scale": 0.08}),
        (softmax, {"scale": 0.004, "count": 2}),
        (softmax, {"scale": 0.3, "count": 12}),
        (softmax, {"scale": 0.15, "count": 300}),
        (function, {"op": "TANH", "scale": 1 / 128, "zero": 0}),
        (function, {"op": "ELU", "scale": 0.03, "zero": -90}),
        (mixed_kernels, {}),
    ],
)
def test_the_bits_of_tflite_micro(make: Any, options: dict[str, int], tmp_path: Path) -> None:
    file = FlatFile()
    path = file.save(tmp_path, *make(file, **options))
    (io,) = load(path).own_inputs()
    inputs = np.random.default_rng(0).integers(-128, 128, (40, *io.shape), np.int8)
    wanted = run_micro(path, inputs)
    assert np.array_equal(results(path, inputs, Options(time_limit=0.5, rounding="tflite")), wanted)
    assert np.unique(wanted).size > 30


@pytest.mark.parametrize("axes", [(1,), (2,), (3,), (1, 2)])
def test_means_that_round_to_fractions_first_are_verified(axes: tuple[int, ...], tmp_path: Path) -> None:
    """Of 7 values of one scale, TFLite rounds the mean to halves, then to integers."""
    file = FlatFile()
    path = file.save(tmp_path, *mean(file, axes=axes, scale=0.05))
    inputs = np.random.default_rng(1).integers(-128, 128, (8, 1, 5, 7, 6), np.int8)
    result = mcudeploy.run(path, inputs=list(inputs), time_limit=0.5, rounding="tflite")
    assert result.verified, result.report["reason"]


def test_kernels_of_several_sizes_are_one_convolution(tmp_path: Path) -> None:
    file = FlatFile()
    graph = load(file.save(tmp_path, *mixed_kernels(file)))
    assert [operator.op.kind for operator in graph.operators] == ["Queue", "Reshape", "Conv2d"]
    conv = graph.operators[-1]
    assert isinstance(conv.op, Conv2d) and conv.op.kernel_shape == (5, 1)
    weights = conv.constants["weights"]
    assert not weights[: CHANNELS // 2, :2].any() and weights[:, 2:].any()
    assert join_depthwise(graph) is graph


@pytest.mark.parametrize("reason", ["scale", "order", "reader"])
def test_kernels_that_remain_apart(reason: str, tmp_path: Path) -> None:
    file = FlatFile()
    graph = load(file.save(tmp_path, *mixed_kernels(file, apart=reason)))
    assert sum(isinstance(operator.op, Conv2d) for operator in graph.operators) == 2


@pytest.mark.parametrize("zero", [-128, 0])
def test_rounding_of_a_network_with_softmax(zero: int, tmp_path: Path) -> None:
    """Another scale than 1/256 from -128 on is refused."""
    file = FlatFile()
    (x,), (y,) = dense(file)
    softmax = file.operator("SOFTMAX", [y], file.int8(1, 11, scale=1 / 256, zero=zero), Beta=1.0)
    path = file.save(tmp_path, [x], [softmax])
    if zero == -128:
        assert _roundings(path) == {"tflite"} and _roundings(path, rounding="once") == {"once"}
        return
    assert any("because of Softmax" in note for note in load(path).notes)
    assert _roundings(path) == {"once"}
    assert [it.op for it in problems_of(path, rounding="tflite")] == ["Softmax"]


def test_rounding_once_on_request(tmp_path: Path) -> None:
    file = FlatFile()
    path = file.save(tmp_path, *dense(file))
    assert _roundings(path) == {"tflite"}
    assert _roundings(path, rounding="once") == {"once"}


def _roundings(path: Path, **options: Any) -> set[str]:
    operators = (operator.op for operator in load(path, **options).operators)
    return {op.rounding for op in operators if isinstance(op, Conv2d)}


def _uint8(f: FlatFile, *shape: int, scale: float, zero: int) -> int:
    return f.add(*shape, kind="UINT8", scale=(scale,), zero_point=(zero,))


def _uint8_weights(f: FlatFile, *shape: int, zero: int) -> int:
    """Around their zero point; if it is not 128, some less it are not int8."""
    values = np.clip(np.rint(f.random.normal(zero, 40, shape)), 0, 255)
    values.reshape(-1)[::17] = 255 if zero < 128 else 0 if zero > 128 else 128
    return f.constant(values, np.uint8, scale=(0.015,), zero_point=(zero,))


def unsigned_layers(f: FlatFile, *, zero: int) -> Any:
    """Layers of uint8 as converters of TensorFlow 1 wrote them: weights around any zero point."""
    x, a = _uint8(f, 1, 7, 6, 5, scale=0.05, zero=120), _uint8(f, 1, 7, 6, 8, scale=0.4, zero=90)
    b, y = _uint8(f, 1, 7, 6, 8, scale=0.9, zero=131), _uint8(f, 1, 9, scale=8.0, zero=128)
    first, second, third = (
        _uint8_weights(f, *shape, zero=zero) for shape in ((8, 3, 3, 5), (1, 3, 3, 8), (9, 7 * 6 * 8))
    )
    same = {"Padding": SAME, **WINDOW}
    f.operator("CONV_2D", [x, first, f.bias(x, first, 8)], a, FusedActivationFunction=RELU6, **same)
    operands = [a, second, f.bias(a, second, 8)]
    f.operator("DEPTHWISE_CONV_2D", operands, b, DepthMultiplier=1, FusedActivationFunction=NONE, **same)
    f.operator("FULLY_CONNECTED", [b, third, f.bias(b, third, 9)], y, FusedActivationFunction=NONE)
    return [x], [y]


@pytest.mark.parametrize("zero", [100, 128, 151])
def test_the_results_of_litert_by_weights_of_uint8(zero: int, tmp_path: Path) -> None:
    """In longer runs 6 of 10,800 results differ by a step."""
    file = FlatFile()
    path = file.save(tmp_path, *unsigned_layers(file, zero=zero))
    graph = load(path)
    assert graph.float_causes == {}
    inputs = np.random.default_rng(0).integers(0, 256, (20, 1, 7, 6, 5), np.uint8)
    wanted = np.stack([litert(path, [each])[0] for each in inputs])
    computed = results(path, inputs, Options(time_limit=0.5, rounding="tflite"))
    off = np.abs(computed.reshape(wanted.shape).astype(np.int32) - wanted)
    assert off.max() <= 1 and np.count_nonzero(off) <= 0.01 * off.size
    assert np.unique(wanted).size > 30
