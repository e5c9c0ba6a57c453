"""Plain forms of what exporters write in many ways: initializers for constants, and no Identities."""

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
"""First version of the file format (ir_version) in which initializers need not be inputs."""


def in_plain_forms(proto: ModelProto, fixed_names: Collection[str] = ()) -> None:
    """Make Constant nodes of the main graph initializers that are not inputs, and remove Identities.

    Inputs, outputs and the values `fixed_names` keep their names. Graphs inside nodes stay as they are.
    """
    graph = proto.graph
    written = [name for node in graph.node for name in node.output if name]
    written += (value.name for value in graph.input)
    if len(written) != len(set(written)):  # the check of the model will report it
        return
    _constants_to_initializers(graph)
    if proto.ir_version:
        proto.ir_version = max(proto.ir_version, INITIALIZERS_ALONE)
    _without_identities(graph, fixed_names)


def walk_depth_first(graph: GraphProto, fixed_names: Collection[str] = ()) -> None:
    """Order the nodes by a depth-first walk from the outputs and the values `fixed_names`; others follow.

    So the order in the file, which exporters choose freely, does not matter. The walk takes the last operand
    first: in cells of many branches the search then ends with smaller arenas.
    """
    producers = {name: node for node in graph.node for name in node.output if name}
    ends = [*(value.name for value in graph.output), *fixed_names]
    waiting = [(producers[name], False) for name in reversed(ends) if name in producers]
    ordered = dict[int, NodeProto]()
    while waiting:
        node, has_producers = waiting.pop()
        if id(node) in ordered:
            continue
        if has_producers:
            ordered[id(node)] = node
            continue
        inside = sorted({name for inner in graphs_in(node) for name in _read(inner)})
        waiting.append((node, True))
        waiting += [(producers[name], False) for name in (*inside, *node.input) if name in producers]
    others = [node for node in graph.node if id(node) not in ordered]
    refill(graph.node, [*ordered.values(), *others])


def _constants_to_initializers(graph: GraphProto) -> None:
    """Make Constant nodes initializers, and remove initializers from the inputs."""
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
    """Remove Identities. Values that graphs inside nodes read keep their names."""
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
        elif name in results and source not in fixed and not _loses_shape(infos.get(source), results[name]):
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
    is_identity = node.op_type == "Identity" and node.domain in ONNX_DOMAINS
    return is_identity and len(node.input) == 1 == len(node.output) and bool(node.input[0] and node.output[0])


def _end(renamed: Mapping[str, str], name: str) -> str:
    """The name of a value after all renamings."""
    while name in renamed:
        name = renamed[name]
    return name


def _loses_shape(source: ValueInfoProto | None, result: ValueInfoProto) -> bool:
    """Whether a value has a stated shape, and the output whose name it would take has an open one."""
    return source is not None and fixed_shape(result) is None


def _read(graph: GraphProto) -> set[str]:
    """The values that a graph inside a node may read from outside."""
    names = {name for each in graphs_of(graph) for node in each.node for name in node.input}
    return names | {value.name for each in graphs_of(graph) for value in each.output}
