"""Floating-point types other than float32: the model with all of them as float32."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, inliner
from onnx import numpy_helper as numpy_of

from mcudeploy.frontend.protos import graphs_of
from mcudeploy.frontend.tensors import array_of, tensors_of

OTHERS: dict[int, str] = {
    TensorProto.FLOAT16: "float16",
    TensorProto.BFLOAT16: "bfloat16",
    TensorProto.DOUBLE: "float64",
}
"""The types that are computed in float32."""

_TYPE_ATTRIBUTES = frozenset({"to", "dtype", "output_dtype", "output_datatype", "softmax_precision"})


def in_float32(proto: ModelProto) -> ModelProto:
    """The model with float32 in place of all other floating-point types; itself where there are none.

    Functions of the file are inlined then. Raises ModelError for tensors that are malformed.
    """
    if not other_floats(proto):
        return proto
    result = ModelProto()
    result.CopyFrom(inliner.inline_local_functions(proto) if proto.functions else proto)
    for tensor in tensors_of(result.graph):
        if tensor.data_type in OTHERS:
            tensor.CopyFrom(_as_float32(tensor))
    for value in _values_of(result.graph):
        if value.type.tensor_type.elem_type in OTHERS:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    for attribute in _type_attributes(_nodes_of(result.graph)):
        if attribute.i in OTHERS:
            attribute.i = TensorProto.FLOAT
    return result


def other_floats(proto: ModelProto) -> tuple[str, ...]:
    """The other types of floats in a model, by name."""
    functions = [node for function in proto.functions for node in function.node]
    attributes = _type_attributes([*_nodes_of(proto.graph), *functions])
    found = {tensor.data_type for tensor in tensors_of(proto.graph)}
    found |= {value.type.tensor_type.elem_type for value in _values_of(proto.graph)}
    found |= {attribute.i for attribute in attributes}
    return tuple(OTHERS[kind] for kind in sorted(found & OTHERS.keys()))


def floats_note(kinds: Iterable[str]) -> str:
    """What a user is told of them."""
    return f"{' and '.join(kinds)} tensors are stored and computed as float32"


def _nodes_of(graph: GraphProto) -> Iterator[NodeProto]:
    """All nodes, those of subgraphs included."""
    for each in graphs_of(graph):
        yield from each.node


def _values_of(graph: GraphProto) -> Iterator[ValueInfoProto]:
    """What is said of the types of values, those of subgraphs included."""
    for each in graphs_of(graph):
        yield from (*each.input, *each.output, *each.value_info)


def _type_attributes(nodes: Iterable[NodeProto]) -> Iterator[AttributeProto]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.name in _TYPE_ATTRIBUTES and attribute.type == AttributeProto.INT:
                yield attribute


def _as_float32(tensor: TensorProto) -> TensorProto:
    """The tensor in float32. Finite numbers stay finite: masks are made of the largest ones."""
    values = array_of(tensor)
    most = np.finfo(np.float32).max
    with np.errstate(over="ignore"):
        exact = values.astype(np.float64)
        narrow = np.where(np.isfinite(exact), np.clip(exact, -most, most), exact).astype(np.float32)
    return numpy_of.from_array(np.asarray(narrow.reshape(values.shape)), tensor.name)
