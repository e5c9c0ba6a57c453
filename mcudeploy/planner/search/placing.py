"""The order and the offsets of a cut graph on a board."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from math import inf

from mcudeploy.boards.board import Board
from mcudeploy.common.effort import Effort
from mcudeploy.costs.estimate import CoreCosts, estimated
from mcudeploy.costs.stalls import Pace
from mcudeploy.costs.tiles import (
    CopyCost,
    Costs,
    TileSource,
    move_price,
    schedule_ticks,
    step_ticks,
    timed_blocks,
)
from mcudeploy.ir.engine import CPU
from mcudeploy.ir.plan import Layout, Plan, Schedule, Split
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.offload.access_trace import draft_of
from mcudeploy.planner.offload.memory_pair import MemoryPair
from mcudeploy.planner.offload.room import over_time, promises
from mcudeploy.planner.order.derived import without_idle_memory
from mcudeploy.planner.order.portfolio import DEFAULT, best_order
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.planner.order.tiled import problem_of, schedule_of
from mcudeploy.planner.place.arena import Budget
from mcudeploy.planner.place.solve import estimate, spread
from mcudeploy.planner.place.tagged import Tags, tag_schedule, tags_of
from mcudeploy.planner.search.tile_times import shared_costs
from mcudeploy.tiling.blocks import TiledGraph, whole
from mcudeploy.tiling.live import WorkBytes
from mcudeploy.tiling.traffic import step_loads

QUICK = ("chain_dfs", "refine", "beam")
"""Methods that find a better order quickly, if there is one."""


_HIDDEN = 0.002
"""The share of time that the core may wait before other placements of inputs are tried."""


def unsplit_schedule(model: Model, effort: Effort) -> Schedule:
    """Return the order of the operators with the least peak found, without idle memory.

    Graphs with states, such as training steps, keep their order: `lora:4` of kws01 needs 20 % less memory so.
    """
    tiled = whole(model.graph)
    schedule = reordered(model, tiled, reverse_post_order(tiled), effort)
    if model.graph.states:
        return schedule
    problem = problem_of(tiled, model.work, steps=schedule.steps)
    order = without_idle_memory(problem, range(problem.steps))
    return replace(schedule, steps=tuple(schedule.steps[step] for step in order))


def unsplit_plan(
    model: Model,
    board: Board,
    schedule: Schedule,
    budget: Budget | None = None,
    transfers: Effort | None = None,
    *,
    fixed: bool = False,
) -> Plan:
    """Return the unsplit plan in this order.

    Unless the order is `fixed`, a depth-first order replaces it if the plan then costs less. `transfers`: the
    effort for blocks that temporarily leave the fast memory, if the core waits.
    """
    tiled = whole(model.graph)
    plan = placed(model, board, tiled, schedule, budget=budget)
    if plan.layout.arena_bytes <= plan.estimate.peak_bytes and cost_key(plan, board)[:2] == (0, 0):
        return plan
    ways = () if fixed else (True, False)
    schedules = (reverse_post_order(tiled, first_input_first) for first_input_first in ways)
    others = (placed(model, board, tiled, schedule, budget=budget) for schedule in schedules)
    plans = sorted((plan, *others), key=lambda one: cost_key(one, board))
    if budget is None or transfers is None:
        return plans[0]
    orders = {plan.schedule.steps: plan for plan in reversed(plans)}
    for number, plan in enumerate(orders.values()):
        own = replace(budget, effort=transfers.part(1 / (len(orders) - number)))
        plans += _over_time(plan, model, board, tiled, own)
    return min(plans, key=lambda one: cost_key(one, board))


def tagged_plan(model: Model, board: Board) -> Plan:
    """Return the unsplit plan in which tensors share memory by their tags (`place.tagged`)."""
    tiled, schedule = whole(model.graph), tag_schedule(model.graph, model.functions)
    tags = tags_of(model.graph, board, model.functions)
    return placed(model, board, tiled, schedule, tags=tags)


def cost_key(plan: Plan, board: Board) -> tuple[int, float, int]:
    """Return the key by which plans are compared, less is better.

    First comes the overflow of the board's memories in bytes, then the latency if the core stalls avoidably.
    Last come the bytes of the arenas, with the stack that the plan's form needs in addition.
    """
    memories = {memory.name: memory for memory in board.memories}
    beyond = sum(max(0, size - board.room(memories[it])) for it, size in plan.layout.arenas.items())
    latency = plan.estimate.latency_ticks if plan.estimate.avoidable_ticks else 0.0
    return beyond, latency, plan.layout.arena_bytes + plan.form.stack_bytes


def waits(plan: Plan, board: Board) -> bool:
    """Return whether a core waits for a slow memory, or something has no room in the fast one."""
    return MemoryPair.of(board) is not None and cost_key(plan, board)[:2] != (0, 0)


def reordered(
    model: Model,
    tiled: TiledGraph,
    schedule: Schedule,
    effort: Effort,
    methods: Collection[str] = DEFAULT,
) -> Schedule:
    """Return the schedule, which must not repeat steps, in the order with the least peak found."""
    best = best_order(problem_of(tiled, model.work, steps=schedule.steps), effort, methods)
    ordered = schedule_of(schedule.steps, best.order, best.status)
    return replace(ordered, lower_bound_bytes=best.lower_bound_bytes)


def placed(
    model: Model,
    board: Board,
    tiled: TiledGraph,
    schedule: Schedule,
    *,
    splits: tuple[Split, ...] = (),
    budget: Budget | None = None,
    tags: Tags | None = None,
    ticks: float = 0.0,
) -> Plan:
    """Return the plan with a memory and an offset for everything.

    Blocks move if there is a budget, and tensors of one tag have one place if there are `tags`. `ticks`: of
    its steps, if they are known.
    """
    layout = spread(tiled, schedule, model.work, board, model.functions, budget, tags)
    pace = _pace(tiled, schedule, board, budget, ticks)
    return Plan(
        model.graph,
        board.name,
        tiled.block_rows,
        schedule,
        layout,
        estimate(tiled, schedule.steps, model.work, layout, pace),
        model.form,
        splits,
        model.functions,
        kernels=model.kernels,
        leads=tiled.leads,
        parameters=model.parameters,
    )


def _pace(
    tiled: TiledGraph, schedule: Schedule, board: Board, budget: Budget | None, ticks: float = 0.0
) -> Pace:
    if budget is None:
        return Pace(board, ticks)
    steps = () if budget.costs is None else step_ticks(tiled, schedule.steps, budget.costs)
    return Pace(board, ticks, steps, budget.price)


def _over_time(plan: Plan, model: Model, board: Board, tiled: TiledGraph, budget: Budget) -> Iterator[Plan]:
    """Yield plans with offloading if the core would stall for slow memories, or if something does not fit."""
    if budget.costs is None or not waits(plan, board):
        return
    pair = MemoryPair.serving(plan, board)
    if pair is None:
        return
    cycles = step_ticks(tiled, plan.schedule.steps, budget.costs)
    draft = draft_of(tiled, plan, model.work, board)
    for numbers, layout in over_time(draft, pair, budget, cycles):
        steps = tuple(plan.schedule.steps[at] for at in numbers)
        times = [cycles[at] for at in numbers]
        other = plan
        if len(steps) > len(cycles):
            figures = replace(plan.estimate, ticks=plan.estimate.ticks + sum(times) - sum(cycles))
            other = replace(plan, schedule=Schedule(steps, "feasible"), estimate=figures)
        changed = _in_layout(other, layout, model.work, tiled, Pace(board, 0.0, times, budget.price))
        yield changed
        if changed.estimate.exposed_ticks < _HIDDEN * sum(cycles) or budget.effort.is_spent():
            return


def promised_ticks(plan: Plan, model: Model, board: Board, tiled: TiledGraph, budget: Budget) -> float:
    """Return the latency of a plan with offloading that a short search promises, in ticks; inf without one.

    The step times of `budget` are needed.
    """
    pair = MemoryPair.serving(plan, board)
    if pair is None or budget.costs is None:
        return inf
    cycles = step_ticks(tiled, plan.schedule.steps, budget.costs)
    ranked = promises(draft_of(tiled, plan, model.work, board), pair, budget, cycles)
    return min((latency for latency, _ in ranked), default=inf)


def moved(plan: Plan, model: Model, board: Board, tiled: TiledGraph, budget: Budget) -> Plan:
    """Return the plan with moves of blocks if these save RAM, or time; its ticks include the moves."""
    if plan.layout.status == "optimal" and not plan.layout.transfers and not plan.estimate.avoidable_ticks:
        return plan
    plans = [plan, *_over_time(plan, model, board, tiled, budget)]
    if len(plans) == 1:
        layout = spread(tiled, plan.schedule, model.work, board, model.functions, budget)
        pace = _pace(tiled, plan.schedule, board, budget)
        plans.append(_in_layout(plan, layout, model.work, tiled, pace))
    return min(plans, key=lambda one: (cost_key(one, board), one.estimate.ticks))


def _in_layout(plan: Plan, layout: Layout, work: WorkBytes, tiled: TiledGraph, pace: Pace) -> Plan:
    """Return the plan in another layout; its ticks include the moves there."""
    before, after = (moves_ticks(it, tiled, pace.price) for it in (plan.layout, layout))
    pace = replace(pace, ticks=plan.estimate.ticks - before + after)
    return replace(plan, layout=layout, estimate=estimate(tiled, plan.schedule.steps, work, layout, pace))


def timed(plan: Plan, model: Model, board: Board, tiles: TileSource, price: CopyCost) -> Plan:
    """Return the plan with its ticks and stalls.

    The ticks are those of its steps by the kernels of `model`, and of its moves.
    """
    steps = plan.schedule.steps
    tiled = TiledGraph.of(plan)
    costs = _costs(plan, tiled, model, tiles)
    distinct = tuple(dict.fromkeys(steps))
    once = schedule_ticks(tiled, distinct, costs)
    counts = zip(plan.graph.operators, tiled.step_counts, strict=True)
    skips = len(distinct) < sum(count for operator, count in counts if not operator.op.is_view)
    skips |= costs.starts is not None  # the starts of a unit depend on the order
    all_once = once if skips else costs.ticks(tiled.step_rows)  # a block that no step reads is not computed
    ticks = all_once + schedule_ticks(tiled, steps, costs) - once
    ticks += moves_ticks(plan.layout, tiled, price)
    pace = Pace(board, ticks, step_ticks(tiled, steps, costs), price)
    return replace(plan, estimate=estimate(tiled, steps, model.work, plan.layout, pace))


def estimates_of(plan: Plan, model: Model, costs: CoreCosts) -> TileSource:
    """Return estimated times of a plan's tiles: what the plan loads does not wait for flash."""
    return estimated(costs, {*model.in_ram, *plan.layout.constants})


