"""Conversion of a model to element types that have kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, inliner
from onnx import numpy_helper as numpy_of

from mcudeploy.extension import added
from mcudeploy.frontend.onnx.protos import ONNX_DOMAINS, graphs_of
from mcudeploy.frontend.onnx.tensors import array_of, tensors_of
from mcudeploy.frontend.passes.grids import grids_note, in_bytes, on_grids

OTHER_FLOATS: dict[int, str] = {
    TensorProto.FLOAT16: "float16",
    TensorProto.BFLOAT16: "bfloat16",
    TensorProto.DOUBLE: "float64",
}
"""Floating-point types that are computed in float32."""

_INTEGERS = frozenset(
    getattr(TensorProto, f"{sign}INT{bits}") for sign in ("", "U") for bits in (4, 8, 16, 32, 64)
)
_TYPE_ATTRIBUTES = frozenset({"to", "dtype", "output_dtype", "output_datatype", "softmax_precision"})


def in_float32(proto: ModelProto) -> ModelProto:
    """Convert all floating-point types to float32; return the model itself if it has no other ones.

    Values between two Casts that round on purpose keep their type. Functions of the file are inlined. Raises
    ModelError for malformed tensors.
    """
    if not other_floats(proto):
        return proto
    result = ModelProto()
    result.CopyFrom(inliner.inline_local_functions(proto) if proto.functions else proto)
    rounded = _rounded(result.graph)
    for tensor in tensors_of(result.graph):
        if tensor.data_type in OTHER_FLOATS:
            tensor.CopyFrom(_as_float32(tensor))
    for value in _values_of(result.graph):
        if value.name not in rounded and value.type.tensor_type.elem_type in OTHER_FLOATS:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    for attribute in _type_attributes(_nodes_of(result.graph), rounded):
        if attribute.i in OTHER_FLOATS:
            attribute.i = TensorProto.FLOAT
    return result


def other_floats(proto: ModelProto) -> tuple[str, ...]:
    """Names of the floating-point types of a model that are not float32."""
    functions = [node for function in proto.functions for node in function.node]
    rounded = _rounded(proto.graph)
    attributes = _type_attributes([*_nodes_of(proto.graph), *functions], rounded)
    types = {tensor.data_type for tensor in tensors_of(proto.graph)}
    types |= {it.type.tensor_type.elem_type for it in _values_of(proto.graph) if it.name not in rounded}
    types |= {attribute.i for attribute in attributes}
    return tuple(OTHER_FLOATS[kind] for kind in sorted(types & OTHER_FLOATS.keys()))


def floats_note(kinds: Iterable[str]) -> str:
    """The note to the user about floating-point types that are not float32."""
    return f"{' and '.join(kinds)} tensors are stored and computed as float32"


def _nodes_of(graph: GraphProto) -> Iterator[NodeProto]:
    """Yield all nodes, including those of subgraphs."""
    for each in graphs_of(graph):
        yield from each.node


def _values_of(graph: GraphProto) -> Iterator[ValueInfoProto]:
    """Yield the type information of values, including those of subgraphs."""
    for each in graphs_of(graph):
        yield from (*each.input, *each.output, *each.value_info)


def _rounded(graph: GraphProto) -> set[str]:
    """The values between two Casts that round on purpose: in float16, or in double before integers."""
    casts: list[tuple[NodeProto, int]] = []
    read_otherwise = {value.name for each in graphs_of(graph) for value in each.output}
    for node in _nodes_of(graph):
        kind = next((item.i for item in node.attribute if item.name == "to"), 0)
        if node.op_type == "Cast" and node.domain in ONNX_DOMAINS and kind:
            casts.append((node, kind))
        else:
            read_otherwise.update(node.input)
    cast_again = {node.input[0] for node, _ in casts} - read_otherwise
    to_integers = {node.input[0] for node, kind in casts if kind in _INTEGERS} - read_otherwise
    rounded: dict[int, set[str]] = {TensorProto.FLOAT16: cast_again, TensorProto.DOUBLE: to_integers}
    return {node.output[0] for node, kind in casts if node.output[0] in rounded.get(kind, ())}


def _type_attributes(nodes: Iterable[NodeProto], rounded: set[str]) -> Iterator[AttributeProto]:
    """Yield the attributes that name types, except those of nodes that write the values `rounded`."""
    for node in nodes:
        if not rounded.isdisjoint(node.output):
            continue
        for attribute in node.attribute:
            if attribute.name in _TYPE_ATTRIBUTES and attribute.type == AttributeProto.INT:
                yield attribute


def _as_float32(tensor: TensorProto) -> TensorProto:
    """Convert a tensor to float32. Finite numbers, such as the largest ones in masks, stay finite."""
    values = array_of(tensor)
    largest = np.finfo(np.float32).max
    with np.errstate(over="ignore"):
        exact = values.astype(np.float64)
        narrow = np.where(np.isfinite(exact), np.clip(exact, -largest, largest), exact).astype(np.float32)
    return numpy_of.from_array(np.asarray(narrow.reshape(values.shape)), tensor.name)


@dataclass(frozen=True, slots=True, eq=False)
class TypedModel:
    """A model in supported element types.

    `types`: by name, the type in the file of a value whose type changed. `off_by_one`: values of int16 that
    may differ by one from the reference, which rounds floats where integer operators compute.
    """

    proto: ModelProto
    types: Mapping[str, str]
    notes: tuple[str, ...]
    off_by_one: frozenset[str] = frozenset()


def typed(proto: ModelProto) -> TypedModel:
    """Convert the model to supported element types; return the model itself if it has no other ones.

    For the host, inputs and outputs of float16 and float64 keep these types; those of bfloat16, which sample
    files cannot store, are float32. Raises ModelError for malformed tensors.
    """
    graph, kinds = proto.graph, other_floats(proto)
    ios = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)}
    stored = OTHER_FLOATS.keys() - {TensorProto.BFLOAT16}
    types = {name: OTHER_FLOATS[kind] for name, kind in ios.items() if kind in stored}
    notes = [floats_note(kinds)] if kinds else []
    plain = in_float32(proto)
    gridded = on_grids(plain)
    forms = (form(plain, gridded) for form in added("integer_forms"))
    integers = next(filter(None, forms), None) if gridded.types else None
    if integers is not None:
        off_by_one = frozenset(name for node in integers.proto.graph.node for name in node.output)
        return TypedModel(in_bytes(integers.proto), types, (*notes, *integers.notes), off_by_one)
    if gridded.types:
        notes.append(grids_note(gridded.types.values()))
    return TypedModel(in_bytes(gridded.proto), types | dict(gridded.types), tuple(notes))
