"""A model under construction: ONNX nodes with the shapes of their results; tensors are images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from mcudeploy.extensions.training.training_definitions import training_functions
from mcudeploy.extensions.training.training_functions import (
    CLIP_MASK,
    MAX_POOL_TAPS,
    OPSET,
    TRAINING_DOMAIN,
    TRAINING_OPERATORS,
)
from mcudeploy.ir.graph import Shape

_IR_VERSION = 9
OnnxShape = tuple[int, ...]
ONNX_AXES = (2, 3, 1)
"""The axes of an image [1, C, H, W] that correspond to a tensor's rows, columns and channels."""


@dataclass(slots=True)
class NodeList:
    """Nodes, constants, inputs and outputs; every value has a known shape.

    `types`: element types of values that are not float32; `reserved`: names of the model's inputs and
    outputs, which `unused` leaves to them.
    """

    nodes: list[NodeProto] = field(default_factory=list)
    shapes: dict[str, OnnxShape] = field(default_factory=dict)
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    types: dict[str, int] = field(default_factory=dict)
    reserved: set[str] = field(default_factory=set)

    def add(self, op: str, inputs: Sequence[str], shape: OnnxShape, name: str = "", **attributes: Any) -> str:
        """Add a node of the training domain or of ONNX, and return its result, of this shape and `name`."""
        name = self.unused(name or f"{op}_{len(self.nodes)}")
        domain = TRAINING_DOMAIN if op in TRAINING_OPERATORS else ""
        self.nodes.append(helper.make_node(op, list(inputs), [name], name, domain=domain, **attributes))
        self.shapes[name] = shape
        return name

    def add_mask(self, value: str, low: float, high: float) -> str:
        """Add a node whose result is true where `value` is between the bounds."""
        name = self.unused(f"{value}_mask")
        node = helper.make_node(CLIP_MASK, [value], [name], name, domain=TRAINING_DOMAIN, low=low, high=high)
        self.nodes.append(node)
        self.shapes[name] = self.shapes[value]
        self.types[name] = TensorProto.BOOL
        return name

    def add_taps(self, value: str, shape: OnnxShape, **window: Any) -> str:
        """Add a node whose result is the index of the largest value of each window."""
        name = self.add(MAX_POOL_TAPS, [value], shape, f"{value}_taps", **window)
        self.types[name] = TensorProto.INT64
        return name

    def unused(self, wish: str) -> str:
        """A name that no value has: the wish, or a longer one."""
        while wish in self.shapes or wish in self.constants or wish in self.reserved:
            wish += "_"
        return wish

    def claimed(self, name: str) -> str:
        """Return a reserved name, for the value that is added next."""
        self.reserved.discard(name)
        return name

    def constant(self, value: NDArray[Any], name: str = "constant") -> str:
        """Add a constant and return its name."""
        name = self.unused(name)
        self.constants[name] = value
        return name

    def reals(self, value: NDArray[Any] | float, name: str = "constant") -> str:
        """Add a float32 constant."""
        return self.constant(np.asarray(value, np.float32), name)

    def zeros(self, shape: OnnxShape, name: str) -> str:
        """Add a float32 constant of zeros."""
        return self.constant(np.zeros(shape, np.float32), name)

    def input(self, name: str, shape: OnnxShape) -> str:
        """Add an input of the model."""
        name = self.unused(name)
        self.inputs.append(name)
        self.shapes[name] = shape
        return name

    def reshaped(self, value: str, shape: OnnxShape, name: str = "") -> str:
        """The value under another shape."""
        if self.shapes[value] == shape and not name:
            return value
        sizes = self.constant(np.array(shape, np.int64), "sizes")
        return self.add("Reshape", [value, sizes], shape, name)

    def transposed(self, value: str, perm: Sequence[int], name: str = "") -> str:
        """The value with permuted axes."""
        if list(perm) == sorted(perm) and not name:
            return value
        shape = tuple(self.shapes[value][axis] for axis in perm)
        return self.add("Transpose", [value], shape, name, perm=list(perm))

    def rows(self, image: str) -> str:
        """The values [1, H, W, C] of an image [1, C, H, W]."""
        return self.transposed(image, (0, 2, 3, 1))

    def image(self, value: str, shape: Shape) -> str:
        """The image of values in row-major order of a tensor's shape (rows, cols, channels)."""
        return self.transposed(self.reshaped(value, (1, *shape)), (0, 3, 1, 2))

    def part(self, image: str, start: Shape, size: Shape, name: str = "") -> str:
        """The rows, columns and channels of an image [1, C, H, W] from `start` on."""
        ends = [first + count for first, count in zip(start, size, strict=True)]
        bounds = [self.constant(np.array(each, np.int64), "bounds") for each in (start, ends, (2, 3, 1))]
        rows, cols, channels = size
        return self.add("Slice", [image, *bounds], (1, channels, rows, cols), name)

    def padded(self, image: str, margins: tuple[Shape, Shape], value: float = 0.0, name: str = "") -> str:
        """An image [1, C, H, W] with rows, columns and channels of a value before and after it."""
        before, after = (image_shape(margin) for margin in margins)
        before, after = (0, *before[1:]), (0, *after[1:])
        shape = tuple(sum(sizes) for sizes in zip(self.shapes[image], before, after, strict=True))
        pads = self.constant(np.array([*before, *after], np.int64), "pads")
        return self.add("Pad", [image, pads, self.reals(value, "padding")], shape, name)

    def model(self, name: str) -> ModelProto:
        """The model of all nodes."""
        interface = {*self.inputs, *self.outputs}
        graph = helper.make_graph(
            self.nodes,
            name,
            [self._info(it) for it in self.inputs],
            [self._info(it) for it in self.outputs],
            [numpy_helper.from_array(array, it) for it, array in self.constants.items()],
            value_info=[self._info(it) for it in self.shapes if it not in interface],
        )
        opsets = [helper.make_opsetid("", OPSET)]
        used = {node.op_type for node in self.nodes if node.domain == TRAINING_DOMAIN}
        functions = [it for it in training_functions() if it.name in used]
        if functions:
            opsets.append(helper.make_opsetid(TRAINING_DOMAIN, 1))
        return helper.make_model(
            graph,
            opset_imports=opsets,
            functions=functions,
            ir_version=_IR_VERSION,
            producer_name="mcudeploy",
        )

    def _info(self, name: str) -> ValueInfoProto:
        kind = self.types.get(name, TensorProto.FLOAT)
        return helper.make_tensor_value_info(name, kind, self.shapes[name])


class NotTrainable(Exception):  # noqa: N818 -- not an error but a verdict about one operator
    """An operator that no training step supports; the message is the reason shown to the user."""


def image_shape(shape: Shape) -> OnnxShape:
    """(rows, cols, channels) -> [1, channels, rows, cols]."""
    rows, cols, channels = shape
    return 1, channels, rows, cols
