"""int8 weights under float activations: they stay int8 in a variant of each kernel, with the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from harness import check_against_onnx
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from single_node import Array, bounded, normal, seeds

from mcudeploy.ir.graph import Graph
from tests.networks.onnx_files import build

VALUES = "weights", "recurrent", "input_weights", "recurrent_weights", "candidate_weights"


def model(
    op: str, x: Array, weights: dict[str, Array], others: dict[str, Array], *, axis: int, **attributes: Any
) -> onnx.ModelProto:
    """A node whose int8 or uint8 `weights` are dequantised along `axis`; `others` are float32 constants."""
    constants, nodes = dict(others), []
    rng = np.random.default_rng(x.size)
    for name, integers in weights.items():
        count = integers.shape[axis]
        zero = 0 if integers.dtype == np.int8 else 128
        constants[f"{name}_q"] = integers
        constants[f"{name}_s"] = rng.uniform(0.002, 0.02, count).astype(np.float32)
        constants[f"{name}_z"] = np.full(count, zero, integers.dtype)
        read = [f"{name}_{part}" for part in "qsz"]
        nodes.append(helper.make_node("DequantizeLinear", read, [name], f"{name}_real", axis=axis))
    nodes.append(helper.make_node(op, ["x", *weights, *others], ["y"], "node", **attributes))
    return build(nodes, {"x": (np.float32, x.shape)}, {"y": (np.float32, None)}, constants)


def narrow_bytes(graph: Graph, kernel: str) -> tuple[int, int]:
    """The bytes of the weights of the only kernel of this name, and of its usual mode."""
    for operator in graph.operators:
        if operator.op.is_view:
            continue
        usual = operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors[operator.output])
        for call in usual.others:
            if call.kernel == kernel:
                return _weight_bytes(call.params), _weight_bytes(usual.params)
    raise AssertionError(f"no operator has the variant {kernel}")


def _weight_bytes(params: Any) -> int:
    return sum(params[name].nbytes for name in VALUES if params.get(name) is not None)


@given(
    channels=st.integers(1, 9),
    outputs=st.integers(1, 21),
    kernel=st.sampled_from([(1, 1), (3, 3), (2, 5), (7, 6)]),
    padded=st.booleans(),
    groups=st.sampled_from([1, 1, 2]),
    dtype=st.sampled_from([np.int8, np.uint8]),
    seed=seeds,
)
@bounded
def test_convolutions(
    channels: int,
    outputs: int,
    kernel: tuple[int, int],
    padded: bool,
    groups: int,
    dtype: type,
    seed: int,
) -> None:
    """The output has one pixel or more; uint8 weights have the zero point 128, so they fit int8."""
    rng = np.random.default_rng(seed)
    x = normal(rng, (1, groups * channels, 7, 6))
    info = np.iinfo(dtype)
    shape = (groups * outputs, channels, *kernel)
    integers = rng.integers(info.min, info.max + 1, shape).astype(dtype)
    pads = [1, 0, 1, 2] if padded and kernel != (7, 6) else [0, 0, 0, 0]
    proto = model("Conv", x, {"w": integers}, {"b": normal(rng, shape[:1])}, axis=0, pads=pads, group=groups)
    graph = check_against_onnx(proto, {"x": x}, seed=seed)
    (operator,) = graph.operators
    assert operator.constants["weights"].dtype == np.int8
    usual = operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors[operator.output])
    (other,) = usual.others
    assert other.kernel.endswith("_s8w")
    assert 4 * _weight_bytes(other.params) == _weight_bytes(usual.params)


@given(rows=st.integers(1, 9), depth=st.integers(1, 40), outputs=st.integers(1, 30), seed=seeds)
@bounded
def test_products(rows: int, depth: int, outputs: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = normal(rng, (rows, depth))
    integers = rng.integers(-128, 128, (depth, outputs)).astype(np.int8)
    graph = check_against_onnx(model("MatMul", x, {"w": integers}, {}, axis=1), {"x": x}, seed=seed)
    small, large = narrow_bytes(graph, "conv2d_f32_1x1_s8w")
    is_unpadded = rows == outputs == 1  # floats of one channel are not in a block of four
    assert 4 * small == (4 * large if is_unpadded else large)


@pytest.mark.parametrize("hidden", [5, 16])
@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("LSTM", {}),
        ("LSTM", {"direction": "bidirectional"}),
        ("GRU", {}),
        ("GRU", {"linear_before_reset": 1}),
    ],
)
def test_recurrent_networks(op: str, hidden: int, attributes: dict[str, Any]) -> None:
    rng = np.random.default_rng(hidden)
    rows = {"LSTM": 4, "GRU": 3}[op] * hidden
    directions = 2 if "direction" in attributes else 1
    x = normal(rng, (6, 1, 9))
    weights = {
        name: rng.integers(-127, 128, (directions, rows, depth)).astype(np.int8)
        for name, depth in (("w", 9), ("r", hidden))
    }
    bias = {"b": normal(rng, (directions, 2 * rows))}
    proto = model(op, x, weights, bias, axis=1, hidden_size=hidden, **attributes)
    graph = check_against_onnx(proto, {"x": x}, float_tolerance=1e-4)
    small, large = narrow_bytes(graph, f"{op.lower()}_f32_s8w")
    assert 4 * small == large


def test_weights_beyond_int8_are_float32() -> None:
    """uint8 around a zero point of 3 needs nine bits."""
    rng = np.random.default_rng(0)
    x = normal(rng, (1, 4))
    proto = model("MatMul", x, {"w": np.arange(0, 240, 20, np.uint8).reshape(4, 3)}, {}, axis=1)
    for tensor in proto.graph.initializer:
        if tensor.name == "w_z":
            tensor.CopyFrom(numpy_helper.from_array(np.full(3, 3, np.uint8), "w_z"))
    (operator,) = check_against_onnx(proto, {"x": x}).operators
    assert operator.constants["weights"].dtype == np.float32
