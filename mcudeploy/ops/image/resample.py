"""Resampling of rows and columns by weighted sums of neighbours: cubic, and with antialiasing."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import ClassVar

import numpy as np

from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, Index, KernelCall, LoopNest, Params, PlainOperator, TableIndex
from mcudeploy.ops.common import ELEMENTWISE, is_int8, require_same_dtype, spatial_axes
from mcudeploy.ops.image.resize import ResizedAxis, coordinate


@dataclass(frozen=True, slots=True)
class Taps:
    """Position i of one axis is the sum of weights[i][k] * input[first[i] + k].

    A position without weights is outside the input.
    """

    first: tuple[int, ...]
    weights: tuple[tuple[float, ...], ...]

    def index(self, axis: str) -> TableIndex:
        """The loop nest's index of an input whose output runs through `axis`."""
        ends = (low + max(len(weights), 1) for low, weights in zip(self.first, self.weights, strict=True))
        return TableIndex(axis, self.first, tuple(ends))

    def params(self, name: str) -> Params:
        """The kernel's tables of this axis: first neighbours, numbers of weights, and weights."""
        table = np.zeros((len(self.weights), self.most), np.float32)
        for line, weights in zip(table, self.weights, strict=True):
            line[: len(weights)] = weights
        return {
            f"{name}s": np.array(self.first, np.uint16),
            f"{name}_taps": np.array([len(weights) for weights in self.weights], np.uint16),
            f"{name}_weights": table.reshape(-1),
        }

    @property
    def most(self) -> int:
        """The largest number of weights of a position."""
        return max(1, *map(len, self.weights))


@dataclass(frozen=True, slots=True)
class Filter:
    """Weighting of neighbours: cubic with a coefficient, or linear.

    With `antialias` the filter widens by the factor by which the result shrinks. Neighbours outside the
    image repeat its border; with `exclude_outside` they have no weight.
    """

    cubic: bool
    coefficient: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False

    def at(self, distance: float) -> float:
        """The weight of a neighbour at this distance."""
        x, a = abs(distance), self.coefficient
        if not self.cubic:
            return max(0.0, 1 - x)
        if x < 1:
            return ((a + 2) * x - (a + 3)) * x * x + 1
        return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


def resize_taps(axis: ResizedAxis, kind: Filter) -> Taps:
    """The weights of one axis as ONNX Resize defines them. Raises ValueError for unsupported modes."""
    if kind.antialias and axis.out_size == axis.in_size and not axis.crops:  # ONNX Runtime copies the axis
        return Taps(tuple(range(axis.in_size)), ((1.0,),) * axis.in_size)
    wider = max(1.0, 1 / axis.scale) if kind.antialias else 1.0
    places = (float(coordinate(position, axis)) for position in range(axis.out_size))
    by_position = [_weights(place, axis, kind, wider) for place in places]
    return Taps(tuple(first for first, _ in by_position), tuple(weights for _, weights in by_position))


def _weights(place: float, axis: ResizedAxis, kind: Filter, wider: float) -> tuple[int, tuple[float, ...]]:
    """The first neighbour inside the input, and the weights from it onwards; () for a place outside.

    `wider`: the factor by which antialiasing widens the filter.
    """
    last = axis.in_size - 1
    if axis.crops and not 0 <= place <= last:
        return min(max(floor(place), 0), last), ()
    support = (2 if kind.cubic else 1) * wider
    neighbours = range(floor(place - support + 1), floor(place + support + 1))
    weights = [kind.at((neighbour - place) / wider) for neighbour in neighbours]
    inside = [min(max(neighbour, 0), last) for neighbour in neighbours]
    summed = np.zeros(inside[-1] - inside[0] + 1)
    for neighbour, near, weight in zip(neighbours, inside, weights, strict=True):
        if near == neighbour or not kind.exclude_outside:
            summed[near - inside[0]] += weight
    nonzero = np.flatnonzero(summed)
    if nonzero.size == 0 or summed.sum() == 0:
        raise ValueError("a position of the result has no neighbour with a weight")
    summed = summed[nonzero[0] : nonzero[-1] + 1] / summed.sum()
    return inside[0] + int(nonzero[0]), tuple(summed.astype(np.float32).tolist())


@dataclass(frozen=True, slots=True)
class Resample(PlainOperator):
    """Rows and columns as weighted sums; positions without weights get the value `outside`. float32."""

    kind: ClassVar[str] = "Resample"

    rows: Taps
    cols: Taps
    outside: float = 0.0

    @property
    def out_size(self) -> tuple[int, int]:
        """(rows, cols) of the output."""
        return len(self.rows.first), len(self.cols.first)

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Rows and columns are read through tables."""
        (shape,) = inputs
        read = self.rows.index("row"), self.cols.index("col"), Index.of(ch=1)
        if max(read[0].hi) > shape[0] or max(read[1].hi) > shape[1] or max(shape[:2]) > 2**16:
            raise ValueError(f"the tables reach beyond the input {shape}, or it has more than 65536 rows")
        return LoopNest(spatial_axes((*self.out_size, shape[2])), (read,), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `resample_f32`: a row of weighted input rows first, then its columns."""
        (source,) = inputs
        require_same_dtype(source, output)
        if is_int8(output):
            raise ValueError("weighted sums of neighbours are computed in float32")
        params: Params = {
            **self.rows.params("row"),
            **self.cols.params("col"),
            "most_row_taps": self.rows.most,
            "most_col_taps": self.cols.most,
            "input_cols": source.shape[1],
            "output_cols": output.shape[1],
            "channels": output.shape[2],
            "outside": float(self.outside),
        }
        row_taps = [len(weights) for weights in self.rows.weights]
        col_taps = sum(map(len, self.cols.weights))
        cols, channels = output.shape[1:]

        def counts(rows: Interval) -> Counts:
            inside = [count for count in row_taps[rows.lo : rows.hi] if count]
            computed, line = len(inside), source.shape[1] * channels
            return {
                "calls": 1,
                "rows": len(rows),
                "row_taps": sum(inside),
                "pixels": computed * cols,
                "taps": computed * col_taps,
                "cleared": computed * line,
                "filled": len(rows) * cols * channels,
                "values": sum(inside) * line + computed * col_taps * channels,
            }

        return KernelCall("resample_f32", params, scratch_bytes=source.row_bytes, counts=counts)
