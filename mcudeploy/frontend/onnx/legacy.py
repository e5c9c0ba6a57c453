"""Files that ONNX Runtime loads although they break a rule of ONNX: put right before they are checked."""

from __future__ import annotations

from contextlib import suppress

from onnx import ModelProto, NodeProto, helper, shape_inference, version_converter

from mcudeploy.frontend.onnx.converter import ASIDE, FAULTS, converted, is_converted_wrongly
from mcudeploy.frontend.onnx.plain_forms import in_plain_forms
from mcudeploy.frontend.onnx.protos import (
    ONNX_DOMAINS,
    constants_of,
    copy_of,
    graphs_in,
    graphs_of,
    opset_of,
    refill,
    topological_order,
)

_RUN_FROM = 7
"""First opset that ONNX Runtime runs."""
_DROPPED = {"BatchNormalization": "is_test", "Dropout": "is_test", "Gemm": "broadcast"}
"""Attributes without a meaning from that opset on: the outputs state the mode, and any operand broadcasts."""
_FALLBACK_OPSET = 17
"""Opset of a file that uses no operator of ONNX itself."""
_NORMS = ("LayerNormalization", "SimplifiedLayerNormalization")
_JOINED = ("EmbedLayerNormalization", "SkipLayerNormalization")
_NORMALIZES_FROM, _NORMALIZED_IN = 17, 11
"""First opset with LayerNormalization, and the first in whose models ONNX Runtime is asked for it."""


def put_right(proto: ModelProto) -> ModelProto:
    """Repair an invalid model that ONNX Runtime accepts: order the nodes, state defaults that onnx needs,
    name ONNX's operator set, convert one that is too old, and state the types of outputs. Other faults stay,
    and the check refuses them.
    """
    for graph in graphs_of(proto.graph):
        ordered = _ordered(list(graph.node))
        if ordered is not None:
            refill(graph.node, ordered)
    for node in proto.graph.node:
        if node.op_type == "MeanVarianceNormalization" and not node.attribute:  # onnx fails without it
            node.attribute.append(helper.make_attribute("axes", [0, 2, 3]))
    _name_operator_set(proto)
    proto = _with_normalizations(_runnable(proto))
    _state_types(proto)
    return proto


def _ordered(nodes: list[NodeProto]) -> list[NodeProto] | None:
    """The nodes in topological order, otherwise in the order of the file.

    None if they are in order already, form a cycle, or write a value twice.
    """
    producers = {name: number for number, node in enumerate(nodes) for name in node.output if name}
    if len(producers) != sum(bool(name) for node in nodes for name in node.output):
        return None
    before = [{producers[name] for name in _read(node) if name in producers} for node in nodes]
    if all(number > max(others, default=-1) for number, others in enumerate(before)):
        return None
    ordered = topological_order(dict(enumerate(before)))
    return None if ordered is None else [nodes[number] for number in ordered]


def _read(node: NodeProto) -> set[str]:
    """The values that a node or the graphs inside it read."""
    names = {name for name in node.input if name}
    for graph in graphs_in(node):
        names.update(*(_read(inner) for inner in graph.node), (value.name for value in graph.output))
    return names


def _name_operator_set(proto: ModelProto) -> None:
    """State a version of ONNX's own operators for a file that has none of them."""
    stated = {entry.domain for entry in proto.opset_import}
    own = any(node.domain in ONNX_DOMAINS for graph in graphs_of(proto.graph) for node in graph.node)
    if stated and stated.isdisjoint(ONNX_DOMAINS) and not own:
        proto.opset_import.append(helper.make_opsetid("", _FALLBACK_OPSET))


def _runnable(proto: ModelProto) -> ModelProto:
    """Convert an operator set that ONNX Runtime does not run; the model itself if that fails."""
    if not proto.opset_import or opset_of(proto) >= _RUN_FROM:
        return proto
    result = copy_of(proto)
    with suppress(*FAULTS):
        del result.graph.value_info[:]
        result = version_converter.convert_version(shape_inference.infer_shapes(result), _RUN_FROM - 1)
        _align_operands(result)
        for node in result.graph.node:
            attributes = [item for item in node.attribute if item.name != _DROPPED.get(node.op_type)]
            refill(node.attribute, attributes)
        result = shape_inference.infer_shapes(result)
        result = _back(converted(result, _RUN_FROM, _is_gemm))
        in_plain_forms(result)  # Constant nodes hold floats only before opset 9, converted ones integers
        return result
    return proto


def _is_gemm(node: NodeProto) -> bool:
    """Whether the converter would refuse a node if its shapes are open."""
    return node.op_type == "Gemm" and node.domain in ONNX_DOMAINS


def _align_operands(proto: ModelProto) -> None:
    """Give second operands that are broadcast from an axis on axes after it, as many as the first one has.

    ONNX's converter takes no scalars, and drops the axis.
    """
    ranks = {name: len(tensor.dims) for name, tensor in constants_of(proto.graph).items()}
    for value in (*shape_inference.infer_shapes(proto).graph.value_info, *proto.graph.input):
        if value.type.tensor_type.HasField("shape"):
            ranks.setdefault(value.name, len(value.type.tensor_type.shape.dim))
    nodes: list[NodeProto] = []
    for number, node in enumerate(proto.graph.node):
        attributes = {item.name: item.i for item in node.attribute if item.name in ("axis", "broadcast")}
        if attributes.get("broadcast") and set(node.input[:2]) <= ranks.keys():
            first, second = (ranks[name] for name in node.input[:2])
            extra = int(second == 0)
            if "axis" in attributes:
                extra = first - attributes["axis"] % max(first, 1) - second
            if extra > 0:
                name = f"{node.output[0]}/operand {number}"
                axes = range(second, second + extra)
                nodes.append(helper.make_node("Unsqueeze", [node.input[1]], [name], axes=axes))
                node.input[1] = name
            refill(node.attribute, [item for item in node.attribute if item.name != "axis"])
        nodes.append(node)
    refill(proto.graph.node, nodes)


def _with_normalizations(proto: ModelProto) -> ModelProto:
    """Convert a model with LayerNormalization, which ONNX Runtime has in every opset, to one that has it.

    Also a model whose sums and norms ONNX Runtime's optimiser has joined.
    """
    opset = opset_of(proto)
    if opset not in range(_NORMALIZED_IN, _NORMALIZES_FROM):
        return proto
    joined = any(node.op_type in _JOINED and node.domain == "com.microsoft" for node in proto.graph.node)
    if not (joined or any(map(_normalizes, proto.graph.node))):
        return proto
    if any(is_converted_wrongly(node, opset) for node in proto.graph.node):
        return proto
    try:
        return _back(converted(proto, _NORMALIZES_FROM, _normalizes))
    except FAULTS:
        return proto


def _back(result: ModelProto) -> ModelProto:
    """The model, with the nodes that were set aside in ONNX's domain again."""
    for node in result.graph.node:
        if node.domain == ASIDE:
            node.domain = ""
    return result


def _normalizes(node: NodeProto) -> bool:
    return node.op_type in _NORMS and node.domain in ONNX_DOMAINS


def _state_types(proto: ModelProto) -> None:
    """State the types of outputs that the file leaves open, if they follow from the nodes."""
    untyped = [value for value in proto.graph.output if value.type.WhichOneof("value") is None]
    if not untyped:
        return
    with suppress(*FAULTS):
        inferred = {value.name: value for value in shape_inference.infer_shapes(proto).graph.output}
        for value in untyped:
            value.type.CopyFrom(inferred[value.name].type)
