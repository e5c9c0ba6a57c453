"""One form for the many that exporters write: all constants are initializers, and there are no Identities."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

from mcudeploy.frontend.onnx.protos import (
    ONNX_DOMAINS,
    constant_tensor,
    fixed_shape,
    graphs_in,
    graphs_of,
    refill,
)

INITIALIZERS_ALONE = 4
"""First file format in which initializers need not be inputs."""


def in_plain_forms(proto: ModelProto, fixed_names: Collection[str] = ()) -> None:
    """Make Constant nodes of the main graph initializers, which are not inputs, and remove Identities.

    Values of the names `fixed_names`, inputs and outputs keep their names. Graphs inside nodes stay.
    """
    graph = proto.graph
    written = [name for node in graph.node for name in node.output if name]
    written += (value.name for value in graph.input)
    if len(written) != len(set(written)):  # the reader refuses it
        return
    _constants_alone(graph)
    if proto.ir_version:
        proto.ir_version = max(proto.ir_version, INITIALIZERS_ALONE)
    _without_identities(graph, fixed_names)


def walk_depth_first(graph: GraphProto, fixed_names: Collection[str] = ()) -> None:
    """Put the nodes that outputs and the values `fixed_names` need into the post-order of a depth-first walk;
    the others follow. Their order in the file, which exporters choose freely, does not matter.

    The walk takes the last operand first: in cells of many branches the search then ends with smaller arenas.
    """
    producers = {name: node for node in graph.node for name in node.output if name}
    ends = [*(value.name for value in graph.output), *fixed_names]
    waiting = [(producers[name], False) for name in reversed(ends) if name in producers]
    ordered = dict[int, NodeProto]()
    while waiting:
        node, entered = waiting.pop()
        if id(node) in ordered:
            continue
        if entered:
            ordered[id(node)] = node
            continue
        inside = sorted({name for inner in graphs_in(node) for name in _read(inner)})
        waiting.append((node, True))
        waiting += [(producers[name], False) for name in (*inside, *node.input) if name in producers]
    others = [node for node in graph.node if id(node) not in ordered]
    refill(graph.node, [*ordered.values(), *others])


def _constants_alone(graph: GraphProto) -> None:
    """Make Constant nodes initializers, which are not inputs."""
    initializers = {tensor.name for tensor in graph.initializer}
    constants = {
        node.output[0]: tensor for node in graph.node if (tensor := constant_tensor(node)) is not None
    }
    constants = {name: tensor for name, tensor in constants.items() if name not in initializers}
    inputs = [value for value in graph.input if value.name not in initializers]
    if not constants and len(inputs) == len(graph.input):
        return
    for name, tensor in constants.items():
        graph.initializer.append(tensor)
        graph.initializer[-1].name = name
    refill(graph.node, [node for node in graph.node if constants.keys().isdisjoint(node.output)])
    refill(graph.input, inputs)


def _without_identities(graph: GraphProto, fixed_names: Collection[str]) -> None:
    """Remove Identities. What graphs inside nodes read keeps its name."""
    identities = [node for node in graph.node if _renames(node)]
    infos = {value.name: value for value in graph.value_info}
    results = {value.name: value for value in graph.output}
    inside = {name for node in graph.node for inner in graphs_in(node) for name in _read(inner)}
    fixed = {*fixed_names, *inside, *results, *(value.name for value in graph.input)}
    fixed |= {tensor.name for tensor in graph.initializer}
    renamed, removed = dict[str, str](), set[str]()
    for node in identities:
        source, name = (_end(renamed, each) for each in (*node.input, *node.output))
        if source != name and name not in fixed:
            renamed[name] = source
        elif name in results and source not in fixed and not _tells_more(infos.get(source), results[name]):
            renamed[source] = name
        else:
            continue
        removed.add(node.output[0])
    if not removed:
        return
    nodes = [node for node in graph.node if not (_renames(node) and node.output[0] in removed)]
    for node in nodes:
        node.input[:] = [_end(renamed, name) for name in node.input]
        node.output[:] = [_end(renamed, name) for name in node.output]
    refill(graph.node, nodes)
    for name in renamed:
        end = _end(renamed, name)
        if name in infos and end not in fixed and end not in infos:
            infos[end] = infos.pop(name)
            infos[end].name = end
    refill(graph.value_info, [value for name, value in infos.items() if name not in renamed])


def _renames(node: NodeProto) -> bool:
    plain = node.op_type == "Identity" and node.domain in ONNX_DOMAINS
    return plain and len(node.input) == 1 == len(node.output) and bool(node.input[0] and node.output[0])


def _end(renamed: Mapping[str, str], name: str) -> str:
    """The last name of a value."""
    while name in renamed:
        name = renamed[name]
    return name


def _tells_more(source: ValueInfoProto | None, result: ValueInfoProto) -> bool:
    """Whether the shape of a value is stated, while its copy, an output, has an open shape."""
    return source is not None and fixed_shape(result) is None


def _read(graph: GraphProto) -> set[str]:
    """The values that a graph inside a node may read from outside."""
    names = {name for each in graphs_of(graph) for node in each.node for name in node.input}
    return names | {value.name for each in graphs_of(graph) for value in each.output}
