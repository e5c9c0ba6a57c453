"""The checker accepts every decision of the planner; its cycles equal those of the compiled loops."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcudeploy.checker.residency import check_residency
from mcudeploy.common.effort import Effort
from mcudeploy.common.errors import FitError
from mcudeploy.costs.timeline import timeline, with_times
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Residence
from mcudeploy.ir.trace import (
    FAST,
    SLOW,
    Item,
    ItemAccess,
    ItemTransfer,
    MemoryLink,
    Residency,
    Trace,
    TraceStep,
)
from mcudeploy.planner.offload.feedback import earlier, with_late_triggers
from mcudeploy.planner.offload.lookahead import plan_of, run
from mcudeploy.planner.offload.offload import plan_residency
from mcudeploy.planner.offload.passive import passive_plan, tight_operands, touches_of
from mcudeploy.planner.offload.trace_tables import table_of
from tests.residency.random_traces import (
    peak_bytes,
    random_decisions,
    random_link,
    random_trace,
    training_step,
)

SEEDS = st.integers(0, 2**32)


@settings(max_examples=300, deadline=None)
@given(SEEDS)
def test_loops_and_timeline_agree_and_the_judge_passes(seed: int) -> None:
    draw = random.Random(seed)
    trace, link, capacity = random_trace(draw), random_link(draw), draw.randint(20, 120)
    table = table_of(trace, link)
    residency = run(table, random_decisions(draw, trace, table, capacity), capacity)
    if residency.served is None:
        return
    plan = with_times(plan_of(trace, table, residency, "test"), link)
    check_residency(plan, trace, capacity)
    assert plan.cycles == pytest.approx(residency.served.cycles)
    assert plan.peak_bytes <= capacity


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.booleans(), st.booleans())
@example(2003839, False, True)  # the order of steps decides whether an item can return home
def test_every_plan_passes_the_judge(seed: int, recompute: bool, reorder: bool) -> None:
    draw = random.Random(seed)
    trace, link, capacity = random_trace(draw), random_link(draw), draw.randint(40, 120)
    try:
        plan = plan_residency(
            trace, capacity, link, recompute=recompute, effort=Effort.of(0.05), reorder=reorder
        )
    except FitError:
        return
    if plan is not None:
        check_residency(plan, trace, capacity)
        base = sum(step.cycles for step in trace.steps)
        assert plan.cycles == pytest.approx(base + plan.exposed_cycles + plan.repeated_cycles)


@settings(max_examples=200, deadline=None)
@given(SEEDS)
@example(455273183)  # an operand of a fixed item cannot be accessed directly
@example(228)  # what leaves during the first step cannot be read in the slow memory by it
def test_evicting_on_demand_passes_the_judge(seed: int) -> None:
    draw = random.Random(seed)
    trace, link = random_trace(draw), random_link(draw)
    for capacity in (draw.randint(20, 120), 40, 60, 100):
        for direct in ((), tight_operands(trace, capacity)):
            plan = passive_plan(trace, capacity, link, direct)
            if plan is not None:
                check_residency(plan, trace, capacity)


def test_evicting_makes_no_room_in_the_first_step() -> None:
    items = (Item("a", 30, loaded=True), Item("b", 30, loaded=True))
    steps = tuple(TraceStep(f"s{n}", 1, (ItemAccess(n, False),)) for n in range(2))
    trace, link = Trace(items, steps), MemoryLink(1, 1)
    assert passive_plan(trace, 50, link) is None
    plan = passive_plan(trace, 60, link)
    assert plan is not None
    check_residency(plan, trace, 60)


@pytest.mark.parametrize("seed", range(6))
def test_recomputing_needs_no_link(seed: int) -> None:
    trace = training_step(seed, 24)
    limit = int(0.75 * peak_bytes(trace))
    nothing = MemoryLink(0, 0)
    plan = plan_residency(trace, limit, nothing, recompute=True, effort=Effort.of(1))
    assert plan is not None and not plan.transfers and plan.repeated_cycles > 0
    check_residency(plan, trace, limit)
    assert plan_residency(trace, limit, nothing, recompute=False, effort=Effort.of(1)) is None


def feedback(plan: Residency, capacity: int, link: MemoryLink) -> tuple[Residency, list[int]]:
    """The fastest plan as triggers move earlier until no back access waits, and the waits by iteration."""
    plans, waits = [with_times(plan, link)], [len(timeline(plan, link).waits)]
    while (further := earlier(plans[-1], timeline(plans[-1], link), capacity)) is not None:
        plans.append(with_times(further, link))
        waits.append(len(timeline(further, link).waits))
    return min(plans, key=lambda each: each.cycles), waits


@pytest.mark.parametrize("seed", range(6))
def test_passive_then_late_triggers_then_feedback(seed: int) -> None:
    trace, link = training_step(seed, 30), MemoryLink(0.1, 0.1, 1)
    limit = int(0.6 * peak_bytes(trace))
    passive = passive_plan(trace, limit, link)
    assert passive is not None and passive.exposed_cycles > 0
    check_residency(passive, trace, limit)
    times = [touch.cycles for touch in touches_of(passive, link)]
    assert times == sorted(times) and times[-1] <= sum(step.cycles for step in trace.steps)
    plan = plan_residency(trace, limit, link, recompute=False, effort=Effort.of(0.3))
    assert plan is not None and plan.cycles <= passive.cycles
    late = with_late_triggers(plan, link)
    check_residency(late, trace, limit)
    fed, _ = feedback(late, limit, link)
    check_residency(fed, trace, limit)
    assert fed.cycles <= late.cycles


def test_a_measured_wait_moves_its_trigger_until_it_is_gone() -> None:
    """One item of 10 bytes leaves for three steps of 10 cycles and takes 20 cycles to return."""
    item, other = Item("a", 10), Item("b", 10)
    write, read = (ItemAccess(0, True, 0),), (ItemAccess(0, False, 0),)
    full = (ItemAccess(1, True, 0), ItemAccess(1, False, 1))
    steps = (
        TraceStep("make", 10, write),
        TraceStep("full", 100, (full[0],)),
        TraceStep("full again", 10, (full[1],)),
        *(TraceStep(f"idle{n}", 10, ()) for n in range(3)),
        TraceStep("use", 10, read),
    )
    trace, link = Trace((item, other), steps), MemoryLink(0.5, 1)
    passive = passive_plan(trace, 10, link)
    assert passive is not None
    assert [(p.direction, p.start) for p in passive.transfers] == [("out", 1), ("in", 6)]
    fed, waits = feedback(passive, 10, link)
    assert waits == [2, 1]  # the core waits for the copy out in any case
    assert [(p.direction, p.start) for p in fed.transfers] == [("out", 1), ("in", 4)]
    assert fed.exposed_cycles == 10
    check_residency(fed, trace, 10)


def test_times_by_hand() -> None:
    """10 bytes at 2 B per cycle and a latency of 1: 6 cycles, of which 5 run beside a step of 5."""
    item = Item("a", 10, given=True)
    steps = (TraceStep("idle", 5, ()), TraceStep("use", 3, (ItemAccess(0, False, 0, 10),)))
    trace = Trace((item,), steps)
    link = MemoryLink(2, 2, 1)
    plan = plan_residency(trace, 10, link, recompute=False, effort=Effort.of(0.1))
    assert plan is not None
    assert plan.transfers == (ItemTransfer(0, "in", 0, 1),)
    run_of = timeline(plan, link)
    assert run_of.starts == (0, 6, 9)
    assert run_of.exposed_cycles == 1
    alone = plan_residency(trace, 9, link, recompute=False, effort=Effort.of(0.1))
    assert alone is not None and not alone.transfers
    assert alone.exposed_cycles == 5  # read directly, for lack of room


def test_a_step_that_needs_too_much_is_named() -> None:
    trace = Trace((Item("a", 10),), (TraceStep("small", 1, ()), TraceStep("big", 1, (ItemAccess(0, True),))))
    with pytest.raises(FitError, match=r"step 1 \(big\) needs 10 B of fast memory by itself"):
        plan_residency(trace, 9, MemoryLink(1, 1), recompute=True, effort=Effort.of(0.1))


def test_the_same_effort_gives_the_same_plan() -> None:
    trace, link = training_step(3, 40), MemoryLink(0.05, 0.05)
    limit = int(0.6 * peak_bytes(trace))
    plans = [
        plan_residency(trace, limit, link, recompute=True, effort=Effort.of(0.3), reorder=True)
        for _ in range(2)
    ]
    assert plans[0] == plans[1]


def test_a_trigger_goes_as_far_back_as_the_wait_was_long() -> None:
    """Four steps of 100 cycles in between; the transfer takes 250, and begins a step before its reader."""
    items = (Item("kept", 250, given=True),)
    steps = tuple(TraceStep(f"s{n}", 100, (ItemAccess(0, False),) if n in {0, 5} else ()) for n in range(6))
    places = (
        Residence(Interval(0, 6), SLOW),
        Residence(Interval(0, 1), FAST),
        Residence(Interval(5, 6), FAST),
    )
    transfers = (ItemTransfer(0, "in", 0, 0), ItemTransfer(0, "in", 5, 5))
    link = MemoryLink(1.0, 1.0)
    plan = Residency(Trace(items, steps), (places,), transfers, 0, 0, 0, 0)
    moved = earlier(plan, timeline(plan, link), 1000)
    assert moved is not None and [one.start for one in moved.transfers] == [0, 2]
    assert [wait.transfer for wait in timeline(moved, link).waits] == [0]
    assert earlier(plan, timeline(plan, link), 100) is None


def test_where_a_step_is_tight_the_operand_that_waits_least_is_direct() -> None:
    items = (Item("fixed", 100, fixed=True), Item("a", 300), Item("b", 300), Item("state", 50))
    accesses = (
        ItemAccess(0, False, 0),
        ItemAccess(1, False, 1, 900),
        ItemAccess(2, False, 2, 300),
        ItemAccess(3, False, 3),
    )
    trace = Trace(items, (TraceStep("one", 1.0, accesses, work_bytes=10),))
    assert tight_operands(trace, 800) == [frozenset()]
    assert tight_operands(trace, 500) == [frozenset({2})]
    assert tight_operands(trace, 200) == [frozenset({1, 2})]


def test_a_step_without_room_reads_an_item_in_the_slow_memory_that_is_in_the_fast_one() -> None:
    items = (Item("a", 300), Item("b", 300, kept=True))
    write, read = ItemAccess(0, True, 0, 300), ItemAccess(0, False, 0, 300)
    steps = (
        TraceStep("first", 10, (write,)),
        TraceStep("second", 10, (read, ItemAccess(1, True, 1, 600))),
    )
    trace, link = Trace(items, steps), MemoryLink(1, 1)
    plan = plan_residency(trace, 500, link, recompute=False, effort=Effort.of(0.1))
    assert plan is not None and plan.exposed_cycles > 0
    check_residency(plan, trace, 500)
