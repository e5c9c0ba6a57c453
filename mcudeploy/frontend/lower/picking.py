"""Nodes that select elements of a value by constants, as index arrays."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.onnx.constants import integers_of
from mcudeploy.frontend.onnx.nodes import Node, Unsupported, require_bounded
from mcudeploy.frontend.onnx.values import IndexArray

Rule = Callable[[Builder, Node, IndexArray], IndexArray]


def axis_of(node: Node, rank: int, name: str = "axis", default: int = 0) -> int:
    """An attribute that is an axis, normalised to [0, rank). Raises Unsupported if it is out of range."""
    axis = node.integer(name, default)
    if not -rank <= axis < rank:
        raise Unsupported(f"{name} {axis} is outside {rank} dimensions")
    return axis % rank


def _indices(builder: Builder, node: Node) -> NDArray[np.int64]:
    wanted = builder.constant(node.input(1), "the indices").value
    if wanted.dtype.kind not in "iu":
        raise Unsupported(f"its indices are {wanted.dtype}, not integers")
    return wanted.astype(np.int64)


def _inside(wanted: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    if wanted.size and (wanted.min() < -size or wanted.max() >= size):
        raise Unsupported(f"indices are outside an axis of {size}")
    return wanted % size


def _gather(builder: Builder, node: Node, index: IndexArray) -> IndexArray:
    axis, wanted = axis_of(node, index.ndim), _indices(builder, node)
    require_bounded((wanted.size, index.size // index.shape[axis]), "its result")
    return np.take(index, _inside(wanted, index.shape[axis]), axis=axis)


def _gather_elements(builder: Builder, node: Node, index: IndexArray) -> IndexArray:
    axis, wanted = axis_of(node, index.ndim), _indices(builder, node)
    if wanted.ndim != index.ndim:
        raise Unsupported(f"its indices have {wanted.ndim} dimensions, its input {index.ndim}")
    part = index[tuple(slice(size if place != axis else None) for place, size in enumerate(wanted.shape))]
    return np.take_along_axis(part, _inside(wanted, index.shape[axis]), axis=axis)


def _gather_nd(builder: Builder, node: Node, index: IndexArray) -> IndexArray:
    batch, wanted = node.integer("batch_dims", 0), _indices(builder, node)
    depth = wanted.shape[-1]
    if not 0 <= batch < min(wanted.ndim, index.ndim) or batch + depth > index.ndim:
        raise Unsupported(f"indices {list(wanted.shape)} do not fit {list(index.shape)}")
    if wanted.shape[:batch] != index.shape[:batch]:
        raise Unsupported(f"{batch} batch dimensions of {list(wanted.shape)} and {list(index.shape)} differ")
    require_bounded((wanted.size // depth, prod(index.shape[batch + depth :])), "its result")
    outer = np.indices(wanted.shape[:-1])[:batch]
    places = [_inside(wanted[..., place], index.shape[batch + place]) for place in range(depth)]
    return np.asarray(index[(*outer, *places)])


def _slice(builder: Builder, node: Node, index: IndexArray) -> IndexArray:
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
    """Clamp as ONNX does and Python does not: an end below the first element of a falling range is -1."""
    start = start + size if start < 0 else start
    end = end + size if end < 0 else end
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return slice(start, None if end == -1 else end, step)


def _expand(builder: Builder, node: Node, index: IndexArray) -> IndexArray:
    wanted = integers_of(builder.constant(node.input(1), "the shape"))
    shape = np.broadcast_shapes(tuple(wanted), index.shape)
    require_bounded(shape, "its result")
    return np.broadcast_to(index, shape)


def _tile(builder: Builder, node: Node, index: IndexArray) -> IndexArray:
    times = integers_of(builder.constant(node.input(1), "the repeats"))
    if len(times) != index.ndim or min(times, default=1) < 0:
        raise Unsupported(f"repeats {times} do not fit {index.ndim} dimensions")
    made = tuple(size * count for size, count in zip(index.shape, times, strict=True))
    require_bounded(made, "its result")
    return np.tile(index, times)


def _reverse_sequence(builder: Builder, node: Node, index: IndexArray) -> IndexArray:
    batch, time = (axis_of(node, index.ndim, f"{name}_axis", at) for name, at in (("batch", 1), ("time", 0)))
    lengths = integers_of(builder.constant(node.input(1), "the lengths"))
    if batch == time or len(lengths) != index.shape[batch]:
        raise Unsupported(f"{len(lengths)} lengths do not fit {list(index.shape)}")
    lines = np.moveaxis(index, (batch, time), (0, 1)).copy()
    for line, length in zip(lines, lengths, strict=True):
        if not 0 <= length <= len(line):
            raise Unsupported(f"a length of {length} is beyond an axis of {len(line)}")
        line[:length] = line[:length][::-1].copy()
    return np.moveaxis(lines, (0, 1), (batch, time))


PICKS: dict[str, Rule] = {
    "Expand": _expand,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "ReverseSequence": _reverse_sequence,
    "Slice": _slice,
    "Tile": _tile,
}
"""The index array of a node's result, from its input's."""


def picked(builder: Builder, node: Node, index: IndexArray) -> IndexArray:
    """The index array of a node's result. Raises Unsupported if it does not fit."""
    return np.asarray(PICKS[node.op](builder, node, index), np.int32)
