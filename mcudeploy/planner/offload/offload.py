"""Where items are at any time, in the least cycles that are found for a fast memory of so many bytes."""

from __future__ import annotations

from mcudeploy.common.effort import Effort
from mcudeploy.common.errors import FitError
from mcudeploy.planner.offload.timeline import with_times
from mcudeploy.planner.offload.trace import MemoryLink, Residency, Trace, TraceStep
from mcudeploy.planner.offload.trace_tables import table_of


def plan_residency(
    trace: Trace,
    capacity_bytes: int,
    link: MemoryLink,
    *,
    recompute: bool,
    effort: Effort,
    reorder: bool = False,
) -> Residency | None:
    """The best residency that is found with an effort, or None where none is: with a link there is one unless
    what is fixed leaves too little room. `recompute`: steps may run again; `reorder`: they may also come in
    another order in which each finds the same bytes. Raises FitError where a single step needs more than
    the capacity.
    """
    require_room(trace, capacity_bytes)
    # numba takes long to import
    from mcudeploy.planner.offload.lookahead import plan_of  # noqa: PLC0415
    from mcudeploy.planner.offload.search import OffloadTask, best_run  # noqa: PLC0415

    table = table_of(trace, link)
    task = OffloadTask(trace, table, capacity_bytes, link, recompute, reorder)
    found, method = best_run(task, effort)
    return None if found.served is None else with_times(plan_of(trace, table, found, method), link)


def needed_bytes(trace: Trace, step: TraceStep) -> int:
    """The least that a step needs in the fast memory: what it cannot access directly, and what is fixed."""
    placed = {access.operand for access in step.accesses if access.direct_bytes is None}
    items = {access.item for access in step.accesses if access.operand in placed}
    items |= {access.item for access in step.accesses if trace.items[access.item].fixed}
    return sum(trace.items[item].size_bytes for item in items) + step.work_bytes


def require_room(trace: Trace, capacity_bytes: int) -> None:
    """Raise FitError where a step of the trace needs more than the capacity by itself."""
    needs = [needed_bytes(trace, step) for step in trace.steps]
    most = max(needs, default=0)
    if most > capacity_bytes:
        name = trace.steps[needs.index(most)].name
        raise FitError(
            f"step {needs.index(most)} ({name}) needs {most} B of fast memory by itself, the limit is "
            f"{capacity_bytes} B"
        )
