"""A network of one convolution, small enough for a core that Unicorn interprets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from tests.networks.onnx_files import build, node


def small_model(path: Path) -> Path:
    """float32 [1,2,6,6] -> conv 3x3 to 4 channels, relu -> [1,4,6,6], at `path`."""
    rng = np.random.default_rng(1)
    nodes = [node("Conv", "x w", "c", name="conv", pads=[1, 1, 1, 1]), node("Relu", "c", "y", name="relu")]
    weights = {"w": rng.normal(size=(4, 2, 3, 3)).astype(np.float32)}
    onnx.save(build(nodes, {"x": (np.float32, (1, 2, 6, 6))}, ["y"], weights), path)
    return path
