"""Shared parts of operator families: checks of element types, and identity loop nests."""

from __future__ import annotations

from collections.abc import Mapping

from mcudeploy.ir.graph import DType, Shape, Tensor
from mcudeploy.ir.opdef import (
    Access,
    Axis,
    AxisKind,
    Counts,
    CountsOf,
    Index,
    LoopNest,
    Params,
    ParamValue,
    PlainOperator,
)
from mcudeploy.ops.requantize import quantization_of

OFFSET_BYTES = 4
"""One uint32_t row offset of the kernels' scratch."""
SUM_BYTES = 4
"""Bytes of one running sum, int32_t or float, of an operator that accumulates."""

ELEMENTS = ("int8", "int32", "float32")
"""Element types in the order in which move kernels number them."""

WIDE_INTEGERS = frozenset({DType.INT16, DType.INT32})
"""The integer types beside int8, for families that compute on, or move, integers of any size."""

AXIS_NAMES = ("row", "col", "ch")
"""Default names of the output's axes."""

ELEMENTWISE: Access = (Index.of(row=1), Index.of(col=1), Index.of(ch=1))
"""Element (row, col, ch) of an input for element (row, col, ch) of the output."""


def spatial_axes(shape: Shape) -> tuple[Axis, Axis, Axis]:
    """The axes "row", "col", "ch" over an output of this shape."""
    rows, cols, channels = shape
    return Axis("row", rows), Axis("col", cols), Axis("ch", channels)


def reduced_axis(name: str, size: int) -> Axis:
    """An axis that is summed or searched over."""
    return Axis(name, size, AxisKind.REDUCED)


def elementwise_loops(inputs: tuple[Shape, ...]) -> LoopNest:
    """The loop nest of an operator with one input that maps element to element."""
    (shape,) = inputs
    return LoopNest(spatial_axes(shape), (ELEMENTWISE,), ELEMENTWISE)


class ElementwiseOperator(PlainOperator):
    """The base of families whose output elements each read one element: that of their one input at the
    same place.
    """

    __slots__ = ()

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """The loop nest of one input, element to element."""
        return elementwise_loops(inputs)


def within(struct: str, fields: Mapping[str, ParamValue]) -> Params:
    """Parameters renamed to the fields of `struct`, which the kernel's parameter struct contains."""
    return {f"{struct}.{name}": value for name, value in fields.items()}


def is_int8(tensor: Tensor) -> bool:
    """Whether a tensor is int8, not float32 or int32."""
    return tensor.dtype.size_bytes == 1


def require_same_dtype(*tensors: Tensor) -> None:
    """Raise ValueError if tensors differ in their element type."""
    if len({tensor.dtype for tensor in tensors}) > 1:
        types = ", ".join(f"{tensor.name}: {tensor.dtype}" for tensor in tensors)
        raise ValueError(f"all tensors need one element type, found {types}")


def require_same_values(source: Tensor, output: Tensor) -> None:
    """Raise ValueError if moving elements from `source` to `output` would change their meaning."""
    require_same_dtype(source, output)
    if is_int8(output) and quantization_of(source) != quantization_of(output):
        raise ValueError(f"{output.name} needs the quantisation of {source.name}, whose elements it holds")


def moved(size_bytes: int, times: float = 1) -> Counts:
    """Counts of copying `times` runs of `size_bytes`: C libraries copy 64 bytes at a time, then 16, words,
    and the rest.
    """
    return {
        "moves": times,
        "bytes_64": times * (size_bytes // 64),
        "bytes_16": times * (size_bytes % 64 // 16),
        "words": times * (size_bytes % 16 // 4),
        "rest": times * (size_bytes % 4),
    }


def counts_of_rows(row: Mapping[str, float]) -> CountsOf:
    """Return the counts of a call, of which each row has the counts `row`."""
    return lambda rows: {"calls": 1} | scaled(row, len(rows))


def filled(size_bytes: int, times: float = 1) -> Counts:
    """Counts of setting `times` runs of `size_bytes`: 16 at a time, then words, and the rest."""
    return {
        "fills": times,
        "filled_16": times * (size_bytes // 16),
        "filled_words": times * (size_bytes % 16 // 4),
        "filled_rest": times * (size_bytes % 4),
    }


def copied(size_bytes: int, times: float, *, by_table: bool) -> Counts:
    """Counts of copying `times` runs of `size_bytes`, or of looking up each byte; see mcud_move.h."""
    if by_table:
        return {"looks": times, "looked": times * size_bytes}
    return moved(size_bytes, times)


def merged(*parts: Mapping[str, float]) -> Counts:
    """Add counts."""
    total: Counts = {}
    for part in parts:
        for name, count in part.items():
            total[name] = total.get(name, 0) + count
    return total


def scaled(counts: Mapping[str, float], times: float) -> Counts:
    """Multiply counts by a number of repetitions."""
    return {name: times * count for name, count in counts.items()}
