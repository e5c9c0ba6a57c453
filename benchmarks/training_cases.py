"""Cases of the operators of training steps for the costs of kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import numpy as np

from mcudeploy.extensions.training.training_operators import (
    ClipGradient,
    ClipMask,
    Conv2dInputGradient,
    MaskedGradient,
    TrainedConv2d,
    mask_bytes,
)
from mcudeploy.extensions.training.training_optimizer import NextSample, ParameterStep, SquareSum
from mcudeploy.extensions.training.training_pools import AveragePoolGradient, MaxPoolGradient, MaxPoolTaps
from mcudeploy.extensions.training.training_quantized import BiasedConv2d
from mcudeploy.extensions.training.training_resize import ResizeGradient
from mcudeploy.extensions.training.training_unary import (
    PiecewiseGradient,
    Slope,
    SlopedGradient,
    SmoothFunction,
    SmoothGradient,
)
from mcudeploy.extensions.training.training_updates import (
    BiasGradientSum,
    BiasUpdate,
    Conv2dGradientSum,
    Conv2dWeightUpdate,
)
from mcudeploy.ir.graph import DType, Graph, Shape
from mcudeploy.ir.one_operator import mixed_operator, one_operator
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.image.resize import resize_samples
from mcudeploy.ops.pool.pool import AveragePool, MaxPool

VALUE_SHAPES = (
    (1, 1, 10), (1, 1, 128), (6, 5, 16), (12, 12, 8), (25, 5, 64), (24, 24, 3), (7, 3, 6), (9, 2, 33),
)  # fmt: skip
"""The shapes of gradients for operators without windows."""
OPTIMIZER = (1, 1, 2)
"""The shape of the learning rate and the number of earlier samples."""


def training_cases() -> Iterator[Graph]:
    """Yield graphs of one operator each."""
    for conv, shape in _convolutions():
        output = conv.loops((shape,)).output_shape()
        count = conv.out_channels * conv.kernel_shape[0] * conv.kernel_shape[1] * shape[2] // conv.groups
        weights, bias = (1, 1, count), (1, 1, conv.out_channels)
        yield one_operator(TrainedConv2d(conv), (shape, weights, bias), DType.FLOAT32)
        yield one_operator(Conv2dInputGradient(conv, shape), (output, weights), DType.FLOAT32)
        update = Conv2dWeightUpdate(conv, 0.1)
        by_rows = update.by_rows((output, shape))
        for op in (update, Conv2dGradientSum(conv, 0.9), *(() if by_rows is None else (by_rows,))):
            yield one_operator(op, (output, shape, weights, OPTIMIZER), DType.FLOAT32)
    for batch in (1, 4):
        yield one_operator(NextSample(batch), (OPTIMIZER,), DType.FLOAT32)
    yield from constant_gradients()
    yield from biased_cases()
    for shape in VALUE_SHAPES:
        for op in (BiasUpdate(0.1), BiasGradientSum(0.9)):
            yield one_operator(op, (shape, (1, 1, shape[2]), OPTIMIZER), DType.FLOAT32)
        line = (1, 1, shape[0] * shape[2])
        yield one_operator(ParameterStep(0.1, 4), (line, line, OPTIMIZER), DType.FLOAT32)
        clipped = ParameterStep(0.1, 4, clipped=True)
        yield one_operator(clipped, (line, line, OPTIMIZER, (1, 1, 1)), DType.FLOAT32)
        yield one_operator(SquareSum(), (line,), DType.FLOAT32)
        yield one_operator(ClipGradient(0.0, 0.5), (shape, shape), DType.FLOAT32)
        yield mixed_operator(ClipMask(0.0, 0.5), [(shape, DType.FLOAT32)], DType.INT8)
        yield mixed_operator(ClipMask(0.0, 0.5), [(shape, DType.INT8)], DType.INT8)
        clipped = [(shape, DType.FLOAT32), (shape, DType.INT8)]
        yield mixed_operator(ClipGradient(0.0, 0.5), clipped, DType.FLOAT32)
        mask = ((shape[0], 1, mask_bytes(shape)), DType.INT8)
        yield mixed_operator(MaskedGradient(), [(shape, DType.FLOAT32), mask], DType.FLOAT32)


def biased_cases() -> Iterator[Graph]:
    """Yield graphs of one convolution of int8 by a float32 bias."""
    rng = np.random.default_rng(5)
    grouped = (Conv2d(12, (3, 3), groups=3), (7, 6, 6)), (Conv2d(20, (2, 1), groups=2), (5, 8, 12))
    clipped = ((Conv2d(depth, (3, 3), groups=depth, low=0.0), (7, 6, depth)) for depth in (8, 12))
    for conv, (rows, cols, channels) in (*_convolutions(), *grouped, *clipped):
        size = (conv.out_channels, *conv.kernel_shape, channels // conv.groups)
        constants: dict[str, ConstantArray] = {
            "weights": rng.integers(-127, 128, size, np.int8),
            "weight_scale": rng.uniform(0.001, 0.01, conv.out_channels).astype(np.float32),
        }
        inputs = [((rows, cols, channels), DType.INT8), ((1, 1, conv.out_channels), DType.FLOAT32)]
        yield mixed_operator(BiasedConv2d(conv), inputs, DType.INT8, constants, scale=0.05)


def constant_gradients() -> Iterator[Graph]:
    """Yield input gradients of dense convolutions whose weights are constants."""
    rng = np.random.default_rng(4)
    for conv, shape in _convolutions():
        if conv.groups == 1:
            size = conv.out_channels * conv.kernel_shape[0] * conv.kernel_shape[1] * shape[2]
            constants = {"weights": rng.normal(0, 1, size).astype(np.float32)}
            output = conv.loops((shape,)).output_shape()
            yield one_operator(Conv2dInputGradient(conv, shape), (output,), DType.FLOAT32, constants)
            stored: dict[str, ConstantArray] = {
                "weights": rng.integers(-127, 128, size, np.int8),
                "weight_scale": rng.uniform(0.001, 0.01, conv.out_channels).astype(np.float32),
            }
            yield one_operator(Conv2dInputGradient(conv, shape), (output,), DType.FLOAT32, stored)


def grouped_gradient_cases() -> Iterator[Graph]:
    """Yield graphs of one gradient of the input of a convolution in groups."""
    rng = np.random.default_rng(5)
    for groups, inputs, outputs in ((2, 4, 4), (4, 4, 2), (3, 5, 3), (8, 8, 8), (2, 16, 8), (5, 3, 6)):
        for kernel, stride, size in ((1, 1, (6, 5)), (3, 1, (7, 8)), (3, 2, (9, 7))):
            pads = (kernel // 2,) * 4
            channels = groups * outputs
            conv = Conv2d(channels, (kernel, kernel), (stride, stride), pads=pads, groups=groups)
            shape = (*size, groups * inputs)
            output = conv.loops((shape,)).output_shape()
            weights = rng.normal(0, 0.2, channels * kernel**2 * inputs).astype(np.float32)
            op = Conv2dInputGradient(conv, shape)
            yield one_operator(op, (output,), DType.FLOAT32, {"weights": weights})


def pool_gradient_cases() -> Iterator[Graph]:
    """Yield graphs of one gradient of a pool, or of what it keeps."""
    for pool, shape in _pools():
        output = pool.loops((shape,)).output_shape()
        taps = (output, DType.INT8)
        yield mixed_operator(MaxPoolTaps(pool), [(shape, DType.FLOAT32)], DType.INT8)
        gradient = (output, DType.FLOAT32)
        yield mixed_operator(MaxPoolGradient(pool, shape), [gradient, taps], DType.FLOAT32)
        mean = AveragePool(pool.kernel_shape, pool.stride, pool.dilation, pool.pads, pool.out_size, False)
        yield one_operator(AveragePoolGradient(mean, shape, 0.25), (output,), DType.FLOAT32)


def unary_gradient_cases() -> Iterator[Graph]:
    """Yield graphs of one gradient of a function of one value."""
    for shape in VALUE_SHAPES:
        for slope in (
            Slope(0.0, 0.0, (0.125, 1.0), upper=1.0),
            Slope(middle=(0.0, 1.0, -1.0)),
            Slope(-0.5, 0.5, middle=(0.5, 0.25, 0.0), upper=1.0),
        ):
            yield one_operator(PiecewiseGradient(slope), (shape, shape), DType.FLOAT32)
        for function in get_args(SmoothFunction):
            yield one_operator(SmoothGradient(function), (shape, shape), DType.FLOAT32)
        inputs = [(shape, DType.FLOAT32), ((shape[0], 1, mask_bytes(shape)), DType.INT8)]
        slopes = {"slopes": np.linspace(-0.5, 1, shape[2], dtype=np.float32)}
        yield mixed_operator(SlopedGradient(), inputs, DType.FLOAT32, slopes)


def resize_gradient_cases() -> Iterator[Graph]:
    """Yield graphs of one gradient of a resize."""
    for mode in ("nearest", "linear"):
        for shape, out in (
            ((4, 4, 8), (8, 8)), ((6, 5, 16), (12, 15)), ((3, 7, 33), (6, 14)), ((9, 9, 4), (5, 6)),
            ((8, 1, 12), (16, 1)), ((2, 2, 64), (10, 8)), ((5, 6, 3), (7, 13)),
        ):  # fmt: skip
            rows, cols = (
                resize_samples(size, count, count / size, mode=mode)
                for size, count in zip(shape[:2], out, strict=True)
            )
            op = ResizeGradient(rows, cols, shape)
            yield one_operator(op, ((*out, shape[2]),), DType.FLOAT32)


def _pools() -> Iterator[tuple[MaxPool, Shape]]:
    rng = np.random.default_rng(4)
    for shape in ((12, 12, 8), (8, 6, 33), (24, 20, 3), (9, 16, 16)):
        yield _pool(2, 2, shape)
        yield _pool(3, 2, shape, pad=1)
    for shape in ((7, 9, 8), (6, 5, 20), (12, 12, 4)):
        yield _pool(3, 1, shape, pad=1)
    yield _pool(5, 1, (8, 8, 12), pad=2)
    yield _pool(2, 3, (9, 9, 16))
    yield _pool(2, 1, (7, 7, 16), dilation=2)
    yield _pool(8, 8, (8, 8, 40))
    yield MaxPool((1, 4), (1, 4), (1, 1), (0, 0, 0, 0), (1, 32)), (1, 128, 9)
    for _ in range(6):
        kernel = int(rng.integers(2, 5))
        shape = (int(rng.integers(4, 14)), int(rng.integers(4, 14)), int(rng.integers(1, 40)))
        yield _pool(kernel, int(rng.integers(1, kernel + 1)), shape, pad=int(rng.integers(0, kernel)))


def _pool(
    kernel: int, stride: int, shape: Shape, *, pad: int = 0, dilation: int = 1
) -> tuple[MaxPool, Shape]:
    """A pool of square windows, and its input."""
    reach = dilation * (kernel - 1) + 1
    rows, cols = ((size + 2 * pad - reach) // stride + 1 for size in shape[:2])
    pads = (pad, pad, pad, pad)
    return MaxPool((kernel, kernel), (stride, stride), (dilation, dilation), pads, (rows, cols)), shape


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
