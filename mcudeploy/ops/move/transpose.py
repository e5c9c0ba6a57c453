"""Transpose of any view of a tensor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import (
    Access,
    Axis,
    Counts,
    CountsOf,
    Index,
    KernelCall,
    LoopNest,
    Params,
    PlainOperator,
    RowsPart,
    TableIndex,
)
from mcudeploy.ops.common import (
    AXIS_NAMES,
    ELEMENTWISE,
    WIDE_INTEGERS,
    reduced_axis,
    require_same_values,
    spatial_axes,
)

MAX_DIMS = 6
"""The most dimensions of the kernel, after `merged_dims`."""


@dataclass(frozen=True, slots=True)
class Dim:
    """One dimension of the permuted view: its size, and its step in elements of the input."""

    size: int
    stride: int


@dataclass(frozen=True, slots=True)
class Transpose(PlainOperator):
    """The input's elements viewed as `dims`, permuted by `perm`, stored row-major as `out_shape`.

    Dimension i of the permuted view is dimension perm[i] of `dims`, as in numpy.transpose.
    """

    kind: ClassVar[str] = "Transpose"
    moves: ClassVar[bool] = True
    takes_rows: ClassVar[bool] = True
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS

    dims: tuple[int, ...]
    perm: tuple[int, ...]
    out_shape: Shape

    def __post_init__(self) -> None:
        if sorted(self.perm) != list(range(len(self.dims))):
            raise ValueError(f"{self.perm} is not a permutation of {len(self.dims)} dimensions")
        if prod(self.dims) != prod(self.out_shape):
            raise ValueError(f"{self.dims} and {self.out_shape} differ in their number of elements")

    def on_rows(self, part: RowsPart) -> Transpose:
        """The same order within these rows."""
        rows = len(part.rows)
        return replace(self, dims=(rows, *self.dims[1:]), out_shape=(rows, *self.out_shape[1:]))

    def why_whole(self, inputs: tuple[Shape, ...], rows: int) -> str | None:
        """Rows can be computed separately if they are the first dimension of input and output."""
        stay = self.dims[0] == rows == inputs[0][0] and self.perm[0] == 0
        return None if stay else "it moves elements from row to row"

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """One axis per dimension if no dimension of the view crosses an axis of the tensors.

        If several dimensions form the rows of the output, as in a depth to space, a table states the input
        rows of each output row. Otherwise a row declares a superset of its reads: at worst the whole input.
        """
        (shape,) = inputs
        if prod(shape) != prod(self.dims):
            raise ValueError(f"{shape} cannot be viewed as {self.dims}")
        dims = merged_dims(self.dims, self.perm)
        parts = _split(dims, shape, self.out_shape)
        if parts is not None and _has_one_row_dim(parts, self.out_shape):
            return _affine_loops(parts, shape, self.out_shape)
        any_row, any_col, any_ch = (
            reduced_axis(f"any_{name}", size) for name, size in zip(AXIS_NAMES, shape, strict=True)
        )
        row = _row_table(dims, shape, self.out_shape)
        axes = (*spatial_axes(self.out_shape), *((any_row,) if row is None else ()), any_col, any_ch)
        read = row or Index.of(any_row=1), Index.of(any_col=1), Index.of(any_ch=1)
        return LoopNest(axes, (read,), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `transpose`."""
        (source,) = inputs
        require_same_values(source, output)
        dims = merged_dims(self.dims, self.perm)
        if len(dims) > MAX_DIMS:
            raise ValueError(f"a transpose of {len(dims)} separate dimensions; {MAX_DIMS} are possible")
        params: Params = {
            "sizes": np.array([dim.size for dim in dims], np.uint32),
            "strides": np.array([dim.stride for dim in dims], np.uint32),
            "dims": len(dims),
            "in_row_elements": source.shape[1] * source.shape[2],
            "out_row_elements": output.shape[1] * output.shape[2],
            "element_bytes": output.dtype.size_bytes,
        }
        return KernelCall("transpose", params, counts=_counts([dim.size for dim in dims], output))


