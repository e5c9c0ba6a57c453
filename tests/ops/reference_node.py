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
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from mcudeploy.frontend.load import load
from mcudeploy.ir.graph import Graph
from mcudeploy.ops.host_io import to_device

Array = NDArray[Any]


def check_reference(
    item: onnx.NodeProto, inputs: Mapping[str, Array], constants: Mapping[str, Array], opset: int
) -> Graph:
    """Load the node as a model of float32 results, run it, compare all its outputs. Returns the graph."""
    names = [name for name in item.output if name]
    given = {**inputs, **constants}
    wanted = _results(item, given, names, opset)
    graph = helper.make_graph(
        [item],
        "single",
        [_described(name, array) for name, array in inputs.items()],
        [_described(name, array) for name, array in zip(names, wanted, strict=True)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, path)
        loaded = load(path, True)
    known = {
        border.tensor: to_device(border, loaded.tensors[border.tensor], inputs[border.name])
        for border in loaded.inputs
    }
    stored = run_graph(loaded, known)
    found = {border.name: stored[border.tensor].reshape(-1)[border.order] for border in loaded.outputs}
    for name, want in zip(names, wanted, strict=True):
        np.testing.assert_allclose(found[name].reshape(want.shape), want, rtol=1e-4, atol=1e-5, err_msg=name)
    return loaded


def _results(
    item: onnx.NodeProto, given: Mapping[str, Array], names: Sequence[str], opset: int
) -> list[Array]:
    graph = helper.make_graph(
        [item],
        "reference",
        [_described(name, array) for name, array in given.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return [np.asarray(made) for made in ReferenceEvaluator(model).run(None, dict(given))]


def _described(name: str, array: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
