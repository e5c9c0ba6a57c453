"""An ONNX model as the front end reads it: checked plain values; protobufs of nodes serve folding alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite, prod

import numpy as np
import onnx
from numpy.typing import NDArray

from mcudeploy.common.text import printable
from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.frontend.onnx.rounding import ExactRounding
from mcudeploy.frontend.onnx.states import KeptState
from mcudeploy.ir.graph import Declared

MAX_TENSOR_ELEMENTS = 1 << 24
"""Limit of the elements of a tensor, far above that of any model for a microcontroller."""

MAX_TOTAL_ELEMENTS = 1 << 26
"""Limit of the elements of all activations of the file together."""

MAX_MADE_ELEMENTS = 1 << 28
"""Limit of the elements of all tensors of a program, some of which the file does not have."""

MAX_RANK = 32
"""Number of dimensions of an array that all versions of numpy allow."""

_Listed = tuple[int, ...] | tuple[float, ...] | tuple[str, ...]
Attribute = int | float | str | _Listed | NDArray[np.generic] | None


class Unsupported(Exception):  # noqa: N818 -- the caller continues, and reports all such nodes together
    """A node is unsupported; the message is the reason that the user reads."""


@dataclass(frozen=True, slots=True)
class Info:
    """Facts about a value before lowering. `dtype` is a numpy name; `shape` is None if unknown."""

    name: str
    shape: tuple[int, ...] | None
    dtype: str


Infos = Mapping[str, Info]
"""Shapes and element types of values by name, as far as they are known."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A node. `label` is its name, or "#index" if the file has none. "" stands for an omitted input."""

    label: str
    op: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    proto: onnx.NodeProto = field(repr=False)

    @property
    def output(self) -> str:
        return self.outputs[0]

    def input(self, position: int) -> str:
        """The name of an input, "" if it is left out."""
        return self.inputs[position] if position < len(self.inputs) else ""

    def integer(self, name: str, default: int) -> int:
        """An integer attribute. Raises Unsupported if the file holds another type."""
        value = self.attributes.get(name, default)
        if not isinstance(value, int):
            raise Unsupported(f"attribute {name} is not an integer")
        return value

    def number(self, name: str, default: float) -> float:
        """A float attribute. Raises Unsupported if the file holds another type, infinity or NaN."""
        value = self.attributes.get(name, default)
        if not isinstance(value, int | float) or not isfinite(value):
            raise Unsupported(f"attribute {name} is not a finite number")
        return float(value)

    def text(self, name: str, default: str) -> str:
        """A string attribute. Raises Unsupported if the file holds another type."""
        value = self.attributes.get(name, default)
        if not isinstance(value, str):
            raise Unsupported(f"attribute {name} is not a string")
        return value

    def integers(self, name: str) -> tuple[int, ...] | None:
        """A list of integers, None if it is left out. Raises Unsupported if it is something else."""
        value = self.attributes.get(name)
        if value is None:
            return None
        if not isinstance(value, tuple) or not all(isinstance(item, int) for item in value):
            raise Unsupported(f"attribute {name} is not a list of integers")
        return tuple(int(item) for item in value)


@dataclass(frozen=True, slots=True, eq=False)
class ParsedFile:
    """The unchecked model of a file."""

    proto: onnx.ModelProto
    refusals: Mapping[str, str] = field(default_factory=dict)
    """By node label, why ONNX cannot express a node."""
    states: tuple[KeptState, ...] = ()
    """Tensors that the model keeps between runs."""
    functions: tuple[onnx.FunctionProto, ...] = ()
    """Definitions of operators that ONNX lacks."""
    notes: tuple[str, ...] = ()
    """Messages for the user."""
    declared: Mapping[str, Declared] = field(default_factory=dict)
    """By name, inputs and outputs that are integers in the file and floats here."""
    roundings: Mapping[str, ExactRounding] = field(default_factory=dict)
    """By node label, the rounding of the file that ONNX leaves to a QuantizeLinear."""


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """Entry `number` of the value `whole` of the file, which has `batch` entries."""

    whole: str
    number: int
    batch: int


@dataclass(frozen=True, slots=True, eq=False)
class OnnxModel:
    """A checked model. Nodes are in topological order, inputs and outputs in the file's order."""

    name: str
    opset: int
    nodes: tuple[Node, ...]
    constants: Mapping[str, Constant]
    inputs: tuple[Info, ...]
    outputs: tuple[Info, ...]
    infos: Mapping[str, Info]
    notes: tuple[str, ...] = ()
    """Assumptions of the reader, for the user."""
    introduced: frozenset[str] = frozenset()
    """Names of values that are not in the file."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """By node label, why no ONNX operators can replace the node."""
    file_ops: Mapping[str, str] = field(default_factory=dict)
    """By node label, the operator that the node has in the file."""
    file_types: Mapping[str, str] = field(default_factory=dict)
    """By name, the element type in the file of a value that is computed in another type."""
    states: tuple[KeptState, ...] = ()
    """Tensors kept between runs."""
    entries: Mapping[str, BatchEntry] = field(default_factory=dict)
    """By name, values that are entries of batches."""
    declared: Mapping[str, Declared] = field(default_factory=dict)
    """By name, inputs and outputs that are integers in the file and floats here."""
    roundings: Mapping[str, ExactRounding] = field(default_factory=dict)
    """By node label, the rounding of the file that ONNX leaves to a QuantizeLinear."""
    off_by_one: frozenset[str] = frozenset()
    """Names of values of int16 that may differ by one from the reference, which computes them in float32."""

    def dtype_of(self, name: str) -> str:
        """The element type of a value, a numpy name. Raises Unsupported if nothing states it."""
        info = self.infos.get(name)
        if info is None or info.dtype == "undefined":
            raise Unsupported(
                f"the element type of {printable(name)!r} is not known; export the model with it"
            )
        return info.dtype

    def producers(self) -> dict[str, Node]:
        """The node that writes each value."""
        return {name: node for node in self.nodes for name in node.outputs if name}

    def consumers(self) -> dict[str, list[Node]]:
        """The nodes that read each value, each once, in order."""
        readers: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                if name:
                    readers.setdefault(name, []).append(node)
        return readers


def require_bounded(shape: tuple[int, ...], label: str) -> None:
    """Raise Unsupported for shapes with no or too many elements, before they are allocated."""
    if any(size <= 0 for size in shape):
        raise Unsupported(f"{label} has the shape {list(shape)}, which holds no elements")
    if prod(shape) > MAX_TENSOR_ELEMENTS:
        raise Unsupported(
            f"{label} has the shape {list(shape)}; the limit is {MAX_TENSOR_ELEMENTS} elements per tensor"
        )
