"""How the work of a step is shared out among cores: rows, and cells of the rows that are left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ops.columns import column_alignment
from mcudeploy.ops.feed import StreamedInput
from mcudeploy.tiling.dataflow import Dataflow

_LEAST_ITERATIONS = 400
"""The fewest iterations of its loops that each core must get where a step is shared."""
_MOST_IMBALANCE = 1.02
"""Rows are cut where whole rows would give one core this many times its fair part."""
_PART_ALIGNMENT = 4
"""A part begins at a multiple of so many bytes of its row."""

Piece = tuple[Interval, Interval | None]
"""Rows, or columns (of a single pixel channels) of one row."""


@dataclass(frozen=True, slots=True)
class WorkSharing:
    """How a graph's steps are shared out among so many cores. `in_place`: operators that may write over their
    input; these are cut between rows only. `over_views`: those whose input is a view, which every part reads
    whole; one core does them.
    """

    graph: Graph
    calls: Mapping[str, KernelCall]
    cores: int
    in_place: frozenset[str]
    over_views: frozenset[str]

    @classmethod
    def of(cls, flow: Dataflow, calls: Mapping[str, KernelCall], cores: int) -> WorkSharing:
        """That of a graph."""
        every = list(zip(flow.graph.operators, flow.overwrites, flow.readings, strict=True))
        in_place = frozenset(it.name for it, overwritten, _ in every if overwritten)
        over_views = frozenset(it.name for it, own, reads in every if any(reads[at].whole for at in own))
        return cls(flow.graph, calls, cores, in_place, over_views)

    def pieces(self, operator: Operator, rows: Interval) -> list[list[Piece]]:
        """By core what it makes of these output rows; one core makes all where sharing out is not worth it,
        or the operator cannot be.
        """
        most = self._most_cores(operator, rows)
        if most == 1:
            return [[(rows, None)]]
        width, step = self._cells(operator)
        if step and -(-len(rows) // most) * most > _MOST_IMBALANCE * len(rows):
            return _by_cells(rows, width, step, most)
        bounds = [rows.lo + round(len(rows) * core / most) for core in range(most + 1)]
        return [[(Interval(lo, hi), None)] if lo < hi else [] for lo, hi in pairwise(bounds)]

    def takes(self, operator: Operator, columns: Interval) -> bool:
        """Whether a part of a row may be these cells."""
        _, step = self._cells(operator)
        return step > 0 and columns.lo % step == 0

    def largest_share(self, operator: Operator, rows: Interval) -> float:
        """The fraction of a step that the busiest core does."""
        width = self.graph.tensors[operator.output].cells
        made = [
            sum(len(part) * (width if columns is None else len(columns)) for part, columns in mine)
            for mine in self.pieces(operator, rows)
        ]
        return max(made) / sum(made)

    def iterations(self, operator: Operator, rows: Interval) -> float:
        """How often the loops of an operator run for these rows."""
        every = prod(axis.size for axis in self.graph.loops(operator).axes)
        of = operator.inputs[0] if operator.op.accumulates else operator.output
        return every * len(rows) / self.graph.tensors[of].shape[0]

    def _most_cores(self, operator: Operator, rows: Interval) -> int:
        if (
            operator.op.accumulates
            or isinstance(operator.op, StreamedInput)
            or operator.name in self.over_views
        ):
            return 1
        return max(1, min(self.cores, int(self.iterations(operator, rows) / _LEAST_ITERATIONS)))

    def _cells(self, operator: Operator) -> tuple[int, int]:
        """The cells of a row, and what a part's first one is a multiple of; 0 where rows are not cut."""
        output = self.graph.tensors[operator.output]
        if operator.name in self.in_place:
            return output.cells, 0
        count = column_alignment(self.calls[operator.name], output, _PART_ALIGNMENT)
        return output.cells, count if count < output.cells else 0


def _by_cells(rows: Interval, width: int, step: int, cores: int) -> list[list[Piece]]:
    """Equal numbers of cells, as far as they go in steps of so many."""
    columns = -(-width // step)
    total = len(rows) * columns
    bounds = [round(total * core / cores) for core in range(cores + 1)]
    found: list[list[Piece]] = []
    for begin, end in pairwise(bounds):
        mine: list[Piece] = []
        at = begin
        while at < end:
            row, first = divmod(at, columns)
            if first == 0 and end - at >= columns:
                mine.append((Interval(rows.lo + row, rows.lo + end // columns), None))
                at = end // columns * columns
                continue
            last = min(columns, first + end - at)
            span = Interval(first * step, min(width, last * step))
            mine.append((Interval(rows.lo + row, rows.lo + row + 1), span))
            at += last - first
        found.append(mine)
    return found
