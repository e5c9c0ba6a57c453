"""Convolutions whose results are rounded twice: the kernels against integers, for every cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import graph_of, run_operator
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from single_node import bounded, seeds

from mcudeploy.ir.graph import DType, Graph, Quantization, Shape, Tensor
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.conv.conv_constants import ConvConstants
from mcudeploy.ops.conv.conv_twice import settled
from mcudeploy.ops.move.queue import Queue
from mcudeploy.ops.reduce.reduce import Reduce
from mcudeploy.ops.requantize import mean_multiplier, rounded_twice, tflite_multipliers
from mcudeploy.ops.scalar.elementwise import Binary

Array = NDArray[Any]
pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))
X, Y = Quantization(0.0625, -3), Quantization(0.5, 5)


@st.composite
def geometries(draw: st.DrawFn) -> tuple[Conv2d, Shape]:
    """A convolution of any kind, with or without padding, and its input's shape."""
    shape = (draw(st.integers(1, 7)), draw(st.integers(1, 6)), draw(st.integers(1, 9)))
    kernel = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    if draw(st.booleans()):
        kernel = (draw(st.integers(1, shape[0])), shape[1])  # rows of it lie side by side
        shape = (*shape[:2], 4 * shape[2])
    stride, dilation = draw(pairs), draw(pairs)
    top, left = (draw(st.sampled_from([0, size - 1])) for size in kernel)
    reach = [dilation[i] * (kernel[i] - 1) + 1 for i in range(2)]
    more = [max(0, reach[i] - shape[i] - before) for i, before in enumerate((top, left))]
    groups = draw(st.sampled_from([1, shape[2]]))
    outputs = groups * draw(st.integers(1, 2)) if groups > 1 else draw(st.integers(1, 9))
    low = draw(st.sampled_from([-np.inf, 0.0]))
    pads = (top, left, *more)
    return Conv2d(outputs, kernel, stride, dilation, pads, groups, low, rounding="tflite"), shape


@given(
    geometry=geometries(),
    seed=seeds,
    growth=st.sampled_from([0.2, 1.0, 3.0, 500.0, "halves"]),
    zero=st.sampled_from([128, 128, 0, 7, 255]),
)
@bounded
def test_results_of_every_cut(geometry: tuple[Conv2d, Shape], seed: int, growth: Any, zero: int) -> None:
    """By weights of int8, or of uint8 less other zero points; many results may be halves."""
    conv, shape = geometry
    rng = np.random.default_rng(seed)
    shape_of_weights = conv.out_channels, *conv.kernel_shape, shape[2] // conv.groups
    weights = rng.integers(0, 256, shape_of_weights) - zero
    depth = np.prod(weights.shape[1:])
    if growth == "halves":
        scales = 2.0 ** -rng.integers(-1, 12, conv.out_channels)
    else:
        scales = growth / 128 / depth * rng.uniform(0.1, 3, conv.out_channels)
    constants = {
        "weights": weights.astype(np.int8 if zero == 128 else np.int16),
        "bias": rng.integers(-2000, 2000, conv.out_channels).astype(np.int32),
        "weight_scale": scales.astype(np.float32),
    }
    result = conv.loops((shape,)).output_shape()
    graph = _graph(conv, {"x": (shape, X)}, (result, Y), constants)
    x = rng.integers(-128, 128, shape).astype(np.int8)
    wanted = _reference(conv, x, result, constants)
    for rows in {result[0], 1, int(rng.integers(1, result[0] + 1))}:
        outputs = run_operator(graph, graph.operators[0], {"x": x}, rows, seed=seed)
        assert np.array_equal(outputs, wanted), f"blocks of {rows} rows"


