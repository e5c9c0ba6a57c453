"""Batches of images: operators whose kernels compute one image are repeated for each entry of the batch.

Later operators that compute each entry separately are repeated too, so that they are fused and quantised as
for one image. All entries share the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from mcudeploy.frontend.onnx.nodes import BatchEntry, Infos
from mcudeploy.frontend.onnx.protos import (
    ONNX_DOMAINS,
    attribute_of,
    computed_values,
    constants_of,
    copy_of,
    refill,
)
from mcudeploy.frontend.onnx.scalar_functions import FUNCTIONS, OPERATIONS
from mcudeploy.frontend.onnx.tensors import array_of
from mcudeploy.frontend.onnx.values import MAX_BATCH

_OF_IMAGES = frozenset((
    "AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "GlobalAveragePool", "GlobalMaxPool",
    "MaxPool", "Resize",
))  # fmt: skip
"""Operators whose kernels compute one image."""

_ELEMENTWISE = frozenset({*FUNCTIONS, *OPERATIONS, "Cast", "Identity", "Where"})
_VIEWS = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})


@dataclass(frozen=True, slots=True, eq=False)
class EntryModel:
    """A model with operators for each entry; `entries`: by name, the values that are entries of batches."""

    proto: ModelProto
    entries: Mapping[str, BatchEntry]


def by_entry(proto: ModelProto, infos: Infos) -> EntryModel:
    """Repeat operators for each entry of a batch of images; return the model itself if there is no batch.

    `infos` are by value name.
    """
    sizes = {name: info.shape for name, info in infos.items() if info.shape is not None}
    sizes |= {tensor.name: tuple(tensor.dims) for tensor in proto.graph.initializer}
    if not any(_computes_images(node, sizes) for node in proto.graph.node):
        return EntryModel(proto, {})
    batches = _Batches(sizes, computed_values(proto), constants_of(proto.graph))
    for node in proto.graph.node:
        batches.add(node)
    for value in proto.graph.output:
        batches.join(value.name)
    result = copy_of(proto)
    refill(result.graph.node, batches.nodes)
    result.graph.initializer.extend(batches.constants)
    entries = {
        part: BatchEntry(whole, number, len(parts))
        for whole, parts in batches.entries.items()
        for number, part in enumerate(parts)
    }
    return EntryModel(result, entries)


def _computes_images(node: NodeProto, sizes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether a node is an operator of _OF_IMAGES on a batch of several images."""
    shape = sizes.get(node.input[0], ()) if node.input else ()
    outputs = len([name for name in node.output if name])
    of_images = node.domain in ONNX_DOMAINS and node.op_type in _OF_IMAGES
    return of_images and outputs == 1 and len(shape) > 2 and 1 < shape[0] <= MAX_BATCH


@dataclass(slots=True)
class _Batches:
    """Collects the nodes of the model. `entries`: for a value that exists by entry, the names of its entries.

    `joined`: values that exist as a whole too.
    """

    sizes: Mapping[str, tuple[int, ...]]
    computed: set[str]
    known: Mapping[str, TensorProto]
    nodes: list[NodeProto] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)
    entries: dict[str, list[str]] = field(default_factory=dict)
    joined: set[str] = field(default_factory=set)

    def add(self, node: NodeProto) -> None:
        """Add a node, unchanged or once for each entry."""
        images = _computes_images(node, self.sizes)
        follows = any(name in self.entries for name in node.input)
        batch = self.sizes[node.input[0]][0] if images else 0
        if follows and not images:
            batch = next(len(self.entries[name]) for name in node.input if name in self.entries)
        if batch and self._by_entry(node, batch, images=images):
            return
        for name in node.input:
            self.join(name)
        self.nodes.append(node)

    def join(self, name: str) -> None:
        """Add a Concat that makes the whole of a value that exists only by entry."""
        if name not in self.entries or name in self.joined:
            return
        self.joined.add(name)
        label = self._label(name)
        self.nodes.append(helper.make_node("Concat", self.entries[name], [name], name=label, axis=0))

    def _label(self, name: str) -> str:
        first = self.entries[name][0]
        return next(node.name for node in self.nodes if first in node.output)

    def _by_entry(self, node: NodeProto, batch: int, *, images: bool) -> bool:
        """Add a node for each entry; return False if the node does not compute each entry separately."""
        activations = [name for name in node.input if name in self.computed]
        results = [name for name in node.output if name]
        sizes = [self.sizes.get(name, ()) for name in (*activations, *results)]
        is_onnx = node.domain in ONNX_DOMAINS and node.output[0]
        if not is_onnx or any(not shape or shape[0] != batch for shape in sizes):
            return False
        for_entry = self._for_entry(node, images=images)
        if for_entry is None:
            return False
        for name in activations:
            self._split(name, batch, node.name)
        entries = {name: [f"{name}/entry {at}" for at in range(batch)] for name in results}
        for at in range(batch):
            copy = copy_of(for_entry)
            copy.input[:] = [self.entries[it][at] if it in activations else it for it in for_entry.input]
            copy.output[:] = [entries[name][at] if name else "" for name in node.output]
            self.nodes.append(copy)
        self.entries |= entries
        return True

    def _split(self, name: str, batch: int, label: str) -> None:
        if name in self.entries:
            return
        self.entries[name] = [f"{name}/entry {k}" for k in range(batch)]
        self.joined.add(name)
        parts = self._constant(f"{name}/entries", [1] * batch)
        self.nodes.append(helper.make_node("Split", [name, parts], self.entries[name], name=label, axis=0))

    def _constant(self, name: str, numbers: Sequence[int]) -> str:
        self.constants.append(numpy_helper.from_array(np.array(numbers, np.int64), name))
        return name

    def _for_entry(self, node: NodeProto, *, images: bool) -> NodeProto | None:
        """The node for one entry; None if the node does not compute each entry separately."""
        shape, rank = self.sizes[node.output[0]], len(self.sizes[node.output[0]])
        if node.op_type in _VIEWS:
            one = self._constant(f"{node.output[0]}/one", [1, *shape[1:]])
            return helper.make_node("Reshape", [node.input[0], one], node.output, name=node.name)
        if node.op_type == "Resize" and len(node.input) > 3 and node.input[3]:
            return self._resize(node)
        if images:
            return node
        if node.op_type in _ELEMENTWISE:
            return node if self._broadcasts(node, rank) else None
        is_separate = _SEPARATE.get(node.op_type)
        return node if is_separate is not None and is_separate(node, self) else None

    def _resize(self, node: NodeProto) -> NodeProto | None:
        """The Resize for one entry, whose sizes state a batch of 1."""
        sizes = self.numbers(node.input[3])
        if len(sizes) != len(self.sizes[node.output[0]]):
            return node if sizes else None  # sizes of some axes
        copy = copy_of(node)
        copy.input[3] = self._constant(f"{node.output[0]}/size", [1, *sizes[1:]])
        return copy

    def numbers(self, name: str) -> tuple[int, ...]:
        """The numbers of a constant; an empty tuple for a computed value."""
        numbers = self.known.get(name)
        return () if numbers is None else tuple(array_of(numbers).reshape(-1).tolist())

    def _broadcasts(self, node: NodeProto, rank: int) -> bool:
        """Whether all activations have the rank of the result, and no constant differs between entries."""
        for name in filter(None, node.input):
            shape = self.sizes.get(name)
            if shape is None or (name in self.computed and len(shape) != rank):
                return False
            if name not in self.computed and len(shape) == rank and shape[0] != 1:
                return False
        return True


