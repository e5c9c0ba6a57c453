"""The facts of a graph that do not depend on cuts: the owners of memory, and the rows that a step reads.

They are computed once, so that the search can try thousands of cuts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import AnyIndex, Index, LoopNest, TableIndex


@dataclass(frozen=True, slots=True)
class RowAccess:
    """The rows of one input that the steps of an operator read.

    If step >= 0, iteration rows [first, end) read rows [step * first + lo, step * (end - 1) + hi). They are
    clipped to the input's rows. A negative step mirrors this. With `table`, they are the hull of its entries.
    `whole`: the input is a view with another number of rows than its memory, so all of it is read. `awaited`:
    no row is read, but the last step runs after the whole input is computed.
    """

    root: str
    rows: int
    whole: bool
    step: int
    lo: int
    hi: int
    table: TableIndex | None = None
    awaited: bool = False

    def reach(self, first: int, end: int) -> tuple[int, int]:
        """Return the rows read for iteration rows [first, end), first < end; empty if lo >= hi."""
        if self.table is not None:
            lo, hi = min(self.table.lo[first:end]), max(self.table.hi[first:end])
        elif self.step >= 0:
            lo, hi = self.step * first + self.lo, self.step * (end - 1) + self.hi
        else:
            lo, hi = self.step * (end - 1) + self.lo, self.step * first + self.hi
        return max(lo, 0), min(hi, self.rows)

    def beyond(self, first: int, end: int) -> tuple[bool, bool]:
        """Return whether iteration rows [first, end) reach above the first row of the input, and below its
        last.
        """
        if self.table is not None:
            return False, False
        reached = self.step * first, self.step * (end - 1)
        return min(reached) + self.lo < 0, max(reached) + self.hi > self.rows


@dataclass(frozen=True, slots=True, eq=False)
class Dataflow:
    """A graph with its roots and the row accesses of each operator.

    The root of a tensor is the tensor whose memory it uses. `iteration_rows` counts the rows that an
    operator's steps run through: of its output, or of its input if it accumulates. `viewed` tensors are read
    through a view with other rows and stay whole, since such a view is contiguous.
    """

    graph: Graph
    roots: dict[str, str]
    readings: tuple[tuple[RowAccess, ...], ...]
    iteration_rows: tuple[int, ...]
    overwrites: tuple[tuple[int, ...], ...]
    viewed: frozenset[str]

    def input_rows(self, name: str, *, cut: bool) -> int:
        """Return the rows per block of a graph input: one if anything is `cut`, so that rows die early."""
        return 1 if cut and name not in self.viewed else self.graph.tensors[name].shape[0]

    @classmethod
    @lru_cache(maxsize=4)  # every plan of a search needs it several times
    def of(cls, graph: Graph) -> Dataflow:
        """Return the dataflow of a graph."""
        roots = {name: name for name in graph.tensors}
        for operator in graph.operators:
            if operator.op.is_view:
                roots[operator.output] = roots[operator.inputs[0]]
        return cls(
            graph,
            roots,
            tuple(_readings(graph, operator, roots) for operator in graph.operators),
            tuple(_iteration_rows(graph, operator) for operator in graph.operators),
            tuple(
                operator.op.overwrites(graph.input_tensors(operator), graph.tensors[operator.output])
                for operator in graph.operators
            ),
            frozenset(root for name, root in roots.items() if not graph.same_rows(name, root)),
        )


def _iteration_rows(graph: Graph, operator: Operator) -> int:
    tensor = operator.inputs[0] if operator.op.accumulates else operator.output
    return graph.tensors[tensor].shape[0]


def _readings(graph: Graph, operator: Operator, roots: dict[str, str]) -> tuple[RowAccess, ...]:
    nest = graph.loops(operator)
    readings = []
    for operand, name in enumerate(operator.inputs):
        rows, whole = graph.tensors[name].shape[0], not graph.same_rows(name, roots[name])
        start = RowAccess(roots[name], rows, whole, step=1, lo=0, hi=1)
        run_through = nest.reads[0][0] if operator.op.accumulates else nest.write[0]
        readings.append(_reading(nest, operand, start, run_through))
    return tuple(readings)


def _reading(nest: LoopNest, operand: int, start: RowAccess, run_through: AnyIndex) -> RowAccess:
    """Return the rows read by steps that run through the rows of the output, or of the first input."""
    index = nest.reads[operand][0]
    axes = {axis.name: axis for axis in nest.axes}
    steps = run_through.steps if isinstance(run_through, Index) else (("", 0),)
    if len(steps) > 1 or any(step != 1 for _, step in steps):
        raise ValueError("the row index that steps run through must be one axis")
    axis = steps[0][0] if steps else ""
    if isinstance(index, TableIndex):
        if index.axis == axis:
            return replace(start, table=index)
        span = index.reach(axes, {})
        awaited = len(span) == 0
        return replace(
            start, whole=start.whole and not awaited, step=0, lo=span.lo, hi=span.hi, awaited=awaited
        )
    at_first = index.reach(axes, {axis: Interval(0, 1)})
    step = dict(index.steps).get(axis, 0)
    return replace(start, step=step, lo=at_first.lo, hi=at_first.hi)
