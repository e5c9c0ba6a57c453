"""Layout of ONNX values: index arrays of positions in stored tensors (rows, cols, channels).

The index array of a value has the value's ONNX shape. Each entry is the flat position of that element in the
stored tensor. Reshape, Transpose and similar operators only transform the index array, at no run-time cost.
An operator that needs elements in a certain order states the wanted positions, in its own stored shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.ir.graph import DType, Quantization, Shape
from mcudeploy.ops.host_io import is_channels_last
from mcudeploy.ops.move.transpose import MAX_DIMS

IndexArray = NDArray[np.int32]

STORED_TYPES = {
    "float32": DType.FLOAT32,
    "int8": DType.INT8,
    "uint8": DType.INT8,
    "int16": DType.INT16,
    "int32": DType.INT32,
    "uint32": DType.INT32,
    "int64": DType.INT32,
    "bool": DType.INT8,
}
"""The stored type of a value, by its ONNX element type."""

MAX_BATCH = 16
"""Limit of a batch of images: each entry has its own operators in the program."""


@dataclass(frozen=True, slots=True, eq=False)
class OnnxValue:
    """An ONNX activation: element i is `table` of the value of `tensor` at position index[i].

    `real`: whether the value is float, not integer (uint8 is stored as int8, minus 128). `table` (256
    entries, by stored value + 128) stands for elementwise functions that are pending, not computed yet.
    Without a table the value is the stored one. A float value on an int8 tensor always has a table.
    `quantization` is set if a float value is exactly scale * (stored - zero_point), or to state how the
    readers of integers dequantise them.
    """

    tensor: str
    index: IndexArray
    real: bool
    table: NDArray[np.float32] | NDArray[np.int8] | None = None
    quantization: Quantization | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.index.shape


@dataclass(frozen=True, slots=True)
class Permutation:
    """A transposition of a stored tensor, viewed as `dims`: axis i of the result is axis perm[i]."""

    dims: tuple[int, ...]
    perm: tuple[int, ...]


@lru_cache(maxsize=64)
def positions(shape: tuple[int, ...]) -> IndexArray:
    """The positions 0, 1, 2, ... as a read-only array of this shape: the index array in storage order."""
    array = np.arange(prod(shape), dtype=np.int32).reshape(shape)
    array.setflags(write=False)
    return array


def image_index(shape: Shape, rank: int) -> IndexArray:
    """The index array of an ONNX image of `rank` 3 or 4 that is stored channels-last as `shape`."""
    stored = positions(shape)
    if rank == 4:
        return np.asarray(stored.transpose(2, 0, 1)[np.newaxis], np.int32)
    return np.asarray(stored.transpose(2, 0, 1).reshape(1, shape[2], shape[0] * shape[1]), np.int32)


def image_positions(index: IndexArray) -> IndexArray:
    """The positions of an image channels last: of [1, C, H, W] as (H, W, C), of [1, C, L] as (L, 1, C).

    Raises Unsupported for other ranks and batches.
    """
    if index.ndim not in (3, 4):
        raise Unsupported(f"an input of {index.ndim} dimensions is not supported: 1-D and 2-D images are")
    if index.shape[0] != 1:
        raise Unsupported(
            f"the batch is {index.shape[0]}; up to {MAX_BATCH} images are computed one by one in a call: "
            "export the model with a batch of 1"
        )
    if index.ndim == 3:
        return np.asarray(index[0].T[:, np.newaxis, :], np.int32)
    return np.asarray(index[0].transpose(1, 2, 0), np.int32)


def channel_order(wanted: IndexArray) -> IndexArray | None:
    """The stored channel of each channel of an image with positions (H, W, C).

    None unless its pixels are stored in order, and all have the same permutation of channels.
    """
    channels = wanted.shape[2]
    pixels = wanted.reshape(-1, channels)
    order = pixels[0]
    places = np.arange(len(pixels), dtype=np.int32)[:, np.newaxis] * channels + order
    in_order = np.array_equal(np.sort(order), np.arange(channels)) and np.array_equal(pixels, places)
    return order if in_order else None


def natural_shape(shape: tuple[int, ...]) -> Shape:
    """The stored shape (rows, cols, channels) of a value of this shape in ONNX order."""
    sizes = shape[1:] if len(shape) > 1 and shape[0] == 1 else shape
    if len(sizes) == 0:
        return 1, 1, 1
    if len(sizes) == 1:
        return 1, 1, sizes[0]
    if len(sizes) == 2:
        return sizes[0], 1, sizes[1]
    return sizes[0], prod(sizes[1:-1]), sizes[-1]


def default_layout(shape: tuple[int, ...]) -> tuple[Shape, IndexArray]:
    """The stored shape and index array if no reader requires others: channels last for images, else in order.
    """
    if len(shape) == 4 and shape[0] == 1:
        stored = (shape[2], shape[3], shape[1])
        return stored, image_index(stored, 4)
    return natural_shape(shape), positions(shape)


def is_plain(index: IndexArray) -> bool:
    """Whether the elements are stored in ONNX order, or channels last.

    Inputs and outputs must have one of these orders, which the interface of the C code can describe.
    """
    return is_storage_order(index) or is_channels_last(index.shape, index)


def is_storage_order(wanted: IndexArray) -> bool:
    """Whether the positions are 0, 1, 2, ..."""
    return bool(np.array_equal(wanted.reshape(-1), positions((wanted.size,))))


def nested_runs(flat: IndexArray) -> list[tuple[int, int]] | None:
    """(count, step) of the nested loops, innermost first, that visit these positions; None if there are none.

    Examines only the first position of each inner run: the caller checks the others.
    """
    axes: list[tuple[int, int]] = []
    rest = flat
    while rest.size > 1:
        step = int(rest[1]) - int(rest[0])
        breaks = np.flatnonzero(np.diff(rest) != step)
        run = int(breaks[0]) + 1 if breaks.size else rest.size
        if step <= 0 or rest.size % run:
            return None
        axes.append((run, step))
        rest = rest[::run]
    return axes


def permutation(wanted: IndexArray) -> Permutation | None:
    """The transposition of a stored tensor that yields the wanted order of positions.

    None if there is none, or if it has more dimensions than the kernel.
    """
    flat = wanted.reshape(-1)
    axes = nested_runs(flat)
    if axes is None or len(axes) > MAX_DIMS or flat[0] != 0:
        return None
    axes.reverse()
    order = sorted(range(len(axes)), key=lambda position: -axes[position][1])
    expected = 1
    for position in reversed(order):
        if axes[position][1] != expected:
            return None
        expected *= axes[position][0]
    dims = tuple(axes[position][0] for position in order)
    perm = tuple(order.index(position) for position in range(len(axes)))
    rebuilt = positions(dims).transpose(perm).reshape(-1)
    return Permutation(dims, perm) if np.array_equal(rebuilt, flat) else None


def coordinates(index: IndexArray, shape: Shape) -> tuple[NDArray[np.intp], ...]:
    """Row, column and channel of every element."""
    return np.unravel_index(index, shape)


def stored_axis(index: IndexArray, shape: Shape, axis: int) -> int | None:
    """The stored dimension that corresponds exactly to one ONNX axis; None if there is none."""
    lines = np.moveaxis(index, axis, -1)
    size = lines.shape[-1]
    places = coordinates(lines, shape)
    for dimension in (2, 1, 0):
        if shape[dimension] != size:
            continue
        along = places[dimension]
        others = [places[other] for other in range(3) if other != dimension]
        if np.array_equal(along, np.broadcast_to(np.arange(size), along.shape)) and all(
            bool(np.all(place == place[..., :1])) for place in others
        ):
            return dimension
    return None


def axis_shapes(index: IndexArray, axis: int) -> list[Shape]:
    """Stored shapes under which an ONNX axis may become a separate dimension."""
    lines = np.moveaxis(index, axis, -1)
    size, total = lines.shape[-1], index.size
    if size == 1:
        return []
    first = lines.reshape(-1, size)[0]
    stride = int(first[1]) - int(first[0])
    if stride < 1 or total % (size * stride):
        return []
    if stride == 1:
        return [(total // size, 1, size)]
    return [(total // (size * stride), size, stride)]


def compressed(index: IndexArray) -> IndexArray:
    """The array with size 1 along dimensions on which its values do not depend."""
    for dimension in range(index.ndim):
        head = index.take([0], axis=dimension)
        if index.shape[dimension] > 1 and bool(np.all(index == head)):
            index = head
    return index


def scattered(index: IndexArray, shape: Shape, values: NDArray[np.generic]) -> NDArray[np.generic]:
    """`values` (of the ONNX shape) in stored order: result[index[i]] = values[i]."""
    result = np.empty(prod(shape), values.dtype)
    result[index.reshape(-1)] = values.reshape(-1)
    return result.reshape(shape)
