"""Cases of the operators of training steps for the costs of kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from one_operator import mixed_operator, one_operator

from mcudeploy.ir.graph import DType, Graph, Shape
from mcudeploy.ops.conv import Conv2d
from mcudeploy.ops.training import (
    BiasGradientSum,
    BiasUpdate,
    ClipGradient,
    ClipMask,
    Conv2dGradientSum,
    Conv2dInputGradient,
    Conv2dWeightUpdate,
    MaskedGradient,
    ParameterStep,
    TrainedConv2d,
    mask_bytes,
)

VALUE_SHAPES = (
    (1, 1, 10), (1, 1, 128), (6, 5, 16), (12, 12, 8), (25, 5, 64), (24, 24, 3), (7, 3, 6), (9, 2, 33),
)  # fmt: skip
"""The shapes of gradients for operators without windows."""


def training_cases() -> Iterator[Graph]:
    """Yield graphs of one operator each."""
    for conv, shape in _convolutions():
        output = conv.loops((shape,)).output_shape()
        count = conv.out_channels * conv.kernel_shape[0] * conv.kernel_shape[1] * shape[2] // conv.groups
        weights, bias = (1, 1, count), (1, 1, conv.out_channels)
        yield one_operator(TrainedConv2d(conv), (shape, weights, bias), DType.FLOAT32)
        yield one_operator(Conv2dInputGradient(conv, shape), (output, weights), DType.FLOAT32)
        update = Conv2dWeightUpdate(conv, 1.0, -0.01)
        by_rows = update.by_rows(output, shape)
        for op in (update, Conv2dGradientSum(conv, 0.9), *(() if by_rows is None else (by_rows,))):
            yield one_operator(op, (output, shape, weights), DType.FLOAT32)
    yield from constant_gradients()
    for shape in VALUE_SHAPES:
        for op in (BiasUpdate(1.0, -0.01), BiasGradientSum(0.9)):
            yield one_operator(op, (shape, (1, 1, shape[2])), DType.FLOAT32)
        line = (1, 1, shape[0] * shape[2])
        yield one_operator(ParameterStep(1.0, -0.01), (line, line), DType.FLOAT32)
        yield one_operator(ClipGradient(0.0, 0.5), (shape, shape), DType.FLOAT32)
        yield mixed_operator(ClipMask(0.0, 0.5), [(shape, DType.FLOAT32)], DType.INT8)
        mask = ((shape[0], 1, mask_bytes(shape)), DType.INT8)
        yield mixed_operator(MaskedGradient(), [(shape, DType.FLOAT32), mask], DType.FLOAT32)


def constant_gradients() -> Iterator[Graph]:
    """Yield input gradients of dense convolutions whose weights are constants."""
    rng = np.random.default_rng(4)
    for conv, shape in _convolutions():
        if conv.groups == 1:
            size = conv.out_channels * conv.kernel_shape[0] * conv.kernel_shape[1] * shape[2]
            constants = {"weights": rng.normal(0, 1, size).astype(np.float32)}
            output = conv.loops((shape,)).output_shape()
            yield one_operator(Conv2dInputGradient(conv, shape), (output,), DType.FLOAT32, constants)


def _convolutions() -> Iterator[tuple[Conv2d, Shape]]:
    rng = np.random.default_rng(3)
    for inputs, outputs in ((8, 10), (64, 12), (128, 32), (256, 2), (640, 8), (30, 64), (16, 128)):
        yield Conv2d(outputs, low=0.0), (1, 1, inputs)
    for _ in range(10):
        rows, cols = (int(rng.integers(3, 12)) for _ in range(2))
        depth, outputs = (int(rng.choice((3, 4, 8, 16, 24, 32))) for _ in range(2))
        stride = int(rng.choice((1, 1, 2)))
        yield Conv2d(outputs, stride=(stride, stride)), (rows, cols, depth)
        pads = (1, 1, 1, 1)
        yield Conv2d(outputs, (3, 3), (stride, stride), pads=pads), (rows, cols, min(depth, 16))
        yield Conv2d(depth, (3, 3), (stride, stride), pads=pads, groups=depth), (rows, cols, depth)
    yield Conv2d(16, (10, 4), (2, 2), pads=(4, 1, 5, 1)), (20, 10, 1)
    for outputs, depth in ((6, 3), (9, 1), (5, 6)):
        yield Conv2d(outputs, (3, 3), pads=(1, 1, 1, 1)), (8, 7, depth)
    yield Conv2d(6, (3, 3), pads=(1, 1, 1, 1), groups=6), (11, 5, 6)
    yield Conv2d(16, (3, 3), pads=(2, 2, 2, 2), dilation=(2, 2)), (9, 9, 4)
    yield Conv2d(16, (3, 3), pads=(1, 1, 1, 1), groups=8), (9, 9, 8)
    yield Conv2d(12, (3, 3), (2, 2), pads=(1, 1, 1, 1), groups=4), (11, 7, 4)
    yield Conv2d(24, (5, 5), pads=(2, 2, 2, 2), groups=24), (9, 9, 24)