@pytest.mark.parametrize("scale", [0.3, 0.4999999, 0.25, 2.0**-2 + 2.0**-18, 2.0**-2 + 2.0**-20, 0.6, 1.5])
@pytest.mark.parametrize("low", [-128, 5])
@pytest.mark.parametrize("least_weight", [-127, -128])
def test_two_multiplications_of_every_sum(scale: float, low: int, least_weight: int) -> None:
    """Scales of a quarter and more: the sums of 18 bits of a small window, all of them."""
    weights = np.full((2, 3, 3, 1), 100, np.int8)
    weights[0, 0, 0, 0] = least_weight
    multipliers, exponents = tflite_multipliers(np.array([scale, 0.01]))
    own = ConvConstants(weights, np.array([77, 0], np.int32), multipliers, exponents)
    output = Tensor("y", (3, 3, 2), DType.INT8, Y)
    found = settled(own, {"act.min": low, "act.max": 127}, output)
    if scale > 1:
        assert found is None
        return
    assert found is not None and found[0].multipliers is not None
    constants, left = found[0], found[1]["quant.left_shift"]
    has_halves = scale in {0.25, 2.0**-2 + 2.0**-18}
    is_opposite = scale < 0.5 and low == Y.zero_point and least_weight == -127 and not has_halves
    assert left == (2 if scale > 0.5 else 0 if is_opposite else 1)
    assert np.array_equal(constants.weights[0], -weights[0] if is_opposite else weights[0])
    for channel, sums in enumerate((np.arange(-(2**17), 2**17), np.arange(-(2**17), 2**17))):
        stored = -sums if is_opposite and channel == 0 else sums
        first, power = constants.multipliers[channel].astype(np.int64)
        once = stored + (stored * first + 2**31 >> 32)
        results = np.clip(((once << left) * power + 2**31 >> 32) + Y.zero_point, low, 127)
        unclipped = rounded_twice(sums, int(multipliers[channel]), int(exponents[channel])) + Y.zero_point
        wanted = np.clip(unclipped, low, 127)
        assert np.array_equal(results, wanted)
        if left == 0:  # products of one word, as Cortex-M0 has them
            product = once * (power >> 19)
            total = product + (product >> 31) + (Y.zero_point << 13) + 2**12
            assert np.abs(total).max() < 2**31 and np.array_equal(np.clip(total >> 13, low, 127), wanted)


@pytest.mark.parametrize(("size", "left"), [(7, 0), (17, 1)])
def test_large_results_take_a_shift(size: int, left: int) -> None:
    """Beyond 2^18 a product of one word would overflow."""
    multipliers, exponents = tflite_multipliers(np.array([0.24]))
    weights = np.full((1, size, size, 1), 127, np.int8)
    own = ConvConstants(weights, np.array([0], np.int32), multipliers, exponents)
    found = settled(own, {"act.min": -128, "act.max": 127}, Tensor("y", (3, 3, 1), DType.INT8, Y))
    assert found is not None and found[1]["quant.left_shift"] == left
    assert (127 * 128 * size**2 * 0.24 > 2**18) == (left > 0)


def _reference(conv: Conv2d, x: Array, shape: Shape, constants: dict[str, Array]) -> Array:
    """The definition, in integers."""
    top, left, bottom, right = conv.pads
    padded = np.pad(x.astype(np.int64) - X.zero_point, ((top, bottom), (left, right), (0, 0)))
    weights = constants["weights"].astype(np.int64)
    sums = np.zeros(shape, np.int64)
    inputs, outputs = x.shape[2] // conv.groups, conv.out_channels // conv.groups
    for row in range(shape[0]):
        for col in range(shape[1]):
            rows = row * conv.stride[0] + conv.dilation[0] * np.arange(conv.kernel_shape[0])
            cols = col * conv.stride[1] + conv.dilation[1] * np.arange(conv.kernel_shape[1])
            window = padded[np.ix_(rows, cols)]
            for group in range(conv.groups):
                part = slice(group * outputs, (group + 1) * outputs)
                values = window[:, :, group * inputs : (group + 1) * inputs]
                sums[row, col, part] = (weights[part] * values).sum(axis=(1, 2, 3))
    sums += constants["bias"]
    scales = constants["weight_scale"].astype(np.float64) * X.scale / Y.scale
    multipliers, exponents = tflite_multipliers(scales)
    results = [
        rounded_twice(sums[..., channel], int(multipliers[channel]), int(exponents[channel]))
        for channel in range(shape[2])
    ]
    low = Y.zero_point if conv.low == 0 else -128
    return np.clip(np.stack(results, axis=-1) + Y.zero_point, low, 127).astype(np.int8)


