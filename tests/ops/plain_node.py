"""Models of one node of any element types, and their check."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from harness import check_against_onnx, check_graph
from numpy.typing import NDArray
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator

from mcudeploy.frontend.load import load
from mcudeploy.ir.graph import Graph
from mcudeploy.ops.host_io import to_device
from tests.networks.onnx_files import build

Array = NDArray[Any]


def model(op: str, inputs: dict[str, Array], outputs: dict[str, Any], **attributes: Any) -> ModelProto:
    """One node; inputs called c... are initializers. `outputs`: type and shape."""
    node = helper.make_node(op, list(inputs), list(outputs), name="node", **attributes)
    constants = {name: it for name, it in inputs.items() if name.startswith("c")}
    return build([node], _given(inputs), outputs, constants, 21)


def check(
    op: str, inputs: dict[str, Array], outputs: dict[str, Any], *, tolerance: float = 0, **attributes: Any
) -> Graph:
    """Compare with ONNX Runtime, exactly unless floats have a tolerance."""
    proto = model(op, inputs, outputs, **attributes)
    return check_against_onnx(proto, _given(inputs), float_tolerance=tolerance)


def check_by_definition(
    op: str, inputs: dict[str, Array], outputs: dict[str, Any], **attributes: Any
) -> None:
    """Compare with ONNX's reference implementation, for types that ONNX Runtime has no kernel for."""
    proto, arrays = model(op, inputs, outputs, **attributes), _given(inputs)
    graph = loaded(proto)
    values = {io.tensor: to_device(io, graph.tensors[io.tensor], arrays[io.name]) for io in graph.inputs}
    with np.errstate(all="ignore"):
        wanted = ReferenceEvaluator(proto).run(None, arrays)
    differences = check_graph(graph, values)
    for io, expected in zip(graph.outputs, wanted, strict=True):
        stored = to_device(io, graph.tensors[io.tensor], np.asarray(expected))
        np.testing.assert_array_equal(differences[io.tensor], stored, io.name)


def loaded(proto: ModelProto) -> Graph:
    """The graph of a model."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(proto, path)
        return load(path)


def _given(inputs: dict[str, Array]) -> dict[str, Array]:
    return {name: it for name, it in inputs.items() if not name.startswith("c")}
