"""Models with foreign nodes, in pieces: ONNX Runtime and numpy functions of extensions compute in turn."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, numpy_helper

from mcudeploy.common.errors import ModelError
from mcudeploy.common.text import printable
from mcudeploy.extension import added_for
from mcudeploy.frontend.onnx.foreign_nodes import computed, foreign_nodes
from mcudeploy.frontend.onnx.inference import inferred
from mcudeploy.frontend.onnx.protos import ONNX_DOMAINS, constants_of, copy_of, graphs_in, refill

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class ReferencePiece:
    """A serialised model for ONNX Runtime (None if it has no nodes), then nodes for numpy functions.

    `names`: the outputs of the serialised model.
    """

    model: bytes | None
    names: tuple[str, ...]
    foreign: tuple[NodeProto, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ReferencePieces:
    """The pieces of a model in the order in which they are computed.

    `constants`: by name, arrays that numpy functions may read. `float_inputs`: the inputs of float32.
    `way_out`: what to do if ONNX Runtime refuses the model, or "".
    """

    pieces: tuple[ReferencePiece, ...]
    constants: Mapping[str, Array]
    float_inputs: frozenset[str]
    way_out: str

    @classmethod
    def of(cls, proto: ModelProto) -> ReferencePieces:
        """Divide a model into pieces: a single one if it has no foreign nodes.

        A node belongs to the piece after the last foreign node that it depends on. Raises ModelError for a
        value between pieces whose type is unknown.
        """
        foreign = {node.output[0] for node in foreign_nodes(proto)}
        inputs = proto.graph.input
        floats = frozenset(it.name for it in inputs if it.type.tensor_type.elem_type == TensorProto.FLOAT)
        if not foreign:
            whole = ReferencePiece(proto.SerializeToString(), tuple(it.name for it in proto.graph.output))
            return cls((whole,), {}, floats, _way_out(proto))
        constants = {name: numpy_helper.to_array(it) for name, it in constants_of(proto.graph).items()}
        return cls(tuple(_pieces(proto, foreign)), constants, floats, "")


def _pieces(proto: ModelProto, foreign: Collection[str]) -> Iterator[ReferencePiece]:
    """Yield the pieces of a model; `foreign`: the first results of its foreign nodes."""
    typed = inferred(proto)
    values = (*typed.graph.value_info, *typed.graph.output, *typed.graph.input)
    types = {value.name: value.type for value in values if value.type.WhichOneof("value")}
    stage_of: dict[str, int] = {}
    plain: dict[int, list[NodeProto]] = {}
    numpy: dict[int, list[NodeProto]] = {}
    for node in proto.graph.node:
        stage = max((stage_of.get(name, 0) for name in names_read(node)), default=0)
        is_foreign = node.output[0] in foreign
        (numpy if is_foreign else plain).setdefault(stage, []).append(node)
        stage_of |= dict.fromkeys(filter(None, node.output), stage + is_foreign)
    outputs = [value.name for value in proto.graph.output]
    for stage in range(max(stage_of.values()) + 1):
        nodes = plain.get(stage, [])
        written = {name for node in nodes for name in node.output if name}
        later = [it for at, part in plain.items() if at > stage for it in part]
        later += [it for at, part in numpy.items() if at >= stage for it in part]
        names = tuple(sorted(written & {*outputs, *(name for node in later for name in names_read(node))}))
        model = _model_of(proto, nodes, names, types).SerializeToString() if names else None
        yield ReferencePiece(model, names, tuple(numpy.get(stage, ())))


def run_foreign(nodes: Sequence[NodeProto], values: Mapping[str, Array]) -> dict[str, Array]:
    """The results of foreign nodes, by name. Raises ModelError for a numpy function that fails."""
    results: dict[str, Array] = {}
    for node in nodes:
        inputs = [values[name] if name else None for name in node.input]
        results |= dict(zip(node.output, computed(node, inputs), strict=True))
    return results


def names_read(node: NodeProto) -> set[str]:
    """Return the names that a node reads, also in the graphs inside it."""
    inner = (each for graph in graphs_in(node) for each in graph.node)
    return {name for name in node.input if name}.union(*map(names_read, inner))


def _model_of(
    proto: ModelProto, nodes: Sequence[NodeProto], names: Sequence[str], types: Mapping[str, TypeProto]
) -> ModelProto:
    """Return a model of these nodes; its inputs are the values that they read and do not compute."""
    written = {name for node in nodes for name in node.output}
    read = set().union(*map(names_read, nodes)) - written
    initializers = [it for it in proto.graph.initializer if it.name in read]
    read -= {it.name for it in initializers}
    inputs = sorted(read & types.keys())
    if unknown := sorted(read - types.keys() - _inner(nodes)):
        raise ModelError(
            f"the type of {printable(unknown[0])!r} is unknown, which a node after "
            "one of an extension reads: state it in the file, as onnx.shape_inference.infer_shapes does"
        )
    result = copy_of(proto)
    refill(result.graph.node, nodes)
    refill(result.graph.initializer, initializers)
    refill(result.graph.input, [ValueInfoProto(name=name, type=types[name]) for name in inputs])
    refill(result.graph.output, [ValueInfoProto(name=name) for name in names])
    del result.graph.value_info[:]
    return result


def _inner(nodes: Sequence[NodeProto]) -> set[str]:
    """The names of inputs, constants and results of graphs inside nodes."""
    return {
        name
        for node in nodes
        for graph in graphs_in(node)
        for name in (*(it.name for it in (*graph.input, *graph.initializer)), *_outputs(graph.node))
    }


def _outputs(nodes: Sequence[NodeProto]) -> set[str]:
    return {name for node in nodes for name in node.output} | _inner(nodes)


def _way_out(proto: ModelProto) -> str:
    """The way out for nodes that an extension lowers without a numpy function."""
    local = {(function.domain, function.name) for function in proto.functions}
    for node in proto.graph.node:
        if node.domain in ONNX_DOMAINS or (node.domain, node.op_type) in local:
            continue
        if node.op_type in added_for("lowerings", node.domain):
            return (
                f". {node.domain}::{printable(node.op_type)} comes from an extension: add its numpy function "
                "to `references` of the extension"
            )
    return ""
