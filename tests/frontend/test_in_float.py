"""Operators of a quantised file that are computed in float32, why, and what that costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from mcudeploy.frontend.load import load
from mcudeploy.planner.plan_options import Options
from tests import reports
from tests.networks.onnx_files import build


def dense(zero_points: list[int], *, quantised: bool = True, result: bool = True) -> onnx.ModelProto:
    """Dense layers of uint8 weights with these zero points, between layers of int8; or of a float input."""
    rng = np.random.default_rng(0)
    constants: dict[str, NDArray[Any]] = {"s": np.float32(0.05), "z": np.int8(3)}
    nodes = []
    name = "x"
    if quantised:
        nodes.append(helper.make_node("QuantizeLinear", ["x", "s", "z"], ["x_q"], "q"))
        nodes.append(helper.make_node("DequantizeLinear", ["x_q", "s", "z"], ["x_r"], "dq"))
        name = "x_r"
    for at, zero in enumerate(zero_points):
        constants[f"w{at}_q"] = rng.integers(0, 256, (8, 8)).astype(np.uint8)
        constants[f"w{at}_z"] = np.uint8(zero)
        nodes += [
            helper.make_node("DequantizeLinear", [f"w{at}_q", "s", f"w{at}_z"], [f"w{at}"], f"w{at}_real"),
            helper.make_node("MatMul", [name, f"w{at}"], [f"y{at}"], f"dense{at}"),
        ]
        name = f"y{at}"
        if result:
            nodes.append(helper.make_node("QuantizeLinear", [name, "s", "z"], [f"{name}_q"], f"{name}_q"))
            nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", "s", "z"], [f"{name}_r"], name))
            name = f"{name}_r"
    nodes.append(helper.make_node("Identity", [name], ["y"], "last"))
    return build(nodes, {"x": (np.float32, [1, 8])}, {"y": (np.float32, [1, 8])}, constants)


def causes(model: onnx.ModelProto, folder: Path) -> list[Any]:
    path = folder / "m.onnx"
    onnx.save(model, path)
    report = reports.check_model(path, None, Options())
    return report["in_float"]


def test_weights_of_several_scales_are_one_cause_and_one_note(tmp_path: Path) -> None:
    """Scales along the depth."""
    model = dense([128] * 5)
    for tensor in list(model.graph.initializer):
        if tensor.name in ("w0_z", "w1_z", "w3_z", "w4_z"):
            tensor.CopyFrom(numpy_helper.from_array(np.full(8, 128, np.uint8), tensor.name))
    scales = np.linspace(0.01, 0.05, 8).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(scales, "scales"))
    for node in model.graph.node:
        if node.name in ("w0_real", "w1_real", "w3_real", "w4_real"):
            node.input[1] = "scales"
            node.attribute.append(helper.make_attribute("axis", 0))
    (cause,) = causes(model, tmp_path)
    assert cause["operators"] == ["dense0", "dense1", "dense3", "dense4"]
    assert cause["cause"] == "its weights are not 8 bits with one scale for each output channel"
    assert cause["weights_bytes"] == 4 * (64 + 8) * 4 - 3 * 32  # the bias, zero, is stored once
    assert cause["largest_result_bytes"] == 8 * 4
    (note,) = load(tmp_path / "m.onnx").notes
    assert note.startswith("4 operators are computed in float32 (dense0, dense1, dense3, ...): its weights")


def test_quantised_weights_of_a_float_input(tmp_path: Path) -> None:
    (cause,) = causes(dense([128], quantised=False), tmp_path)
    assert cause["operators"] == ["dense0"]
    assert cause["cause"] == "the file quantises its weights, not its input"
    assert (cause["weights_bytes"], cause["least_weights_bytes"]) == (64 * 4 + 32, 64 + 32 + 32)


def test_a_result_that_is_not_quantised(tmp_path: Path) -> None:
    (cause,) = causes(dense([128], result=False), tmp_path)
    assert cause["cause"] == "the file does not quantise its result"


@pytest.mark.parametrize("zero", [128, 3])
def test_integers_and_floats_alone_have_none(zero: int, tmp_path: Path) -> None:
    assert causes(dense([zero]), tmp_path) == []
    model = build(
        [helper.make_node("MatMul", ["x", "w"], ["y"], "dense")],
        {"x": (np.float32, [1, 8])},
        {"y": (np.float32, [1, 8])},
        {"w": np.ones((8, 8), np.float32)},
    )
    assert causes(model, tmp_path) == []
