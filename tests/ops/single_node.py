"""Models of one node, in float32 and quantised (DequantizeLinear, node, QuantizeLinear), and their check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from harness import check_against_onnx
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import helper

from mcudeploy.ir.graph import Graph
from tests.networks.onnx_files import build
from tests.weekly import examples

Array = NDArray[Any]
OPSET = 21

bounded = settings(
    max_examples=examples(12, 28),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
"""Few examples, always the same ones: these tests run before every commit."""

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 7)
shapes = st.tuples(st.just(1), st.integers(1, 9), sizes, sizes)
"""[1, C, H, W]."""
quantized_types = st.sampled_from([np.int8, np.uint8])


@dataclass(frozen=True, slots=True)
class Quantized:
    """An int8 or uint8 tensor and its quantisation."""

    values: Array
    scale: float
    zero_point: int

    @classmethod
    def draw(cls, rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> Quantized:
        """Any values, scale and zero point."""
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max + 1, shape).astype(dtype)
        return cls(
            values, float(np.float32(rng.uniform(0.01, 0.1))), int(rng.integers(info.min, info.max + 1))
        )

    @property
    def real(self) -> Array:
        """The real values of the integers."""
        steps = self.values.astype(np.int32) - self.zero_point
        return steps.astype(np.float32) * np.float32(self.scale)


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Float32 values around zero."""
    return rng.normal(size=shape).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Node:
    """A node; `constants` are float32 or integer initializers that replace the inputs of these names.

    `order` names all inputs, both of the model and constant ("" omits one).
    """

    op: str
    order: tuple[str, ...]
    constants: Mapping[str, Array]
    attributes: Mapping[str, Any]

    def proto(self, *outputs: str) -> onnx.NodeProto:
        """The ONNX node."""
        return helper.make_node(self.op, list(self.order), list(outputs), name="node", **self.attributes)


def node(op: str, *order: str, constants: Mapping[str, Array] | None = None, **attributes: Any) -> Node:
    """A node with the inputs `order`."""
    return Node(op, order, constants or {}, attributes)


def real_output(what: Node, inputs: Mapping[str, Array]) -> Array:
    """The node's float32 output as ONNX Runtime computes it."""
    model = build(
        [what.proto("out")],
        inputs,
        {"out": (np.float32, None)},
        what.constants,
        OPSET,
    )
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, dict(inputs))[0])


def check_float(what: Node, inputs: Mapping[str, Array], **limits: Any) -> Graph:
    """Load the node as a float32 model, run it whole and in pieces, compare with ONNX Runtime."""
    shape = real_output(what, inputs).shape
    model = build([what.proto("out")], inputs, {"out": (np.float32, shape)}, what.constants, OPSET)
    return check_against_onnx(model, inputs, **limits)


def fitting(values: Array, dtype: type) -> tuple[float, int]:
    """Scale, at least 1/1000, and zero point that just hold `values` and zero."""
    info = np.iinfo(dtype)
    finite = values[np.isfinite(values)]
    low, high = min(0.0, float(finite.min(initial=0))), max(0.0, float(finite.max(initial=0)))
    scale = float(np.float32(max((high - low) / 255, 1e-3)))
    return scale, int(np.clip(round(info.min - low / scale), info.min, info.max))


def check_quantized(
    what: Node,
    inputs: Mapping[str, Quantized],
    *,
    weights: Mapping[str, Quantized] | None = None,
    output: tuple[float, int] | None = None,
    **limits: Any,
) -> Graph:
    """Check the quantised node; `weights` are quantised constants.

    `output` is its scale and zero point, by default the tightest ones for the node's float output.
    """
    weights = weights or {}
    every = {**inputs, **weights}
    dtype = next(iter(inputs.values())).values.dtype.type
    real = real_output(what, {name: tensor.real for name, tensor in every.items()})
    scale, zero_point = output or fitting(real, dtype)
    nodes = [
        helper.make_node(
            "DequantizeLinear", [f"{name}_q", f"{name}_s", f"{name}_z"], [name], name=f"dq_{name}"
        )
        for name in every
    ]
    nodes += [
        what.proto("real"),
        helper.make_node("QuantizeLinear", ["real", "out_s", "out_z"], ["out"], name="q"),
    ]
    initializers = {**what.constants, "out_s": np.float32(scale), "out_z": dtype(zero_point)}
    for name, tensor in every.items():
        initializers[f"{name}_s"] = np.float32(tensor.scale)
        initializers[f"{name}_z"] = tensor.values.dtype.type(tensor.zero_point)
    initializers |= {f"{name}_q": tensor.values for name, tensor in weights.items()}
    arrays = {f"{name}_q": tensor.values for name, tensor in inputs.items()}
    model = build(nodes, arrays, {"out": (dtype, real.shape)}, initializers, OPSET)
    return check_against_onnx(model, arrays, **limits)


def kinds(graph: Graph) -> set[str]:
    """Which operator definitions a graph uses."""
    return {operator.op.kind for operator in graph.operators}
