"""Operators restricted to some rows of their output."""

from __future__ import annotations

from dataclasses import dataclass

from mcudeploy.ir.graph import Graph, Operator, Shape
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import OperatorDef, RowsPart
from mcudeploy.tiling.dataflow import RowAccess


@dataclass(frozen=True, slots=True)
class OperatorPart:
    """An operator for some rows of its output, which reads `reads` of each input."""

    op: OperatorDef
    reads: tuple[Interval, ...]


def why_whole(graph: Graph, operator: Operator, readings: tuple[RowAccess, ...]) -> str | None:
    """Return why an operator that reads rows of a window cannot be restricted to rows; None if it can."""
    op = operator.op
    if not op.takes_rows:
        return f"{op.kind} is not computed by rows here"
    if any(reading.table is not None or reading.step < 1 for reading in readings):
        return "each of its rows depends on all rows" if len(readings) == 1 else "it mixes rows"
    shapes = tuple(graph.tensors[name].shape for name in operator.inputs)
    why = op.why_whole(shapes, graph.tensors[operator.output].shape[0])
    if why is None and _constant_rows(operator) > 1:
        return "its constant has a value for each row"
    return why


def _constant_rows(operator: Operator) -> int:
    """Return the rows of an operator's constant operand; 1 without one."""
    constant = operator.constants.get("constant")
    return 1 if constant is None or constant.ndim != 3 else constant.shape[0]


def restricted(
    operator: Operator, readings: tuple[RowAccess, ...], shapes: tuple[Shape, ...], rows: Interval
) -> OperatorPart:
    """Return an operator for some rows of its output; `shapes` are those of its inputs.

    Requires that `why_whole` has no objection, and that the rows read at least one row.
    """
    windows = [(each.step * rows.lo + each.lo, each.step * (rows.hi - 1) + each.hi) for each in readings]
    reads = tuple(Interval(lo, hi).clip(0, shape[0]) for (lo, hi), shape in zip(windows, shapes, strict=True))
    above, below = reads[0].lo - windows[0][0], windows[0][1] - reads[0].hi
    return OperatorPart(operator.op.on_rows(RowsPart(rows, reads[0], above, below, shapes[0])), reads)
