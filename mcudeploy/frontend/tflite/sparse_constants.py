"""Conversion of the sparse constants of .tflite files to dense ones.

The file stores a tree. Each level is an axis of the tensor, or an axis inside a block of it, in the file's
order. A dense level has all places, a sparse level the places of a list (compressed sparse rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

_Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TreeLevel:
    """A level of the tree. A dense level has `size` places below each node.

    In a sparse level, node n has the places indices[segments[n] : segments[n + 1]]. A level inside a block is
    dense.
    """

    size: int
    segments: _Integers | None = None
    indices: _Integers | None = None


@dataclass(frozen=True, slots=True)
class Sparsity:
    """The way in which the values of a sparse tensor are stored.

    `order`: the axis of each level; numbers from the tensor's rank on are axes inside a block. `blocked`: for
    each axis inside a block, the axis of the tensor that it divides.
    """

    order: tuple[int, ...]
    blocked: tuple[int, ...]
    levels: tuple[TreeLevel, ...]

    def dense(self, values: NDArray[np.generic], shape: Sequence[int]) -> NDArray[np.generic]:
        """The dense tensor of a shape. Raises ValueError if the tree does not fit the shape or the values."""
        rank = len(shape)
        axes = rank + len(self.blocked)
        if sorted(self.order) != list(range(axes)) or len(self.levels) != axes:
            raise ValueError(f"{len(self.levels)} levels in the order {list(self.order)} for {rank} axes")
        if any(not 0 <= axis < rank for axis in self.blocked):
            raise ValueError(f"blocks of the axes {list(self.blocked)} of {rank}")
        nodes: _Integers = np.zeros(1, np.int64)
        places: dict[int, _Integers] = {}
        for axis, level in zip(self.order, self.levels, strict=True):
            parents, nodes, axis_places = _below(nodes, level, prod(shape))
            places = {known: each[parents] for known, each in places.items()} | {axis: axis_places}
        if len(nodes) != values.size:
            raise ValueError(f"the tree has {len(nodes)} leaves for {values.size} values")
        sizes = {axis: level.size for axis, level in zip(self.order, self.levels, strict=True)}
        for axis, size in enumerate(shape):
            block = prod(sizes[at] for at, divided in enumerate(self.blocked, start=rank) if divided == axis)
            if block < 1 or (sizes[axis] and sizes[axis] * block != size):
                raise ValueError(f"blocks of {block} do not fit axis {axis} of {list(shape)}")
        at = [places[axis] for axis in range(rank)]
        for inside, axis in enumerate(self.blocked, start=rank):
            at[axis] = at[axis] * sizes[inside] + places[inside]
        if any(
            each.size and not 0 <= each.min() <= each.max() < size
            for each, size in zip(at, shape, strict=True)
        ):
            raise ValueError(f"a value lies outside {list(shape)}")
        if len(np.unique(np.ravel_multi_index(at, shape))) != values.size:
            raise ValueError("two values have one place")
        dense = np.zeros(shape, values.dtype)
        dense[tuple(at)] = values[nodes]
        return dense


def _below(nodes: _Integers, level: TreeLevel, limit: int) -> tuple[_Integers, _Integers, _Integers]:
    """Return, for each node below `nodes`, the position of its parent, its number, and its place.

    Raises ValueError if there are more than `limit`, the number of elements.
    """
    if level.segments is None or level.indices is None:
        if not level.size >= 0 or len(nodes) * level.size > limit:
            raise ValueError(f"a level has {len(nodes)} times {level.size} nodes for {limit} elements")
        places = np.tile(np.arange(level.size), len(nodes))
        parents = np.repeat(np.arange(len(nodes)), level.size)
        return parents, nodes[parents] * level.size + places, places
    segments = level.segments
    if nodes.size and nodes.max() + 1 >= segments.size:
        raise ValueError(f"a level has {segments.size} segments for {nodes.max() + 1} nodes")
    begins, ends = segments[nodes], segments[nodes + 1]
    counts = ends - begins
    if np.any(counts < 0) or np.any(begins < 0) or np.any(ends > level.indices.size):
        raise ValueError("the segments of a level do not rise, or end beyond its indices")
    if counts.sum() > limit:
        raise ValueError(f"a level has {counts.sum()} nodes for {limit} elements")
    parents = np.repeat(np.arange(len(nodes)), counts)
    firsts = np.cumsum(counts) - counts
    numbers = np.arange(counts.sum()) - firsts[parents] + begins[parents]
    return parents, numbers, level.indices[numbers]