def _counts(sizes: list[int], output: Tensor) -> CountsOf:
    """Counts of copying runs along the last dimension.

    A carry is the step of a dimension at the end of the dimension after it.
    """
    row = output.shape[1] * output.shape[2]
    units = "bytes" if output.dtype.size_bytes == 1 else "words"
    lengths = [prod(sizes[position:]) for position in range(1, len(sizes))]

    def counts(rows: Interval) -> Counts:
        def ends(length: int) -> int:
            return rows.hi * row // length - rows.lo * row // length

        def runs_of(each: int) -> int:
            return -(-(each + 1) * row // sizes[-1]) - each * row // sizes[-1]

        return {
            "calls": 1,
            "dims": len(sizes),
            "rows": len(rows),
            "runs": sum(runs_of(each) for each in range(rows.lo, rows.hi)),
            "carries": sum(map(ends, lengths)),
            units: len(rows) * row,
        }

    return counts


def merged_dims(dims: tuple[int, ...], perm: tuple[int, ...]) -> list[Dim]:
    """The permuted view in output order, without dimensions of size 1.

    Dimensions that are adjacent in both input and output are merged.
    """
    strides = [prod(dims[position + 1 :]) for position in range(len(dims))]
    merged: list[Dim] = []
    for position in perm:
        dim = Dim(dims[position], strides[position])
        if dim.size == 1:
            continue
        if merged and merged[-1].stride == dim.size * dim.stride:
            dim = Dim(merged.pop().size * dim.size, dim.stride)
        merged.append(dim)
    return merged or [Dim(1, 1)]


def _row_and_col_weights(shape: Shape) -> tuple[int, int]:
    """Number of elements one row, and one column, of a tensor holds."""
    _, cols, channels = shape
    return cols * channels, channels


def _cut(dim: Dim, weight: int, boundaries: tuple[int, int]) -> list[Dim] | None:
    """Split `dim`, whose step is `weight` elements, into parts that do not cross boundaries (in elements).

    None if a boundary is not at a whole step.
    """
    parts: list[Dim] = []
    for boundary in boundaries:
        extent = weight * dim.size
        if not weight < boundary < extent:
            continue
        if boundary % weight or extent % boundary:
            return None
        inner = boundary // weight
        parts.append(Dim(dim.size // inner, dim.stride * inner))
        dim = Dim(inner, dim.stride)
    return [*parts, dim]


def _split(dims: list[Dim], shape: Shape, out_shape: Shape) -> list[Dim] | None:
    """Parts of `dims`, each within one axis of the input and one of the output; None if impossible."""
    within_input: list[Dim] = []
    for dim in dims:
        parts = _cut(dim, dim.stride, _row_and_col_weights(shape))
        if parts is None:
            return None
        within_input += parts
    within_both: list[Dim] = []
    weight = prod(out_shape)
    for dim in within_input:
        weight //= dim.size
        parts = _cut(dim, weight, _row_and_col_weights(out_shape))
        if parts is None:
            return None
        within_both += parts
    return within_both


def _place(weight: int, shape: Shape) -> tuple[int, int]:
    """The axis of a tensor to which a dimension of this weight belongs, and its step on that axis."""
    row, col = _row_and_col_weights(shape)
    if weight >= row:
        return 0, weight // row
    if weight >= col:
        return 1, weight // col
    return 2, weight


def _has_one_row_dim(dims: list[Dim], out_shape: Shape) -> bool:
    """Whether a single dimension forms the rows of the output."""
    row, _ = _row_and_col_weights(out_shape)
    weight = prod(out_shape)
    for dim in dims:
        weight //= dim.size
        if weight >= row and dim.size not in (1, out_shape[0]):
            return False
    return True


def _row_table(dims: list[Dim], shape: Shape, out_shape: Shape) -> TableIndex | None:
    """The input rows of each output row; None if a dimension lies partly in the rows of the output."""
    out_row, _ = _row_and_col_weights(out_shape)
    in_row, _ = _row_and_col_weights(shape)
    weight, span = prod(out_shape), 0
    first = np.zeros(1, np.int64)
    for dim in dims:
        weight //= dim.size
        parts = _cut(dim, weight, (out_row, 0))
        if parts is None:
            return None
        *outer, inner = parts if len(parts) > 1 or weight < out_row else [*parts, Dim(1, 1)]
        for part in outer:
            first = (first[:, None] + part.stride * np.arange(part.size)).reshape(-1)
        span += inner.stride * (inner.size - 1)
    lo, last = first // in_row, (first + span) // in_row
    return TableIndex("row", tuple(lo.tolist()), tuple((last + 1).tolist()))


def _affine_loops(dims: list[Dim], shape: Shape, out_shape: Shape) -> LoopNest:
    reads: list[dict[str, int]] = [{}, {}, {}]
    writes: list[dict[str, int]] = [{}, {}, {}]
    axes: list[Axis] = []
    weight = prod(out_shape)
    for position, dim in enumerate(dims):
        name = f"d{position}"
        weight //= dim.size
        in_axis, in_step = _place(dim.stride, shape)
        out_axis, out_step = _place(weight, out_shape)
        reads[in_axis][name] = in_step
        writes[out_axis][name] = out_step
        axes.append(Axis(name, dim.size))
    if not writes[0]:
        axes.append(Axis("row", out_shape[0]))
        writes[0]["row"] = 1
    read_row, read_col, read_ch = (Index.of(**steps) for steps in reads)
    row, col, ch = (Index.of(**steps) for steps in writes)
    access: Access = row, col, ch
    return LoopNest(tuple(axes), ((read_row, read_col, read_ch),), access)
