"""An ONNX graph that grows node by node, with the known facts about its values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from tests.networks.onnx_files import build

Array = NDArray[Any]
Shape = tuple[int, ...]

MOST_ELEMENTS = 5000
"""Limit of the elements of one activation: kernels run under sanitizers, several times each."""

MOST_MACS = 120_000
"""Limit of the products of one convolution or product."""

MOST_OUTPUTS = 5


@dataclass
class Draft:
    """Nodes and constants of a graph; every activation has a name in `shapes`, and in `types` unless it is
    float32.

    Axis 0 is the batch and axis 1 the channels, as exporters write it. Layers call `fits` before they add a
    value. `most`: the largest magnitude of each integer activation.
    """

    random: np.random.Generator
    opset: int
    naming: Callable[[int], str]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    bodies: int = 0

    # -- drawing ---------------------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        """True in this share of all cases."""
        return bool(self.random.random() < share)

    def pick(self, items: Sequence[Any]) -> Any:
        """One of them."""
        return items[int(self.random.integers(len(items)))]

    def whole(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return int(self.random.integers(low, high + 1))

    def normal(self, shape: Shape, scale: float = 1.0) -> Array:
        """Normal float32 values."""
        return (self.random.standard_normal(shape) * scale).astype(np.float32)

    def type_of(self, name: str) -> int:
        """The element type of an activation."""
        return self.types.get(name, TensorProto.FLOAT)

    def source(self, *ranks: int, types: Sequence[int] = (TensorProto.FLOAT,)) -> str | None:
        """A value of one of these ranks and types, the latest more likely than others."""
        candidates = self.alike(lambda shape: len(shape) in ranks, types)
        if not candidates:
            return None
        return candidates[-1] if self.chance(0.6) else str(self.pick(candidates))

    def alike(
        self, wanted: Callable[[Shape], bool], types: Sequence[int] = (TensorProto.FLOAT,)
    ) -> list[str]:
        """All values of these types whose shape is wanted."""
        return [name for name, shape in self.shapes.items() if wanted(shape) and self.type_of(name) in types]

    # -- growing ---------------------------------------------------------------------------------

    def fits(self, shape: Shape, macs: int = 0) -> bool:
        """Whether a value of this shape may be added."""
        return min(shape) > 0 and prod(shape) <= MOST_ELEMENTS and macs <= MOST_MACS

    def input(self, shape: Shape, element_type: int = TensorProto.FLOAT) -> str:
        """A graph input."""
        name = self._named(shape, element_type)
        self.inputs.append(name)
        return name

    def constant(self, value: Any) -> str:
        """An initializer."""
        name = self.naming(10_000 + len(self.constants))
        self.constants[name] = np.asarray(value)
        return name

    def _named(self, shape: Shape, element_type: int) -> str:
        name = self.naming(len(self.shapes))
        self.shapes[name] = tuple(int(size) for size in shape)
        if element_type != TensorProto.FLOAT:
            self.types[name] = element_type
        return name

    def add(
        self,
        op: str,
        inputs: Sequence[str],
        shape: Shape,
        element_type: int = TensorProto.FLOAT,
        **attributes: Any,
    ) -> str:
        """A node with one result of this shape and type; "" is an omitted input."""
        return self.add_many(op, inputs, [shape], [element_type], **attributes)[0]

    def add_many(
        self,
        op: str,
        inputs: Sequence[str],
        shapes: Sequence[Shape | None],
        types: Sequence[int] = (),
        **attributes: Any,
    ) -> list[str]:
        """A node with several results; "" stands for an omitted one without a shape."""
        kinds = types or (TensorProto.FLOAT,) * len(shapes)
        names = [
            self._named(shape, kind) if shape is not None else ""
            for shape, kind in zip(shapes, kinds, strict=True)
        ]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"{op}_{len(self.nodes)}", **attributes))
        return names

    def readers(self) -> dict[str, list[onnx.NodeProto]]:
        """The nodes that read each activation."""
        by_name: dict[str, list[onnx.NodeProto]] = {name: [] for name in self.shapes}
        for node in self.nodes:
            for name in dict.fromkeys(names_read(node)):
                if name in by_name:
                    by_name[name].append(node)
        return by_name

    def choose_outputs(self) -> None:
        """Outputs: unread values, as far as there is room; some read values; rarely an unchanged input."""
        readers = self.readers()
        computed = [name for name in self.shapes if name not in self.inputs]
        loose = [name for name in computed if not readers[name]]
        self.outputs = loose[-MOST_OUTPUTS:]
        read = [name for name in computed if readers[name]]
        if read and self.chance(0.25):
            self.outputs.append(str(self.pick(read)))
        if self.chance(0.04):
            self.outputs.insert(0, str(self.pick(self.inputs)))
        if self.chance(0.9):
            self.nodes = live_nodes(self.nodes, self.outputs)

    def used_inputs(self) -> list[str]:
        """The inputs that anything reads, in order."""
        read = {name for node in self.nodes for name in names_read(node)} | set(self.outputs)
        return [name for name in self.inputs if name in read]

    def model(self, outputs: Sequence[str] | None = None) -> onnx.ModelProto:
        """The model before it is quantised, with these outputs."""
        ends = list(self.outputs if outputs is None else outputs)
        return assemble(
            self.nodes,
            [(name, self.type_of(name), self.shapes[name]) for name in self.used_inputs()],
            [(name, self.type_of(name), self.shapes[name]) for name in ends],
            self.constants,
            self.opset,
        )


Layer = Callable[[Draft], None]
"""Adds nodes, or none if none fit."""


def of(*ranks: int, types: Sequence[int] = (TensorProto.FLOAT,)) -> Callable[..., Layer]:
    """A layer of a value of these ranks and types, and its shape; nothing if there is no such value."""

    def decorate(grow: Callable[[Draft, str, Shape], None]) -> Layer:
        def layer(draft: Draft) -> None:
            name = draft.source(*ranks, types=types)
            if name is not None:
                grow(draft, name, draft.shapes[name])

        return layer

    return decorate


def grown(draft: Draft, layers: Sequence[tuple[Layer, float]], wanted: int) -> None:
    """Add drawn layers until there are as many nodes as wanted."""
    functions, weights = zip(*layers, strict=True)
    shares = np.array(weights) / sum(weights)
    for _ in range(20 * wanted):
        if len(draft.nodes) >= wanted:
            break
        functions[int(draft.random.choice(len(functions), p=shares))](draft)


def names_read(node: onnx.NodeProto) -> list[str]:
    """The values that a node reads, including its inner graphs."""
    names_found = list(node.input)
    for graph in (attribute.g for attribute in node.attribute if attribute.HasField("g")):
        own = {it.name for it in (*graph.input, *graph.initializer)}
        own.update(name for each in graph.node for name in each.output)
        names = [name for each in graph.node for name in names_read(each)]
        names_found += [name for name in (*names, *(it.name for it in graph.output)) if name not in own]
    return names_found


def live_nodes(nodes: Sequence[onnx.NodeProto], outputs: Iterable[str]) -> list[onnx.NodeProto]:
    """The nodes that the outputs depend on."""
    wanted = set(outputs)
    kept: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.output):
            wanted.update(names_read(node))
            kept.append(node)
    return kept[::-1]


Info = tuple[str, int, Shape]
"""Name, element type and shape of a graph's input or output."""


def assemble(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Info],
    outputs: Sequence[Info],
    constants: dict[str, Array],
    opset: int,
) -> onnx.ModelProto:
    """A model of nodes, without unread constants."""
    read = {name for node in nodes for name in names_read(node)}
    kept = {name: array for name, array in constants.items() if name in read}
    sources, results = ({name: (kind, shape) for name, kind, shape in infos} for infos in (inputs, outputs))
    return build(nodes, sources, results, kept, opset)
