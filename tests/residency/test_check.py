"""The checker detects the faults of a residency."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mcudeploy.checker.owners import PlanFaultError
from mcudeploy.checker.residency import check_residency
from mcudeploy.common.effort import Effort
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Residence
from mcudeploy.ir.trace import SLOW, MemoryLink, Residency, Trace
from mcudeploy.planner.offload.offload import plan_residency
from tests.residency.random_traces import peak_bytes, training_step


def planned(seed: int, *, rate: float = 0.1) -> tuple[Trace, int, Residency]:
    """A trace, a limit below its peak, and a plan."""
    trace = training_step(seed, 24)
    limit = int(0.7 * peak_bytes(trace))
    plan = plan_residency(trace, limit, MemoryLink(rate, rate), recompute=True, effort=Effort.of(0.3))
    assert plan is not None
    check_residency(plan, trace, limit)
    return trace, limit, plan


@pytest.mark.parametrize("seed", range(4))
def test_too_much_memory(seed: int) -> None:
    trace, _, plan = planned(seed)
    with pytest.raises(PlanFaultError, match="in the fast memory"):
        check_residency(plan, trace, plan.peak_bytes - 1)


@pytest.mark.parametrize("seed", range(4))
def test_a_passage_that_is_left_out(seed: int) -> None:
    trace, limit, plan = planned(seed)
    assert plan.transfers
    for number in range(len(plan.transfers)):
        left = (*plan.transfers[:number], *plan.transfers[number + 1 :])
        with pytest.raises(PlanFaultError):
            check_residency(replace(plan, transfers=left), trace, limit)


@pytest.mark.parametrize("seed", range(4))
def test_a_passage_that_is_waited_for_too_late(seed: int) -> None:
    trace, limit, plan = planned(seed)
    for number, transfer in enumerate(plan.transfers):
        if transfer.direction == "in":  # one outwards may end later if its bytes stay anyway
            late = replace(transfer, end=transfer.end + 1)
            changed = (*plan.transfers[:number], late, *plan.transfers[number + 1 :])
            with pytest.raises(PlanFaultError):
                check_residency(replace(plan, transfers=changed), trace, limit)


@pytest.mark.parametrize("seed", range(4))
def test_a_stay_that_ends_early_or_begins_late(seed: int) -> None:
    trace, limit, plan = planned(seed)
    for item, places in enumerate(plan.residences):
        for number, place in enumerate(places):
            lo, hi = place.life.lo, place.life.hi
            for life in (Interval(lo, hi - 1), Interval(lo + 1, hi)):
                other = (replace(place, life=life),) if len(life) else ()
                new = (*places[:number], *other, *places[number + 1 :])
                changed = (*plan.residences[:item], new, *plan.residences[item + 1 :])
                if _is_spare(place, life):
                    continue
                with pytest.raises(PlanFaultError):
                    check_residency(replace(plan, residences=changed), trace, limit)


def _is_spare(place: Residence, life: Interval) -> bool:
    """The slow copy of an item whose transfer inwards starts and ends at once is not needed in that step."""
    return place.memory == SLOW and life.hi < place.life.hi


@pytest.mark.parametrize("seed", range(4))
def test_steps_left_out_swapped_or_changed(seed: int) -> None:
    trace, limit, plan = planned(seed)
    steps = plan.trace.steps
    with pytest.raises(PlanFaultError, match="never runs"):
        check_residency(replace(plan, trace=replace(plan.trace, steps=steps[:-1])), trace, limit)
    turned = (steps[1], steps[0], *steps[2:])
    with pytest.raises(PlanFaultError):
        check_residency(replace(plan, trace=replace(plan.trace, steps=turned)), trace, limit)
    faster = (replace(steps[0], cycles=0.0), *steps[1:])
    with pytest.raises(PlanFaultError, match="is not what its origin"):
        check_residency(replace(plan, trace=replace(plan.trace, steps=faster)), trace, limit)


def test_a_repeated_step_that_finds_no_input() -> None:
    trace = training_step(1, 24)
    limit = int(0.75 * peak_bytes(trace))
    plan = plan_residency(trace, limit, MemoryLink(0, 0), recompute=True, effort=Effort.of(0.5))
    assert plan is not None
    seen: set[int] = set()
    for place, step in enumerate(plan.trace.steps):
        if step.origin in seen:
            left = (*plan.trace.steps[:place], *plan.trace.steps[place + 1 :])
            with pytest.raises(PlanFaultError):
                check_residency(replace(plan, trace=replace(plan.trace, steps=left)), trace, limit)
        seen.add(step.origin)
    once = tuple(replace(step, repeatable=False) for step in trace.steps)
    with pytest.raises(PlanFaultError, match="must not"):
        check_residency(plan, replace(trace, steps=once), limit)
