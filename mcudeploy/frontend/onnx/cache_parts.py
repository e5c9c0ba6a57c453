"""Caches that nodes take apart and join again: each part becomes a separate state."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper

from mcudeploy.frontend.onnx.protos import (
    INDEX_TYPES,
    MOVEMENTS,
    ONNX_DOMAINS,
    attribute_of,
    constants_of,
    evaluator,
    graphs_in,
    opset_of,
    refill,
    sizes_of,
    unused_name,
)

_Codes = NDArray[np.int64]
"""A code for each element of a value: its origin, see _Origins."""
_VIEWS = MOVEMENTS - {"Expand", "Slice"}
_MOVES = _VIEWS | {"Gather", "Slice", "Split"}
_SCATTERS = ("ScatterElements", "ScatterND")
_MAX_ELEMENTS = 1 << 22
"""Limit of the elements of a cache, and of the constants that are followed."""


def parts_of(
    proto: ModelProto, known: Mapping[str, ValueInfoProto], value: ValueInfoProto, output: str
) -> list[tuple[ValueInfoProto, str]]:
    """The parts of the cache `value`: pairs of the value that nodes read, and the value that replaces it.

    Removes the nodes that take the cache apart, so that the values that are read have no producer. Returns
    the cache and `output` alone, without a change, if the cache is not taken apart.
    """
    undivided = [(value, output)]
    if not 0 < prod(sizes_of(value)) <= _MAX_ELEMENTS:
        return undivided
    origins = _Origins(proto, known, value, output)
    parts = origins.parts()
    if parts is None or [(names, leaf) for leaf, names in parts.items()] == [([value.name], output)]:
        return undivided
    graph, infos = proto.graph, {**known, value.name: value}
    copies: list[NodeProto] = []
    for name, *others in parts.values():
        for other in others:
            shape = unused_name(graph, f"{other}_shape")
            sizes = np.array(sizes_of(infos[other]), np.int64)
            graph.initializer.append(numpy_helper.from_array(sizes, shape))
            copies.append(helper.make_node("Reshape", [name, shape], [other], f"{other}_again"))
    rest = (node for node in graph.node if origins.codes.keys().isdisjoint(node.output))
    refill(graph.node, [*copies, *rest])
    return [(infos[names[0]], leaf) for leaf, names in parts.items()]


class _Origins:
    """The origin of each element of the values that consist of elements of the cache, as a code.

    A code below `size` is a place in the cache. Others are places in the values that enter the cache, the
    leaves, which are numbered consecutively.
    """

    def __init__(
        self, proto: ModelProto, known: Mapping[str, ValueInfoProto], value: ValueInfoProto, output: str
    ) -> None:
        self._graph, self._opset = proto.graph, opset_of(proto)
        self._known = {name: it for name, it in known.items() if it.type.tensor_type.HasField("shape")}
        self._output, self.size = output, prod(sizes_of(value))
        self._producers = {it: node for node in self._graph.node for it in node.output if it}
        self._constants = {
            name: numpy_helper.to_array(it)
            for name, it in constants_of(self._graph).items()
            if it.data_type in INDEX_TYPES and prod(it.dims) <= _MAX_ELEMENTS
        }
        self._next = self.size
        self._leaves: dict[str, _Codes] = {}
        self.codes = {value.name: np.arange(self.size).reshape(sizes_of(value))}
        for node in self._graph.node:
            self._follow(node)

    def parts(self) -> dict[str, list[str]] | None:
        """The values that enter the cache, and for each the values that nodes read from its place.

        None if the cache does not consist of exactly these parts.
        """
        result = self.codes.get(self._output)
        result = self._entering(self._output) if result is None else result
        if result is None:
            return None
        place = np.full(self._next, -1)
        place[result] = np.arange(result.size).reshape(result.shape)
        places = {name: place[codes].reshape(-1) for name, codes in self._leaves.items()}
        if not np.array_equal(np.sort(np.concatenate([[], *places.values()])), np.arange(self.size)):
            return None
        leaves = {each.tobytes(): name for name, each in places.items()}
        parts: dict[str, list[str]] = {}
        for name in self._read():
            leaf = leaves.get(self.codes[name].tobytes())
            if leaf is None:
                return None
            parts.setdefault(leaf, []).append(name)
        return parts

    def _read(self) -> list[str]:
        """The values with codes that are outputs, or that other nodes than movements read."""
        names = {it.name for it in self._graph.output}
        for node in self._graph.node:
            if self.codes.keys().isdisjoint(node.output):
                names.update(node.input)
            names.update(it for inner in graphs_in(node) for other in inner.node for it in other.input)
        return [name for name in self.codes if name in names]

    def _follow(self, node: NodeProto) -> None:
        """Add the codes of a node's results, if it only moves elements of the cache."""
        if node.domain not in ONNX_DOMAINS or not node.input or node.input[0] not in self.codes:
            return
        arrays: dict[str, _Codes] = {node.input[0]: self.codes[node.input[0]]}
        if node.op_type == "Concat" and all(it in self.codes for it in node.input):
            arrays = {it: self.codes[it] for it in node.input}
        elif node.op_type in _SCATTERS and attribute_of(node, "reduction", b"none") == b"none":
            entering = self._entering(node.input[2]) if node.input[1] in self._constants else None
            if entering is None:
                return
            arrays[node.input[2]] = entering
        elif node.op_type not in _MOVES:
            return
        if all(it in arrays or it in self._constants for it in node.input if it):
            self.codes |= dict(zip(node.output, self._run(node, arrays), strict=True))

    def _entering(self, name: str) -> _Codes | None:
        """The codes of a value that enters the cache: new ones, unless it only joins parts with codes."""
        if name in self.codes:
            return self.codes[name]
        node = self._producers.get(name)
        if node is None or name not in self._known:
            return None
        joined = node.op_type == "Concat" and self.codes.keys().isdisjoint(node.input)
        data = node.input if joined else node.input[:1] if node.op_type in _VIEWS else []
        rest = node.input[len(data) :]
        if node.domain in ONNX_DOMAINS and data and all(it in self._constants for it in rest if it):
            arrays = {it: self._entering(it) for it in data}
            followed = {it: codes for it, codes in arrays.items() if codes is not None}
            if len(followed) == len(arrays):
                return self._run(node, followed)[0]
        if name not in self._leaves:
            sizes = sizes_of(self._known[name])
            self._leaves[name] = np.arange(self._next, self._next + prod(sizes)).reshape(sizes)
            self._next += prod(sizes)
        return self._leaves[name]

    def _run(self, node: NodeProto, arrays: Mapping[str, _Codes]) -> list[_Codes]:
        """The results of a node if the values have codes instead of elements."""
        constants = {it: self._constants[it] for it in node.input if it and it not in arrays}
        values = {**arrays, **constants}
        return evaluator([node], self._opset, values, node.output)(values)
