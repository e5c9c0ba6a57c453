"""Fusion of the nodes after an operator into it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf

from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.lower.slice import picked_index, select_positions
from mcudeploy.frontend.lower.taking import depth_to_space
from mcudeploy.frontend.lower.views import VIEWS, view_index
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.quantization import activation_parameters, quantized_dtype
from mcudeploy.frontend.onnx.scalar_functions import clip_bounds
from mcudeploy.frontend.onnx.values import OnnxValue, image_index, image_positions, is_storage_order
from mcudeploy.ir.graph import Quantization
from mcudeploy.ops.host_io import is_channels_last


@dataclass(frozen=True, slots=True, eq=False)
class Ending:
    """The clips, views and slices that follow an operator's result, each the only reader, and a quantisation.

    `nodes` are these nodes, `name` is the float value of the last one, and `low` and `high` are the bounds of
    all clips. If QuantizeLinear nodes of one `quantization` are the only readers of `name`, they are
    `quantizers`.
    """

    name: str
    nodes: tuple[Node, ...]
    low: float
    high: float
    quantizers: tuple[Node, ...]
    quantization: Quantization | None

    @property
    def clips(self) -> bool:
        """Whether a clip is to be fused."""
        return (self.low, self.high) != (-inf, inf)


def sole_reader(builder: Builder, name: str) -> Node | None:
    """The single node that reads a value; None for graph outputs and for several readers."""
    readers = builder.consumers.get(name, [])
    if name in builder.outputs or len(readers) != 1 or readers[0].inputs.count(name) != 1:
        return None
    return readers[0]


def follow(builder: Builder, name: str) -> Ending:
    """Follow a result through fusible clips, views and slices up to a QuantizeLinear, if there is one."""
    low, high = -inf, inf
    nodes: list[Node] = []
    while True:
        quantizers, quantization = _quantizers(builder, name)
        if quantization is not None:
            return Ending(name, tuple(nodes), low, high, quantizers, quantization)
        reader = sole_reader(builder, name)
        if reader is None or reader.inputs[0] != name:
            break
        bounds = clip_bounds(builder.constants, reader)
        if bounds is not None:
            low, high = (min(max(bound, bounds[0]), bounds[1]) for bound in (low, high))
        elif reader.domain or (reader.op not in VIEWS and not _is_slice(builder, reader)):
            break
        nodes.append(reader)
        name = reader.output
    return Ending(name, tuple(nodes), low, high, (), None)


def _is_slice(builder: Builder, node: Node) -> bool:
    """Whether a node is a Slice with constant bounds."""
    return node.op == "Slice" and all(name in builder.constants for name in node.inputs[1:] if name)


def _quantizers(builder: Builder, name: str) -> tuple[tuple[Node, ...], Quantization | None]:
    """All readers and their quantisation, if they are QuantizeLinear nodes of one quantisation; else none."""
    if name in builder.outputs:
        return (), None
    readers = builder.consumers.get(name, [])
    quantization = common_quantization(builder, [(name, node) for node in readers])
    return ((), None) if quantization is None else (tuple(readers), quantization)


def common_quantization(builder: Builder, readers: Iterable[tuple[str, Node]]) -> Quantization | None:
    """The quantisation to which all readers quantise the value; None if they differ or do anything else.

    `readers`: the name under which a node reads the value, and the node.
    """
    quantizations: set[Quantization] = set()
    for name, node in readers:
        if node.op != "QuantizeLinear" or node.domain or node.inputs[0] != name:
            return None
        try:
            dtype = quantized_dtype(builder.model, builder.constants, node)
            quantizations.add(activation_parameters(builder.constants, node, dtype))
        except Unsupported:
            return None
    return quantizations.pop() if len(quantizations) == 1 else None


def finish(builder: Builder, ending: Ending, value: OnnxValue, *, quantized: bool) -> None:
    """Define the values of the fused nodes, given the operator's result `value`, and mark the nodes as done.

    `quantized`: the result is an int8 tensor, so the quantizers are fused too.
    """
    value = _depth_to_space(builder, ending, value) or _moved(builder, ending, value)
    builder.done.update(node.output for node in ending.nodes)
    if not quantized:
        builder.define(ending.name, value)
        return
    for node in ending.quantizers:
        builder.define(node.output, replace(value, real=False, table=None, quantization=ending.quantization))
        builder.done.add(node.output)


def _depth_to_space(builder: Builder, ending: Ending, value: OnnxValue) -> OnnxValue | None:
    """The value after the views and slices if they are a DepthToSpace of an image; else None."""
    index = value.index
    if not is_channels_last(value.shape, index):
        return None
    for node in ending.nodes:
        if node.op in VIEWS:
            index = view_index(builder.constants, node, index)
        elif node.op == "Slice":
            index = picked_index(builder, node, index)
    if index.ndim not in (3, 4) or index.shape[0] != 1:
        return None
    image = image_positions(index)
    op = None if is_storage_order(image) else depth_to_space(image, builder.shape_of(value.tensor))
    if op is None:
        return None
    source = builder.tensors[value.tensor]
    nodes = [node for node in ending.nodes if node.op in (*VIEWS, "Slice")]
    tensor = builder.emit(op, (value.tensor,), image.shape, source.dtype, source.quantization, nodes=nodes)
    return replace(value, tensor=tensor, index=image_index(image.shape, index.ndim))


def _moved(builder: Builder, ending: Ending, value: OnnxValue) -> OnnxValue:
    """The value after the views and slices."""
    for node in ending.nodes:
        if node.op in VIEWS:
            value = replace(value, index=view_index(builder.constants, node, value.index))
        elif node.op == "Slice":
            value = select_positions(builder, value, picked_index(builder, node, value.index), node)
    return value


def fused_nodes(node: Node, ending: Ending, *, quantized: bool) -> tuple[Node, ...]:
    """The nodes that an operator replaces: `node`, those of the ending, and the quantizers if `quantized`."""
    return (node, *ending.nodes, *(ending.quantizers if quantized else ()))
