"""Cases of operators of int16 activations for the costs of kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mcudeploy.extensions.int16.conv_int16 import Conv2dInt16
from mcudeploy.extensions.int16.int16 import (
    BinaryInt16,
    Int16Function,
    MeanInt16,
    QuantizeInt16,
    RescaleInt16,
    SigmoidInt16,
    SoftmaxInt16,
    TwiceScale,
)
from mcudeploy.extensions.int16.lstm_int8 import LSTM_GATES, LstmInt8
from mcudeploy.extensions.int16.lstm_int16 import LstmInt16
from mcudeploy.extensions.int16.lut_int16 import LutInt16, interpolated_function
from mcudeploy.extensions.int16.matmul_int16 import MatMulInt16
from mcudeploy.extensions.int16.resize_int16 import ResizeInt16, ResizeSamplesInt16
from mcudeploy.ir.graph import DType, Graph, Shape
from mcudeploy.ir.one_operator import mixed_operator
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.pool.pool import PoolInt16
from mcudeploy.ops.scalar.integer import IntegerBinary

_SHORT, _BYTE, _FLOAT = DType.INT16, DType.INT8, DType.FLOAT32
_SHAPES: tuple[Shape, ...] = (
    (8, 8, 16),
    (1, 1, 64),
    (4, 10, 8),
    (12, 5, 3),
    (16, 16, 4),
    (2, 3, 40),
    (6, 1, 20),
    (9, 1, 33),
    (5, 3, 6),
)
_HALF = TwiceScale(1 << 30, 0)


def int16_cases() -> Iterator[Graph]:
    """Yield graphs of one operator of int16 activations each."""
    for shape in _SHAPES:
        yield from _convolutions(shape)
        yield from _windows(shape)
        yield from _by_element(shape)
        yield from _means_and_resizes(shape)
    for depth in (12, 30, 64, 250, 600, 1200, 2000):
        for channels in (3, 10, 16):
            yield _convolution(Conv2dInt16(channels), (1, 1, depth))
            yield _convolution(Conv2dInt16(channels, left_shift=1), (1, 1, depth))
    yield _convolution(Conv2dInt16(5, (3, 4)), (3, 4, 20))
    yield from _products()
    for steps, depth, hidden in ((1, 16, 8), (6, 5, 12), (3, 40, 30), (12, 13, 7), (1, 64, 64), (28, 28, 20)):
        yield _lstm(steps, depth, hidden)
        yield _lstm_int16(steps, depth, hidden)


def _lstm(steps: int, depth: int, hidden: int) -> Graph:
    rng = np.random.default_rng(0)
    op = LstmInt8(hidden, (TwiceScale.of(0.3),) * (2 * LSTM_GATES), TwiceScale.of(2.0**-23), 0, (3, 3), 3)
    rows = LSTM_GATES * hidden
    constants: dict[str, ConstantArray] = {
        "weights": rng.integers(-127, 128, (rows, depth)).astype(np.int8),
        "recurrent": rng.integers(-127, 128, (rows, hidden)).astype(np.int8),
        "bias": rng.integers(-9999, 9999, rows).astype(np.int32),
    }
    inputs = [((1, steps, depth), _BYTE), ((1, 1, hidden), _BYTE), ((1, 1, hidden), _SHORT)]
    return mixed_operator(op, inputs, _BYTE, constants)


def _lstm_int16(steps: int, depth: int, hidden: int) -> Graph:
    rng = np.random.default_rng(0)
    gates = 2 * LSTM_GATES
    op = LstmInt16(hidden, (1 << 30,) * gates, (40,) * gates, 0, TwiceScale.of(2.0**-15), 3)
    rows = LSTM_GATES * hidden
    constants: dict[str, ConstantArray] = {
        "weights": rng.integers(-127, 128, (rows, depth)).astype(np.int8),
        "recurrent": rng.integers(-127, 128, (rows, hidden)).astype(np.int8),
        "bias": np.zeros((2, rows), np.int32),
    }
    inputs = [((1, steps, depth), _SHORT), ((1, 1, hidden), _SHORT), ((1, 1, hidden), _SHORT)]
    return mixed_operator(op, inputs, _SHORT, constants)


def _products() -> Iterator[Graph]:
    """Products of (lines, heads, depth) and (depth, heads, columns), the second one also transposed."""
    for lines, heads, depth, columns in (
        (8, 1, 16, 8),
        (3, 2, 40, 5),
        (12, 4, 9, 12),
        (1, 1, 64, 30),
        (20, 1, 3, 21),
    ):
        for transposed in (False, True):
            for batched in (False, True):
                first = (heads, lines, depth) if batched else (lines, heads, depth)
                matrix = (columns, depth) if transposed else (depth, columns)
                second = (heads, *matrix) if batched else (matrix[0], heads, matrix[1])
                op = MatMulInt16(1 << 30, 50, 0, batched, transposed)
                yield mixed_operator(op, [(first, _SHORT), (second, _SHORT)], _SHORT)


def _convolution(op: Conv2dInt16, shape: Shape) -> Graph:
    rng = np.random.default_rng(0)
    weights = rng.integers(-127, 128, (op.out_channels, *op.kernel_shape, shape[2] // op.groups))
    constants: dict[str, ConstantArray] = {
        "weights": weights.astype(np.int8),
        "bias": np.zeros((2, op.out_channels), np.int32),
        "multipliers": np.full(op.out_channels, 1 << 30, np.int32),
        "shifts": np.full(op.out_channels, 40, np.int32),
    }
    return mixed_operator(op, [(shape, _SHORT)], _SHORT, constants)


def _convolutions(shape: Shape) -> Iterator[Graph]:
    rows, cols, channels = shape
    for outputs in (3, 8, 20):
        yield _convolution(Conv2dInt16(outputs), shape)
        yield _convolution(Conv2dInt16(outputs, left_shift=1), shape)
        for kernel, stride in ((3, 1), (3, 2), (5, 1)):
            if rows > 2 < cols:
                pads = (kernel // 2,) * 4
                op = Conv2dInt16(
                    outputs, (kernel, kernel), (stride, stride), (1, 1), (pads[0], pads[1], pads[2], pads[3])
                )
                yield _convolution(op, shape)
    for kernel, stride in ((3, 1), (3, 2), (5, 1)):
        if rows > 2 and channels > 1:
            pad = kernel // 2
            op = Conv2dInt16(
                channels, (kernel, kernel), (stride, stride), (1, 1), (pad, pad, pad, pad), channels
            )
            yield _convolution(op, shape)
    if channels % 4 == 0:
        yield _convolution(Conv2dInt16(8, (1, 1), groups=4), shape)


def _windows(shape: Shape) -> Iterator[Graph]:
    rows, cols, _ = shape
    for average in (False, True):
        yield mixed_operator(
            PoolInt16(average, (rows, cols), (1, 1), (0, 0, 0, 0), (1, 1)), [(shape, _SHORT)], _SHORT
        )
        if rows > 2 < cols:
            for stride in (1, 2):
                size = -(-rows // stride), -(-cols // stride)
                op = PoolInt16(average, (3, 3), (stride, stride), (1, 1, 1, 1), size)
                yield mixed_operator(op, [(shape, _SHORT)], _SHORT)


def _means_and_resizes(shape: Shape) -> Iterator[Graph]:
    rows, cols, channels = shape
    for axes in ((0, 1), (0,), (2,)):
        yield mixed_operator(MeanInt16(axes, _HALF), [(shape, _SHORT)], _SHORT)
    for size in ((2 * rows, 2 * cols), (rows + 3, max(cols // 2, 1))):
        along = (
            ResizeSamplesInt16.of(before, after, linear=True, aligned=False, halves=True)
            for before, after in zip((rows, cols), size, strict=True)
        )
        if size[0] * size[1] * channels < 8000:
            yield mixed_operator(ResizeInt16(*along, linear=True), [(shape, _SHORT)], _SHORT)


def _by_element(shape: Shape) -> Iterator[Graph]:
    one, row = [(shape, _SHORT)], [(shape, _SHORT), ((1, 1, shape[2]), _SHORT)]
    functions: tuple[Int16Function, ...] = ("add", "mul")
    for function in functions:
        for inputs in (one * 2, row):
            yield mixed_operator(BinaryInt16(function, _HALF, _HALF, _HALF), inputs, _SHORT)
    yield mixed_operator(IntegerBinary("max"), one * 2, _SHORT)
    table: dict[str, ConstantArray] = {"table": interpolated_function("exp", 0.0003, 0.0005)}
    yield mixed_operator(LutInt16(), one, _SHORT, table)
    for source, target in ((_SHORT, _SHORT), (_SHORT, _BYTE), (_BYTE, _SHORT)):
        yield mixed_operator(RescaleInt16(_HALF, _HALF), [(shape, source)], target)
    for tangent in (False, True):
        yield mixed_operator(SigmoidInt16(tangent, 20_000, 10), one, _SHORT)
    yield mixed_operator(SoftmaxInt16(_HALF), one, _SHORT)
    yield mixed_operator(QuantizeInt16(0.001), [(shape, _FLOAT)], _SHORT)
