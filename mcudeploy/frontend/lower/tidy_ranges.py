"""Bounds of the stored values of each channel of activations.

Interval arithmetic on the integers of the kernels derives them. A channel with equal bounds has this value at
every position in every run. Of float32 channels only constant ones are found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import DType, Graph, Operator, Tensor
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.conv.conv_constants import ConvConstants, Results, numbers_of
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.pool.pool import AveragePool, MaxPool
from mcudeploy.ops.requantize import INT32_MAX
from mcudeploy.ops.scalar.elementwise import Lut

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """Bounds of every channel: int64 for int8 tensors, else float64, where unknown bounds are infinite."""

    low: Array
    high: Array

    @property
    def constant(self) -> NDArray[np.bool_]:
        """The channels with a single value."""
        return np.asarray(self.low == self.high)


def ranges_of(graph: Graph) -> dict[str, Range]:
    """The range of every tensor of a graph."""
    ranges = {io.tensor: _unknown(graph.tensors[io.tensor]) for io in graph.inputs}
    for operator in graph.operators:
        output = graph.tensors[operator.output]
        known = _range(graph, operator, [ranges[name] for name in operator.inputs])
        ranges[operator.output] = known or _unknown(output)
    return ranges


def _unknown(tensor: Tensor) -> Range:
    """The range of all stored values."""
    channels = tensor.shape[2]
    if tensor.dtype is DType.INT8:
        return Range(np.full(channels, -128, np.int64), np.full(channels, 127, np.int64))
    return Range(np.full(channels, -np.inf), np.full(channels, np.inf))


def _range(graph: Graph, operator: Operator, inputs: list[Range]) -> Range | None:
    """Bounds of the result of an operator; None for kinds of operators that are not analysed."""
    op, sources, output = operator.op, graph.input_tensors(operator), graph.tensors[operator.output]
    if isinstance(op, Conv2d):
        if output.dtype is DType.FLOAT32:
            return _float_convolution(op, operator, inputs[0])
        try:
            constants, numbers = numbers_of(Results(op.low, op.high), operator, sources[0], output)
        except ValueError:  # code generation will report why the kernel refuses the numbers
            return None
        sums = products(op, constants.weights, _padded(op.pads, sources[0], inputs[0]))
        ends = (requantized(constants, numbers, constants.bias + each) for each in (sums.low, sums.high))
        return Range(*ends)
    alike = all(source.quantization == output.quantization for source in sources)
    if isinstance(op, MaxPool | AveragePool) and alike and output.dtype is DType.INT8:
        counted = isinstance(op, AveragePool) and op.count_include_pad
        return _padded(op.pads, sources[0], inputs[0]) if counted else inputs[0]
    if isinstance(op, Lut):
        return _looked_up(operator.constants["table"].astype(np.int64), inputs[0])
    if isinstance(op, Concat) and op.axis == 2 and alike:
        return Range(np.concatenate([it.low for it in inputs]), np.concatenate([it.high for it in inputs]))
    return None


def _looked_up(table: Array, bounds: Range) -> Range:
    spans = [table[low + 128 : high + 129] for low, high in zip(bounds.low, bounds.high, strict=True)]
    return Range(np.array([it.min() for it in spans]), np.array([it.max() for it in spans]))


def _padded(pads: tuple[int, int, int, int], source: Tensor, bounds: Range) -> Range:
    """Bounds of the input, including the zero point if windows extend beyond it."""
    if pads == (0, 0, 0, 0) or source.quantization is None:
        return bounds
    zero_point = source.quantization.zero_point
    return Range(np.minimum(bounds.low, zero_point), np.maximum(bounds.high, zero_point))


def products(conv: Conv2d, weights: Array, bounds: Range) -> Range:
    """Bounds of the sum of products of every output channel; `weights` are [K, kh, kw, C/groups]."""
    outputs, groups = len(weights), conv.groups
    low, high = (each.reshape(groups, 1, 1, 1, -1) for each in (bounds.low, bounds.high))
    by_group = weights.astype(np.int64).reshape(groups, outputs // groups, *weights.shape[1:])
    ends = by_group * low, by_group * high
    sums = (extreme(*ends).sum(axis=(2, 3, 4)).reshape(-1) for extreme in (np.minimum, np.maximum))
    return Range(*sums)


def requantized(constants: ConvConstants, numbers: dict[str, Any], sums: Array) -> Array:
    """Apply the kernels' requantisation to sums with their bias, by channel; see mcud_quant.h."""
    assert constants.multipliers is not None
    shifted = np.clip(sums.astype(np.int64) << numbers["quant.left_shift"], -INT32_MAX - 1, INT32_MAX)
    scaled = (shifted * constants.multipliers + (1 << 31)) >> 32
    results = scaled + numbers["quant.zero_point"]
    return np.asarray(np.clip(results, numbers["act.min"], numbers["act.max"]))


def _float_convolution(conv: Conv2d, operator: Operator, bounds: Range) -> Range:
    """The bounds of a float convolution: a channel all of whose products are zero equals its bias."""
    weights = operator.constants["weights"]
    zero_input = (bounds.low == 0) & (bounds.high == 0)
    by_group = weights.reshape(conv.groups, -1, *weights.shape[1:])
    zero_product = (by_group == 0) | zero_input.reshape(conv.groups, 1, 1, 1, -1)
    is_bias = zero_product.all(axis=(2, 3, 4)).reshape(-1)
    bias = np.clip(operator.constants["bias"].astype(np.float64), conv.low, conv.high)
    return Range(np.where(is_bias, bias, -np.inf), np.where(is_bias, bias, np.inf))
