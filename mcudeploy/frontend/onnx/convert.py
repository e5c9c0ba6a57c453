"""Conversion of ONNX protobufs to OnnxModel and its parts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import prod

import onnx
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto

from mcudeploy.common.errors import ModelError
from mcudeploy.common.text import printable
from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.frontend.onnx.nodes import (
    MAX_RANK,
    MAX_TENSOR_ELEMENTS,
    MAX_TOTAL_ELEMENTS,
    Attribute,
    Info,
    Node,
    OnnxModel,
)
from mcudeploy.frontend.onnx.protos import opset_of
from mcudeploy.frontend.onnx.tensors import array_of


def model_of(proto: ModelProto, notes: tuple[str, ...]) -> OnnxModel:
    """Convert a checked protobuf. Raises ModelError for tensors beyond the limits of mcudeploy."""
    graph = proto.graph
    constants = {tensor.name: Constant(array_of(tensor)) for tensor in graph.initializer}
    infos = {value.name: info_of(value) for value in (*graph.value_info, *graph.input, *graph.output)}
    require_all_bounded(infos)
    for value in graph.input:
        shape = infos[value.name].shape
        if shape is not None and value.name not in constants and any(size < 1 for size in shape):
            raise ModelError(f"input {printable(value.name)!r} has the shape {list(shape)}: no elements")
    return OnnxModel(
        name=graph.name,
        opset=opset_of(proto),
        nodes=tuple(node_of(node, position) for position, node in enumerate(graph.node)),
        constants=constants,
        inputs=tuple(infos[value.name] for value in graph.input if value.name not in constants),
        outputs=tuple(infos[value.name] for value in graph.output),
        infos=infos,
        notes=notes,
    )


def info_of(value: onnx.ValueInfoProto) -> Info:
    """Shape (None if any dimension is open) and element type. Raises ModelError for an unknown type."""
    kind = value.type.tensor_type
    shape: tuple[int, ...] | None = None
    if value.type.HasField("tensor_type") and kind.HasField("shape"):
        sizes = [item.dim_value if item.HasField("dim_value") else -1 for item in kind.shape.dim]
        shape = tuple(sizes) if min(sizes, default=0) >= 0 else None
    try:
        dtype = TensorProto.DataType.Name(kind.elem_type).lower()
    except ValueError as fault:
        raise ModelError(f"{printable(value.name)!r} has an unknown element type") from fault
    return Info(value.name, shape, {"float": "float32", "double": "float64"}.get(dtype, dtype))


def node_of(node: NodeProto, position: int) -> Node:
    domain = "" if node.domain == "ai.onnx" else node.domain
    attributes = {item.name: _attribute(item) for item in node.attribute}
    label = node.name or f"#{position}"
    outputs = tuple(node.output)
    if not outputs:
        raise ModelError(f"node {label_of(node, position)} ({printable(node.op_type)}) has no outputs")
    return Node(label, node.op_type, domain, tuple(node.input), outputs, attributes, node)


def _attribute(item: AttributeProto) -> Attribute:
    match item.type:
        case AttributeProto.INT:
            return int(item.i)
        case AttributeProto.FLOAT:
            return float(item.f)
        case AttributeProto.STRING:
            return bytes(item.s).decode("utf-8", "replace")
        case AttributeProto.INTS:
            return tuple(int(value) for value in item.ints)
        case AttributeProto.FLOATS:
            return tuple(float(value) for value in item.floats)
        case AttributeProto.STRINGS:
            return tuple(bytes(value).decode("utf-8", "replace") for value in item.strings)
        case AttributeProto.TENSOR:
            return array_of(item.t)
        case _:
            return None


def require_total_bounded(infos: Mapping[str, Info], constants: Collection[str]) -> None:
    """Raise ModelError if all values of a file together have more than MAX_TOTAL_ELEMENTS elements."""
    shapes = {name: info.shape or () for name, info in infos.items() if name not in constants}
    elements = sum(map(prod, shapes.values()))
    if elements > MAX_TOTAL_ELEMENTS:
        name, shape = max(shapes.items(), key=lambda item: prod(item[1]))
        raise ModelError(
            f"the activations have {elements:,} elements; the limit is {MAX_TOTAL_ELEMENTS:,}: "
            f"no microcontroller runs such a model. The largest, {printable(name)!r}, has the shape "
            f"{list(shape)}, {prod(shape):,} elements"
        )


def require_all_bounded(infos: Mapping[str, Info]) -> None:
    """Raise ModelError for a tensor with too many elements or dimensions."""
    for info in infos.values():
        if info.shape is not None and len(info.shape) > MAX_RANK:
            raise ModelError(
                f"tensor {printable(info.name)!r} has {len(info.shape)} dimensions; the limit is {MAX_RANK}"
            )
        if info.shape is not None and prod(info.shape) > MAX_TENSOR_ELEMENTS:
            raise ModelError(
                f"tensor {printable(info.name)!r} has the shape {list(info.shape)}; "
                f"the limit is {MAX_TENSOR_ELEMENTS} elements"
            )


def label_of(node: NodeProto, position: int) -> str:
    """The name of a node in messages."""
    return printable(node.name) or f"#{position}"
