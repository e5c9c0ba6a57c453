"""Depthwise convolutions with kernels of several sizes, each of a part of the channels, joined into one.

Networks that mix kernel sizes split channels, filter each part by the newest rows that its kernel needs, and
concatenate the results. With zeros before the smaller kernels, one convolution does this without a copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from mcudeploy.frontend.lower.tidy_operators import alive
from mcudeploy.ir.graph import DType, Graph, Operator
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.conv.conv_asymmetric import is_asymmetric
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.move import Slice

_MAX_GROWTH = 2
"""Limit of the products of the joined convolution, as a multiple of the products of its parts."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A depthwise convolution that reads channels of `source` from `channel` on, and rows from `row` on."""

    operator: Operator
    conv: Conv2d
    source: str
    row: int
    channel: int

    @property
    def common_facts(self) -> tuple[object, ...]:
        """The facts that are equal in all parts of a joined convolution."""
        conv = self.conv
        rest = conv.kernel_shape[1], conv.stride, conv.dilation, conv.low, conv.high, conv.rounding
        return self.source, *rest, tuple(self.operator.constants)


def join_depthwise(graph: Graph) -> Graph:
    """Return the graph in which the depthwise convolutions before each fitting Concat are joined."""
    producers = {operator.output: operator for operator in graph.operators}
    counts = {name: len(places) for name, places in graph.readers().items()}
    outputs = {io.tensor for io in graph.outputs}
    joined_by_output: dict[str, Operator] = {}
    for operator in graph.operators:
        parts = [_part(graph, producers, name) for name in operator.inputs]
        if isinstance(operator.op, Concat) and operator.op.axis == 2 and None not in parts:
            sole_reader = all(counts[name] == 1 and name not in outputs for name in operator.inputs)
            joined = _joined(graph, operator, [part for part in parts if part is not None])
            if sole_reader and joined is not None:
                joined_by_output[operator.output] = joined
    if not joined_by_output:
        return graph
    return _without_unread(graph, [joined_by_output.get(it.output, it) for it in graph.operators])


def _part(graph: Graph, producers: Mapping[str, Operator], name: str) -> _Part | None:
    operator = producers.get(name)
    if operator is None or not isinstance(operator.op, Conv2d) or any(operator.op.pads):
        return None
    if is_asymmetric(operator):
        return None
    conv, source, row, channel = operator.op, operator.inputs[0], 0, 0
    if not 1 < conv.groups == conv.out_channels == graph.tensors[source].shape[2]:
        return None
    while (
        (cut := producers.get(source)) is not None and isinstance(cut.op, Slice) and cut.op.step == (1, 1, 1)
    ):
        if cut.op.out_shape[1] != graph.tensors[cut.inputs[0]].shape[1]:
            break
        row, channel, source = row + cut.op.start[0], channel + cut.op.start[2], cut.inputs[0]
    return _Part(operator, conv, source, row, channel)


def _joined(graph: Graph, concat: Operator, parts: list[_Part]) -> Operator | None:
    """The convolution of all channels of the source; None if its parts do not fit together."""
    first, source, output = parts[0], graph.tensors[parts[0].source], graph.tensors[concat.output]
    ends = list(accumulate((part.conv.out_channels for part in parts), initial=0))
    quantizations = {graph.tensors[part.operator.output].quantization for part in parts}
    step = first.conv.dilation[0]
    if (
        len({part.common_facts for part in parts}) > 1
        or [part.channel for part in parts] != ends[:-1]
        or source.shape[2] != ends[-1]
        or quantizations != {output.quantization}
        or output.dtype is not DType.INT8
        or any(part.row % step for part in parts)
    ):
        return None
    rows = max(part.row // step + part.conv.kernel_shape[0] for part in parts)
    products = sum(part.conv.kernel_shape[0] * part.conv.out_channels for part in parts)
    op = replace(
        first.conv, out_channels=ends[-1], groups=ends[-1], kernel_shape=(rows, first.conv.kernel_shape[1])
    )
    if (
        rows * ends[-1] > _MAX_GROWTH * products
        or (rows - 1) * step >= source.shape[0]
        or op.loops((source.shape,)).output_shape() != output.shape
    ):
        return None
    constants: dict[str, ConstantArray] = {
        name: np.concatenate([part.operator.constants[name] for part in parts])
        for name in first.operator.constants
        if name != "weights"
    }
    constants["weights"] = np.concatenate([_filled(part, rows, step) for part in parts])
    producers = (*(part.operator for part in parts), concat)
    nodes = dict.fromkeys(node for producer in producers for node in producer.onnx_nodes)
    return Operator(first.operator.name, op, (source.name,), concat.output, constants, tuple(nodes))


def _filled(part: _Part, rows: int, step: int) -> ConstantArray:
    """The int8 weights with rows of zeros before and after."""
    before = part.row // step
    after = rows - before - part.conv.kernel_shape[0]
    weights = part.operator.constants["weights"].astype(np.int8)
    return np.pad(weights, ((0, 0), (before, after), (0, 0), (0, 0)))


def _without_unread(graph: Graph, operators: list[Operator]) -> Graph:
    """Return the graph with these operators, except those whose results nothing reads."""
    needed = alive(operators, {io.tensor for io in graph.outputs})
    names = {operator.output for operator in needed} | {io.tensor for io in graph.inputs}
    return replace(
        graph,
        tensors={name: tensor for name, tensor in graph.tensors.items() if name in names},
        operators=tuple(needed),
        references={name: io for name, io in graph.references.items() if name in names},
    )
