"""Repair of files that ONNX Runtime loads although they break a rule of ONNX, before they are checked."""

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
"""An attribute by operator that opset 7 no longer has: outputs state the mode, and all operands broadcast."""
_FALLBACK_OPSET = 17
"""Opset of a file that uses no operator of ONNX itself."""
_NORMS = ("LayerNormalization", "SimplifiedLayerNormalization")
_NORMS_WITH_SUMS = ("EmbedLayerNormalization", "SkipLayerNormalization")
"""Operators that ONNX Runtime's optimiser makes of sums and norms."""
_NORMALIZES_FROM, _CONVERTED_FROM = 17, 11
"""First opset of ONNX with LayerNormalization, and the oldest that is converted to it."""


def repaired(proto: ModelProto) -> ModelProto:
    """Repair an invalid model that ONNX Runtime accepts.

    Orders the nodes, states defaults that onnx needs, names ONNX's operator set, converts one that is too
    old, and states the types of outputs. The check later refuses other faults.
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
    """State an opset for a file that has only operators of other domains."""
    stated = {entry.domain for entry in proto.opset_import}
    own = any(node.domain in ONNX_DOMAINS for graph in graphs_of(proto.graph) for node in graph.node)
    if stated and stated.isdisjoint(ONNX_DOMAINS) and not own:
        proto.opset_import.append(helper.make_opsetid("", _FALLBACK_OPSET))


def _runnable(proto: ModelProto) -> ModelProto:
    """Convert an opset that ONNX Runtime does not run; the model itself if the conversion fails."""
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
        result = _restored(converted(result, _RUN_FROM, _is_gemm))
        in_plain_forms(result)  # the converter writes Constant nodes of integers, which opset 7 does not have
        return result
    return proto


def _is_gemm(node: NodeProto) -> bool:
    """Whether a node is a Gemm, which the converter refuses if its shapes are open."""
    return node.op_type == "Gemm" and node.domain in ONNX_DOMAINS


def _align_operands(proto: ModelProto) -> None:
    """Unsqueeze second operands that old opsets broadcast from an axis on: new opsets align the last axes.

    ONNX's converter takes no scalars, and drops the attribute `axis`.
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
    """Convert a model to an opset with LayerNormalization if its nodes, or rules for them, need the operator.

    ONNX Runtime has it in every opset.
    """
    opset = opset_of(proto)
    if opset not in range(_CONVERTED_FROM, _NORMALIZES_FROM):
        return proto
    with_sums = any(
        node.op_type in _NORMS_WITH_SUMS and node.domain == "com.microsoft" for node in proto.graph.node
    )
    if not (with_sums or any(map(_normalizes, proto.graph.node))):
        return proto
    if any(is_converted_wrongly(node, opset) for node in proto.graph.node):
        return proto
    try:
        return _restored(converted(proto, _NORMALIZES_FROM, _normalizes))
    except FAULTS:
        return proto


def _restored(result: ModelProto) -> ModelProto:
    """Move the nodes that were set aside to ONNX's domain again."""
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
