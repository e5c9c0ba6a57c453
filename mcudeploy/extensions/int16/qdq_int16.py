"""QDQ models with int16 activations of zero point 0: operators between DequantizeLinear and QuantizeLinear
become operators on the stored integers.

Weights are int8 or int4 with zero point 0. Other operators stay in float32, between conversions.
"""

from __future__ import annotations

from math import inf

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, shape_inference

from mcudeploy.common.text import agree, printable
from mcudeploy.extensions.int16.int16 import INT16, UNBOUNDED, Bounds
from mcudeploy.extensions.int16.qdq_graph import (
    Int16Result,
    QdqDraft,
    UnfitError,
    converts,
    single_scale,
    stored_type,
)
from mcudeploy.extensions.int16.qdq_operators import INT16_OPERATORS, MOVED
from mcudeploy.frontend.onnx.protos import ONNX_DOMAINS, constants_of, copy_of, import_domain, live, refill
from mcudeploy.frontend.onnx.rounding import DOMAIN
from mcudeploy.frontend.passes.grids import GridModel, IntegerModel

_ACTIVATIONS = ("Relu", "Clip")
"""Operators that become bounds of the operator before them."""


def has_int16(proto: ModelProto) -> bool:
    """Whether the model has 16-bit activations, and all are int16 with one scale and zero point 0."""
    constants = constants_of(proto.graph)
    known = {value.name: value.type.tensor_type.elem_type for value in proto.graph.input}
    count = 0
    for node in proto.graph.node:
        if not converts(node) or node.input[0] in constants:
            continue
        kind = stored_type(node, constants, known)
        if kind not in (TensorProto.INT16, TensorProto.UINT16):
            continue
        if kind == TensorProto.UINT16 or single_scale(node, constants) is None:
            return False
        count += 1
    return count > 0


def in_integers(proto: ModelProto, gridded: GridModel) -> IntegerModel | None:
    """The model with integer operators for int16 activations; None if `has_int16` is false.

    `gridded`: the same model in float32. Shapes are inferred from it, since inference does not know the
    16-bit operators of ONNX Runtime.
    """
    if not has_int16(proto):
        return None
    result = copy_of(proto)
    del result.graph.value_info[:]
    for value in shape_inference.infer_shapes(_in_known_domain(gridded.proto)).graph.value_info:
        info = result.graph.value_info.add()
        info.CopyFrom(value)
        if value.name in gridded.types:
            info.type.tensor_type.elem_type = TensorProto.INT16
    draft = QdqDraft(result.graph)
    nodes: list[NodeProto] = []
    for node in proto.graph.node:
        nodes += _replaced(draft, node)
    outputs = [value.name for value in result.graph.output]
    refill(result.graph.node, live(nodes, outputs))
    result.graph.initializer.extend(draft.initializers)
    result.graph.value_info.extend(draft.values)
    import_domain(result, DOMAIN)
    return IntegerModel(result, _notes(sorted(draft.floats)))


def _notes(floats: list[str]) -> tuple[str, ...]:
    """The note to the user on operators between conversions, which stay in float32."""
    if not floats:
        return ()
    ops = f"{', '.join(floats)} {agree(len(floats), 'is', 'are')}"
    return (f"between int16 activations {ops} computed in float32",)


def _in_known_domain(proto: ModelProto) -> ModelProto:
    """The model with conversions of ONNX's own domain, which shape inference knows."""
    result = copy_of(proto)
    for node in result.graph.node:
        if node.op_type in ("DequantizeLinear", "QuantizeLinear"):
            node.domain = ""
    return result


def _replaced(draft: QdqDraft, node: NodeProto) -> list[NodeProto]:
    """The nodes that replace a node."""
    draft.nodes, draft.label = [], node.name
    if not draft.is_int16(node):
        return draft.nodes if draft.narrowed(node) else [node]
    scale = draft.scale(node)
    if node.op_type == "DequantizeLinear":
        real = draft.name()
        draft.nodes.append(
            helper.make_node("Cast", [node.input[0]], [real], name=node.name, to=TensorProto.FLOAT)
        )
        factor = draft.constant(np.array(scale, np.float32))
        draft.nodes.append(helper.make_node("Mul", [real, factor], list(node.output), name=node.name))
        return draft.nodes
    try:
        _operator(draft, node, scale)
    except (UnfitError, ValueError):
        factor = draft.constant(np.array(scale, np.float32))
        draft.nodes = []
        draft.node("QuantizeInt16", [node.input[0], factor], node.output[0])
        producer = draft.producer(node.input[0])
        if producer is not None and producer.op_type in _ACTIVATIONS:
            producer = draft.producer(producer.input[0]) or producer
        if producer is not None and producer.op_type not in MOVED:
            draft.floats.add(printable(producer.op_type))
    return draft.nodes


def _operator(draft: QdqDraft, node: NodeProto, scale: float) -> None:
    """Add the integer operator for the operator, and its activation, before the QuantizeLinear `node`."""
    producer, bounds = draft.producer(node.input[0]), UNBOUNDED
    if producer is None:
        raise UnfitError
    if producer.op_type in _ACTIVATIONS and producer.domain in ONNX_DOMAINS:
        bounds = _clipped(draft, producer, scale)
        inner = draft.producer(producer.input[0])
        if inner is None:
            raise UnfitError
        if inner.op_type == "DequantizeLinear":
            draft.rescaled(draft.int16_or_int8(producer.input[0]), Int16Result(node.output[0], scale, bounds))
            return
        producer = inner
    result = Int16Result(node.output[0], scale, bounds)
    if producer.op_type == "DequantizeLinear":
        draft.rescaled(draft.int16_or_int8(node.input[0]), result)
        return
    replace = INT16_OPERATORS.get(producer.op_type)
    if replace is None or producer.domain not in ONNX_DOMAINS or len(producer.output) != 1:
        raise UnfitError
    draft.label = producer.name
    replace(draft, producer, result)


def _clipped(draft: QdqDraft, node: NodeProto, scale: float) -> Bounds:
    """The bounds of a Relu or Clip as stored integers."""
    low, high = 0.0, inf
    if node.op_type == "Clip":
        if node.attribute:  # of old operator sets
            raise UnfitError
        bounds = [
            float(draft.array(name).item()) if name else None for name in (*node.input[1:3], "", "")[:2]
        ]
        low = -inf if bounds[0] is None else bounds[0]
        high = inf if bounds[1] is None else bounds[1]
    steps = [np.clip(np.rint(bound / scale), INT16.min, INT16.max) for bound in (low, high)]
    return Bounds(int(steps[0]), int(steps[1]))
