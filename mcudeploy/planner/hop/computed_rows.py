"""The rows of every tensor that a run computes, and those that it keeps for the next one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mcudeploy.ir.graph import Graph, KeptRows
from mcudeploy.ir.interval import Interval
from mcudeploy.planner.hop.steady import Steadiness, SteadyRows
from mcudeploy.tiling.dataflow import Dataflow, RowAccess

_NONE = Interval(0, 0)


@dataclass(frozen=True, slots=True)
class ComputedRows:
    """The rows of a tensor that each run computes, in ascending order, and those that are stored between
    runs: `kept` by the last run, followed by `new` ones. Both are empty if nothing is stored.
    """

    computed: tuple[Interval, ...]
    kept: Interval = _NONE
    new: Interval = _NONE

    @property
    def count(self) -> int:
        """The number of rows that a run computes."""
        return sum(map(len, self.computed))

    @property
    def stored(self) -> Interval:
        """The rows that are stored."""
        return self.kept.hull(self.new)


def computed_rows(
    graph: Graph, steady: Steadiness, keeping: Mapping[str, KeptRows]
) -> dict[str, ComputedRows]:
    """Return the rows of all tensors if some rows of the tensors `keeping`, and of the input, may be stored.

    A kept row is stored only if this run or a later one reads it. Tensors that nothing needs are absent.
    """
    flow = Dataflow.of(graph)
    reads: dict[str, list[Interval]] = {
        io.tensor: [Interval(0, graph.tensors[io.tensor].shape[0])] for io in graph.outputs
    }
    result: dict[str, ComputedRows] = {}
    for operator, readings in reversed(list(zip(graph.operators, flow.readings, strict=True))):
        output, rows = operator.output, graph.tensors[operator.output].shape[0]
        if output not in reads:
            continue
        own_steady = steady.tensors.get(output)
        if own_steady is None:
            result[output] = ComputedRows((Interval(0, rows),))
        else:
            division = _computed(reads[output], own_steady, keeping.get(output))
            result[output] = replace(division, computed=_readable(division.computed, readings, rows))
        for name, reading in zip(operator.inputs, readings, strict=True):
            everything = Interval(0, graph.tensors[name].shape[0])
            parts = result[output].computed
            reads.setdefault(name, []).extend(
                [everything] if own_steady is None else (_read(each, reading) for each in parts)
            )
    source = graph.inputs[0].tensor
    result[source] = _computed(reads.get(source, []), steady.tensors[source], "all")
    return result


def _computed(needed: Sequence[Interval], steady: SteadyRows, keeping: KeptRows | None) -> ComputedRows:
    """Divide the rows that are needed into computed and stored ones.

    An interval that overlaps the kept rows is stored there, and computed before and after them.
    """
    old, needed = steady.kept, _joined(needed)
    stored = [
        each
        for each in needed
        if each.overlaps(old) and (keeping == "all" or (keeping == "last" and each.hi > old.hi))
    ]
    if not stored:
        return ComputedRows(needed)
    rest = [each for each in needed if each not in stored]
    before = (Interval(min(each.lo, old.lo), old.lo) for each in stored)
    after = (Interval(old.hi, max(each.hi, old.hi)) for each in stored)
    first = max(old.lo, min(each.lo for each in stored))
    computed = _joined([*rest, *before, *after, steady.new])
    return ComputedRows(computed, Interval(first, old.hi), steady.new)


def _joined(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Merge intervals that overlap or touch, then the closest ones until at most two are left."""
    joined: list[Interval] = []
    for each in sorted(each for each in intervals if len(each)):
        if joined and each.lo <= joined[-1].hi:
            joined[-1] = joined[-1].hull(each)
        else:
            joined.append(each)
    while len(joined) > 2:
        gaps = [after.lo - before.hi for before, after in pairwise(joined)]
        at = gaps.index(min(gaps))
        joined[at : at + 2] = [joined[at].hull(joined[at + 1])]
    return tuple(joined)


def _readable(computed: Sequence[Interval], readings: Sequence[RowAccess], rows: int) -> tuple[Interval, ...]:
    """Extend each interval of rows that reads only padding, until it reads a row."""

    def reads(each: Interval) -> bool:
        return all(lo < hi for lo, hi in (reading.reach(each.lo, each.hi) for reading in readings))

    extended = []
    for each in computed:
        extent = 0
        while extent < rows and not reads(Interval(each.lo - extent, each.hi + extent).clip(0, rows)):
            extent += 1
        extended.append(Interval(each.lo - extent, each.hi + extent).clip(0, rows))
    return _joined(extended)


def _read(rows: Interval, reading: RowAccess) -> Interval:
    """Return the rows of an input that are read for rows of an output."""
    return Interval(*reading.reach(rows.lo, rows.hi))
