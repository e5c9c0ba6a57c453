"""Outputs of a loaded graph by its kernels, beside ONNX Runtime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from harness import outputs_of
from numpy.typing import NDArray

from mcudeploy.frontend.load import load
from mcudeploy.ir.graph import DType, Graph
from mcudeploy.verify.reference import Reference

Array = NDArray[Any]


def kinds(graph: Graph) -> dict[str, int]:
    """Number of operators of each kind."""
    return dict(Counter(operator.op.kind for operator in graph.operators))


def assert_same(
    path: Path, inputs: Mapping[str, Array], steps: float = 1, *, float_io: bool = False
) -> Graph:
    """Assert that the loaded graph computes what the model does: float32 to 1e-4 of the range, else
    `steps` LSB.
    """
    graph = load(path, float_io)
    computed = outputs_of(graph, inputs, pieces=False)
    states = {it.before.name: it.initial.reshape(it.before.shape) for it in graph.states}
    outputs = [io.name for io in graph.outputs]
    wanted = Reference(path, outputs, states=list(states)).run({**inputs, **states})
    for io in graph.outputs:
        want = wanted[io.name].astype(np.float64)
        assert computed[io.name].shape == want.shape
        distance = np.abs(computed[io.name].astype(np.float64) - want).max()
        tensor = graph.tensors[io.tensor]
        if tensor.dtype is DType.FLOAT32 and steps == 1:
            share = 1e-3 if io.dtype == "float16" else 1e-4
            assert distance <= share * max(1e-6, np.abs(want).max()), io.name
        else:
            scale = tensor.quantization.scale if tensor.quantization and io.dtype == "float32" else 1
            assert distance <= steps * scale * 1.001, io.name
    return graph
