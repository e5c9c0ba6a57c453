"""An order and offsets for a graph that is cut in some way, on a board."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from mcudeploy.board import Board
from mcudeploy.layout.problem import align_up
from mcudeploy.layout.solve import ARENA_GRAIN_BYTES, spread, with_moves
from mcudeploy.model import Model
from mcudeploy.plan import Plan, Schedule, Split
from mcudeploy.scheduler.portfolio import METHODS, best_order
from mcudeploy.scheduler.rpo import reverse_post_order
from mcudeploy.scheduler.tiled import problem_of, schedule_of
from mcudeploy.simulator.blocks import TiledGraph, whole
from mcudeploy.simulator.cost import MovePrice
from mcudeploy.simulator.whereabouts import Whereabouts

ORDERING_S, PACKING_S = 20.0, 2.0
"""What an unsplit plan may take. Its order is proven in less than a second, as a rule."""

_SAVED_BYTES = 4
"""What a move saves of RAM at least, on the average of a plan: it takes some 34 bytes of flash, of which
microcontrollers have about eight times as much.
"""


def unsplit_schedule(model: Model) -> Schedule:
    """The order of the operators with the least peak that is found."""
    tiled = whole(model.graph)
    return reordered(model, tiled, reverse_post_order(tiled), ORDERING_S)


def unsplit_plan(model: Model, board: Board) -> Plan:
    """The unsplit plan: the best order, or a depth-first one where that needs no larger arena."""
    tiled = whole(model.graph)
    plan = placed(model, board, tiled, unsplit_schedule(model))
    if plan.layout.arena_bytes <= plan.estimate.peak_bytes and demand(plan, board)[:2] == (0, 0):
        return plan
    schedules = (reverse_post_order(tiled, first_input_first) for first_input_first in (True, False))
    others = (placed(model, board, tiled, schedule) for schedule in schedules)
    return min((plan, *others), key=lambda one: demand(one, board))


def demand(plan: Plan, board: Board) -> tuple[int, float, int]:
    """What plans are compared by, the less the better: bytes beyond the room of the board's memories, what
    access costs more than it would in the cheapest of them, and the bytes of the arenas.
    """
    memories = {memory.name: memory for memory in board.memories}
    least = min(memory.cost for memory in board.memories)
    beyond = sum(max(0, size - board.room(memories[it])) for it, size in plan.layout.arenas.items())
    dearer = sum(count * (memories[it].cost - least) for it, count in plan.estimate.traffic.items())
    return beyond, dearer, plan.layout.arena_bytes


def reordered(
    model: Model,
    tiled: TiledGraph,
    schedule: Schedule,
    seconds: float,
    methods: Collection[str] = METHODS,
) -> Schedule:
    """The schedule, in which no step may be repeated, in the order with the least peak that is found."""
    found = best_order(problem_of(tiled, model.work, steps=schedule.steps), seconds, methods=methods)
    ordered = schedule_of(schedule.steps, found.order, found.status)
    return replace(ordered, lower_bound_bytes=found.lower_bound_bytes)


def placed(
    model: Model,
    board: Board,
    tiled: TiledGraph,
    schedule: Schedule,
    *,
    splits: tuple[Split, ...] = (),
    seconds: float = PACKING_S,
) -> Plan:
    """The plan with a memory and an offset for everything."""
    layout, estimate = spread(tiled, schedule, model.work, board, model.functions, seconds=seconds)
    return Plan(
        model.graph,
        board.name,
        tiled.block_rows,
        schedule,
        layout,
        estimate,
        model.form,
        splits,
        model.functions,
        kernels=model.kernels,
    )


def moved(
    plan: Plan, model: Model, board: Board, tiled: TiledGraph, price: MovePrice, *, seconds: float
) -> Plan:
    """The plan with an arena at its peak, its ticks with those of the moves; as it is where none are found or
    they save too little.
    """
    if plan.layout.arena_bytes <= align_up(plan.estimate.peak_bytes, ARENA_GRAIN_BYTES):
        return plan
    layout, estimate = with_moves(plan, tiled, model.work, board, price, seconds=seconds)
    if not worth_moving(plan.layout.arena_bytes - layout.arena_bytes, len(layout.moves)):
        return plan
    made = replace(plan, layout=layout, estimate=estimate)
    ticks = still_ticks(plan, tiled, price) + moves_ticks(made, tiled, price)
    return replace(made, estimate=replace(estimate, ticks=ticks))


def worth_moving(saved_bytes: int, moves: int) -> bool:
    """Whether so many moves may be made for so much RAM."""
    return saved_bytes > 0 and saved_bytes >= _SAVED_BYTES * moves


def still_ticks(plan: Plan, tiled: TiledGraph, price: MovePrice) -> float:
    """The ticks of a plan without those of its moves."""
    return plan.estimate.ticks - moves_ticks(plan, tiled, price)


def moves_ticks(plan: Plan, tiled: TiledGraph, price: MovePrice) -> float:
    """What the moves of a plan take."""
    ways = zip(plan.layout.moves, Whereabouts(plan.layout).ways(), strict=True)
    return sum(
        price.ticks(tiled.block_bytes(move.tensor, move.block), abs(new - old)) for move, (old, new) in ways
    )
