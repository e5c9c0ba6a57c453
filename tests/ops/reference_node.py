"""Models of one node against ONNX's reference evaluator: for operators that ONNX Runtime lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from harness import run_graph
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from mcudeploy.frontend.load import load
from mcudeploy.ir.graph import Graph
from mcudeploy.ops.host_io import to_device
from tests.networks.onnx_files import build

Array = NDArray[Any]


def check_reference(
    item: onnx.NodeProto, inputs: Mapping[str, Array], constants: Mapping[str, Array], opset: int
) -> Graph:
    """Load the node as a model of float32 results, run it, compare all its outputs. Returns the graph."""
    names = [name for name in item.output if name]
    values = {**inputs, **constants}
    wanted = _results(item, values, names, opset)
    model = build([item], inputs, dict(zip(names, wanted, strict=True)), constants, opset)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, path)
        loaded = load(path, True)
    known = {io.tensor: to_device(io, loaded.tensors[io.tensor], inputs[io.name]) for io in loaded.inputs}
    stored = run_graph(loaded, known)
    computed = {io.name: stored[io.tensor].reshape(-1)[io.order] for io in loaded.outputs}
    for name, want in zip(names, wanted, strict=True):
        np.testing.assert_allclose(
            computed[name].reshape(want.shape), want, rtol=1e-4, atol=1e-5, err_msg=name
        )
    return loaded


def _results(
    item: onnx.NodeProto, values: Mapping[str, Array], names: Sequence[str], opset: int
) -> list[Array]:
    model = build([item], values, dict.fromkeys(names, (np.float32, None)), opset=opset)
    return [np.asarray(result) for result in ReferenceEvaluator(model).run(None, dict(values))]
