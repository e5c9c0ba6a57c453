"""A network that recognises noisy prototypes, in float and in int8, and its test set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from mcudeploy.extensions.quantization.quantizer import QuantizeRequest, quantize_model
from tests.networks.onnx_files import build

CLASSES, SIDE = 4, 6


@dataclass(frozen=True)
class Recogniser:
    """Files of the models and of the test set; `x` and `y` are what it contains."""

    folder: Path
    x: NDArray[Any]
    y: NDArray[Any]

    @property
    def float_model(self) -> Path:
        return self.folder / "float.onnx"

    @property
    def int8(self) -> Path:
        return self.folder / "int8.onnx"

    @property
    def data(self) -> Path:
        return self.folder / "test.npz"


def write_recogniser(folder: Path, samples: int = 60) -> Recogniser:
    """Write the models and the test set, of images with one channel."""
    rng = np.random.default_rng(5)
    prototypes = rng.normal(size=(CLASSES, SIDE * SIDE)).astype(np.float32)
    y = rng.integers(0, CLASSES, samples)
    x = prototypes[y] + rng.normal(0, 3.5, (samples, SIDE * SIDE))
    recogniser = Recogniser(folder, x.astype(np.float32).reshape(samples, 1, SIDE, SIDE), y)
    kernel = np.zeros((1, 1, 3, 3), np.float32)
    kernel[0, 0, 1, 1] = 1
    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Flatten", ["c"], ["f"], name="flatten"),
        helper.make_node("Gemm", ["f", "prototypes"], ["s"], name="dense", transB=1),
    ]
    model = build(
        nodes,
        {"x": (np.float32, [1, 1, SIDE, SIDE])},
        {"s": (np.float32, [1, CLASSES])},
        {"kernel": kernel, "prototypes": prototypes},
    )
    onnx.save(model, recogniser.float_model)
    np.savez(recogniser.data, x=recogniser.x, y=recogniser.y)
    quantize_model(recogniser.float_model, QuantizeRequest(recogniser.data, method="minmax"), recogniser.int8)
    return recogniser


def coarse(recogniser: Recogniser) -> Path:
    """The int8 model with a dense layer whose weights have lost most of their bits."""
    model = onnx.load(recogniser.int8)
    for tensor in model.graph.initializer:
        if tensor.name == "prototypes_quantized":
            weights = numpy_helper.to_array(tensor).astype(np.int64) // 96 * 96
            tensor.CopyFrom(numpy_helper.from_array(weights.astype(np.int8), tensor.name))
    path = recogniser.folder / "coarse.onnx"
    onnx.save(model, path)
    return path
