"""Slice, Split, Gather with constant indices: parts of a value, as slices of what is stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.builder import Builder
from mcudeploy.frontend.constants import integers_of
from mcudeploy.frontend.model import Node, Unsupported
from mcudeploy.frontend.values import (
    IndexArray,
    Value,
    coordinates,
    default_layout,
    natural_shape,
    nested_runs,
    scattered,
)
from mcudeploy.ir.graph import Shape
from mcudeploy.ops.move import Slice


def part(builder: Builder, value: Value, index: IndexArray, node: Node) -> Value:
    """The elements of a value that `index` (positions in its tensor) names, as a Slice of the tensor.

    Behind a transposition of its own where they do not lie regularly in the tensor, but do in the value.
    Raises Unsupported where they are no regular part of either.
    """
    if index.size == 0:
        raise Unsupported("its result holds no elements")
    if index.size == builder.tensors[value.tensor].elements:
        return replace(value, index=index)
    made = _sliced(builder, value, index, node) or _sliced(
        builder, *_in_own_order(builder, value, index), node
    )
    if made is None:
        raise Unsupported("it takes elements that do not lie regularly in memory")
    return made


def _sliced(builder: Builder, value: Value, index: IndexArray, node: Node) -> Value | None:
    source = builder.tensors[value.tensor]
    for shape in dict.fromkeys(
        (source.shape, natural_shape(value.shape), *_slice_shapes(index, source.shape))
    ):
        found = regular(index, shape)
        if found is None:
            continue
        op, places = found
        tensor = builder.viewed(value.tensor, shape)
        quantization = source.quantization
        made = builder.emit(op, (tensor,), op.out_shape, source.dtype, quantization, nodes=(node,))
        return replace(value, tensor=made, index=places)
    return None


def _slice_shapes(index: IndexArray, stored: Shape) -> Iterator[Shape]:
    """The stored shape under which these positions may be a slice: channels of groups, such as shuffled ones.

    It keeps the rows where it can, so that these can still be cut.
    """
    runs = nested_runs(_distinct(index))
    if runs is None or len(runs) not in (2, 3):
        return
    elements, channels, outer = prod(stored), runs[1][1], runs[-1][1]
    if elements % outer or outer % channels:
        return
    rows, cols = elements // outer, outer // channels
    yield (
        (stored[0], rows // stored[0], channels)
        if cols == 1 and rows % stored[0] == 0
        else (rows, cols, channels)
    )


def _in_own_order(builder: Builder, value: Value, index: IndexArray) -> tuple[Value, IndexArray]:
    """The value in a layout without detours, and where the positions `index` are there.

    Raises Unsupported where no transposition gives that layout.
    """
    stored, places = default_layout(value.shape)
    wanted = np.asarray(scattered(places, stored, value.index), np.int32)
    tensor = builder.arranged(value.tensor, wanted)
    moved = np.empty(value.index.size, np.int32)
    moved[value.index.reshape(-1)] = places.reshape(-1)
    return replace(value, tensor=tensor, index=places), moved[index]


def regular(index: IndexArray, shape: Shape) -> tuple[Slice, IndexArray] | None:
    """The Slice of a tensor of `shape` that has just these positions, and where they are in its result."""
    starts, steps, sizes, places = [], [], [], []
    for place in coordinates(index, shape):
        flat = place.reshape(-1)
        kept = _distinct(flat)
        step = int(kept[1] - kept[0]) if kept.size > 1 else 1
        if kept.size > 1 and np.any(np.diff(kept) != step):
            return None
        falling = kept.size > 1 and flat[0] > flat[-1]
        starts.append(int(kept[-1] if falling else kept[0]))
        steps.append(-step if falling else step)
        sizes.append(int(kept.size))
        places.append((place - starts[-1]) // steps[-1])
    made: Shape = (sizes[0], sizes[1], sizes[2])
    if sizes[0] * sizes[1] * sizes[2] != index.size:
        return None
    op = Slice((starts[0], starts[1], starts[2]), (steps[0], steps[1], steps[2]), made)
    return op, np.ravel_multi_index(tuple(places), made).astype(np.int32)


def _distinct(places: NDArray[np.signedinteger]) -> IndexArray:
    """The positions that occur, in order: np.unique takes seconds for millions."""
    return np.flatnonzero(np.bincount(places.reshape(-1))).astype(np.int32)


def _chosen(builder: Builder, node: Node, index: IndexArray) -> IndexArray:
    """The index array behind a Slice or Gather."""
    if node.op == "Gather":
        axis = node.integer("axis", 0)
        wanted = builder.constant(node.input(1), "the indices").value
        if not -index.ndim <= axis < index.ndim or wanted.dtype.kind not in "iu":
            raise Unsupported(f"axis {axis} is outside {index.ndim} dimensions")
        size = index.shape[axis]
        if wanted.size and (wanted.min() < -size or wanted.max() >= size):
            raise Unsupported(f"indices are outside an axis of {size}")
        return np.asarray(np.take(index, wanted.astype(np.int64) % size, axis=axis), np.int32)
    starts, ends = (integers_of(builder.constant(node.input(k), "the range")) for k in (1, 2))
    axes = list(range(len(starts)))
    if node.input(3):
        axes = integers_of(builder.constant(node.input(3), "the axes"))
    steps = [1] * len(starts)
    if node.input(4):
        steps = integers_of(builder.constant(node.input(4), "the steps"))
    ranges = [slice(None)] * index.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if not -index.ndim <= axis < index.ndim or step == 0:
            raise Unsupported(f"axis {axis} step {step} does not fit {index.ndim} dimensions")
        ranges[axis] = _range(start, end, step, index.shape[axis])
    return index[tuple(ranges)]


def _range(start: int, end: int, step: int, size: int) -> slice:
    """ONNX clamps where Python does not: an end below the first element of a falling range is -1."""
    start = start + size if start < 0 else start
    end = end + size if end < 0 else end
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return slice(start, None if end == -1 else end, step)


def pick(builder: Builder, node: Node) -> None:
    """Slice, and Gather with constant indices."""
    value = builder.value(node.inputs[0])
    builder.define(node.output, part(builder, value, _chosen(builder, node, value.index), node))


def real_pick(builder: Builder, node: Node) -> Value:
    """The same on a float tensor."""
    value = builder.real(node.inputs[0])
    return part(builder, value, _chosen(builder, node, value.index), node)


def split(builder: Builder, node: Node) -> None:
    """One Slice for each output that something reads."""
    value = builder.value(node.inputs[0])
    axis = node.integer("axis", 0)
    if not -value.index.ndim <= axis < value.index.ndim:
        raise Unsupported(f"axis {axis} is outside {value.index.ndim} dimensions")
    size, count = value.shape[axis], len(node.outputs)
    if node.input(1):
        sizes = integers_of(builder.constant(node.input(1), "the sizes"))
    else:
        each = -(-size // count)
        sizes = [each] * (count - 1) + [size - each * (count - 1)]
    if sum(sizes) != size or min(sizes) < 1 or len(sizes) != count:
        raise Unsupported(f"sizes {sizes} do not fit an axis of {size}")
    first = 0
    for name, length in zip(node.outputs, sizes, strict=True):
        if name and (name in builder.consumers or name in builder.outputs):
            index = np.take(value.index, np.arange(first, first + length), axis=axis)
            builder.define(name, part(builder, value, index, node))
        first += length
