"""Sharing the work of a step among cores: by rows, and by cells of the remaining rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ops.move.columns import column_alignment
from mcudeploy.tiling.dataflow import Dataflow

_LEAST_ITERATIONS = 400
"""The minimum number of loop iterations for each core if a step is shared."""
_MOST_IMBALANCE = 1.02
"""Rows are cut if whole rows would give one core more than its fair share times this factor."""
_PART_ALIGNMENT = 4
"""The alignment in bytes of a slice's first cell within its row."""

Slice = tuple[Interval, Interval | None]
"""Rows, or columns of one row (channels if it has a single pixel)."""


@dataclass(frozen=True, slots=True)
class WorkSharing:
    """The distribution of a graph's steps over a number of cores.

    `in_place` operators may overwrite an input: cores share whole rows only. `over_views` operators may
    overwrite an input of which every slice reads all rows, through a view: one core runs them.
    """

    graph: Graph
    calls: Mapping[str, KernelCall]
    cores: int
    in_place: frozenset[str]
    over_views: frozenset[str]

    @classmethod
    def of(cls, flow: Dataflow, calls: Mapping[str, KernelCall], cores: int) -> WorkSharing:
        """Return the sharing of a graph."""
        every = list(zip(flow.graph.operators, flow.overwrites, flow.readings, strict=True))
        in_place = frozenset(it.name for it, own, _ in every if own)
        over_views = frozenset(it.name for it, own, reads in every if any(reads[at].whole for at in own))
        return cls(flow.graph, calls, cores, in_place, over_views)

    def slices(self, operator: Operator, rows: Interval) -> list[list[Slice]]:
        """Return, by core, the slices of these output rows that it computes.

        One core computes all if sharing is not worthwhile, or if the operator cannot be shared.
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
        """Return whether these cells can be a slice of a row."""
        _, step = self._cells(operator)
        return step > 0 and columns.lo % step == 0

    def largest_share(self, operator: Operator, rows: Interval) -> float:
        """Return the fraction of a step that the busiest core does."""
        width = self.graph.tensors[operator.output].cells
        cells = [
            sum(len(part) * (width if columns is None else len(columns)) for part, columns in mine)
            for mine in self.slices(operator, rows)
        ]
        return max(cells) / sum(cells)

    def iterations(self, operator: Operator, rows: Interval) -> float:
        """Return the number of loop iterations of an operator for these rows."""
        every = prod(axis.size for axis in self.graph.loops(operator).axes)
        tensor = operator.inputs[0] if operator.op.accumulates else operator.output
        return every * len(rows) / self.graph.tensors[tensor].shape[0]

    def _most_cores(self, operator: Operator, rows: Interval) -> int:
        if (
            operator.op.accumulates
            or not operator.inputs
            or operator.name in self.over_views
        ):
            return 1
        return max(1, min(self.cores, int(self.iterations(operator, rows) / _LEAST_ITERATIONS)))

    def _cells(self, operator: Operator) -> tuple[int, int]:
        """Return the cells of a row, and the alignment in cells of a slice's first; 0 if rows are not cut."""
        output = self.graph.tensors[operator.output]
        if operator.name in self.in_place:
            return output.cells, 0
        count = column_alignment(self.calls[operator.name], output, _PART_ALIGNMENT)
        return output.cells, count if count < output.cells else 0


def _by_cells(rows: Interval, width: int, step: int, cores: int) -> list[list[Slice]]:
    """Distribute cells evenly, in groups of `step` cells of a row."""
    groups = -(-width // step)
    total = len(rows) * groups
    bounds = [round(total * core / cores) for core in range(cores + 1)]
    shares: list[list[Slice]] = []
    for begin, end in pairwise(bounds):
        mine: list[Slice] = []
        at = begin
        while at < end:
            row, first = divmod(at, groups)
            if first == 0 and end - at >= groups:
                mine.append((Interval(rows.lo + row, rows.lo + end // groups), None))
                at = end // groups * groups
                continue
            last = min(groups, first + end - at)
            span = Interval(first * step, min(width, last * step))
            mine.append((Interval(rows.lo + row, rows.lo + row + 1), span))
            at += last - first
        shares.append(mine)
    return shares
