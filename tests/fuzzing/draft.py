"""A float32 ONNX graph that grows node by node, and what is known of its values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]
Shape = tuple[int, ...]

MOST_ELEMENTS = 5000
"""Of one activation: kernels run under sanitizers, several times each."""

MOST_MACS = 120_000
"""Of one convolution or product."""

MOST_OUTPUTS = 5


@dataclass
class Draft:
    """Nodes and constants of a graph; every activation has a name in `shapes`.

    The batch is 1 and axis 1 the channels, as exporters write it. `fits` is what the layers ask before they
    make a value.
    """

    random: np.random.Generator
    opset: int
    naming: Callable[[int], str]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

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

    def source(self, *ranks: int) -> str | None:
        """A value of one of these ranks, the latest more likely than others."""
        found = [name for name, shape in self.shapes.items() if len(shape) in ranks]
        if not found:
            return None
        return found[-1] if self.chance(0.6) else str(self.pick(found))

    def alike(self, wanted: Callable[[Shape], bool]) -> list[str]:
        """All values whose shape is wanted."""
        return [name for name, shape in self.shapes.items() if wanted(shape)]

    # -- growing ---------------------------------------------------------------------------------

    def fits(self, shape: Shape, macs: int = 0) -> bool:
        """Whether a value of this shape may be made."""
        return min(shape) > 0 and prod(shape) <= MOST_ELEMENTS and macs <= MOST_MACS

    def input(self, shape: Shape) -> str:
        """A graph input."""
        name = self.naming(len(self.shapes))
        self.shapes[name] = shape
        self.inputs.append(name)
        return name

    def constant(self, value: Any) -> str:
        """An initializer."""
        name = self.naming(10_000 + len(self.constants))
        self.constants[name] = np.asarray(value)
        return name

    def add(self, op: str, inputs: Sequence[str], shape: Shape, **attributes: Any) -> str:
        """A node with one result of this shape; "" is an input that is left out."""
        return self.add_many(op, inputs, [shape], **attributes)[0]

    def add_many(
        self, op: str, inputs: Sequence[str], shapes: Sequence[Shape], **attributes: Any
    ) -> list[str]:
        """A node with several results."""
        names = []
        for shape in shapes:
            name = self.naming(len(self.shapes))
            self.shapes[name] = tuple(int(size) for size in shape)
            names.append(name)
        self.nodes.append(helper.make_node(op, inputs, names, name=f"{op}_{len(self.nodes)}", **attributes))
        return names

    def readers(self) -> dict[str, list[onnx.NodeProto]]:
        """The nodes that read each activation."""
        found: dict[str, list[onnx.NodeProto]] = {name: [] for name in self.shapes}
        for node in self.nodes:
            for name in dict.fromkeys(node.input):
                if name in found:
                    found[name].append(node)
        return found

    def choose_outputs(self) -> None:
        """What nobody reads, as far as there is room; some of what is read; seldom an input as it came."""
        readers = self.readers()
        made = [name for name in self.shapes if name not in self.inputs]
        loose = [name for name in made if not readers[name]]
        self.outputs = loose[-MOST_OUTPUTS:]
        read = [name for name in made if readers[name]]
        if read and self.chance(0.25):
            self.outputs.append(str(self.pick(read)))
        if self.chance(0.04):
            self.outputs.insert(0, str(self.pick(self.inputs)))
        if self.chance(0.9):
            self.nodes = live_nodes(self.nodes, self.outputs)

    def used_inputs(self) -> list[str]:
        """The inputs that anything reads, in order."""
        read = {name for node in self.nodes for name in node.input} | set(self.outputs)
        return [name for name in self.inputs if name in read]

    def model(self, outputs: Sequence[str] | None = None) -> onnx.ModelProto:
        """The float model, with these outputs."""
        ends = list(self.outputs if outputs is None else outputs)
        return assemble(
            self.nodes,
            [(name, TensorProto.FLOAT, self.shapes[name]) for name in self.used_inputs()],
            [(name, TensorProto.FLOAT, self.shapes[name]) for name in ends],
            self.constants,
            self.opset,
        )


def live_nodes(nodes: Sequence[onnx.NodeProto], outputs: Iterable[str]) -> list[onnx.NodeProto]:
    """Those that the outputs depend on."""
    wanted = set(outputs)
    kept: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.output):
            wanted.update(node.input)
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
    """A model of nodes, without the constants that nobody reads."""
    read = {name for node in nodes for name in node.input}
    kept = {name: array for name, array in constants.items() if name in read}
    graph = helper.make_graph(
        list(nodes),
        "drawn",
        [helper.make_tensor_value_info(*info) for info in inputs],
        [helper.make_tensor_value_info(*info) for info in outputs],
        [numpy_helper.from_array(array, name) for name, array in kept.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
