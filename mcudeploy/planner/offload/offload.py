"""Residencies: the memory of each item at any time, for the fewest cycles with a given fast memory."""

from __future__ import annotations

from mcudeploy.common.effort import Effort
from mcudeploy.common.errors import FitError
from mcudeploy.costs.timeline import with_times
from mcudeploy.ir.trace import MemoryLink, Residency, Trace, TraceStep
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
    """Return the best residency found with an effort, or None.

    With a link there is one unless fixed items leave too little room. `recompute`: steps may be repeated.
    `reorder`: they may also run in another order in which each reads the same bytes, if no item has a
    home. Raises FitError if a single step needs more than the capacity.
    """
    require_room(trace, capacity_bytes)
    # numba is slow to import
    from mcudeploy.planner.offload.lookahead import plan_of  # noqa: PLC0415
    from mcudeploy.planner.offload.search import OffloadTask, best_run  # noqa: PLC0415

    table = table_of(trace, link)
    reorder = reorder and not any(item.home for item in trace.items)  # these leave before the last step
    task = OffloadTask(trace, table, capacity_bytes, link, recompute, reorder)
    outlook, method = best_run(task, effort)
    return None if outlook.served is None else with_times(plan_of(trace, table, outlook, method), link)


def needed_bytes(trace: Trace, step: TraceStep) -> int:
    """Return the bytes that a step needs in the fast memory: items without direct access, and fixed items."""
    placed = {access.operand for access in step.accesses if access.direct_bytes is None}
    items = {access.item for access in step.accesses if access.operand in placed}
    items |= {access.item for access in step.accesses if trace.items[access.item].fixed}
    return sum(trace.items[item].size_bytes for item in items) + step.work_bytes


def require_room(trace: Trace, capacity_bytes: int) -> None:
    """Raise FitError if a single step of the trace needs more than the capacity."""
    needs = [needed_bytes(trace, step) for step in trace.steps]
    most = max(needs, default=0)
    if most > capacity_bytes:
        name = trace.steps[needs.index(most)].name
        raise FitError(
            f"step {needs.index(most)} ({name}) needs {most} B of fast memory by itself, the limit is "
            f"{capacity_bytes} B"
        )
