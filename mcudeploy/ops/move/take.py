"""Elements at constant positions: Take has a list for each dimension, Gather a position for each element."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from math import gcd
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, Index, KernelCall, LoopNest, Params, PlainOperator, TableIndex
from mcudeploy.ops.common import (
    ELEMENTWISE,
    WIDE_INTEGERS,
    counts_of_rows,
    merged,
    moved,
    reduced_axis,
    require_same_values,
    scaled,
    spatial_axes,
)

MOST = 2**16 - 1
"""The most rows of a tensor, and elements of a row, that tables of uint16 address."""

Positions = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Take(PlainOperator):
    """Element (r, c, k) of the output is the input's (rows[r], cols[c], channels[k])."""

    kind: ClassVar[str] = "Take"
    moves: ClassVar[bool] = True
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS

    rows: Positions
    cols: Positions
    channels: Positions

    @property
    def out_shape(self) -> Shape:
        """The output's shape."""
        return len(self.rows), len(self.cols), len(self.channels)

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Every dimension is read through its table."""
        (shape,) = inputs
        _require_room(shape, self.out_shape)
        for size, places in zip(shape, (self.rows, self.cols, self.channels), strict=True):
            if not places or min(places) < 0 or max(places) >= size:
                raise ValueError(f"positions are missing, or beyond the input {shape}")
        row, col, ch = (
            TableIndex(name, places, tuple(place + 1 for place in places))
            for name, places in (("row", self.rows), ("col", self.cols), ("ch", self.channels))
        )
        return LoopNest(spatial_axes(self.out_shape), ((row, col, ch),), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `take`: adjacent elements of the input are copied together."""
        (source,) = inputs
        require_same_values(source, output)
        outers, starts, sizes = self._runs(source.shape[2])
        size = output.dtype.size_bytes
        single = all(count == 1 for count in sizes)
        params: Params = {
            "rows": np.array(self.rows, np.uint16),
            "outers": np.array(outers, np.uint16),
            "starts": np.array(starts, np.uint16),
            "sizes": None if single else np.array(sizes, np.uint16),
            "outer_count": len(outers),
            "run_count": len(starts),
            "element_bytes": size,
        }
        each = {"taken": len(starts)} if single else merged(*(moved(count * size) for count in sizes))
        row: Counts = {"rows": 1, "outers": len(outers)} | scaled(each, len(outers))
        return KernelCall("take", params, counts=counts_of_rows(row))

    def _runs(self, channels: int) -> tuple[Positions, Positions, Positions]:
        """The starts of the outer loop in a row, and the first element and length of each run inside it.

        The outer loop runs through the columns if that makes the tables shorter than a list of all runs.
        """
        pixels = tuple(col * channels for col in self.cols)
        inner = runs(self.channels)
        whole = runs(tuple(pixel + channel for pixel in pixels for channel in self.channels))
        if 2 * len(whole[0]) <= len(pixels) + 2 * len(inner[0]):  # a run has two entries
            return (0,), *whole
        return pixels, *inner


@dataclass(frozen=True, slots=True)
class Gather(PlainOperator):
    """Element i of the output, in storage order, is the input's element `positions[i]`."""

    kind: ClassVar[str] = "Gather"
    moves: ClassVar[bool] = True
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS

    positions: Positions
    out_shape: Shape

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """A row of the output reads from its first to its last input row."""
        (shape,) = inputs
        _require_room(shape, self.out_shape)
        rows, cols, channels = shape
        places = np.array(self.positions, np.int64)
        if places.size == 0 or places.min() < 0 or places.max() >= rows * cols * channels:
            raise ValueError(f"positions are missing, or beyond the input {shape}")
        read = places.reshape(self.out_shape[0], -1) // (cols * channels)
        row = TableIndex("row", tuple(read.min(axis=1).tolist()), tuple((read.max(axis=1) + 1).tolist()))
        axes = *spatial_axes(self.out_shape), reduced_axis("any_col", cols), reduced_axis("any_ch", channels)
        return LoopNest(axes, ((row, Index.of(any_col=1), Index.of(any_ch=1)),), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `gather`, in units of elements that always stay together."""
        (source,) = inputs
        require_same_values(source, output)
        in_row, out_row = (tensor.shape[1] * tensor.shape[2] for tensor in (source, output))
        places = np.array(self.positions, np.int64)
        unit = _unit(places, in_row, out_row)
        row, within = np.divmod(places[::unit], in_row)
        per_row = out_row // unit
        params: Params = {
            "rows": row.astype(np.uint16),
            "units": (within // unit).astype(np.uint16),
            "row_units": per_row,
            "unit_elements": unit,
            "element_bytes": output.dtype.size_bytes,
        }
        opened = _changes(row.reshape(-1, per_row))
        each = {"taken": 1} if unit == 1 else {"scanned": 1} | moved(unit * output.dtype.size_bytes)

        def counts(rows: Interval) -> Counts:
            inside = {"rows": len(rows), "opened": int(opened[rows.lo : rows.hi].sum())}
            return {"calls": 1} | inside | scaled(each, per_row * len(rows))

        return KernelCall("gather", params, counts=counts)


def runs(places: Positions) -> tuple[Positions, Positions]:
    """The first position and the length of each run of consecutive positions."""
    steps = np.diff(np.array(places, np.int64))
    firsts = [0, *(np.flatnonzero(steps != 1) + 1).tolist()]
    ends = chain(firsts[1:], (len(places),))
    return tuple(places[first] for first in firsts), tuple(
        end - first for first, end in zip(firsts, ends, strict=True)
    )


def _unit(places: NDArray[np.int64], in_row: int, out_row: int) -> int:
    """The largest number of elements that are always adjacent, and begin at a multiple of it in both rows."""
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    firsts = places[np.concatenate([np.zeros(1, np.int64), breaks])]
    return int(np.gcd.reduce(np.concatenate([breaks, firsts, [gcd(in_row, out_row)]])))


def _changes(row: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each output row, the number of changes of the input row, including the first."""
    return np.asarray(1 + (np.diff(row, axis=1) != 0).sum(axis=1), np.int64)


def _require_room(*shapes: Shape) -> None:
    for rows, cols, channels in shapes:
        if rows > MOST or cols * channels > MOST:
            raise ValueError(
                f"tables address at most {MOST} rows, and elements of a row; "
                f"a tensor is {(rows, cols, channels)}"
            )
