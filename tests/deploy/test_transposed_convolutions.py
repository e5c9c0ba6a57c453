"""U-Nets whose transposed convolutions are cut, in one and two dimensions, in float and in integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands.commands import run_model
from mcudeploy.device.target import Target
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json
from tests.weekly import sample

HOST = load_board("host")
CHANNELS = (4, 8, 16)


class _Draft:
    """Nodes of a network of one image; every value is quantised if `quantised`."""

    def __init__(self, dims: int, quantised: bool) -> None:
        self.dims, self.quantised = dims, quantised
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._rng = np.random.default_rng(dims)

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        """Add a node and, with `quantised`, the quantisation of its result."""
        name = f"{op}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return self.quantisation(name, 0.05) if self.quantised else name

    def quantisation(self, name: str, scale: float) -> str:
        """Add QuantizeLinear and DequantizeLinear after a value."""
        given = [self._constant(f"{name}_s", np.float32(scale)), self._constant(f"{name}_z", np.int8(0))]
        self.nodes.append(helper.make_node("QuantizeLinear", [name, *given], [f"{name}_q"]))
        self.nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", *given], [f"{name}_r"]))
        return f"{name}_r"

    def weights(self, shape: tuple[int, ...], axis: int) -> str:
        """Add weights, with `quantised` int8 and a scale for each position along the axis of outputs."""
        name, scale = f"w{len(self.nodes)}", 1 / np.sqrt(np.prod(shape) / shape[axis])
        if not self.quantised:
            return self._constant(name, self._rng.normal(0, scale, shape).astype(np.float32))
        integers = self._rng.integers(-127, 128, shape).astype(np.int8)
        given = [
            self._constant(name, integers),
            self._constant(f"{name}_s", np.full(shape[axis], scale / 64, np.float32)),
            self._constant(f"{name}_z", np.zeros(shape[axis], np.int8)),
        ]
        self.nodes.append(helper.make_node("DequantizeLinear", given, [f"{name}_r"], axis=axis))
        return f"{name}_r"

    def _constant(self, name: str, value: np.ndarray | np.generic) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def convolved(self, x: str, inputs: int, outputs: int) -> str:
        """A convolution of 3 taps in each dimension."""
        weights = self.weights((outputs, inputs, *(3,) * self.dims), 0)
        return self.add("Conv", x, weights, pads=[1] * (2 * self.dims))


def unet(path: Path, dims: int, *, quantised: bool, kernel: int, size: int) -> Path:
    """Image [1, 1, size, ...] -> CHANNELS downwards and upwards, with skips -> [1, 4, size, ...]."""
    draft = _Draft(dims, quantised)
    x, depth, skips = draft.quantisation("x", 0.05) if quantised else "x", 1, list[str]()
    for level, channels in enumerate(CHANNELS):
        x, depth = draft.convolved(x, depth, channels), channels
        if level < len(CHANNELS) - 1:
            skips.append(x)
            x = draft.add("MaxPool", x, kernel_shape=[2] * dims, strides=[2] * dims)
    for channels, skip in zip(CHANNELS[-2::-1], reversed(skips), strict=True):
        weights = draft.weights((depth, channels, *(kernel,) * dims), 1)
        pads = [(kernel - 2) // 2] * dims + [(kernel - 1) // 2] * dims
        up = draft.add("ConvTranspose", x, weights, strides=[2] * dims, pads=pads)
        x, depth = draft.convolved(draft.add("Concat", up, skip, axis=1), 2 * channels, channels), channels
    inputs, outputs = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, count, *(size,) * dims])
        for name, count in (("x", 1), (x, CHANNELS[0]))
    )
    graph = helper.make_graph(draft.nodes, "unet", [inputs], [outputs], draft.constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.parametrize("quantised", [False, True], ids=["float", "int8"])
@pytest.mark.parametrize("shape", sample([(2, 24, 3), (1, 256, 2), (1, 256, 4)], 1))
def test_cuts_pass_transposed_convolutions(
    shape: tuple[int, int, int], quantised: bool, tmp_path: Path
) -> None:
    """Cut plans are verified, and need four fifths of what the largest layer alone takes."""
    dims, size, kernel = shape
    path = unet(tmp_path / "unet.onnx", dims, quantised=quantised, kernel=kernel, size=size)
    ran = run_model(path, Target(HOST), Options(time_limit=2, max_overhead=200))
    report = as_json(ran)
    kinds = {operator["kernel"] for operator in report["operators"]}
    assert report["verified"] and not any(kind.startswith(("transpose", "gather")) for kind in kinds)
    if quantised:
        assert not any(kind.endswith("_f32") for kind in kinds)
    largest = size**dims * 3 * CHANNELS[0] * (1 if quantised else 4)  # the last Concat's, and its result
    assert report["arena_bytes"] < 0.8 * largest
