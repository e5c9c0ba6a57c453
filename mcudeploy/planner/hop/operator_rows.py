"""Operators restricted to some rows of their output."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mcudeploy.ir.graph import Graph, Operator, Shape
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import OperatorDef
from mcudeploy.ops.conv.affine import Affine
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.move.cast import Cast
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.concat_channels import ConcatChannels
from mcudeploy.ops.move.depth_to_space import DepthToSpace
from mcudeploy.ops.move.move import Pad, Slice
from mcudeploy.ops.move.quantize import Dequantize, Quantize
from mcudeploy.ops.move.transpose import Transpose
from mcudeploy.ops.move.view import Reshape
from mcudeploy.ops.pool.pool import AveragePool, MaxPool
from mcudeploy.ops.reduce.norm import LayerNorm
from mcudeploy.ops.reduce.reduce import Reduce
from mcudeploy.ops.reduce.softmax import Softmax
from mcudeploy.ops.scalar.elementwise import Binary, Lut
from mcudeploy.ops.scalar.integer import IntegerBinary
from mcudeploy.ops.scalar.unary import Unary
from mcudeploy.tiling.dataflow import RowAccess

_BY_ROW = (
    Affine,
    Binary,
    Cast,
    Concat,
    ConcatChannels,
    Dequantize,
    IntegerBinary,
    LayerNorm,
    Lut,
    Quantize,
    Reduce,
    Softmax,
    Unary,
)
"""Families whose definition does not state rows, so that it holds for any of them."""

_WINDOWS = (AveragePool, Conv2d, MaxPool)


@dataclass(frozen=True, slots=True)
class OperatorPart:
    """An operator for some rows of its output, which reads `reads` of each input."""

    op: OperatorDef
    reads: tuple[Interval, ...]


def why_whole(graph: Graph, operator: Operator, readings: tuple[RowAccess, ...]) -> str | None:
    """Return why an operator that reads rows of a window cannot be restricted to rows; None if it can."""
    op = operator.op
    if not isinstance(op, (*_BY_ROW, *_WINDOWS, DepthToSpace, Pad, Reshape, Slice, Transpose)):
        return f"{op.kind} is not computed by rows here"
    if any(reading.table is not None or reading.step < 1 for reading in readings):
        return "each of its rows depends on all rows" if len(readings) == 1 else "it mixes rows"
    shapes = tuple(graph.tensors[name].shape for name in operator.inputs)
    rows = graph.tensors[operator.output].shape[0]
    if isinstance(op, Concat) and op.axis == 0:
        return "it joins rows"
    if isinstance(op, Binary | IntegerBinary) and any(shape[0] != rows for shape in shapes):
        return "it repeats a row"
    if _constant_rows(operator) > 1:
        return "its constant has a value for each row"
    if isinstance(op, Reshape) and shapes[0][0] != rows:
        return "it moves elements from row to row"
    if isinstance(op, Transpose) and not (op.dims[0] == rows == shapes[0][0] and op.perm[0] == 0):
        return "it moves elements from row to row"
    return None


def _constant_rows(operator: Operator) -> int:
    """The rows of an operator's constant operand; 1 without one."""
    constant = operator.constants.get("constant")
    return 1 if constant is None or constant.ndim != 3 else constant.shape[0]


def _pool_pads(
    op: AveragePool | MaxPool, source: Shape, above: int, rows: Interval
) -> tuple[int, int, int, int]:
    """The pads of a pool of some rows of an image, with `above` rows of padding before them."""
    return above, op.pads[1], op.pads[2] if rows.hi == source[0] else 0, op.pads[3]


def restricted(
    operator: Operator, readings: tuple[RowAccess, ...], shapes: tuple[Shape, ...], rows: Interval
) -> OperatorPart:
    """Return an operator for some rows of its output; `shapes` are those of its inputs.

    Requires that `why_whole` has no objection, and that the rows read at least one row.
    """
    op = operator.op
    starts = [(each.step * rows.lo + each.lo, each.step * (rows.hi - 1) + each.hi) for each in readings]
    reads = tuple(Interval(lo, hi).clip(0, shape[0]) for (lo, hi), shape in zip(starts, shapes, strict=True))
    above = reads[0].lo - starts[0][0]
    below = starts[0][1] - reads[0].hi
    match op:
        case Conv2d():
            part: OperatorDef = replace(op, pads=(above, op.pads[1], below, op.pads[3]))
        case AveragePool():
            counted = op.taps_counted(0, shapes[0][0])
            taps = min(counted), max(counted)
            part = replace(op, pads=_pool_pads(op, shapes[0], above, reads[0]), row_taps=taps)
            part = replace(part, out_size=(len(rows), op.out_size[1]))
        case MaxPool():
            part = replace(op, pads=_pool_pads(op, shapes[0], above, reads[0]))
            part = replace(part, out_size=(len(rows), op.out_size[1]))
        case Slice():
            start, out_shape = (0, *op.start[1:]), (len(rows), *op.out_shape[1:])
            part = replace(op, start=start, out_shape=out_shape)
        case Pad():
            part = replace(op, before=(above, *op.before[1:]), after=(below, *op.after[1:]))
        case DepthToSpace():
            part = replace(op, size=(len(rows), op.size[1]), first=(0, op.first[1]))
        case Reshape():
            part = Reshape((len(rows), *op.shape[1:]))
        case Transpose():
            part = replace(op, dims=(len(rows), *op.dims[1:]), out_shape=(len(rows), *op.out_shape[1:]))
        case _:
            part = op
    return OperatorPart(part, reads)
