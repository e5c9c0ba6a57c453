"""Small float models that can be quantised, and samples for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CLASSES = 4
IMAGE = (1, 3, 8, 8)


def _made(
    path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], constants: dict[str, np.ndarray]
) -> Path:
    graph = helper.make_graph(
        nodes,
        "small",
        inputs,
        outputs,
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def _value(name: str, *shape: int | str, kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, list(shape))


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
    batch = shape[0]
    return _made(path, nodes, [_value("image", *shape)], [_value("classes", batch, CLASSES)], constants)


def two_inputs(path: Path) -> Path:
    """Inputs a/left and b [1, 6], of which a dense layer makes a vector of five, and their sum."""
    rng = np.random.default_rng(4)
    constants = {"w": rng.normal(size=(5, 6)).astype(np.float32)}
    nodes = [
        helper.make_node("Add", ["a/left", "b"], ["sum"], "add"),
        helper.make_node("Gemm", ["sum", "w"], ["out"], "dense", transB=1),
    ]
    inputs = [_value("a/left", 1, 6), _value("b", 1, 6)]
    return _made(path, nodes, inputs, [_value("out", 1, 5), _value("sum", 1, 6)], constants)


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
