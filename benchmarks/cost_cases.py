"""Operators over ranges of shapes, at least one for every kernel: the cases that shipped costs are fitted to.

Shapes are drawn at random, always the same; none is taken from a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from block_cases import block_cases
from fused_cases import fused_cases, weighted
from int16_cases import int16_cases
from signal_cases import signal_cases
from training_cases import (
    grouped_gradient_cases,
    pool_gradient_cases,
    resize_gradient_cases,
    training_cases,
    unary_gradient_cases,
)

from mcudeploy.extensions.attention.attend import Attend, Bound, Rows
from mcudeploy.extensions.learned.trees import LEAF, TreeSums
from mcudeploy.ir.graph import DType, Graph, Quantization, Shape
from mcudeploy.ir.one_operator import one_operator
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.conv.affine import Affine
from mcudeploy.ops.conv.conv import Conv2d, Conv2dByRows, Conv2dToRows
from mcudeploy.ops.image.grid_sample import GridSample
from mcudeploy.ops.image.resample import Filter, Resample, resize_taps
from mcudeploy.ops.image.resize import Resize, ResizedAxis, resize_samples
from mcudeploy.ops.image.roi_align import RoiAlign
from mcudeploy.ops.image.suppression import NonMaxSuppression
from mcudeploy.ops.matrix.matmul import MatMul
from mcudeploy.ops.matrix.recurrent import GATES, SCALED, CellFunction, CellFunctions, Recurrent
from mcudeploy.ops.matrix.svdf import Svdf
from mcudeploy.ops.move.cast import Cast
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.concat_channels import ConcatChannels
from mcudeploy.ops.move.depth_to_space import DepthToSpace
from mcudeploy.ops.move.gather import GatherRows
from mcudeploy.ops.move.move import Pad, Slice
from mcudeploy.ops.move.quantize import Dequantize, Quantize
from mcudeploy.ops.move.queue import Queue
from mcudeploy.ops.move.scatter import ScatterReduction, ScatterRows
from mcudeploy.ops.move.take import Gather, Take
from mcudeploy.ops.move.top_k import TopK
from mcudeploy.ops.move.transfer import Clean, Copy, Invalidate
from mcudeploy.ops.move.transpose import Transpose
from mcudeploy.ops.move.write_rows import WriteRows
from mcudeploy.ops.pool.pool import AveragePool, AveragePoolByRows, MaxPool
from mcudeploy.ops.pool.pool_indices import MaxPoolIndices
from mcudeploy.ops.reduce.norm import LayerNorm
from mcudeploy.ops.reduce.reduce import Reduce, Reduction
from mcudeploy.ops.reduce.softmax import Softmax
from mcudeploy.ops.scalar.elementwise import Binary, Lut
from mcudeploy.ops.scalar.functions import BINARY, UNARY
from mcudeploy.ops.scalar.integer import IntegerBinary, IntegerFunction
from mcudeploy.ops.scalar.unary import Unary

SHAPES: tuple[Shape, ...] = (
    (8, 8, 16),
    (1, 1, 64),
    (4, 10, 8),
    (12, 5, 3),
    (16, 16, 4),
    (2, 3, 40),
    (6, 1, 20),
    (9, 1, 33),
    (5, 3, 6),
    (7, 2, 10),
    (3, 7, 5),
)
_DEPTHS = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_ASYMMETRIC = 3
"""Step between convolutions that are measured by weights of nine bits too."""
_PACKED = 2
"""The same by weights of four bits."""
MOST_BYTES = 60_000
"""Maximum bytes of one operator's tensors and constants: a small board has no more, larger ones add nothing.
"""


def cases(dtype: DType) -> Iterator[Graph]:
    """Yield graphs of one operator each, for this type of activations."""
    yield from _linear(dtype)
    yield from _elementwise(dtype)
    yield from _windows(dtype)
    yield from _moves(dtype)
    yield from _ragged(dtype)
    yield from _tiled(dtype)
    yield from _chosen(dtype)
    yield from _indexed(dtype)
    if dtype is DType.FLOAT32:
        yield from _recurrent()
        yield from block_cases()
        yield from training_cases()
        yield from grouped_gradient_cases()
        yield from pool_gradient_cases()
        yield from resize_gradient_cases()
        yield from unary_gradient_cases()
    yield from _svdf(dtype)
    if dtype is DType.INT8:
        yield from signal_cases()
        yield from int16_cases()
        yield from (*fused_cases(), *fused_cases("tflite"))
        yield from _four_bits()


def _linear(dtype: DType) -> Iterator[Graph]:
    rng = np.random.default_rng(1)

    def one_of(values: tuple[int, ...]) -> int:
        return int(rng.choice(values))

    graphs: list[Graph] = []

    def add(op: Any, shape: Shape, weights: tuple[int, ...]) -> None:
        graph = weighted(op, shape, weights, dtype)
        bytes_used = sum(tensor.size_bytes for tensor in graph.tensors.values())
        if bytes_used + graph.operators[0].constants["weights"].nbytes <= MOST_BYTES:
            graphs.append(graph)

    for _ in range(28):
        rows, cols = int(rng.integers(2, 9)), int(rng.integers(2, 25))
        depth, outputs = one_of(_DEPTHS), one_of(_DEPTHS)
        stride = one_of((1, 1, 1, 2))
        add(Conv2d(outputs, stride=(stride, stride)), (rows, cols, depth), (outputs, 1, 1, depth))
        narrow, few = one_of((1, 2, 3, 8, 16, 32, 64)), one_of((8, 16, 32, 64))
        kernel = (one_of((3, 3, 5, 10)), one_of((3, 3, 4)))
        pads = (1, 1, kernel[0] - 2, kernel[1] - 2)
        wide = (rows + 6, cols + 4, narrow)
        add(Conv2d(few, kernel, (stride, stride), pads=pads), wide, (few, *kernel, narrow))
        side = one_of((3, 3, 5))
        near = Conv2d(depth, (side, side), (stride, stride), pads=(side // 2,) * 4, groups=depth)
        add(near, (rows + 2, cols + 2, depth), (depth, side, side, 1))
        vector = one_of((64, 128, 256, 384, 640)), one_of((10, 12, 32, 64, 128))
        add(Conv2d(vector[1]), (1, 1, vector[0]), (vector[1], 1, 1, vector[0]))
    for depth in (4, 8, 16, 30):
        size = (depth // 2 + 1, 4)
        for outputs in (8, 16, 60):
            add(Conv2d(outputs, size), (*size, depth), (outputs, *size, depth))
        add(Conv2dByRows(depth * 2, size), (*size, depth), (depth * 2, *size, depth))
        add(Conv2dByRows(depth, size), (*size, depth * 2), (depth, *size, depth * 2))
        add(Conv2dToRows(8, depth), (1, 1, 64), (8 * depth, 1, 1, 64))
        add(Conv2dToRows(4, 16), (1, 1, depth * 8), (64, 1, 1, depth * 8))
        for side, shape in ((3, (6, 6, depth)), (3, (4, 12, depth)), (5, (7, 8, depth))):
            more = Conv2d(2 * depth, (side, side), pads=(side // 2,) * 4, groups=depth)
            add(more, shape, (2 * depth, side, side, 1))
    for depth, outputs in ((1, 16), (2, 5), (3, 8), (5, 1), (6, 12), (16, 1), (16, 16)):
        add(Conv2d(outputs), (1, 1, depth), (outputs, 1, 1, depth))
    if dtype is DType.FLOAT32:
        _few_channels(add)
    _narrow(add)
    if dtype is DType.FLOAT32:
        _dense(add)
    if dtype is DType.INT8:
        _first_layers(add)
        _depthwise(add)
        _larger_windows(add)
    yield from graphs
    yield from _variations(graphs, dtype)
    yield from _products(dtype)


def _products(dtype: DType) -> Iterator[Graph]:
    """Yield products of two matrices that are not constant."""
    for rows, depth, cols in ((16, 16, 16), (8, 32, 20), (12, 24, 30), (5, 40, 8)):
        yield one_operator(MatMul(False, False), ((rows, 1, depth), (depth, 1, cols)), dtype)
        yield one_operator(MatMul(False, True), ((rows, 1, depth), (cols, 1, depth)), dtype)
    for rows, heads, depth, cols in (
        (9, 4, 3, 9),
        (16, 3, 5, 13),
        (7, 2, 2, 7),
        (10, 1, 19, 3),
        (6, 2, 33, 17),
    ):
        yield one_operator(MatMul(False, False), ((rows, heads, depth), (depth, heads, cols)), dtype)
        yield one_operator(MatMul(False, True), ((rows, heads, depth), (cols, heads, depth)), dtype)
        yield one_operator(MatMul(True, False), ((heads, rows, depth), (heads, depth, cols)), dtype)
    if dtype is DType.INT8:
        yield from _parts_of_channels()
    else:
        yield from _attending()
    for rows, heads, depth, cols in ((20, 4, 16, 21), (21, 2, 30, 16), (12, 3, 8, 8), (30, 2, 65, 16)):
        yield one_operator(MatMul(False, False), ((rows, heads, depth), (depth, heads, cols)), dtype)
        yield one_operator(MatMul(False, True), ((rows, heads, depth), (cols, heads, depth)), dtype)


def _variations(graphs: list[Graph], dtype: DType) -> Iterator[Graph]:
    """Yield the graphs of convolutions with other weights, or with results that are rounded twice."""
    if dtype is DType.FLOAT32:
        yield from (_of_int8_weights(graph) for graph in graphs)
    if dtype is DType.INT8:
        convolutions = [graph for graph in graphs if isinstance(graph.operators[0].op, Conv2d)]
        asymmetric = [_of_nine_bits(graph) for graph in convolutions[::_ASYMMETRIC]]
        yield from map(_as_in_tflite, convolutions)
        yield from (_as_in_tflite(it) for it in graphs if isinstance(it.operators[0].op, Conv2dByRows))
        yield from asymmetric
        yield from (_of_nine_bits(it) for it in graphs if isinstance(it.operators[0].op, Conv2dByRows))
        yield from map(_as_in_tflite, asymmetric)


def _four_bits() -> Iterator[Graph]:
    """Yield convolutions of integers with weights of four bits."""
    packed = list[Graph]()
    for graph in _linear(DType.INT8):
        (operator,) = graph.operators
        weights = operator.constants.get("weights")
        if isinstance(operator.op, Conv2d) and operator.op.rounding == "once" and weights.dtype == np.int8:
            constants = {**operator.constants, "weights": np.asarray(weights % 16 - 8, np.int8)}
            packed.append(replace(graph, operators=(replace(operator, constants=constants),)))
    yield from packed[::_PACKED]
    yield from map(_as_in_tflite, packed[:: _PACKED * _PACKED])


def _of_nine_bits(graph: Graph) -> Graph:
    """Return the graph of a convolution of integers with weights beyond int8."""
    (operator,) = graph.operators
    weights = operator.constants["weights"].astype(np.int16) + 100
    constants = {**operator.constants, "weights": np.asarray(weights, np.int16)}
    return replace(graph, operators=(replace(operator, constants=constants),))


def _of_int8_weights(graph: Graph) -> Graph:
    """Return the graph of a convolution or a recurrent network of floats whose weights are int8."""
    (operator,) = graph.operators
    constants = dict(operator.constants)
    for name, scale in (("weights", "weight_scale"), ("recurrent", "recurrent_scale")):
        if name in constants:
            constants |= {
                name: np.rint(constants[name] / 0.02).astype(np.int8),
                scale: np.full(len(constants[name]), 0.02, np.float32),
            }
    return replace(graph, operators=(replace(operator, constants=constants),))


def _as_in_tflite(graph: Graph) -> Graph:
    """Return the graph of a convolution whose results are rounded twice."""
    (operator,) = graph.operators
    assert isinstance(operator.op, Conv2d | Conv2dByRows)
    return replace(graph, operators=(replace(operator, op=replace(operator.op, rounding="tflite")),))


def _parts_of_channels() -> Iterator[Graph]:
    """Yield concatenations of channels that are adjacent, and of others, copied and through tables."""
    for rows, cols, channels in SHAPES:
        adjacent, others = tuple(range(channels // 2)), tuple(range(0, channels, 2))
        for some in (adjacent, others):
            op = ConcatChannels((some, some[:-1] or some))
            for scale in (0.05, 0.4):
                yield one_operator(op, ((rows, cols, channels),) * 2, DType.INT8, scale=scale)


_Add = Callable[[Any, Shape, tuple[int, ...]], None]


def _narrow(add: _Add) -> None:
    """Add rows of one to eight pixels, partial blocks of channels, sequences, and clipped results."""
    rng = np.random.default_rng(3)

    def number(low: int, high: int) -> int:
        return int(rng.integers(low, high, endpoint=True))

    for width in (*range(1, 9), *range(1, 9)):
        rows, depth, outputs = number(3, 7), number(1, 17) * number(1, 4), number(1, 40)
        low = -math.inf if width % 3 else 0.0
        add(Conv2d(outputs, low=low), (rows, width, depth), (outputs, 1, 1, depth))
        channels = number(1, 12)
        kernel, grow = (number(1, 3), number(2, 3)), number(1, 2)
        pads = (kernel[0] // 2, kernel[1] // 2, kernel[0] // 2, kernel[1] // 2)
        general = Conv2d(
            outputs, kernel, (1, number(1, 2)), (1, grow), pads=(pads[0], grow * pads[1]) * 2, low=low
        )
        shape = (rows, width * general.stride[1] + grow * kernel[1], channels)
        add(general, shape, (outputs, *kernel, channels))
        few = 4 * number(1, 8)
        grouped = Conv2d(3 * outputs, (3, 3), groups=3, pads=(1, 1, 1, 1), low=low)
        add(grouped, (rows, width, 3 * few), (3 * outputs, 3, 3, few))
        near = Conv2d(depth, (3, 3), pads=(1, 1, 1, 1), groups=depth, low=low)
        add(near, (rows, width, depth), (depth, 3, 3, 1))
        clipped = Conv2d(depth, (3, 3), pads=(1, 1, 1, 1), groups=depth, low=0.0)
        add(clipped, (rows, width + 8, depth), (depth, 3, 3, 1))
        more = Conv2d(2 * channels, (3, 3), pads=(1, 1, 1, 1), groups=channels, low=low)
        add(more, (rows, width, channels), (2 * channels, 3, 3, 1))
        # sequences: a window of several rows of one pixel
        taps, step, wide = number(2, 8), 2 ** number(0, 3), 4 * number(2, 16)
        length = (taps - 1) * step + number(1, 9)
        add(
            Conv2d(outputs, (taps, 1), dilation=(step, 1), low=low),
            (length, 1, wide),
            (outputs, taps, 1, wide),
        )
        same = ((taps - 1) * step // 2, 0, taps * step // 2, 0)
        add(
            Conv2d(wide, (taps, 1), dilation=(step, 1), pads=same), (length, 1, depth), (wide, taps, 1, depth)
        )
        alone = Conv2d(wide, (taps, 1), dilation=(step, 1), pads=same, groups=wide)
        add(alone, (length, 1, wide), (wide, taps, 1, 1))
        size = (rows, width)
        add(Conv2d(outputs, size, low=low), (*size, channels), (outputs, *size, channels))
        add(Conv2dByRows(outputs, size, low=low), (*size, channels), (outputs, *size, channels))
        add(Conv2dToRows(rows, width, low=low), (1, 1, depth), (rows * width, 1, 1, depth))


def _dense(add: _Add) -> None:
    """Add layers of one pixel, some of one channel."""
    for depth, outputs in ((90, 1), (30, 3), (64, 12), (53, 39), (130, 64)):
        low = 0.0 if depth % 2 else -math.inf
        add(Conv2d(outputs, low=low), (1, 1, depth), (outputs, 1, 1, depth))


def _first_layers(add: _Add) -> None:
    """Add windows of many rows over few channels, with strides of one and two."""
    kernels = (10, 8), (2, 3), (4, 4), (6, 5), (5, 5), (7, 7), (8, 10), (1, 6)
    for number, kernel in enumerate(kernels):
        for channels in (1, 2, 3, 4):
            stride, outputs = 1 + (number + channels) % 2, 4 * (1 + (number + 2 * channels) % 5)
            pads = (
                kernel[0] // 2 - 1 if kernel[0] > 1 else 0,
                kernel[1] // 2,
                kernel[0] // 2,
                kernel[1] // 2,
            )
            op = Conv2d(outputs, kernel, (stride, stride), pads=pads)
            add(op, (kernel[0] + 4 * stride, 7 + 6 * number, channels), (outputs, *kernel, channels))


def _depthwise(add: _Add) -> None:
    """Add windows of 3x3 that slide by one and by two, over few and many columns and channels."""
    for rows, cols, channels in (
        *((5, 5, 16), (25, 5, 64), (6, 6, 40), (4, 3, 128), (3, 1, 24), (9, 2, 12), (7, 14, 24)),
        *((8, 24, 32), (20, 17, 8), (5, 33, 16), (4, 50, 8), (12, 12, 64), (3, 100, 4)),
        *((6, 9, 3), (5, 7, 6), (4, 12, 9), (3, 20, 2), (11, 6, 23), (2, 4, 5), (7, 40, 7)),
    ):
        for stride in (1, 2):
            op = Conv2d(channels, (3, 3), (stride, stride), pads=(1, 1, 1, 1), groups=channels)
            add(op, (rows * stride, cols * stride, channels), (channels, 3, 3, 1))
            if stride == 1 or cols > 8:
                op = replace(op, stride=(3 - stride, stride), pads=(0, 2, 1, 0), low=0.0)
                add(op, (rows + 4, cols * stride + 2, channels), (channels, 3, 3, 1))


def _larger_windows(add: _Add) -> None:
    """Add depthwise windows of 5 and 7 columns, over few and many columns, rows and channels."""
    for rows, cols, channels in (
        *((6, 6, 40), (4, 4, 64), (7, 7, 24), (12, 12, 32), (14, 14, 20), (24, 28, 8), (5, 44, 12)),
        *((3, 3, 48), (8, 5, 30), (9, 11, 17), (33, 10, 7), (4, 60, 3), (16, 16, 16)),
    ):
        for kernel in ((5, 5), (7, 7), (3, 5), (4, 7)):
            for stride in (1, 2):
                pads = (kernel[0] // 2, kernel[1] // 2) * 2
                low = 0.0 if rows % 2 else -math.inf
                op = Conv2d(channels, kernel, (stride, stride), pads=pads, groups=channels, low=low)
                add(op, (rows * stride, cols * stride, channels), (channels, *kernel, 1))


def _few_channels(add: _Add) -> None:
    """Add more windows of one or two channels, which have their own kernel for floats."""
    rng = np.random.default_rng(2)
    for _ in range(10):
        rows, cols = int(rng.integers(4, 9)), int(rng.integers(4, 21))
        outputs, stride = int(rng.choice((16, 32, 48, 64))), int(rng.choice((1, 2)))
        for kernel, depth in (((int(rng.integers(3, 12)), int(rng.integers(2, 6))), 1), ((3, 3), 2)):
            pads = ((kernel[0] - 1) // 2, (kernel[1] - 1) // 2, kernel[0] // 2, kernel[1] // 2)
            op = Conv2d(outputs, kernel, (stride, stride), pads=pads)
            add(op, (rows + kernel[0], cols, depth), (outputs, *kernel, depth))


def _ragged(dtype: DType) -> Iterator[Graph]:
    """Yield windows at borders whose taps are many channels and no whole groups, and large ones."""
    for number, channels in enumerate((13, 18, 23, 35, 38, 57, 70)):
        width, outputs = 2 + number % 5, 5 + 3 * number
        kernel = 2 + number % 2, 2 + number % 3
        pads = (1, kernel[1] // 2, 1, kernel[1] // 2)
        general = Conv2d(outputs, kernel, pads=pads)
        yield weighted(general, (5, width, channels), (outputs, *kernel, channels), dtype)
        for size in ((5, 5), (7, 1 + 2 * (number % 3)), (4, 1)):
            around = (size[0] // 2, size[1] // 2) * 2
            near = Conv2d(channels, size, pads=around, groups=channels)
            yield weighted(near, (9, width + 3, channels), (channels, *size, 1), dtype)


_WITHOUT_TIES = 0.35
"""An output scale that is not a power of two times that of the inputs: sums have no ties."""


def _elementwise(dtype: DType) -> Iterator[Graph]:
    for shape in SHAPES:
        for function in ("add", "sub", "mul", "div"):
            for second, low in ((shape, -math.inf), (shape, 0.0), ((1, 1, shape[2]), -math.inf)):
                yield one_operator(Binary(function, low=low), (shape, second), dtype)
                if dtype is DType.INT8 and function == "add":
                    yield one_operator(Binary(function, low=low), (shape, second), dtype, scale=_WITHOUT_TIES)
                if dtype is DType.INT8 and function != "div":
                    yield one_operator(Binary(function, low=low, rounding="tflite"), (shape, second), dtype)
        if dtype is DType.INT8:
            yield one_operator(Lut(), (shape,), dtype, {"table": np.zeros(256, np.int8)})
            channels = dict.fromkeys(("factor", "offset"), np.full(shape[2], 0.7, np.float32))
            for low in (-math.inf, 0.0):
                yield one_operator(Affine(low), (shape,), dtype, channels)
            yield one_operator(Dequantize(), (shape,), dtype, out_type=DType.FLOAT32)
            yield one_operator(LayerNorm(1e-5), (shape,), dtype, _vectors(shape))
            continue
        for how in BINARY.keys() - {"add", "sub", "mul", "div"}:
            yield one_operator(Binary(how), (shape, shape), dtype)
        for function in UNARY:
            yield one_operator(Unary(function, 0.1, 0.5), (shape,), dtype)
        yield one_operator(Quantize(), (shape,), dtype, out_type=DType.INT8)
        yield one_operator(LayerNorm(1e-5), (shape,), dtype, _vectors(shape))


def _vectors(shape: Shape) -> dict[str, ConstantArray]:
    """The scale and the bias of a normalisation."""
    return dict.fromkeys(("scale", "bias"), np.full(shape[2], 0.7, np.float32))


_SEQUENCES = (
    *((4, 8, 8), (9, 12, 5), (3, 20, 16), (12, 4, 12), (2, 33, 30), (1, 64, 32), (2, 16, 24), (5, 40, 20)),
    *((1, 7, 3), (3, 9, 11), (2, 24, 36), (7, 5, 2), (1, 50, 7), (8, 3, 17)),
)
"""Steps, inputs and cells of recurrent networks."""


_KERAS = CellFunctions(CellFunction("line", 0.2, 0.5, 0.0, 1.0), CellFunction("tanh"), CellFunction("tanh"))
"""The functions of recurrent networks of Keras 1 and 2."""


def _recurrent() -> Iterator[Graph]:
    """Yield networks over sequences, of each cell."""
    for steps, depth, hidden in _SEQUENCES:
        for cell, gates in GATES.items():
            shapes = {
                "weights": (gates * hidden, depth),
                "recurrent": (gates * hidden, hidden),
                "bias": (gates * hidden,),
                "candidate_bias": (hidden,),
                "initial": (2 * hidden,),
            }
            rng = np.random.default_rng(steps)
            constants: dict[str, ConstantArray] = {
                name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()
            }
            for after in (False, True) if cell == "gru" else (False,):
                if cell != "rnn":
                    graph = one_operator(
                        Recurrent(cell, hidden, reset_after=after),
                        ((1, steps, depth),),
                        DType.FLOAT32,
                        constants,
                    )
                    yield graph
                if cell in SCALED:
                    yield _of_int8_weights(graph)
                if cell in ("lstm", "gru", "rnn"):
                    op = Recurrent(cell, hidden, reset_after=after, functions=_KERAS)
                    yield one_operator(op, ((1, steps, depth),), DType.FLOAT32, constants)


def _svdf(dtype: DType) -> Iterator[Graph]:
    """Yield filters over time, of ranks 1 and more."""
    integer = dtype is DType.INT8
    for units, rank, memory in ((4, 1, 3), (16, 1, 8), (24, 2, 8), (9, 3, 16), (64, 1, 5), (3, 2, 30)):
        filters = units * rank
        constants: dict[str, ConstantArray] = {
            "weights": np.ones((filters, memory), dtype.value),
            "bias": np.zeros(units, "int32" if integer else "float32"),
        }
        if integer:
            constants["weight_scale"] = np.full(1, 0.02, np.float32)
        yield one_operator(Svdf(units), ((1, 1, filters), (1, filters, memory)), dtype, constants)


def _windows(dtype: DType) -> Iterator[Graph]:
    for rows, cols, channels in SHAPES:
        shape = (rows + 4, cols + 4, channels)
        for size in (2, 3):
            out = ((shape[0] - size) // 2 + 1, (shape[1] - size) // 2 + 1)
            window = ((size, size), (2, 2), (1, 1), (0, 0, 0, 0), out)
            yield one_operator(MaxPool(*window), (shape,), dtype, scale=0.05)
            yield one_operator(AveragePool(*window, False), (shape,), dtype)
            same = ((size, size), (1, 1), (1, 1), (size - 2, size - 2, 1, 1), shape[:2])
            yield one_operator(MaxPool(*same), (shape,), dtype, scale=0.05)
            yield one_operator(AveragePool(*same, False), (shape,), dtype)
        whole = (shape[:2], (1, 1), (1, 1), (0, 0, 0, 0), (1, 1))
        yield one_operator(AveragePool(*whole, False), (shape,), dtype)
        yield one_operator(AveragePoolByRows(), (shape,), dtype)
        functions = get_args(Reduction) if dtype is DType.FLOAT32 else ("mean",)
        for function in functions:
            yield one_operator(Reduce((2,), function), (shape,), dtype)
            yield one_operator(Reduce((0, 1), function), (shape,), dtype)
            if dtype is DType.INT8:
                for axes in ((2,), (0, 1)):
                    yield one_operator(Reduce(axes, rounding="tflite"), (shape,), dtype)
        for axis in (0, 2):
            yield one_operator(Softmax(axis), (shape,), dtype, scale=1 / 256)
        if dtype is DType.INT8:
            yield one_operator(Softmax(rounding="tflite"), (shape,), dtype, scale=1 / 256)


def _moves(dtype: DType) -> Iterator[Graph]:
    for shape in SHAPES:
        rows, cols, channels = shape
        for move in (Copy(), Clean(), Invalidate()):
            yield one_operator(move, (shape,), dtype, scale=0.05)
        for axis in (0, 2):
            yield one_operator(Concat(axis), (shape, shape), dtype, scale=0.05)
            yield one_operator(Concat(axis), (shape, shape), dtype)  # int8: through a table
        for around in ((1, 1, 0), (0, 2, 1)):
            yield one_operator(Pad(around, around, 0.0), (shape,), dtype, scale=0.05)
        for step in (1, 2):
            some = Slice((0, 0, 0), (1, 1, step), (rows, cols, (channels + 1) // 2))
            yield one_operator(some, (shape,), dtype, scale=0.05)
        yield one_operator(Transpose(shape, (2, 0, 1), (channels, rows, cols)), (shape,), dtype, scale=0.05)
        columns_first = Transpose(shape, (1, 2, 0), (cols, channels, rows))
        yield one_operator(columns_first, (shape,), dtype, scale=0.05)
        if channels % 2 == 0:
            halves = Transpose((rows, cols, 2, channels // 2), (0, 1, 3, 2), shape)
            yield one_operator(halves, (shape,), dtype, scale=0.05)
        yield from (one_operator(op, (shape,), dtype, scale=0.05) for op in _taking(shape))
        yield from (one_operator(op, (shape,), dtype, scale=0.05) for op in _in_blocks(shape))
        for newest in (1, cols):
            ends = ((1, newest, channels), (1, rows * cols, channels))
            yield one_operator(Queue(), ends, dtype, scale=0.05)
        if dtype is DType.FLOAT32:
            yield from (one_operator(op, (shape,), dtype) for op in _resampling(rows, cols))
            for taps in (1, 2, 4):
                yield one_operator(GridSample(taps, "border", True), (shape, (rows, cols, 2)), dtype)
        for mode in ("nearest", "linear"):
            samples = [resize_samples(size, 2 * size, 2.0, mode=mode) for size in (rows, cols)]
            yield one_operator(Resize(mode, *samples), (shape,), dtype, scale=0.05)
            yield one_operator(Resize(mode, *samples), (shape,), dtype)


def _tiled(dtype: DType) -> Iterator[Graph]:
    """Yield convolutions by windows of 3x3, some clipped, for output tiles and for few input channels."""
    images = ((8, 8), (13, 9), (6, 17), (9, 4), (5, 30), (16, 12), (10, 21))
    channels = ((16, 12), (8, 6), (4, 9), (32, 8), (12, 16), (20, 3), (24, 10))
    for (rows, cols), (depth, outputs) in zip(images, channels, strict=True):
        for pads in ((1, 1, 1, 1), (0, 0, 0, 0)):
            op = Conv2d(outputs, (3, 3), pads=pads, low=-math.inf if depth % 3 else 0.0)
            yield weighted(op, (rows, cols, depth), (outputs, 3, 3, depth), dtype)
            few = Conv2d(outputs, (3, 3), pads=pads, low=0.0)
            yield weighted(few, (rows, cols, depth % 3 + 1), (outputs, 3, 3, depth % 3 + 1), dtype)


def _chosen(dtype: DType) -> Iterator[Graph]:
    """Yield chosen rows and elements, and casts."""
    rng = np.random.default_rng(9)
    for count, width in ((32, 64), (7, 30), (16, 8), (64, 16), (3, 200), (40, 5)):
        table = rng.integers(-128, 127, (50, 1, width)).astype(dtype.value)
        indices = (1, 1, count)
        for op, shapes, constants in (
            (GatherRows(width), (indices,), {"table": table}),
            (GatherRows(), (indices, (20, 1, width)), {}),
        ):
            yield _with_indices(one_operator(op, shapes, dtype, constants, scale=0.05))
    for shape in SHAPES:
        for axis, largest in ((0, True), (1, True), (2, False)):
            for count in (1, min(3, shape[axis])):
                yield one_operator(
                    TopK(axis, count, "indices", largest), (shape,), dtype, out_type=DType.INT32
                )
                yield one_operator(TopK(axis, count, "values", not largest), (shape,), dtype, scale=0.05)
        if dtype is DType.FLOAT32:
            yield one_operator(Cast(), (shape,), dtype, out_type=DType.INT32)
            yield one_operator(Cast(), (shape,), DType.INT32, out_type=dtype)


def _indexed(dtype: DType) -> Iterator[Graph]:
    """Yield elements by indices: those of maxima, scattered rows, regions, functions of integers."""
    rng = np.random.default_rng(11)
    for shape in SHAPES:
        rows, cols, channels = shape
        for kernel, stride in ((2, 2), (3, 1), (3, 2)):
            if kernel <= min(rows, cols):
                size = ((rows - kernel) // stride + 1, (cols - kernel) // stride + 1)
                pool = MaxPool((kernel, kernel), (stride, stride), (1, 1), (0, 0, 0, 0), size)
                steps = (cols, 1, rows * cols)
                yield one_operator(MaxPoolIndices(pool, steps), (shape,), dtype, out_type=DType.INT32)
    reductions: tuple[ScatterReduction, ...] = ("none",) if dtype is DType.INT8 else ("none", "add", "max")
    for count, rows, width in ((20, 32, 8), (60, 16, 30), (7, 64, 1), (40, 200, 1), (12, 12, 64)):
        where = {"indices": rng.integers(0, rows, count).astype(np.int32)}
        for reduction in reductions:
            filled, onto = (ScatterRows(reduction, size, True) for size in (rows, None))
            yield one_operator(filled, ((count, 1, width),), dtype, where, scale=0.05)
            yield one_operator(onto, ((count, 1, width), (rows, 1, width)), dtype, where, scale=0.05)
        for blocks in (1, 4):
            shapes = ((1, blocks * count, width), (1, blocks * rows, width))
            positions = {"positions": where["indices"]}
            yield one_operator(WriteRows(blocks, rows, True), shapes, dtype, positions, scale=0.05)
    for shape in SHAPES:
        for function in get_args(IntegerFunction)[:6:2]:
            for offsets in ((0, 0, 0), (128, 128, 128)):
                op = IntegerBinary(function, offsets=offsets)
                yield one_operator(op, (shape, shape), DType.INT32 if dtype is DType.FLOAT32 else dtype)
        channels = shape[2]
        constant = {"constant": rng.integers(1, 9, (1, 1, channels)).astype(np.int32)}
        less = IntegerBinary("less", 1, (1, 1, channels))
        yield one_operator(less, (shape,), DType.INT32, constant, out_type=DType.INT8)
    if dtype is DType.FLOAT32:
        yield from _regions(rng)
        yield from _suppressed()
        yield from _trees(rng)


def _suppressed() -> Iterator[Graph]:
    """Yield boxes of random corners, or all the same."""
    for boxes, count in ((20, 5), (100, 10), (300, 4), (64, 64), (700, 2)):
        op = NonMaxSuppression(count, -1e9, 0.5)
        shapes = (boxes, 1, 4), (1, 1, boxes)
        yield one_operator(op, shapes, DType.FLOAT32, out_type=DType.INT32)


def _trees(rng: np.random.Generator) -> Iterator[Graph]:
    """Yield ensembles of complete trees, with one or several weights in a leaf."""
    for trees, depth, values, targets in (
        (1, 3, 8, 1),
        (10, 4, 20, 3),
        (40, 2, 5, 1),
        (8, 6, 30, 2),
        (60, 1, 4, 1),
    ):
        inner, leaves = 2**depth - 1, 2**depth
        own = np.arange(inner)
        follow = np.stack([2 * own + 1, 2 * own + 2], axis=1)
        tables = []
        for tree in range(trees):
            numbers = np.where(follow < inner, follow + tree * inner, LEAF + follow - inner + tree * leaves)
            tables.append(numbers)
        entries = trees * leaves * targets
        constants = {
            "thresholds": rng.normal(0, 0.5, trees * inner).astype(np.float32),
            "features": rng.integers(0, values, trees * inner).astype(np.uint16),
            "next": np.concatenate(tables).astype(np.uint32),
            "roots": (np.arange(trees) * inner).astype(np.uint32),
            "leaf_starts": (np.arange(trees * leaves + 1) * targets).astype(np.uint32),
            "targets": np.tile(np.arange(targets), trees * leaves).astype(np.uint16),
            "weights": rng.normal(size=entries).astype(np.float32),
        }
        for rows in (1, 4):
            yield one_operator(TreeSums(targets, depth), ((rows, 1, values),), DType.FLOAT32, constants)


def _regions(rng: np.random.Generator) -> Iterator[Graph]:
    """Yield regions inside the image, of a fixed number of samples."""
    for rows, cols, channels in SHAPES:
        corners = np.sort(rng.uniform(0, 1, (3, 2, 2)), axis=1) * (cols - 1, rows - 1)
        regions = {"regions": corners.reshape(3, 4).astype(np.float32)}
        for samples, largest in ((1, False), (2, False), (3, True), (2, True)):
            op = RoiAlign((3, 2), samples, largest=largest, count=3)
            yield one_operator(op, ((rows, cols, channels),), DType.FLOAT32, regions)


def _attending() -> Iterator[Graph]:
    """Yield attention over all rows, whatever the position is."""
    rng = np.random.default_rng(13)
    for heads, group in ((8, 2), (4, 1), (2, 2), (3, 1), (1, 1), (6, 3)) * 5:
        width, values = (int(size) for size in rng.choice((3, 4, 7, 8, 12, 16, 32, 64), 2))
        count = int(rng.choice((1, 3, 7, 16, 30, 33, 64)))
        keys, mixed = Rows(width, width, count * width), Rows(values, values, count * values)
        op = Attend(heads, group, count, 0.3, keys, mixed, Bound(0, 0), Bound(count, 0))
        shared = -(-heads // group)
        sizes = (1, heads * width, keys.extent(shared, count), mixed.extent(shared, count))
        yield _with_indices(one_operator(op, tuple((1, 1, size) for size in sizes), DType.FLOAT32))
        scales = Rows(1, 1, 0)
        graph = one_operator(
            replace(op, scales=(scales, scales)),
            tuple((1, 1, size) for size in (*sizes, count, count)),
            DType.FLOAT32,
        )
        yield _with_indices(_of_int8(graph, 2, 3))


def _of_int8(graph: Graph, *numbers: int) -> Graph:
    """Return the graph with int8 in these inputs."""
    of_int8 = {graph.inputs[it].tensor for it in numbers}
    tensors = {
        name: replace(it, dtype=DType.INT8, quantization=Quantization(1.0, 0)) if name in of_int8 else it
        for name, it in graph.tensors.items()
    }
    inputs = (replace(it, dtype="int8") if it.tensor in of_int8 else it for it in graph.inputs)
    return replace(graph, tensors=tensors, inputs=tuple(inputs))


def _with_indices(graph: Graph) -> Graph:
    """Return the graph with int32 in its first input."""
    first, *others = graph.inputs
    tensor = replace(graph.tensors[first.tensor], dtype=DType.INT32, quantization=None)
    inputs = (replace(first, dtype=tensor.dtype.value), *others)
    return replace(graph, tensors={**graph.tensors, tensor.name: tensor}, inputs=inputs)


def _taking(shape: Shape) -> Iterator[Take | Gather]:
    """Yield mirrored borders, repeated pixels, shuffled channels, and units of each size from anywhere."""
    rows, cols, channels = (tuple(range(size)) for size in shape)
    yield Take((rows[-1], *rows, rows[0]), (cols[-1], *cols, cols[0]), channels)
    yield Take(rows, cols * 2, channels[::2] + channels[1::2])
    yield Take(rows, cols, channels[len(channels) // 2 :] * 2)
    rng = np.random.default_rng(math.prod(shape))
    for unit in {1, 2, math.gcd(shape[1] * shape[2], 48)}:
        firsts = unit * rng.integers(0, math.prod(shape) // unit, (math.prod(shape) // unit, 1))
        if shape[1] * shape[2] % unit == 0:
            yield Gather(tuple((firsts + np.arange(unit)).reshape(-1).tolist()), shape)


def _in_blocks(shape: Shape) -> Iterator[DepthToSpace]:
    """Yield blocks of 2x2, 1x2 and 2x1 pixels, whole and without a border, of one group and of several."""
    rows, cols, channels = shape
    for block in ((2, 2), (1, 2), (2, 1)):
        pixels = block[0] * block[1]
        size = rows * block[0], cols * block[1]
        if channels % pixels == 0:
            yield DepthToSpace(block, size)
            yield DepthToSpace(block, size, groups=channels // pixels)
            yield DepthToSpace(block, (size[0] - block[0] + 1, size[1] - block[1] + 1), (block[0] - 1, 0))


def _resampling(rows: int, cols: int) -> Iterator[Resample]:
    """Yield cubic enlargements, reductions by filters of that width, and a part with a border."""
    for scale, kind in ((2.0, Filter(cubic=True)), (0.5, Filter(cubic=False, antialias=True))):
        axes = (ResizedAxis(size, math.ceil(size * scale), scale) for size in (rows, cols))
        yield Resample(*(resize_taps(axis, kind) for axis in axes))
    around = (ResizedAxis(size, size + 2, 1.0, "tf_crop_and_resize", (-0.3, 1.1)) for size in (rows, cols))
    yield Resample(*(resize_taps(axis, Filter(cubic=False)) for axis in around))
