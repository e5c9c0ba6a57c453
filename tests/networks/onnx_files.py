"""Small ONNX models, written from nodes and arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Array = NDArray[Any]
Kind = tuple[Any, Sequence[int | str | None] | None]
"""An element type, of numpy or ONNX, and a shape."""


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """A node; names are separated by blanks, "-" is a missing one."""
    sources, results = (
        ["" if name == "-" else name for name in names.split()] for names in (inputs, outputs)
    )
    return helper.make_node(op, sources, results, **{"name": f"{op}_{results[0]}", **attributes})


def build(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Array | Kind],
    outputs: Sequence[str] | Mapping[str, Array | Kind],
    constants: Mapping[str, Any] | None = None,
    opset: int = 17,
    **versions: int,
) -> onnx.ModelProto:
    """A model whose inputs have these types and shapes, or those of arrays; those of outputs are inferred
    unless they are given.

    `versions`: of other domains, with underscores for dots; by default 1.
    """
    domains = {it.domain.replace(".", "_"): it.domain for it in nodes if it.domain}
    imports = [helper.make_opsetid(domain, versions.get(name, 1)) for name, domain in domains.items()]
    graph = helper.make_graph(
        list(nodes),
        "test",
        [value(name, kind) for name, kind in inputs.items()],
        [value(name, outputs[name]) for name in outputs]
        if isinstance(outputs, Mapping)
        else [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), *imports], ir_version=9)
    if not isinstance(outputs, Mapping):
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        known = {it.name: it for it in inferred.graph.output}
        for output in model.graph.output:
            output.CopyFrom(known[output.name])
    return model


def value(name: str, kind: Array | Kind) -> onnx.ValueInfoProto:
    """An input or output."""
    dtype, shape = (kind.dtype, kind.shape) if isinstance(kind, np.ndarray | np.generic) else kind
    number = dtype if isinstance(dtype, int) else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, number, shape)


def save(model: onnx.ModelProto, folder: Path, name: str = "model") -> Path:
    """The model as a file."""
    path = folder / f"{name}.onnx"
    path.write_bytes(model.SerializeToString())
    return path


class QuantizedModel:
    """Collects nodes and constants of a QDQ model, with scales as an exporter would choose them."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}

    def quantize(self, source: str, scale: float, zero_point: int, dtype: Any = np.int8) -> str:
        """Add Q and DQ after a float value; return the name of the float value after them."""
        name = f"{source}_{len(self.nodes)}"
        parameters = self._parameters(name, scale, np.array(zero_point, dtype))
        self.nodes.append(node("QuantizeLinear", f"{source} {parameters}", f"{name}_q"))
        return self.dequantize(f"{name}_q", scale, zero_point, dtype)

    def dequantize(self, stored: str, scale: float, zero_point: int, dtype: Any = np.int8) -> str:
        """Add DQ after an integer value; return the name of the float value."""
        name = f"{stored}_{len(self.nodes)}_dq"
        parameters = self._parameters(name, scale, np.array(zero_point, dtype))
        self.nodes.append(node("DequantizeLinear", f"{stored} {parameters}", name))
        return name

    def _parameters(self, name: str, scale: float, zero_point: Array) -> str:
        self.constants[f"{name}_s"] = np.array(scale, np.float32)
        self.constants[f"{name}_z"] = zero_point
        return f"{name}_s {name}_z"

    def weights(self, name: str, shape: tuple[int, ...], axis: int | None = 0, scale: float = 0.02) -> str:
        """int8 weights and their DQ, per channel along `axis` or per tensor."""
        integers = self.random.integers(-127, 128, shape).astype(np.int8)
        count = 1 if axis is None else shape[axis]
        scales = (scale * self.random.uniform(0.5, 1.5, count)).astype(np.float32)
        return self.stored(name, integers, scales if axis is not None else scales.reshape(()), axis)

    def bias(self, name: str, scales: Array) -> str:
        """int32 bias and its DQ with the given scales."""
        integers = self.random.integers(-3000, 3000, scales.shape).astype(np.int32)
        return self.stored(name, integers, scales.astype(np.float32), 0)

    def stored(self, name: str, integers: Array, scales: Array, axis: int | None, zero: int = 0) -> str:
        """Constant integers and their DQ."""
        self.constants[f"{name}_i"] = integers
        self.constants[f"{name}_s"] = scales
        self.constants[f"{name}_z"] = np.full(scales.shape, zero, integers.dtype)
        attributes = {} if axis is None else {"axis": axis}
        self.nodes.append(node("DequantizeLinear", f"{name}_i {name}_s {name}_z", name, **attributes))
        return name

    def add(self, op: str, inputs: str, output: str, **attributes: Any) -> str:
        """Adds a node and returns its output."""
        self.nodes.append(node(op, inputs, output, **attributes))
        return output
