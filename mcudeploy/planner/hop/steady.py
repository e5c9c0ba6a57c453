"""The rows of tensors that do not depend on the ends of a window.

A window of T rows moves by a hop of N rows from one run to the next. A tensor whose rows are `stride` rows of
the window apart moves by N / stride of its rows. Its steady rows are those that neither padding nor the
window's ends reach: row r of a run equals row r + hop of the run before, if both are steady.

    0        first                       end - hop     end         L
    |  head  |  kept from the last run   |    new      |   tail    |
             |--------------- steady rows -------------|

Every run computes head, new rows and tail.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mcudeploy.common.errors import UsageError
from mcudeploy.common.text import printable
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.planner.hop.operator_rows import why_whole
from mcudeploy.tiling.dataflow import Dataflow, RowAccess


@dataclass(frozen=True, slots=True)
class SteadyRows:
    """The steady rows of a tensor. `hop`: the number of its rows by which it moves from run to run. `stride`:
    the distance of its rows, in rows of the window.
    """

    rows: Interval
    hop: int
    stride: int

    @property
    def kept(self) -> Interval:
        """The steady rows that were steady in the last run too: their values are known."""
        return Interval(self.rows.lo, max(self.rows.hi - self.hop, self.rows.lo))

    @property
    def new(self) -> Interval:
        """The steady rows that no earlier run had."""
        return Interval(self.kept.hi, self.rows.hi)


class UnevenHopError(UsageError):
    """The output of an operator does not move by whole rows."""


@dataclass(frozen=True, slots=True)
class Steadiness:
    """The steady rows of each tensor that has the window's axis. `ends`: for each operator whose inputs have
    it but not its output, the reason.
    """

    tensors: Mapping[str, SteadyRows]
    ends: Mapping[str, str]


def steady_rows(graph: Graph, hop: int) -> Steadiness:
    """Return the steady rows of the tensors of a graph with one input, which moves by `hop` rows.

    Raises UnevenHopError for an operator whose output does not move by whole rows.
    """
    flow, source = Dataflow.of(graph), graph.tensors[graph.inputs[0].tensor]
    known = {source.name: SteadyRows(Interval(0, source.shape[0]), hop, 1)}
    ends: dict[str, str] = {}
    for operator, readings in zip(graph.operators, flow.readings, strict=True):
        read = [known[name] for name in operator.inputs if name in known]
        if not read:
            continue
        why = why_whole(graph, operator, readings)
        if why is None and len(read) < len(operator.inputs):
            why = "another input depends on the whole window"
        strides = {each.stride * reading.step for each, reading in zip(read, readings, strict=False)}
        if why is None and len(strides) > 1:
            why = "its inputs move by different numbers of rows"
        if why is None:
            rows = _common(read, readings, graph.tensors[operator.output].shape[0])
            known[operator.output] = _moving(operator, rows, hop, strides.pop())
        else:
            ends[operator.name] = why
    return Steadiness(known, ends)


def _common(read: list[SteadyRows], readings: tuple[RowAccess, ...], rows: int) -> Interval:
    """Return the rows of an output that read steady rows only."""
    first, end = 0, rows
    for each, reading in zip(read, readings, strict=True):
        first = max(first, -((reading.lo - each.rows.lo) // reading.step))
        end = min(end, (each.rows.hi - reading.hi) // reading.step + 1)
    first = min(first, rows)
    return Interval(first, max(first, end))


def _moving(operator: Operator, rows: Interval, hop: int, stride: int) -> SteadyRows:
    if hop % stride == 0:
        return SteadyRows(rows, hop // stride, stride)
    if len(rows) < 2:  # no hop would keep one
        return SteadyRows(Interval(rows.lo, rows.lo), 1, stride)
    node = printable(operator.onnx_nodes[0]) if operator.onnx_nodes else operator.name
    raise UnevenHopError(
        f"--hop {hop}: {node} ({operator.op.kind}) makes a row of every {stride} rows of the window, so its "
        "output does not move by whole rows"
    )
