"""Plans against the exact model."""

from __future__ import annotations

import pytest

from mcudeploy.checker.residency import check_residency
from mcudeploy.common.effort import Effort
from mcudeploy.ir.trace import Item, ItemAccess, MemoryLink, Trace, TraceStep
from mcudeploy.planner.offload.exact_cycles import exact_cycles
from mcudeploy.planner.offload.offload import plan_residency
from tests.residency.random_traces import peak_bytes, training_step


@pytest.mark.parametrize(
    ("seed", "steps", "rate"), [(0, 12, 0.1), (1, 16, 0.05), (3, 24, 0.05), (6, 12, 0.2)]
)
def test_plans_are_within_5_percent_of_the_exact_model(seed: int, steps: int, rate: float) -> None:
    trace, link = training_step(seed, steps), MemoryLink(rate, rate)
    needed = max(sum(trace.items[a.item].size_bytes for a in step.accesses) for step in trace.steps)
    limit = max(needed, int(0.6 * peak_bytes(trace)))
    exact = exact_cycles(trace, limit, link, Effort.of(20))
    assert exact is not None and exact.optimal
    plan = plan_residency(trace, limit, link, recompute=False, effort=Effort.of(1))
    assert plan is not None
    check_residency(plan, trace, limit)
    assert plan.cycles <= 1.05 * exact.cycles
    assert exact.cycles >= sum(step.cycles for step in trace.steps)


def test_the_exact_model_by_hand() -> None:
    """10 bytes must leave for a step and return: 10 cycles out and 10 in, none of them hidden."""
    steps = (
        TraceStep("make", 10, (ItemAccess(0, True, 0),)),
        TraceStep("full", 30, (ItemAccess(1, True, 1),)),
        TraceStep("use", 10, (ItemAccess(0, False, 0),)),
    )
    trace = Trace((Item("a", 10), Item("b", 10)), steps)
    exact = exact_cycles(trace, 10, MemoryLink(1, 1), Effort.of(5))
    assert exact is not None and exact.optimal and exact.cycles == pytest.approx(70, rel=1e-3)
    assert exact_cycles(trace, 10, MemoryLink(0, 0), Effort.of(5)) is None
    assert exact_cycles(trace, 20, MemoryLink(0, 0), Effort.of(5)) is not None
