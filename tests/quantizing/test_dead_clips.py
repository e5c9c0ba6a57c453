"""A Relu or Clip that is 0 for all samples, or that allows no 0, still clips in the int8 model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from mcudeploy.extensions.quantization.quantization_report import quantized
from mcudeploy.extensions.quantization.quantizer import QuantizeRequest, quantize_model
from tests.networks.onnx_files import build

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3, 8, 8)).astype(np.float32)
WEIGHTS = (0.3 * RNG.normal(size=(4, 3, 3, 3))).astype(np.float32)


def model(path: Path, op: str, limits: tuple[float | None, ...], bias: float, *tail: str) -> None:
    """Convolution -> `op` with its limits -> `tail`."""
    constants = {"w": WEIGHTS, "b": np.full(4, bias, np.float32)}
    inputs = ["c"]
    for number, limit in enumerate(limits):
        inputs.append("" if limit is None else f"limit_{number}")
        constants |= {} if limit is None else {f"limit_{number}": np.float32(limit)}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv", pads=[1] * 4),
        helper.make_node(op, inputs, ["t0"], "clip"),
    ]
    nodes += [helper.make_node(it, [f"t{at}"], [f"t{at + 1}"], it) for at, it in enumerate(tail)]
    shape = [1, 4, 1, 1] if "GlobalAveragePool" in tail else [1, 4, 8, 8]
    onnx.save(
        build(nodes, {"x": (np.float32, [1, 3, 8, 8])}, {f"t{len(tail)}": (np.float32, shape)}, constants),
        path,
    )


def outputs(path: Path, factor: float) -> np.ndarray:
    session = onnxruntime.InferenceSession(path)
    return np.concatenate([session.run(None, {"x": factor * image[None]})[0] for image in X])


@pytest.mark.parametrize(
    ("op", "limits", "bias", "tail"),
    [
        ("Relu", (), -9.0, ("GlobalAveragePool",)),
        ("Relu", (), -9.0, ("Relu",)),
        ("Clip", (0.0, 6.0), -20.0, ("MaxPool",)),
        ("Clip", (None, 0.0), 20.0, ()),
        ("Clip", (0.5, 6.0), 0.0, ("Relu",)),
        ("Clip", (1.0, 6.0), -20.0, ()),
        ("Clip", (None, -1.0), 2.0, ()),
        ("Clip", (1e-3, None), 0.0, ("Log",)),
    ],
)
@pytest.mark.parametrize("activations", ["int8", "int16"])
def test_values_that_the_float_model_clips_are_clipped(
    op: str, limits: Any, bias: float, tail: tuple[str, ...], activations: Any, tmp_path: Path
) -> None:
    source, quantised = tmp_path / "f.onnx", tmp_path / "q.onnx"
    if tail == ("MaxPool",):
        tail = ("GlobalMaxPool", "GlobalAveragePool")
    model(source, op, limits, bias, *tail)
    np.save(tmp_path / "x.npy", X)
    request = QuantizeRequest(tmp_path / "x.npy", method="minmax", activations=activations)
    quantize_model(source, request, quantised)
    wanted = np.concatenate([outputs(source, factor) for factor in (1, 12)])
    step = 0.05 * max(1.0, float(np.abs(outputs(source, 1)).max()))
    assert np.abs(outputs(quantised, 1) - outputs(source, 1)).mean() <= step / 2
    assert (
        outputs(quantised, 12).min() >= wanted.min() - step
        and outputs(quantised, 12).max() <= wanted.max() + step
    )


def test_the_report_names_a_dead_node_and_its_range(tmp_path: Path) -> None:
    model(tmp_path / "f.onnx", "Relu", (), -9.0, "GlobalAveragePool")
    np.save(tmp_path / "x.npy", X)
    request = QuantizeRequest(tmp_path / "x.npy", method="minmax")
    report = quantized(quantize_model(tmp_path / "f.onnx", request, tmp_path / "q.onnx"))
    (dead,) = report["dead_nodes"]
    assert (dead["node"], dead["op"], dead["range"][0]) == ("clip", "Relu", 0) and dead["range"][1] > 9
    assert any("Relu clip is 0 for all samples, and its range [0, 0]" in note for note in report["notes"])
    model(tmp_path / "f.onnx", "Relu", (), 0.0, "GlobalAveragePool")
    report = quantized(quantize_model(tmp_path / "f.onnx", request, tmp_path / "q.onnx"))
    assert report["dead_nodes"] == []
