"""Networks over a window of rows: convolutions in time, float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


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
    constants: list[onnx.TensorProto] = []
    source = "x"
    for number, layer in enumerate(layers):
        shape = (layer.channels, channels // layer.groups, layer.kernel)
        weights = (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        bias = (rng.standard_normal(layer.channels) / 4).astype(np.float32)
        constants += [
            numpy_helper.from_array(weights, f"w{number}"),
            numpy_helper.from_array(bias, f"b{number}"),
        ]
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
    sizes = [1, channels, None]
    if end == "last":
        limits = {"from": [-1], "to": [np.iinfo(np.int64).max], "along": [2]}
        constants += [numpy_helper.from_array(np.array(it, np.int64), name) for name, it in limits.items()]
        nodes.append(helper.make_node("Slice", [source, *limits], ["y"]))
    elif end == "mean":
        nodes.append(helper.make_node("GlobalAveragePool", [source], ["y"]))
    else:
        nodes.append(helper.make_node("Identity", [source], ["y"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, _channels_of(constants, layers), rows])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, sizes)
    graph = helper.make_graph(nodes, "time", [x], [y], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return path


def _channels_of(constants: Sequence[onnx.TensorProto], layers: Sequence[TimeConv]) -> int:
    return constants[0].dims[1] * layers[0].groups


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
