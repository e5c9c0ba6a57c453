"""Regions: the input rows that a part of an operator needs, and the halo that neighbours share."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mcudeploy.ir.interval import Interval
from mcudeploy.planner.axes.axes import AxisGraph, Edge
from mcudeploy.planner.axes.components import accumulates, connections
from mcudeploy.planner.axes.window import Window


def rows_needed(axes: AxisGraph, operator: int, operand: int, rows: Interval) -> Interval:
    """Return the rows of an operand that output rows `rows` need.

    These are all rows for an operator that accumulates, since its output is whole after the last step.
    """
    tensor = axes.graph.tensors[axes.graph.operators[operator].inputs[operand]]
    return axes.nests[operator].rows_read(operand, rows, tensor.shape[0])


def halo(edge: Edge, part_rows: int = 1) -> int:
    """Return the halo: the maximum number of rows that two neighbouring parts of `part_rows` rows share.

    The halo is recomputed for each part, or kept for the next one. For a window it is kernel extent minus
    stride, independent of the part. Borders may need less, since padding replaces rows.
    """
    if part_rows < 1:
        raise ValueError(f"a part has at least 1 row, not {part_rows}")
    window = edge.window
    if isinstance(window, Window):
        return min(window.overlap, edge.positions)
    cuts = range(part_rows, len(window.lo), part_rows)
    return max((window.overlap_at(cut) for cut in cuts), default=0)


def region(axes: AxisGraph, members: Collection[int], wanted: Mapping[int, Interval]) -> dict[int, Interval]:
    """Return the rows that every operator of `members` computes so that the rows `wanted` exist.

    The computation follows the connected edges inside `members` upwards; an operator that accumulates needs
    all rows. Operators whose rows nobody needs are not in the result.
    """
    inner: dict[int, list[Edge]] = {}
    for edge in connections(axes):
        if edge.source is not None and edge.source.operator in members:
            inner.setdefault(edge.target.operator, []).append(edge)
    found = dict(wanted)
    for operator in sorted(members, reverse=True):
        if operator not in found:
            continue
        for edge in inner.get(operator, ()):
            if edge.source is None:
                continue
            everything = accumulates(axes, operator)
            part = Interval(0, edge.target.size) if everything else found[operator]
            rows = edge.needed(part)
            producer = edge.source.operator
            found[producer] = found[producer].hull(rows) if producer in found else rows
    return found
