"""Small float models, and samples for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from tests.networks.onnx_files import build, node

CLASSES = 4
IMAGE = (1, 3, 8, 8)


def classifier(path: Path, shape: tuple[int | str, ...] = IMAGE, tail: str = "Softmax") -> Path:
    """Image -> convolution, batch norm, relu -> depthwise -> mean -> four classes."""
    rng = np.random.default_rng(3)

    def normal(*sizes: int) -> np.ndarray:
        return (rng.normal(size=sizes) / np.sqrt(np.prod(sizes[1:]) or 1)).astype(np.float32)

    constants = {"w0": normal(8, 3, 3, 3), "w1": normal(8, 1, 3, 3), "w2": normal(CLASSES, 8) * 3}
    constants |= {"b1": normal(8), "b2": normal(CLASSES)}
    constants |= {
        "gain": 1 + abs(normal(8)),
        "shift": normal(8),
        "mean": normal(8),
        "var": 1 + abs(normal(8)),
    }
    make = helper.make_node
    nodes = [
        make("Conv", ["image", "w0"], ["c0"], "first", pads=[1] * 4),
        make("BatchNormalization", ["c0", "gain", "shift", "mean", "var"], ["n0"], "norm"),
        make("Relu", ["n0"], ["r0"], "relu"),
        make("Conv", ["r0", "w1", "b1"], ["c1"], "depthwise", pads=[1] * 4, group=8),
        make("GlobalAveragePool", ["c1"], ["p"], "pool"),
        make("Flatten", ["p"], ["flat"], "flat"),
        make("Gemm", ["flat", "w2", "b2"], ["logits"], "dense", transB=1),
        make(tail, ["logits"], ["classes"], "last"),
    ]
    image, classes = ((np.float32, size) for size in (shape, (shape[0], CLASSES)))
    onnx.save(build(nodes, {"image": image}, {"classes": classes}, constants), path)
    return path


def two_inputs(path: Path) -> Path:
    """Inputs a/left and b [1, 6], of which a dense layer makes a vector of five, and their sum."""
    rng = np.random.default_rng(4)
    constants = {"w": rng.normal(size=(5, 6)).astype(np.float32)}
    nodes = [
        helper.make_node("Add", ["a/left", "b"], ["sum"], "add"),
        helper.make_node("Gemm", ["sum", "w"], ["out"], "dense", transB=1),
    ]
    inputs = dict.fromkeys(("a/left", "b"), (np.float32, (1, 6)))
    onnx.save(build(nodes, inputs, ["out", "sum"], constants), path)
    return path


def images(count: int, seed: int = 5) -> np.ndarray:
    """Samples for the classifier, without the axis of the batch: [count, 3, 8, 8]."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(count, *IMAGE[1:])) + rng.normal(size=(count, 3, 1, 1))).astype(np.float32)


def folder_of(folder: Path, samples: np.ndarray) -> Path:
    """A folder with a file for each sample."""
    folder.mkdir()
    for at, sample in enumerate(samples):
        np.save(folder / f"{at:03}.npy", sample)
    return folder


def residual_network(path: Path) -> Path:
    """float32 [1,3,12,12] -> conv -> conv, conv -> their sum -> flatten -> matrix [1,5], at `path`."""
    rng = np.random.default_rng(5)
    weights = {
        "w0": rng.normal(size=(4, 3, 3, 3)),
        "w1": rng.normal(size=(4, 4, 3, 3)),
        "w2": rng.normal(size=(4, 4, 1, 1)),
        "w3": rng.normal(size=(576, 5)) / 24,
    }
    constants = {name: value.astype(np.float32) for name, value in weights.items()}
    nodes = [
        helper.make_node("Conv", ["image", "w0"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["a", "w1"], ["b"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["b", "w2"], ["c"]),
        helper.make_node("Add", ["a", "c"], ["sum"]),
        helper.make_node("Flatten", ["sum"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w3"], ["scores"]),
    ]
    onnx.save(build(nodes, {"image": (np.float32, (1, 3, 12, 12))}, ["scores"], constants), path)
    return path


def small_model(path: Path) -> Path:
    """float32 [1,2,6,6] -> conv 3x3 to 4 channels, relu -> [1,4,6,6], at `path`."""
    rng = np.random.default_rng(1)
    nodes = [node("Conv", "x w", "c", name="conv", pads=[1, 1, 1, 1]), node("Relu", "c", "y", name="relu")]
    weights = {"w": rng.normal(size=(4, 2, 3, 3)).astype(np.float32)}
    onnx.save(build(nodes, {"x": (np.float32, (1, 2, 6, 6))}, ["y"], weights), path)
    return path
