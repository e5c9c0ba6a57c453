"""Quant and BipolarQuant of QONNX: against their definition in numpy; a network against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import pytest
from harness import check_against_onnx
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import helper
from onnxruntime import InferenceSession
from single_node import bounded, seeds

from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.load import load
from mcudeploy.frontend.parsing import with_data
from tests.networks.onnx_files import build
from tests.weekly import examples

Array = NDArray[Any]
SHAPE = (1, 4, 3, 5)


def quantiser(op: str, source: str, result: str, **attributes: Any) -> onnx.NodeProto:
    """A quantiser of a value; its parameters are s, z and b after the result's name."""
    names = [source, *(f"{result}{it}" for it in ("szb" if op == "Quant" else "s"))]
    return helper.make_node(op, names, [result], result, domain="qonnx.custom_op.general", **attributes)


def model(nodes: list[onnx.NodeProto], constants: dict[str, Any], result: tuple[int, ...], opset: int) -> Any:
    return build(
        nodes,
        {"x": (np.float32, SHAPE)},
        {"y": (np.float32, result)},
        {name: np.float32(it) for name, it in constants.items()},
        opset,
    )


def definition(x: Array, scale: Array, zero: float, bits: int, signed: int, narrow: int) -> Array:
    low = -(2 ** (bits - 1)) + narrow if signed else 0
    high = 2 ** (bits - 1) - 1 if signed else 2**bits - 1 - narrow
    return (np.rint(np.clip(x / scale + np.float32(zero), low, high)) - np.float32(zero)) * scale


@given(
    bits=st.integers(1, 8),
    zero=st.sampled_from([0, 3, 0.5, 200]),
    sizes=st.sampled_from([(), (1, 1, 1, 1), (4, 1, 1), (1, 4, 3, 1)]),
    form=st.tuples(st.integers(0, 1), st.integers(0, 1), st.booleans()),
    seed=seeds,
)
@example(bits=16, zero=0, sizes=(4, 1, 1), form=(1, 0, True), seed=0)
@settings(parent=bounded, max_examples=examples(16, 40))
def test_quantisers_follow_their_definition(
    bits: int, zero: float, sizes: tuple[int, ...], form: tuple[int, int, bool], seed: int
) -> None:
    """Of activations and of constants; scales of a tensor, of channels, of more than one axis."""
    signed, narrow, is_constant = form
    rng = np.random.default_rng(seed)
    x, scale = (rng.normal(0, 3, SHAPE).astype(np.float32), rng.uniform(0.02, 1, sizes).astype(np.float32))
    constants = {"qs": scale, "qz": zero, "qb": bits, "ps": scale, "w": x}
    source = "w" if is_constant else "x"
    nodes = [
        quantiser("Quant", source, "q", signed=signed, narrow=narrow, rounding_mode="ROUND"),
        quantiser("BipolarQuant", source, "p"),
        helper.make_node("Concat", ["q", "p", "x"], ["y"], axis=1),
    ]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model(nodes, constants, (1, 12, 3, 5), 10), path)
        (y,) = InferenceSession(with_data(path).SerializeToString()).run(None, {"x": x})
    wanted = definition(x, scale, zero, bits, signed, narrow)
    np.testing.assert_allclose(y[:, :4], wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(y[:, 4:8], np.where(x >= 0, scale, -scale))


@pytest.mark.parametrize("opset", [9, 13])
def test_a_network_of_four_bits_runs_on_integers(opset: int) -> None:
    rng = np.random.default_rng(0)
    weights = {"w": rng.normal(0, 0.3, (6, 4, 3, 3)), "v": rng.normal(size=(3, 6, 1, 1))}
    scales = {"qs": 1 / 16, "us": np.abs(weights["w"]).max((1, 2, 3), keepdims=True) / 7, "rs": 1 / 4}
    scales |= {"ts": 0.5, "ps": 0.5}
    bits = {"qb": 8, "ub": 4, "rb": 4, "pb": 4}
    nodes = [
        quantiser("Quant", "x", "q"),
        quantiser("Quant", "w", "u", narrow=1),
        helper.make_node("Conv", ["q", "u"], ["c"], "conv"),
        helper.make_node("Relu", ["c"], ["a"], "relu"),
        quantiser("Quant", "a", "r", signed=0),
        quantiser("BipolarQuant", "v", "t"),
        helper.make_node("Conv", ["r", "t"], ["d"], "pointwise"),
        quantiser("Quant", "d", "p"),
        helper.make_node("Relu", ["p"], ["y"], "end"),
    ]
    constants = {**weights, **scales, **bits, **{f"{name}z": 0 for name in "qurp"}}
    x = rng.normal(size=SHAPE).astype(np.float32)
    graph = check_against_onnx(model(nodes, constants, (1, 3, 1, 3), opset), {"x": x}, few=2)
    convolutions = [it for it in graph.operators if it.op.kind == "Conv2d"]
    assert [graph.tensors[it.output].dtype.name for it in convolutions] == ["INT8", "INT8"]
    assert not any(it.op.kind in ("Clip", "Binary") for it in graph.operators)


@pytest.mark.parametrize(
    ("changed", "mode", "reason"),
    [
        ({}, "FLOOR", "rounding_mode is not ROUND"),
        ({"yb": 16}, "ROUND", "its values have 16 bits: export the model with at most 8"),
        ({"yb": 2.5}, "ROUND", "the bit width is not an integer"),
        ({"ys": 0}, "ROUND", "a scale is not a positive number"),
        ({"yz": np.nan}, "ROUND", "the zero point is not finite"),
        ({"ys": None}, "ROUND", "fold constants by qonnx-cleanup"),
    ],
)
def test_other_quantisers_are_refused(
    changed: dict[str, Any], mode: str, reason: str, tmp_path: Path
) -> None:
    constants = {"ys": 0.5, "yz": 0, "yb": 4, **changed}
    nodes = [quantiser("Quant", "x", "y", rounding_mode=mode)]
    constants = {name: it for name, it in constants.items() if it is not None}
    onnx.save(model(nodes, constants, SHAPE, 13), tmp_path / "model.onnx")
    with pytest.raises(ModelError, match="1 node is not supported") as caught:
        load(tmp_path / "model.onnx")
    (problem,) = caught.value.problems
    assert (problem.node, problem.op) == ("y", "qonnx.custom_op.general::Quant")
    assert reason in problem.reason