def with_estimates(plan: Plan, model: Model, board: Board, costs: CoreCosts) -> Plan:
    """Return the plan with its estimated ticks and stalls."""
    tiles = estimates_of(plan, model, costs)
    return timed(plan, model, board, tiles, move_price(tiles))


def estimated_steps(plan: Plan, model: Model, costs: CoreCosts) -> list[float]:
    """Return the estimated ticks of each step of a plan, without stalls for slow memories."""
    tiled, tiles = TiledGraph.of(plan), estimates_of(plan, model, costs)
    return step_ticks(tiled, plan.schedule.steps, _costs(plan, tiled, model, tiles))


def _costs(plan: Plan, tiled: TiledGraph, model: Model, tiles: TileSource) -> Costs:
    wanted = (
        (operator, model.calls[operator.name], rows)
        for position, operator in enumerate(plan.graph.operators)
        if not operator.op.is_view
        for rows, _ in timed_blocks(tiled.flow, position, tiled.step_rows[position])
    )
    return shared_costs(model, tiled.flow, tiles(plan.graph, wanted))


def moves_ticks(layout: Layout, tiled: TiledGraph, price: CopyCost) -> float:
    """Return the ticks of the core for the transfers of a layout, and for their waits."""
    ticks = 0.0
    for transfer in layout.transfers:
        old, new = layout.way(transfer)
        size = tiled.moved_bytes(layout, transfer)
        if transfer.engine != CPU:
            ticks += 2 * price.move
        elif old.memory == new.memory:
            ticks += price.ticks(size, abs(new.offset - old.offset))
        else:
            ticks += price.ticks(size, size)
    return ticks + sum(2 * price.move * it.transfers for _, _, it in layout.in_pieces())


def latency_bound(plan: Plan, model: Model, board: Board) -> float:
    """Return a lower bound of the latency of a plan whose fast memory is too small, 0 for other plans.

    The overflow at the peak leaves and returns at least once. The overflow of a single step is read from the
    slow memory.
    """
    slow = [memory for memory in board.memories if not memory.is_fast]
    if not plan.estimate.avoidable_ticks or not slow:
        return 0.0
    room = sum(board.room(memory) for memory in board.memories if memory.is_fast)
    excess = max(0, plan.estimate.peak_bytes - room)
    tiled = TiledGraph.of(plan)
    loads = [max(each, default=1.0) for each in step_loads(tiled, model.work)]
    direct = 0.0
    for step in plan.schedule.steps:
        operator = plan.graph.operators[step.operator]
        written = 0 if operator.op.accumulates else step.block
        blocks = {*(one for read in tiled.blocks_read(step) for one in read), (operator.output, written)}
        size = sum(model.work[operator.name]) + sum(tiled.block_bytes(*one) for one in blocks)
        direct += max(0, size - room) * loads[step.operator]
    return plan.estimate.ticks + min(
        excess * (it.read_cost + it.write_cost) + direct * it.read_cost for it in slow
    )
