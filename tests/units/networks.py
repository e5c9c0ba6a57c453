"""A small ONNX model with a residual connection and a view, for several units."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from tests.networks.onnx_files import build


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
