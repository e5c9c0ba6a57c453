"""Windows, mel filters and short Fourier transforms of constant sizes, beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from harness import check_against_onnx
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from single_node import bounded, seeds

from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.load import load
from tests.networks.onnx_files import build

FLOAT = TensorProto.FLOAT


def network(
    nodes: list[onnx.NodeProto], shape: tuple[int, ...], result: tuple[int, ...], constants: dict[str, Any]
) -> onnx.ModelProto:
    """x -> nodes -> y."""
    return build(nodes, {"x": (np.float32, shape)}, {"y": (np.float32, result)}, constants)


def kinds(model: onnx.ModelProto, folder: Path) -> list[str]:
    onnx.save(model, folder / "model.onnx")
    return [operator.op.kind for operator in load(folder / "model.onnx").operators]


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows(op: str, periodic: int) -> None:
    nodes = [
        helper.make_node(op, ["size"], ["w"], "window", periodic=periodic),
        helper.make_node("Mul", ["x", "w"], ["y"], "times"),
    ]
    model = network(nodes, (3, 20), (3, 20), {"size": np.int64(20)})
    check_against_onnx(model, {"x": np.random.default_rng(0).normal(0, 1, (3, 20)).astype(np.float32)})


@given(bins=st.integers(2, 12), length=st.sampled_from([32, 64, 128]), seed=seeds)
@bounded
def test_mel_filters(bins: int, length: int, seed: int) -> None:
    constants = {"bins": np.int64(bins), "length": np.int64(length), "rate": np.int64(8000)}
    constants |= {"low": np.float32(0), "high": np.float32(4000)}
    nodes = [
        helper.make_node("MelWeightMatrix", list(constants), ["w"], "filters"),
        helper.make_node("MatMul", ["x", "w"], ["y"], "product"),
    ]
    points = length // 2 + 1
    model = network(nodes, (2, points), (2, bins), constants)
    check_against_onnx(model, {"x": np.random.default_rng(seed).normal(0, 1, (2, points)).astype(np.float32)})


def transform(
    *, samples: int, step: int, size: int, window: bool, one_sided: int, parts: int = 1
) -> onnx.ModelProto:
    constants: dict[str, Any] = {"step": np.int64(step), "size": np.int64(size)}
    if window:
        constants["window"] = np.hanning(size + 2)[1:-1].astype(np.float32)
    frames, bins = 1 + (samples - size) // step, size // 2 + 1 if one_sided else size
    inputs = ["x", "step", "window" if window else "", "size"]
    node = helper.make_node("STFT", inputs, ["s"], "stft", onesided=one_sided)
    square = helper.make_node("Mul", ["s", "s"], ["y"], "square")
    return network([node, square], (1, samples, parts), (1, frames, bins, 2), constants)


@given(
    size=st.sampled_from([4, 8, 12, 20, 30, 32, 64]),
    step=st.integers(1, 40),
    frames=st.integers(1, 5),
    window=st.booleans(),
    seed=seeds,
)
@bounded
def test_short_transforms(size: int, step: int, frames: int, window: bool, seed: int) -> None:
    samples = size + step * (frames - 1)
    model = transform(samples=samples, step=step, size=size, window=window, one_sided=1)
    check_against_onnx(
        model, {"x": np.random.default_rng(seed).normal(0, 1, (1, samples, 1)).astype(np.float32)}
    )


@pytest.mark.parametrize(("size", "one_sided", "fast"), [(32, 1, True), (14, 1, False), (32, 0, False)])
def test_transforms_that_are_fast(size: int, one_sided: int, fast: bool, tmp_path: Path) -> None:
    model = transform(samples=3 * size, step=size, size=size, window=True, one_sided=one_sided)
    assert ("RealFft" in kinds(model, tmp_path)) == fast
    check_against_onnx(
        model, {"x": np.random.default_rng(1).normal(0, 1, (1, 3 * size, 1)).astype(np.float32)}
    )


@pytest.mark.parametrize(("axis", "length"), [(1, 0), (2, 0), (1, 16)])
def test_one_side_of_a_spectrum(axis: int, length: int) -> None:
    shape, result = [1, 12, 8, 1], [1, 12, 8, 2]
    result[axis] = (length or shape[axis]) // 2 + 1
    constants = {"length": np.int64(length)} if length else {}
    nodes = [helper.make_node("DFT", ["x", *constants], ["y"], "dft", axis=axis, onesided=1)]
    model = network(nodes, tuple(shape), tuple(result), constants)
    check_against_onnx(model, {"x": np.random.default_rng(2).normal(0, 1, shape).astype(np.float32)})


def test_a_step_that_is_computed_is_refused(tmp_path: Path) -> None:
    model = transform(samples=64, step=8, size=32, window=True, one_sided=1)
    model.graph.initializer.remove(next(it for it in model.graph.initializer if it.name == "step"))
    model.graph.input.append(helper.make_tensor_value_info("step", TensorProto.INT64, ()))
    with pytest.raises(ModelError) as refused:
        kinds(model, tmp_path)
    assert "frame_step must be constant" in str(refused.value.problems)