@given(
    shape=st.tuples(st.integers(1, 6), st.integers(1, 5), st.integers(1, 9)),
    function=st.sampled_from(["add", "sub", "mul"]),
    broadcast=st.sets(st.sampled_from([0, 1, 2])),
    low=st.sampled_from([-np.inf, 0.0]),
    scale=st.sampled_from([0.11, 0.0625, 0.02, 0.001, 0.7]),
    seed=seeds,
)
@bounded
def test_two_operands(
    shape: Shape, function: Any, broadcast: set[int], low: float, scale: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows, cols, channels = (1 if axis in broadcast else size for axis, size in enumerate(shape))
    inputs = {"a": (shape, X), "b": ((rows, cols, channels), Quantization(scale, 20))}
    graph = _graph(Binary(function, low=low, rounding="tflite"), inputs, (shape, Y), {})
    values = {name: rng.integers(-128, 128, sizes).astype(np.int8) for name, (sizes, _) in inputs.items()}
    a, b = (values[name].astype(np.int64) - inputs[name][1].zero_point for name in "ab")
    if function == "mul":
        sums = _scaled(a * b, X.scale * scale / Y.scale)
    else:
        common = 2 * max(X.scale, scale)
        first, second = _scaled(a * 2**20, X.scale / common), _scaled(b * 2**20, scale / common)
        sums = first + second if function == "add" else first - second
        sums = _scaled(sums, common / (2**20 * Y.scale))
    wanted = np.clip(sums + Y.zero_point, Y.zero_point if low == 0 else -128, 127)
    for block in {shape[0], 1}:
        outputs = run_operator(graph, graph.operators[0], values, block, seed=seed)
        assert np.array_equal(outputs, wanted)


@given(
    shape=st.tuples(st.integers(1, 6), st.integers(1, 5), st.integers(1, 9)),
    axes=st.sampled_from([(0, 1), (0,), (1,), (2,), (0, 1, 2)]),
    seed=seeds,
)
@bounded
def test_means(shape: Shape, axes: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-128, 128, shape).astype(np.int8)
    sums = (x.astype(np.int64) - X.zero_point).sum(axis=axes, keepdims=True)
    quantization = Quantization(float(rng.choice([0.01, 0.05])), 7)
    graph = _graph(Reduce(axes, rounding="tflite"), {"x": (shape, X)}, (sums.shape, quantization), {})
    multiplier, exponent = mean_multiplier(X.scale / quantization.scale, x.size // sums.size)
    wanted = np.clip(rounded_twice(sums, multiplier, exponent) + 7, -128, 127)
    for block in {sums.shape[0], 1}:
        outputs = run_operator(graph, graph.operators[0], {"x": x}, block, seed=seed)
        assert np.array_equal(outputs, wanted)


def _scaled(sums: Array, scale: float) -> Array:
    (multiplier,), (exponent,) = tflite_multipliers(np.array([scale]))
    return rounded_twice(sums, int(multiplier), int(exponent))


@given(value=st.integers(-(2**20), 2**20), scale=st.floats(1e-6, 0.4))
def test_the_rounding_is_that_of_tflite(value: int, scale: float) -> None:
    (multiplier,), (exponent,) = tflite_multipliers(np.array([scale]))
    computed = int(rounded_twice(np.array([value], np.int64), int(multiplier), int(exponent))[0])
    nudge = 2**30 if value * int(multiplier) >= 0 else 1 - 2**30
    total = value * int(multiplier) + nudge
    high = abs(total) // 2**31 * (1 if total >= 0 else -1)  # SaturatingRoundingDoublingHighMul
    mask = (1 << -int(exponent)) - 1
    threshold = (mask >> 1) + (high < 0)
    assert computed == (high >> -int(exponent)) + ((high & mask) > threshold)  # RoundingDivideByPOT
    assert abs(computed - value * scale) <= 0.5 + 2.0 ** int(exponent)


@pytest.mark.parametrize("scale", [-1.0, np.inf, 2.0**30])
def test_scales_without_a_multiplier(scale: float) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        tflite_multipliers(np.array([0.5, scale]))


@given(
    newest=st.integers(1, 5),
    kept=st.integers(0, 9),
    channels=st.integers(1, 9),
    seed=seeds,
    own=st.booleans(),
)
@bounded
def test_a_queue(newest: int, kept: int, channels: int, seed: int, own: bool) -> None:
    """In the memory of the state, and in separate memory."""
    rng = np.random.default_rng(seed)
    shapes: dict[str, tuple[Shape, Quantization]] = {
        "x": ((1, newest, channels), Y),
        "state": ((1, newest + kept, channels), Y),
    }
    graph = _graph(Queue(), shapes, shapes["state"], {})
    values = {name: rng.integers(-128, 128, shape).astype(np.int8) for name, (shape, _) in shapes.items()}
    outputs = run_operator(graph, graph.operators[0], values, seed=seed, in_place=1 if own else None)
    wanted = np.concatenate([values["state"][:, newest:], values["x"]], axis=1)
    assert np.array_equal(outputs, wanted)


def _graph(
    op: Any,
    inputs: dict[str, tuple[Shape, Quantization]],
    output: tuple[Shape, Quantization],
    constants: dict[str, Array],
) -> Graph:
    named = {**inputs, "y": output}
    tensors = [Tensor(name, shape, DType.INT8, meaning) for name, (shape, meaning) in named.items()]
    return graph_of(op, *tensors, constants=constants)
