"""Caches of which a run writes some rows at computed positions, while the other rows stay in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, ValueInfoProto, helper, numpy_helper

from mcudeploy.frontend.onnx.protos import (
    INDEX_TYPES,
    ONNX_DOMAINS,
    attribute_of,
    constants_of,
    refill,
    sizes_of,
    unused_name,
)
from mcudeploy.frontend.onnx.rounding import DOMAIN
from mcudeploy.frontend.onnx.states import LOAD, WRITE, KeptState


@dataclass(frozen=True, slots=True)
class _Write:
    """A node that writes rows into a transposed cache; axis i of its data is axis perm[i] of the cache.

    `positions` count along the axis `axis` of the cache. `offsets` are added to the positions, and `period`
    is the number of positions of a ring, or 0.
    """

    node: NodeProto
    perm: tuple[int, ...]
    axis: int
    positions: str
    offsets: tuple[int, ...] = (0,)
    period: int = 0

    @property
    def rows(self) -> str:
        """The value of the rows, whose axes have the order `perm` too."""
        return str(self.node.input[1 if self.node.op_type == "TensorScatter" else 2])


def written(
    graph: GraphProto, known: Mapping[str, ValueInfoProto], value: ValueInfoProto, output: str
) -> KeptState | None:
    """Add the state `value` as a tensor of which a run writes rows; None unless such a write makes `output`.

    Nodes that read the rows of the run before get a copy.
    """
    write = _Search(graph, known).write_of(value.name, output)
    if write is None:
        return None
    kind, sizes = value.type.tensor_type.elem_type, sizes_of(value)
    before = unused_name(graph, f"{value.name}_before")
    graph.input.append(helper.make_tensor_value_info(before, kind, sizes))
    load = helper.make_node(LOAD, [before], [value.name], f"{value.name}_load", domain=DOMAIN)
    nodes = [load]
    for node in graph.node:
        if write.node.output[0] in node.output:
            nodes += _nodes_of_write(graph, write, before, output)
        elif output not in node.output:
            nodes.append(node)
    refill(graph.node, nodes)
    for name in (value.name, output):
        graph.value_info.append(helper.make_tensor_value_info(name, kind, sizes))
    return KeptState(before, output, "")


def _nodes_of_write(graph: GraphProto, write: _Write, before: str, output: str) -> list[NodeProto]:
    """The nodes that replace that of a write, and compute both `output` and the result of this node."""
    nodes: list[NodeProto] = []

    def add(op: str, *inputs: str, **attributes: Any) -> str:
        name = unused_name(graph, f"{output}_{op.lower()}_{len(nodes)}")
        nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def constant(values: NDArray[np.int64]) -> str:
        name = unused_name(graph, f"{output}_places_{len(graph.initializer)}")
        graph.initializer.append(numpy_helper.from_array(values, name))
        return name

    positions, rows = write.positions, write.rows
    if write.offsets != (0,):
        positions = add("Add", positions, constant(np.array(write.offsets, np.int64)))
    if write.period:
        positions = add("Mod", positions, constant(np.array([write.period], np.int64)))
    if write.perm != tuple(sorted(write.perm)):
        rows = add("Transpose", rows, perm=np.argsort(write.perm).tolist())
    shape = [-1 if axis == write.axis else 1 for axis in range(len(write.perm))]
    inputs, name = [rows, before, positions], f"{output}_write"
    nodes.append(helper.make_node(WRITE, inputs, [output], name, domain=DOMAIN, axis=write.axis, sizes=shape))
    if write.node.output[0] != output:
        result = write.node.output[0]
        nodes.append(helper.make_node("Transpose", [output], [result], result, perm=write.perm))
    return nodes


class _Search:
    """Searches a graph for the node that writes rows of a cache."""

    def __init__(self, graph: GraphProto, known: Mapping[str, ValueInfoProto]) -> None:
        self._constants = constants_of(graph)
        self._known = {name: it for name, it in known.items() if it.type.tensor_type.HasField("shape")}
        for name, tensor in self._constants.items():
            self._known[name] = helper.make_tensor_value_info(name, tensor.data_type, tensor.dims)
        self._producers = {result: node for node in graph.node for result in node.output if result}

    def write_of(self, cache: str, output: str) -> _Write | None:
        """The write into `cache` whose result, transposed back, is `output`; None if there is none."""
        node, after = self._through_transposes(output)
        if node is None or node.domain not in ONNX_DOMAINS or len(node.input) < 3 or not self._sizes(cache):
            return None
        source, perm = self._from_transposes(node.input[0])
        after = after or tuple(range(len(perm)))
        if source != cache or not perm or len(after) != len(perm):
            return None
        if [perm[axis] for axis in after] != sorted(perm):
            return None
        write = self._placed(node, perm)
        if write is None or write.rows in self._constants or write.positions not in self._known:
            return None
        kind = self._known[write.positions].type.tensor_type.elem_type
        return write if kind in INDEX_TYPES else None

    def _placed(self, node: NodeProto, perm: tuple[int, ...]) -> _Write | None:
        """The write of a node, if it writes whole rows; else None."""
        indices = node.input[1 if node.op_type != "TensorScatter" else 2]
        shape, index_sizes = self._sizes(node.input[0]), self._sizes(indices)
        if not index_sizes or attribute_of(node, "reduction", b"none") != b"none":
            return None
        if node.op_type == "ScatterND" and len(index_sizes) == 2 and index_sizes[1] == 1:
            return _Write(node, perm, perm[0], indices)
        if node.op_type == "ScatterElements":
            axis = int(attribute_of(node, "axis", 0)) % len(shape)
            others = [size for at, size in enumerate(index_sizes) if at != axis]
            if others != [size for at, size in enumerate(shape) if at != axis]:
                return None
            positions = self._repeated(indices, axis)
            return None if positions is None else _Write(node, perm, perm[axis], positions)
        if node.op_type != "TensorScatter" or index_sizes != [1]:
            return None
        axis = int(attribute_of(node, "axis", -2)) % len(shape)
        count = (self._sizes(node.input[1]) or [0] * len(shape))[axis]
        period = shape[axis] if attribute_of(node, "mode", b"linear") == b"circular" else 0
        return _Write(node, perm, perm[axis], indices, tuple(range(count)), period) if count else None

    def _repeated(self, indices: str, axis: int) -> str | None:
        """The value with the positions that `indices` repeats along all other axes; None if there is none."""
        rank, count = len(self._sizes(indices)), self._sizes(indices)[axis]
        while prod(self._sizes(indices)) != count:
            node = self._producers.get(indices)
            if node is None or node.op_type not in ("Expand", "Identity", "Tile"):
                return None
            sizes = self._sizes(node.input[0])
            sizes = [1] * (rank - len(sizes)) + sizes
            if node.op_type != "Identity" and any(size > 1 for at, size in enumerate(sizes) if at != axis):
                return None
            if sizes[axis] != count:
                return None
            indices = node.input[0]
        return indices

    def _sizes(self, name: str) -> list[int]:
        """The shape of a value, empty if it is not known."""
        return sizes_of(self._known[name]) if name in self._known else []

    def _through_transposes(self, name: str) -> tuple[NodeProto | None, tuple[int, ...]]:
        """The node whose result Transposes turn into a value, and the combined permutation of these."""
        source, perm = self._from_transposes(name)
        return self._producers.get(source), perm

    def _from_transposes(self, name: str) -> tuple[str, tuple[int, ...]]:
        """The value that Transposes turn into another, and the combined permutation of these."""
        perm = tuple(range(len(self._sizes(name))))
        node = self._producers.get(name)
        while node is not None and node.op_type == "Transpose" and node.domain in ONNX_DOMAINS:
            node_perm = attribute_of(node, "perm", list(reversed(range(len(perm)))))
            if len(node_perm) != len(perm):
                break
            perm = tuple(node_perm[axis] for axis in perm)
            name = node.input[0]
            node = self._producers.get(name)
        return name, perm
