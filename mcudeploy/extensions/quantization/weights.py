"""Nodes of a float model whose weights have very different ranges by channel, and the axis of channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, numpy_helper

from mcudeploy.frontend.onnx.protos import attribute_of

_FACTOR = 8.0
"""A channel is reported if its range exceeds this number of times the median of the ranges."""

_DEAD = 1e-4
"""Channels below this fraction of the widest range are dead (pruned, or never trained), and not counted."""


@dataclass(frozen=True, slots=True)
class Outlier:
    """The widest output channel of a node's weights. `times`: its range as a multiple of the median range."""

    node: str
    channel: int
    range: float
    times: float


def outliers(model: ModelProto) -> list[Outlier]:
    """Nodes with a channel that is far wider than the others, the widest first.

    Such a channel takes most of the range of the node's output, whose scale all channels share.
    """
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    wide = []
    for node in model.graph.node:
        if node.op_type not in ("Conv", "ConvTranspose", "Gemm", "MatMul") or len(node.input) < 2:
            continue
        tensor = constants.get(node.input[1])
        if tensor is None:
            continue
        ranges = _ranges(numpy_helper.to_array(tensor), output_axis(node))
        if ranges.size < 2:
            continue
        widest = int(np.argmax(ranges))
        most = float(ranges[widest])
        median = float(np.median(ranges[ranges >= _DEAD * most]))
        if most > _FACTOR * median:
            wide.append(Outlier(node.name, widest, most, most / median))
    return sorted(wide, key=lambda outlier: -outlier.times)


def output_axis(node: NodeProto) -> int:
    """Return the axis of a node's weights that counts its output channels."""
    if node.op_type == "Gemm":
        return 0 if attribute_of(node, "transB", 0) else 1
    return {"Conv": 0, "ConvTranspose": 1}.get(node.op_type, -1)


def _ranges(weights: NDArray[Any], axis: int) -> NDArray[Any]:
    """The largest magnitude of each channel; empty for weights without channels."""
    if weights.ndim < 2:
        return np.empty(0)
    largest: NDArray[Any] = np.abs(np.moveaxis(weights, axis, 0).reshape(weights.shape[axis], -1)).max(axis=1)
    return largest