def _along_other_axis(default: int) -> Callable[[NodeProto, _Batches], bool]:
    """Rule for operators along one axis, which must not be that of the batch."""

    def rule(node: NodeProto, batches: _Batches) -> bool:
        rank = len(batches.sizes.get(node.input[0], ()))
        computed = all(name in batches.computed for name in node.input[:1])
        return computed and attribute_of(node, "axis", default) not in (0, -rank)

    return rule


def _concat(node: NodeProto, batches: _Batches) -> bool:
    return all(name in batches.computed for name in node.input) and _along_other_axis(0)(node, batches)


def _transpose(node: NodeProto, batches: _Batches) -> bool:
    return bool(attribute_of(node, "perm", [])[:1] == [0])


def _quantized(node: NodeProto, batches: _Batches) -> bool:
    """Whether the tensor has one scale."""
    return all(int(np.prod(batches.sizes.get(name, (2,)))) == 1 for name in node.input[1:] if name)


def _pad(node: NodeProto, batches: _Batches) -> bool:
    """Whether the batch is not padded."""
    pads = batches.numbers(node.input[1])
    return len(node.input) < 4 and len(pads) > 0 and pads[0] == 0 == pads[len(pads) // 2]


def _slice(node: NodeProto, batches: _Batches) -> bool:
    """Whether axes are given and exclude the batch."""
    axes = batches.numbers(node.input[3]) if len(node.input) > 3 else ()
    rank = len(batches.sizes[node.input[0]])
    return len(axes) > 0 and all(axis % rank for axis in axes)


def _reduction(node: NodeProto, batches: _Batches) -> bool:
    """Whether axes are kept: as input and output have the same batch, it is not reduced then."""
    return bool(attribute_of(node, "keepdims", 1) == 1)


def _gemm(node: NodeProto, batches: _Batches) -> bool:
    third = batches.sizes.get(node.input[2], ()) if len(node.input) > 2 else ()
    if attribute_of(node, "transA", 0) or any(name in batches.computed for name in node.input[1:]):
        return False
    return len(third) < 2 or third[0] == 1


def _matmul(node: NodeProto, batches: _Batches) -> bool:
    first, second = (len(batches.sizes.get(name, ())) for name in node.input[:2])
    if node.input[0] in batches.computed and node.input[1] not in batches.computed:
        return second == 2
    return node.input[0] in batches.computed and first == second > 2


_SEPARATE: dict[str, Callable[[NodeProto, _Batches], bool]] = {
    "Concat": _concat,
    "DequantizeLinear": _quantized,
    "Dropout": lambda node, batches: len(node.output) == 1,
    "Gather": _along_other_axis(0),
    "Gemm": _gemm,
    "LayerNormalization": _along_other_axis(-1),
    "LogSoftmax": _along_other_axis(-1),
    "MatMul": _matmul,
    "Pad": _pad,
    "QuantizeLinear": _quantized,
    "ReduceMax": _reduction,
    "ReduceMean": _reduction,
    "ReduceMin": _reduction,
    "ReduceSum": _reduction,
    "Slice": _slice,
    "Softmax": _along_other_axis(-1),
    "Split": _along_other_axis(0),
    "Transpose": _transpose,
}
"""Functions that return whether a node computes each entry separately.

The first axis of its input and output has the size of the batch.
"""
