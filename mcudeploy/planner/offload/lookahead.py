"""The look-ahead plan of a trace: it runs the loops and returns a residency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcudeploy.common.compiled import arrays, vectors
from mcudeploy.ir.trace import ItemTransfer, Residency, Trace
from mcudeploy.planner.offload import list_loops as loops
from mcudeploy.planner.offload import serve_loops
from mcudeploy.planner.offload.trace_residency import residency_of
from mcudeploy.planner.offload.trace_tables import TraceTable, steps_of


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """The result of decisions; `served` is None if bytes had no room."""

    table: TraceTable
    decisions: loops.Decisions
    accesses: loops.Accesses
    choice: loops.Choice
    served: serve_loops.Served | None

    @property
    def added_cycles(self) -> float:
        """Cycles over those of the steps, each run once with everything in the fast memory."""
        cycles = np.inf if self.served is None else self.served.cycles
        return cycles - float(self.table.cycles.sum())


def run(table: TraceTable, decisions: loops.Decisions, capacity: int) -> Outlook:
    """Choose what leaves, and serve the transfers if everything has room."""
    table_in, decisions_in = vectors(table), vectors(decisions)
    accesses = loops.accesses_of(table_in, decisions_in.sequence)
    choice = loops.choose(table_in, accesses, decisions_in, capacity)
    served = None
    if not choice.overflow:
        served = arrays(serve_loops.serve(table_in, accesses, decisions_in, choice, capacity))
    return Outlook(table, decisions, arrays(accesses), arrays(choice), served)


def plan_of(trace: Trace, table: TraceTable, outlook: Outlook, method: str) -> Residency:
    """Return the residency of a run."""
    served, accesses = outlook.served, outlook.accesses
    assert served is not None
    transfers = [
        ItemTransfer(int(item), "in" if inwards else "out", int(start), int(end))
        for item, inwards, start, end in zip(
            served.item, served.inwards, served.start, served.end, strict=True
        )
    ]
    steps = steps_of(trace, outlook.decisions.sequence)
    direct = []
    for k, step in enumerate(steps.steps):
        places = range(accesses.start[k], accesses.start[k + 1])
        items = {int(table.item[accesses.entry[f]]) for f in places if outlook.choice.direct[f]}
        direct.append(frozenset(access.operand for access in step.accesses if access.item in items))
    return residency_of(steps, transfers, direct, method)
