"""Ranges with which the results of Relu and Clip nodes saturate where the nodes clip.

ONNX Runtime's quantiser removes these nodes, since saturation clips their results. This fails for a result
that is 0 for all samples, since the quantiser then takes the range -128 to 127. It fails for a Clip that
excludes 0, since every range includes 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, numpy_helper

Range = tuple[float, float]

_MOVES = ("Flatten", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")
_POOLS = ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "ReduceMax", "ReduceMean", "Resize")
_SAME_RANGE = frozenset((*_MOVES, *_POOLS))
"""Operators whose results lie in the range of their first input."""


@dataclass(frozen=True, slots=True)
class DeadClip:
    """A Relu or Clip node that is 0 for all samples, and the range that its result gets instead of [0, 0]."""

    node: str
    op: str
    range: Range


@dataclass(frozen=True, slots=True)
class ClipRanges:
    """Changed ranges by tensor; the nodes that are 0 for all samples; names of nodes that must stay float."""

    changed: Mapping[str, Range]
    dead: Sequence[DeadClip]
    float_nodes: Sequence[str]


def clip_ranges(model: ModelProto, ranges: Mapping[str, Range]) -> ClipRanges:
    """Change the `ranges` that the samples have, by tensor; the nodes of the model are in order.

    The result of a dead node gets the range of its input, mirrored at 0 and clipped by the node.
    """
    changed: dict[str, Range] = {}
    dead, float_nodes = [], []
    for node, low, high in _clips(model):
        output = node.output[0]
        if low > 0 or high < 0:
            float_nodes.append(node.name)
        elif _is_empty(ranges.get(output)):
            reach = max(map(abs, ranges.get(node.input[0], (0.0, 0.0)))) or 1.0
            changed[output] = max(low, -reach), min(high, reach)
            dead.append(DeadClip(node.name, node.op_type, changed[output]))
    for node in model.graph.node:
        source = changed.get(node.input[0]) if node.input else None
        if source is not None and node.op_type in _SAME_RANGE and _is_empty(ranges.get(node.output[0])):
            changed[node.output[0]] = source
    return ClipRanges(changed, dead, float_nodes)


def _is_empty(known: Range | None) -> bool:
    """Whether a range contains only 0, or is too narrow for a scale in float32."""
    if known is None:
        return False
    return max(known[1], 0.0) - min(known[0], 0.0) < 255 * float(np.finfo(np.float32).tiny)


def _clips(model: ModelProto) -> Iterator[tuple[NodeProto, float, float]]:
    """The Relu and Clip nodes with constant limits, and their lower and upper limits."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Relu":
            yield node, 0.0, math.inf
        limits = [name for name in node.input[1:] if name]
        if node.op_type == "Clip" and all(name in constants for name in limits):
            bounds = [*node.input[1:], "", ""][:2]
            low, high = (float(numpy_helper.to_array(constants[it])) if it else None for it in bounds)
            attributes = {item.name: item.f for item in node.attribute}  # opset 6
            low = attributes.get("min", -math.inf) if low is None else low
            yield node, low, attributes.get("max", math.inf) if high is None else high
