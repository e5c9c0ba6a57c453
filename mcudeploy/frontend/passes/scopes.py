"""Graphs inside nodes, and the names that their values have in the flat model."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from dataclasses import dataclass

from onnx import GraphProto, NodeProto

from mcudeploy.frontend.onnx.convert import label_of
from mcudeploy.frontend.onnx.protos import attribute_of, copy_of


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """The names in a graph that is being processed.

    `names`: by name in the file, the names in the flat model of inner and outer values, where they differ.
    `prefix` starts the names of new values; `place` is a prefix that is the same in every iteration.
    """

    names: ChainMap[str, str]
    prefix: str
    place: str

    def of(self, name: str) -> str:
        """The name of a value in the flat model."""
        return self.names.get(name, name)


@dataclass(frozen=True, slots=True, eq=False)
class SubgraphCall:
    """A node with graphs inside, its scope, and the names of its outputs in the flat model."""

    node: NodeProto
    number: int
    scope: Scope
    outputs: tuple[str, ...]

    @property
    def label(self) -> str:
        return self.scope.prefix + label_of(self.node, self.number)

    @property
    def inputs(self) -> list[str]:
        return [self.scope.of(name) for name in self.node.input]

    def graph(self, name: str) -> GraphProto:
        """A graph attribute. Raises StopIteration if there is none."""
        graph: GraphProto = next(item.g for item in self.node.attribute if item.name == name)
        return graph

    def integers(self, name: str, count: int) -> Sequence[int]:
        """An attribute of `count` integers, zeros if omitted. Raises ValueError for another count."""
        numbers: list[int] = attribute_of(self.node, name, [0] * count)
        if len(numbers) != count:
            raise ValueError(f"{name} has {len(numbers)} elements, not {count}")
        return numbers

    def inside(self, name: str, iteration: str = "") -> Scope:
        """The scope of the graph attribute `name`, for an iteration."""
        prefix = f"{self.label}/{iteration}"
        return Scope(self.scope.names.new_child(), prefix, f"{self.scope.place}{self.number}.{name}/")


def renamed(call: SubgraphCall) -> NodeProto:
    """A node without inner graphs, with its names in the flat model."""
    node = copy_of(call.node)
    node.ClearField("doc_string")
    node.input[:], node.output[:] = call.inputs, call.outputs
    node.name = call.label
    return node
