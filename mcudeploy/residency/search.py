"""The search for what decisions the look-ahead plan is made with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mcudeploy.common.effort import Effort
from mcudeploy.residency import list_loops as loops
from mcudeploy.residency.lookahead import Decisions, Run, run
from mcudeploy.residency.tables import Flags, Table, sequence_of
from mcudeploy.residency.trace import Trace

_SLACKS = (0.0, 0.05, 0.1, 0.2, 0.3)
"""Parts of the fast memory that are held free for transfers where that costs nothing."""


def best_run(table: Table, trace: Trace, capacity: int, effort: Effort, *, recompute: bool) -> Run:
    """The best run that is found."""
    count = len(table.item)
    start = Decisions(sequence_of(trace), np.zeros(count, np.int64), np.zeros(count, np.bool_))
    start = with_room(table, capacity, start)
    found = [run(table, each, capacity) for each in _rules(start, capacity)]
    return min(found, key=lambda each: each.cost)


def _rules(start: Decisions, capacity: int) -> Iterator[Decisions]:
    for slack in _SLACKS:
        for rule in (loops.LATEST, loops.LONGEST, loops.WORTH):
            for outs_first in (False, True):
                yield replace(start, slack=int(slack * capacity), rule=rule, outs_first=outs_first)


def with_room(table: Table, capacity: int, start: Decisions) -> Decisions:
    """Direct accesses, the cheapest per byte first, where a step has no room for all that it touches."""
    direct: Flags = start.direct.copy()
    held = int(table.size[table.fixed].sum())
    for s in range(len(table.cycles)):
        entries = np.arange(table.first[s], table.first[s + 1])
        entries = entries[~table.fixed[table.item[entries]]]
        need = table.size[table.item[entries]].sum() + table.work[s] + held
        groups = []
        for operand in np.unique(table.operand[entries]):
            group = entries[table.operand[entries] == operand]
            size = int(table.size[table.item[group]].sum())
            groups.append((float(table.direct[group[0]]) / max(1, size), int(operand), size, group))
        for cost, _, size, group in sorted(groups, key=lambda each: each[:2]):
            if need <= capacity or not np.isfinite(cost):
                break
            direct[group] = True
            need -= size
    return replace(start, direct=direct)
