"""Queries on ONNX protobufs, and changes of them, that several modules need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, TypeVar

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    parser,
)

from mcudeploy.extension import added

_Proto = TypeVar("_Proto", ModelProto, NodeProto)

IN_BYTES = 0
"""Value of the attribute `bits` of GatherBlockQuantized if the front end wrote its 4-bit table as bytes."""

ONNX_DOMAINS = ("", "ai.onnx")
"""The names of the domain of ONNX's own operators."""

INDEX_TYPES = (TensorProto.INT32, TensorProto.INT64)
"""The element types of indices."""

MOVEMENTS = frozenset(
    ("Expand", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")
)
"""Operators of ONNX that only move elements of their first input."""

QONNX_DOMAINS = ("onnx.brevitas", "qonnx.custom_op.general", "finn.custom_op.general")
"""The domains of QONNX, the oldest first."""
_QONNX = (
    "of QONNX, Quant and BipolarQuant are supported: export QuantizeLinear, Clip and DequantizeLinear by "
    "brevitas.export.export_onnx_qcdq, or convert the file by `qonnx-convert --output-style qcdq`"
)


def domain_ways_out() -> Mapping[str, str]:
    """Ways out for operators that are not supported, by domain."""
    ways_out = dict.fromkeys(QONNX_DOMAINS, _QONNX)
    for table in added("ways_out"):
        ways_out |= table
    return ways_out


def copy_of(proto: _Proto) -> _Proto:
    """A copy of a protobuf."""
    result = type(proto)()
    result.CopyFrom(proto)
    return result


def refill(field: Any, items: Iterable[Any]) -> None:
    """Replace the elements of a repeated field by copies of `items`, which may be elements of it."""
    copies = [type(item).FromString(item.SerializeToString()) for item in items]
    del field[:]
    field.extend(copies)


def import_domain(proto: ModelProto, domain: str) -> None:
    """State version 1 of a domain, unless the model states a version of it."""
    if all(entry.domain != domain for entry in proto.opset_import):
        proto.opset_import.append(helper.make_opsetid(domain, 1))


def attribute_of(node: NodeProto, name: str, default: Any) -> Any:
    """The value of an attribute of a node; `default` if it has none."""
    return next((helper.get_attribute_value(it) for it in node.attribute if it.name == name), default)


def element_type(dtype: Any) -> int:
    """The ONNX element type of a numpy type or its name. Raises TypeError if numpy does not know the name."""
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def fixed_shape(value: ValueInfoProto) -> tuple[int, ...] | None:
    """The stated shape of a value; None if a size is open, or no shape is stated."""
    kind = value.type.tensor_type
    if not kind.HasField("shape") or not all(item.HasField("dim_value") for item in kind.shape.dim):
        return None
    return tuple(int(item.dim_value) for item in kind.shape.dim)


def opset_of(proto: ModelProto) -> int:
    """The version of ONNX's own operators that the model uses: its opset."""
    return max((entry.version for entry in proto.opset_import if entry.domain in ONNX_DOMAINS), default=1)


def evaluator(
    nodes: Sequence[NodeProto], opset: int, inputs: Iterable[str], outputs: Iterable[str]
) -> Callable[[Mapping[str, Any]], list[Any]]:
    """Return a function that computes outputs of ONNX's own nodes from the arrays of all `inputs`."""
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415 - it takes long to import, few models need it

    input_infos, output_infos = ([ValueInfoProto(name=name) for name in names] for names in (inputs, outputs))
    graph = helper.make_graph(nodes, "part", input_infos, output_infos)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    session = ReferenceEvaluator(model)
    return lambda values: list(session.run(None, dict(values)))


def sizes_of(value: ValueInfoProto) -> list[int]:
    """The sizes of a value's axes, 0 for open ones."""
    return [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]


def graphs_of(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield the graph and all graphs inside its nodes."""
    yield graph
    for node in graph.node:
        for inner in graphs_in(node):
            yield from graphs_of(inner)


def graphs_in(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs in the attributes of a node."""
    for attribute in node.attribute:
        yield from (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs)


def constant_tensor(node: NodeProto) -> TensorProto | None:
    """The tensor of a Constant node of any form but the sparse one; None for other nodes."""
    if node.op_type != "Constant" or node.domain not in ONNX_DOMAINS or node.input or len(node.output) != 1:
        return None
    if len(node.attribute) != 1 or not node.output[0]:
        return None
    item = node.attribute[0]
    match item.name, item.type:
        case "value", AttributeProto.TENSOR:
            tensor: TensorProto = item.t
            return tensor
        case "value_int", AttributeProto.INT:
            return helper.make_tensor("", TensorProto.INT64, [], [item.i])
        case "value_ints", AttributeProto.INTS:
            return helper.make_tensor("", TensorProto.INT64, [len(item.ints)], item.ints)
        case "value_float", AttributeProto.FLOAT:
            return helper.make_tensor("", TensorProto.FLOAT, [], [item.f])
        case "value_floats", AttributeProto.FLOATS:
            return helper.make_tensor("", TensorProto.FLOAT, [len(item.floats)], item.floats)
        case "value_string", AttributeProto.STRING:
            return helper.make_tensor("", TensorProto.STRING, [], [item.s])
        case "value_strings", AttributeProto.STRINGS:
            return helper.make_tensor("", TensorProto.STRING, [len(item.strings)], item.strings)
    return None


def constants_of(graph: GraphProto) -> dict[str, TensorProto]:
    """The tensors of initializers and of Constant nodes, by name."""
    constants = {
        node.output[0]: tensor for node in graph.node if (tensor := constant_tensor(node)) is not None
    }
    return {**{tensor.name: tensor for tensor in graph.initializer}, **constants}


def computed_values(proto: ModelProto) -> set[str]:
    """The names of the values that depend on the inputs."""
    names = {value.name for value in proto.graph.input} - {tensor.name for tensor in proto.graph.initializer}
    for node in proto.graph.node:
        if not names.isdisjoint(node.input):
            names.update(filter(None, node.output))
    return names


def unused_name(graph: GraphProto, wish: str) -> str:
    """The name `wish`, with underscores after it if the main graph has a value of this name."""
    names = {name for node in graph.node for name in (*node.input, *node.output)}
    names |= {value.name for value in (*graph.input, *graph.output, *graph.initializer)}
    while wish in names:
        wish += "_"
    return wish


def live(nodes: Sequence[NodeProto], values: Collection[str]) -> list[NodeProto]:
    """The nodes on which these values depend, in their present order, even if it is not topological."""
    producers: dict[str, list[NodeProto]] = {}
    for node in nodes:
        for name in node.output:
            producers.setdefault(name, []).append(node)
    waiting, seen, living = list(values), set(values), set()
    while waiting:
        for node in producers.get(waiting.pop(), ()):
            living.add(id(node))
            further = [name for name in node.input if name not in seen]
            seen.update(further)
            waiting += further
    return [node for node in nodes if id(node) in living]


def topological_order(needed: Mapping[int, set[int]]) -> list[int] | None:
    """Sort numbers topologically, otherwise in rising order; None if they form a cycle.

    `needed`: for each number, those that must come before it; these sets are emptied.
    """
    readers: dict[int, list[int]] = {}
    for number, others in needed.items():
        for other in others:
            readers.setdefault(other, []).append(number)
    ready = [number for number, others in needed.items() if not others]
    heapify(ready)
    ordered = []
    while ready:
        ordered.append(heappop(ready))
        for reader in readers.get(ordered[-1], ()):
            needed[reader].discard(ordered[-1])
            if not needed[reader]:
                heappush(ready, reader)
    return ordered if len(ordered) == len(needed) else None


def function_of(text: str, domain: str, opset: int) -> FunctionProto:
    """A function in the textual syntax of ONNX; `text` lacks its domain and the version of its operators."""
    function = parser.parse_function(f'<domain: "{domain}", opset_import: ["" : {opset}]> {text}')
    waiting = list(function.node)
    while waiting:
        node = waiting.pop()
        waiting += (inner for graph in graphs_in(node) for inner in graph.node)
        if not node.domain:
            node.ClearField("domain")  # an empty domain means the same, but changes the bytes of the file
    return function
