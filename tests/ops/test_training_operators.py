"""Operators of training steps against their definition in float64, in pieces, in place, under sanitizers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from harness import check_graph
from numpy.typing import NDArray
from training_cases import constant_gradients, training_cases

from mcudeploy.codegen.operators import ConstantPool
from mcudeploy.extensions.training.training_operators import (
    ClipGradient,
    ClipMask,
    Conv2dInputGradient,
    MaskedGradient,
    TrainedConv2d,
)
from mcudeploy.extensions.training.training_optimizer import NextSample, ParameterStep, SquareSum
from mcudeploy.extensions.training.training_quantized import BiasedConv2d
from mcudeploy.extensions.training.training_updates import (
    BiasGradientSum,
    BiasUpdate,
    Conv2dGradientSum,
    Conv2dWeightUpdate,
    Conv2dWeightUpdateByRows,
)
from mcudeploy.ir.graph import DType, Graph, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.one_operator import one_operator
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.requantize import dequantize

Array = NDArray[np.float64]
UPDATES = (
    BiasGradientSum,
    BiasUpdate,
    Conv2dGradientSum,
    Conv2dWeightUpdate,
    Conv2dWeightUpdateByRows,
    NextSample,
    ParameterStep,
)
"""Operators whose last input is the optimizer, unless a step is clipped."""
CASES = list(training_cases())
CONSTANT_CASES = list(constant_gradients())


def kind(graph: Graph) -> str:
    """The kind and the shape of the output."""
    return f"{graph.operators[0].op.kind}-{'x'.join(map(str, graph.tensors['y'].shape))}"


def windows(conv: Conv2d, x: Array) -> Array:
    """[OH, OW, kh, kw, C]: the values under each window, 0 for padding."""
    top, left, bottom, right = conv.pads
    padded = np.pad(x, ((top, bottom), (left, right), (0, 0)))
    rows, cols, _ = conv.loops((x.shape,)).output_shape()  # type: ignore[arg-type]
    (down, across), (far, wide) = conv.stride, conv.dilation
    result = np.zeros((rows, cols, *conv.kernel_shape, x.shape[2]))
    for r, s in np.ndindex(conv.kernel_shape):
        part = padded[r * far :: down, s * wide :: across]
        result[:, :, r, s] = part[:rows, :cols]
    return result


def dense_weights(conv: Conv2d, stored: Array, channels: int) -> Array:
    """[K, kh, kw, C], with zeros between the groups."""
    if conv.groups == 1:
        return stored.reshape(conv.out_channels, *conv.kernel_shape, channels)
    taps = stored.reshape(*conv.kernel_shape, conv.out_channels)
    result = np.zeros((conv.out_channels, *conv.kernel_shape, channels))
    for k in range(conv.out_channels):
        result[k, :, :, k * channels // conv.out_channels] = taps[:, :, k]
    return result


def stored_weights(conv: Conv2d, dense: Array) -> Array:
    """The reverse of `dense_weights`."""
    if conv.groups == 1:
        return dense.reshape(-1)
    channels = dense.shape[3]
    owners = np.arange(conv.out_channels) * channels // conv.out_channels
    return np.stack([dense[k, :, :, c] for k, c in enumerate(owners)], 2).reshape(-1)


def real(tensor: Tensor, value: Array) -> Array:
    """The real values of a tensor, as float64."""
    if tensor.quantization is None:
        return np.asarray(value, np.float64)
    return np.asarray(dequantize(value.astype(np.int8), tensor.quantization), np.float64)


def biased(graph: Graph, x: Array, bias: Array) -> Array:
    """The integers of a convolution by a bias, not yet rounded."""
    operator, quantization = graph.operators[0], graph.tensors["y"].quantization
    assert isinstance(operator.op, BiasedConv2d)
    assert quantization is not None
    conv, constants = operator.op.conv, operator.constants
    weights = constants["weights"] * constants["weight_scale"].astype(np.float64)[:, None, None, None]
    dense = np.zeros((*weights.shape[:3], x.shape[2]))
    inputs, outputs = x.shape[2] // conv.groups, conv.out_channels // conv.groups
    for k in range(conv.out_channels):
        first = k // outputs * inputs
        dense[k, :, :, first : first + inputs] = weights[k]
    sums = np.tensordot(windows(conv, x), dense, ([2, 3, 4], [1, 2, 3])) + bias
    clipped = np.clip(sums, conv.low, conv.high)
    return np.clip(clipped / quantization.scale + quantization.zero_point, -128, 127)


def constant_weights(graph: Graph) -> Array:
    """The real values of constant weights [K * ...]."""
    constants = graph.operators[0].constants
    weights = constants["weights"].astype(np.float64)
    if "weight_scale" in constants:
        weights = weights.reshape(len(constants["weight_scale"]), -1) * constants["weight_scale"][:, None]
    return weights.reshape(-1)


def expected(graph: Graph, values: dict[str, Array]) -> Array:
    """The output by the definition, in float64."""
    op: Any = graph.operators[0].op
    inputs = [real(graph.tensors[name], values[name]) for name in graph.operators[0].inputs]
    if isinstance(op, BiasedConv2d):
        return biased(graph, *inputs)
    if isinstance(op, ClipGradient):
        return np.where((inputs[1] > np.float32(op.low)) & (inputs[1] < np.float32(op.high)), inputs[0], 0)
    if isinstance(op, ClipMask):
        (x,) = inputs
        inside = ((x > np.float32(op.low)) & (x < np.float32(op.high))).reshape(len(x), -1)
        return np.packbits(inside, axis=1, bitorder="little").view(np.int8)[:, np.newaxis]
    if isinstance(op, MaskedGradient):
        bits = np.unpackbits(values["x1"].astype(np.int8).view(np.uint8)[:, 0], axis=1, bitorder="little")
        return np.where(bits[:, : inputs[0][0].size].reshape(inputs[0].shape), inputs[0], 0)
    if isinstance(op, SquareSum):
        return np.array([[[(inputs[0] ** 2).sum()]]])
    scale = inputs.pop() if getattr(op, "clipped", False) else 1
    *inputs, optimizer = inputs if isinstance(op, UPDATES) else (*inputs, np.ones(2))
    rate, samples = optimizer.reshape(-1)
    if isinstance(op, NextSample):
        return np.array([[[rate, 0 if samples + 1 >= op.batch else samples + 1]]])
    if isinstance(op, ParameterStep):
        direction = scale * inputs[1] / op.batch + op.weight_decay * inputs[0]
        return inputs[0] if samples + 1 < op.batch else inputs[0] - rate * direction
    decay, step = (1 - rate * getattr(op, "weight_decay", 0), -rate)
    if hasattr(op, "momentum"):
        decay, step = (1 if samples else op.momentum), 1
    if isinstance(op, BiasUpdate | BiasGradientSum):
        return decay * inputs[1] + step * inputs[0].sum((0, 1))
    conv = op.conv
    if isinstance(op, TrainedConv2d):
        x, weights, bias = inputs
        dense = dense_weights(conv, weights.reshape(-1), x.shape[2])
        sums = np.tensordot(windows(conv, x), dense, ([2, 3, 4], [1, 2, 3])) + bias
        return np.clip(sums, conv.low, conv.high)
    if isinstance(op, Conv2dWeightUpdate | Conv2dWeightUpdateByRows | Conv2dGradientSum):
        gradient, x, weights = inputs
        full = np.tensordot(gradient, windows(conv, x), ([0, 1], [0, 1]))
        return (decay * weights.reshape(-1) + step * stored_weights(conv, full)).reshape(weights.shape)
    assert isinstance(op, Conv2dInputGradient)
    gradient, *others = inputs
    weights = others[0] if others else constant_weights(graph)
    rows, cols, channels = op.input_shape
    dense = dense_weights(conv, weights.reshape(-1), channels)
    by_tap = np.tensordot(gradient, dense, ([2], [0]))
    top, left, bottom, right = conv.pads
    total = np.zeros((rows + top + bottom, cols + left + right, channels))
    (down, across), (far, wide) = conv.stride, conv.dilation
    for i, j, r, s in np.ndindex(by_tap.shape[:4]):
        total[i * down + r * far, j * across + s * wide] += by_tap[i, j, r, s]
    return total[top : top + rows, left : left + cols]


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: kind(CASES[number]))
def test_definition_and_pieces(number: int) -> None:
    graph, rng = CASES[number], np.random.default_rng(0)
    values = {}
    for io in graph.inputs:
        tensor = graph.tensors[io.tensor]
        drawn = rng.normal(0, 1, tensor.shape) * (1 if tensor.dtype is DType.FLOAT32 else 40)
        values[tensor.name] = drawn.astype(tensor.dtype.value)
    if isinstance(graph.operators[0].op, UPDATES):
        clipped = getattr(graph.operators[0].op, "clipped", False)
        values[graph.operators[0].inputs[-1 - clipped]][...] = 0.3, number % 3 // 2 * 3
    result = check_graph(graph, values)["y"]
    wanted = expected(graph, values)
    if isinstance(graph.operators[0].op, BiasedConv2d):
        assert np.abs(result - wanted).max() <= 0.5 + 1e-4
        return
    np.testing.assert_allclose(result, wanted, rtol=0, atol=2e-6 * max(1.0, float(np.abs(wanted).max())))


@pytest.mark.parametrize("outputs", [3, 4, 5, 6, 8])
@pytest.mark.parametrize("inputs", [1, 3, 4, 6, 8])
def test_weights_in_flash_have_the_bits_of_a_tensor(outputs: int, inputs: int) -> None:
    conv, shape = Conv2d(outputs, (3, 3), (2, 2), pads=(1, 1, 1, 1)), (7, 6, inputs)
    rng = np.random.default_rng(0)
    gradient = rng.normal(0, 1, conv.loops((shape,)).output_shape()).astype(np.float32)
    weights = rng.normal(0, 1, (1, 1, outputs * 9 * inputs)).astype(np.float32)
    op = Conv2dInputGradient(conv, shape)
    shapes: tuple[Shape, ...] = (gradient.shape, weights.shape)  # type: ignore[assignment]
    with_tensor = one_operator(op, shapes, DType.FLOAT32)
    in_flash = one_operator(op, shapes[:1], DType.FLOAT32, {"weights": weights.reshape(-1)})
    results = [
        check_graph(with_tensor, {"x0": gradient, "x1": weights})["y"],
        check_graph(in_flash, {"x0": gradient})["y"],
    ]
    np.testing.assert_array_equal(*results)


FORWARD = [
    (Conv2d(6, (3, 3), pads=(1, 1, 1, 1)), (5, 6, 8), "conv2d_f32"),
    (Conv2d(6, (2, 2)), (5, 6, 3), "conv2d_f32_gathered"),
    (Conv2d(7), (5, 6, 8), "conv2d_f32_1x1"),
    (Conv2d(7, (5, 6)), (5, 6, 8), "conv2d_f32_full"),
    (Conv2d(8, (3, 3), groups=8), (5, 6, 8), "dwconv2d_f32"),
    (Conv2d(16, (3, 3), groups=8), (5, 6, 8), "dwconv2d_f32"),
]


@pytest.mark.parametrize(("conv", "shape", "kernel"), FORWARD, ids=lambda it: str(it)[:40])
def test_one_array_serves_forward_and_gradient(conv: Conv2d, shape: Shape, kernel: str) -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(0, 1, (conv.out_channels, *conv.kernel_shape, shape[2] // conv.groups))
    constants = {"weights": weights.astype(np.float32), "bias": np.zeros(conv.out_channels, np.float32)}
    forward = one_operator(conv, (shape,), DType.FLOAT32, constants)
    stored = constants["weights"].reshape(-1)
    if conv.groups > 1:
        stored = np.ascontiguousarray(constants["weights"].transpose(1, 2, 0, 3)).reshape(-1)
    output = conv.loops((shape,)).output_shape()
    backward = one_operator(Conv2dInputGradient(conv, shape), (output,), DType.FLOAT32, {"weights": stored})
    calls = []
    for graph in (forward, backward):
        (operator,) = graph.operators
        calls.append(operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors["y"]))
    assert calls[0].kernel == kernel
    pool = ConstantPool("net")
    first, second = (
        pool.name_of(call.kernel, "weights", call.params["weights"])  # type: ignore[arg-type]
        for call in calls
    )
    assert first == second


@pytest.mark.parametrize("size", [(1, 1, 44), (1, 2, 45)])
def test_weights_of_another_size(size: Shape) -> None:
    with pytest.raises(ValueError, match=r"weights .* are not the 45 values"):
        TrainedConv2d(Conv2d(5, (3, 3))).loops(((4, 4, 1), size, (1, 1, 5)))


def test_groups_are_refused() -> None:
    with pytest.raises(ValueError, match="2 groups of 4 channels"):
        TrainedConv2d(Conv2d(4, groups=2)).loops(((2, 2, 4), (1, 1, 8), (1, 1, 4)))


def counted(graph: Graph) -> dict[str, float]:
    """The counts of the whole operator; those of its rows add to them, unless rows join."""
    (operator,), output = graph.operators, graph.tensors["y"]
    call = operator.op.kernel(operator, graph.input_tensors(operator), output)
    assert call.counts is not None
    rows = graph.tensors["x0"].shape[0] if operator.op.accumulates else output.shape[0]
    whole = call.counts(Interval(0, rows))
    parts = [call.counts(Interval(row, row + 1)) for row in range(rows)]
    for name, count in whole.items() if not call.params.get("rows_join") else ():
        by_step = operator.op.accumulates and not name.endswith(("pixels", "products", "tap_rows"))
        assert by_step or count == sum(part[name] for part in parts) or name == "calls", name
    return whole


def forward_pairs(counts: Mapping[str, float]) -> float:
    """The products of a dense convolution whose weights training changes."""
    values = {n: 4 * counts[f"turns_{n}"] + counts[f"rest_{n}"] for n in (2, 1)}
    return sum(4 * n * count for n, count in values.items()) + counts["single_products"]


def gradient_pairs(counts: Mapping[str, float]) -> float:
    """The products of an input gradient by weights that are not constants."""
    pairs = 8 * counts["pair_fours"] + 4 * counts["fours"] + counts["single_products"]
    return pairs + sum(8 * n * (4 * counts[f"turns_{n}"] + counts[f"rest_{n}"]) for n in (1, 2))


def of_one_convolution() -> list[list[Graph]]:
    """The cases by convolution: forward, input gradient, and updates."""
    result: list[list[Graph]] = []
    for graph in CASES:
        op = graph.operators[0].op
        if isinstance(op, TrainedConv2d):
            result.append([])
        if hasattr(op, "conv") and "x1" in graph.tensors and not isinstance(op, BiasedConv2d):
            result[-1].append(graph)
    return result


@pytest.mark.parametrize("graphs", of_one_convolution(), ids=lambda graphs: kind(graphs[0]))
def test_counts_of_products(graphs: list[Graph]) -> None:
    """Forward, input gradient and updates multiply the same pairs."""
    forward, backward, *updates = map(counted, graphs)
    assert len(updates) >= 2
    conv: Conv2d = graphs[0].operators[0].op.conv  # type: ignore[attr-defined]
    channels = graphs[0].tensors["x0"].shape[2]
    taps = int(windows(conv, np.ones(graphs[0].tensors["x0"].shape))[..., 0].sum())
    for update in updates:
        line = 4 if conv.groups == 1 else 8
        pairs = line * update["lines_pixels"] + update["single_pixels"]
        pairs += 16 * (update.get("blocks_pixels", 0) + update.get("sixteens_pixels", 0))
        pairs += 4 * update.get("pixel_fours", 0) + update.get("pixel_single", 0)
        assert pairs == taps * conv.out_channels * (channels if conv.groups == 1 else 1)
    if conv.groups == 1:
        pairs = taps * channels * conv.out_channels
        assert forward_pairs(forward) == pairs
        assert gradient_pairs(backward) == pairs
    else:
        eights = forward.get("taps_of_eights", 0)  # none for a multiplier
        assert 8 * eights + forward["taps_of_ones"] == taps * conv.out_channels
        by_one = backward["products"] if "products" in backward else 8 * backward["eights"] + backward["ones"]
        assert by_one == taps * conv.out_channels


def test_counts_of_gathered_windows() -> None:
    """Gathered windows are multiplied whole, with their padding."""
    cases = 0
    for graph, *_ in of_one_convolution():
        (operator,), output = graph.operators, graph.tensors["y"]
        call = operator.op.kernel(operator, graph.input_tensors(operator), output)
        for other in call.others:
            assert other.counts is not None
            windows = output.shape[0] * output.shape[1]
            weights = graph.tensors["x1"].elements
            assert forward_pairs(other.counts(Interval(0, output.shape[0]))) == windows * weights
            cases += 1
    assert cases > 3


@pytest.mark.parametrize("graph", CONSTANT_CASES, ids=kind)
def test_counts_of_constant_weights(graph: Graph) -> None:
    """The packed weights fill up the last four channels."""
    (operator,) = graph.operators
    op: Any = operator.op
    with_tensor = (graph.tensors["x0"].shape, (1, 1, operator.constants["weights"].size))
    plain, packed = counted(one_operator(op, with_tensor, DType.FLOAT32)), counted(graph)
    channels = op.conv.out_channels
    pairs = gradient_pairs(plain)
    assert (16 * packed["sixteens"] + 4 * packed["single"]) * channels == pairs * (channels + -channels % 4)
