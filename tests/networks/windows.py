"""Networks over a window of rows: convolutions in time, float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from tests.networks.onnx_files import build


@dataclass(frozen=True, slots=True)
class TimeConv:
    """A convolution along time, followed by Relu: channels of its result, and its window."""

    channels: int
    kernel: int = 3
    stride: int = 1
    dilation: int = 1
    pads: tuple[int, int] = (0, 0)
    groups: int = 1


def time_network(path: Path, rows: int, channels: int, layers: Sequence[TimeConv], end: str = "last") -> Path:
    """[1, channels, rows] -> layers -> the `end`: the last row, the mean, or all rows (`rows`); at `path`."""
    rng = np.random.default_rng(7)
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, np.ndarray] = {}
    source, width = "x", channels
    for number, layer in enumerate(layers):
        shape = (layer.channels, channels // layer.groups, layer.kernel)
        weights = (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        bias = (rng.standard_normal(layer.channels) / 4).astype(np.float32)
        constants |= {f"w{number}": weights, f"b{number}": bias}
        nodes += [
            helper.make_node(
                "Conv",
                [source, f"w{number}", f"b{number}"],
                [f"c{number}"],
                f"time_conv_{number}",
                strides=[layer.stride],
                dilations=[layer.dilation],
                pads=list(layer.pads),
                group=layer.groups,
            ),
            helper.make_node("Relu", [f"c{number}"], [f"r{number}"]),
        ]
        source, channels = f"r{number}", layer.channels
    if end == "last":
        limits = {"from": [-1], "to": [np.iinfo(np.int64).max], "along": [2]}
        constants |= {name: np.array(it, np.int64) for name, it in limits.items()}
        nodes.append(helper.make_node("Slice", [source, *limits], ["y"]))
    elif end == "mean":
        nodes.append(helper.make_node("GlobalAveragePool", [source], ["y"]))
    else:
        nodes.append(helper.make_node("Identity", [source], ["y"]))
    model = build(nodes, {"x": (np.float32, (1, width, rows))}, ["y"], constants)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return path


CAUSAL = (
    TimeConv(24, kernel=4, stride=2),
    TimeConv(24, kernel=3, groups=24),
    TimeConv(32, kernel=1),
    TimeConv(32, kernel=3, groups=32),
    TimeConv(32, kernel=1),
    TimeConv(32, kernel=5, groups=32),
    TimeConv(12, kernel=1),
)
"""A keyword network without padding: a row of its result for every two rows of the window."""

DILATED = tuple(TimeConv(16, kernel=3, dilation=2**level) for level in range(5))
"""A temporal convolutional network: each row of its result depends on 63 rows of the window."""
