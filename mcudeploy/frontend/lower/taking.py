"""Operators that select elements of a tensor in any order, with repetitions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.onnx.values import IndexArray, coordinates, default_layout
from mcudeploy.ir.graph import Shape
from mcudeploy.ops.move.depth_to_space import DepthToSpace
from mcudeploy.ops.move.take import Gather, Positions, Take

Selection = Take | DepthToSpace | Gather
Coordinates = tuple[NDArray[np.intp], ...]


def taking(wanted: IndexArray, shape: Shape) -> Take | Gather:
    """The operator that selects the positions `wanted` of a tensor of `shape`; `wanted` has its out shape."""
    places = coordinates(wanted, shape)
    varying = _varying(places)
    if all(varying[axis] <= {axis} for axis in range(3)):
        rows, cols, channels = (_table(places[axis], [axis]) for axis in range(3))
        return Take(rows, cols, channels)
    rows_cols_channels = wanted.shape[0], wanted.shape[1], wanted.shape[2]
    return Gather(tuple(wanted.reshape(-1).tolist()), rows_cols_channels)


def depth_to_space(wanted: IndexArray, shape: Shape) -> DepthToSpace | None:
    """The operator that turns channels of a tensor of `shape` into the pixels `wanted`, or None."""
    size, depth = (wanted.shape[0], wanted.shape[1]), wanted.shape[2]
    pixels = shape[2] // depth
    if pixels < 2 or shape[2] % depth:
        return None
    rows, cols, channels = coordinates(wanted, shape)
    corner = channels[0, 0]
    run = int(np.flatnonzero(np.diff(corner, append=-1) != 1)[0]) + 1
    divisors = [count for count in range(1, pixels + 1) if pixels % count == 0] if depth % run == 0 else []
    for block_rows in divisors:
        block_cols = pixels // block_rows
        row, col = divmod(int(corner[0]) // run, block_cols)
        first = int(rows[0, 0, 0]) * block_rows + row, int(cols[0, 0, 0]) * block_cols + col
        op = DepthToSpace((block_rows, block_cols), size, first, depth // run)
        if op.is_inside(shape) and np.array_equal(op.positions(shape), wanted):
            return op
    return None


def separated(index: IndexArray, shape: Shape) -> tuple[Take, IndexArray] | None:
    """The Take of a tensor of `shape` that selects the positions `index`, and the index array of its result.

    None if an axis of the index runs along several dimensions of the tensor.
    """
    places = coordinates(index, shape)
    varying = _varying(places)
    if any(len(dimensions) > 1 for dimensions in varying):
        return None
    axes = _axes_by_dimension(index, places, varying)
    rows, cols, channels = (_table(places[dimension], axes[dimension]) for dimension in range(3))
    order = [axis for dimension in range(3) for axis in axes[dimension]]
    stored = np.arange(index.size, dtype=np.int32).reshape([index.shape[axis] for axis in order])
    return Take(rows, cols, channels), np.ascontiguousarray(stored.transpose(np.argsort(order)))


def _varying(places: Coordinates) -> list[set[int]]:
    """For each axis of an index array, the dimensions of the tensor along which its positions vary."""
    return [
        {dimension for dimension, place in enumerate(places) if np.any(place != place.take([0], axis))}
        for axis in range(places[0].ndim)
    ]


def _axes_by_dimension(
    index: IndexArray, places: Coordinates, varying: list[set[int]]
) -> tuple[list[int], list[int], list[int]]:
    """The axes that form each dimension of the result, outermost first, in tensor order.

    An axis along which elements repeat gets its own dimension if one is free in the default layout. Otherwise
    it joins the dimension of the previous axis.
    """
    used = set[int]().union(*varying)
    default_shape, default_index = default_layout(index.shape)
    default_dimensions = _varying(coordinates(default_index, default_shape))
    axes_of: tuple[list[tuple[float, int]], ...] = ([], [], [])  # by dimension: (-step, axis)
    last = None
    for axis, dimensions in enumerate(varying):
        if dimensions:
            (dimension,) = dimensions
            step = float(np.abs(np.diff(places[dimension], axis=axis)).max())
            last = dimension, step
        else:
            free = default_dimensions[axis] - used
            dimension, step = (min(free, default=2), np.inf) if free or last is None else last
        axes_of[dimension].append((-step, axis))
    rows, cols, channels = ([axis for _, axis in sorted(axes)] for axes in axes_of)
    return rows, cols, channels


def _table(place: NDArray[np.intp], axes: list[int]) -> Positions:
    """The coordinates along these axes, in their order: a table of Take."""
    others = [axis for axis in range(place.ndim) if axis not in axes]
    line = place.transpose(*others, *axes)[(0,) * len(others)]
    return tuple(line.reshape(-1).tolist())
