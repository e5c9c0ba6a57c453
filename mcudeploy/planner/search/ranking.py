"""The order of plans by price, the faster plans for more memory, and the plans that could win."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log2

from mcudeploy.boards.board import Board
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.planner.search import placing
from mcudeploy.planner.search.best_first import Candidate
from mcudeploy.planner.search.task import SearchTask

_STEP_FLASH, _MOVE_FLASH, _FLASH_OF_RAM = 6, 100, 8
"""Average bytes of tables in flash for a step and for a move; bytes of flash that count as one byte of RAM.

Microcontrollers have about eight times as much flash as RAM.
"""

_TIME_WEIGHT = log2(1.01)
"""Exponent of the latency in the price: doubling the latency counts as 1 % more RAM."""


def front(
    plans: Sequence[Plan], board: Board, limit_bytes: float = inf, best: Plan | None = None
) -> tuple[Plan, ...]:
    """Return the best plan (or `best` if given), and the plans that are faster but need more memory."""
    ranked = sorted(plans, key=lambda plan: sort_key(plan, board, limit_bytes))
    chosen = [best or ranked[0]]
    for plan in ranked:
        smaller = placing.cost_key(plan, board) < placing.cost_key(chosen[0], board)
        if plan.estimate.latency_ticks < chosen[-1].estimate.latency_ticks and not smaller:
            chosen.append(plan)
    return tuple(chosen)


def sort_key(plan: Plan, board: Board, limit_bytes: float = inf) -> tuple[float, float, float, bool]:
    """Return the key of a plan (lower is better): bytes that do not fit, the latency if there are avoidable
    stalls, and the price.

    The price is RAM, with weighted tables in flash and time; with a limit for RAM it is the latency without
    avoidable stalls. An arena fits if it keeps the limit.
    """
    beyond, stalled_latency, ram_bytes = placing.cost_key(plan, board)
    tables = _STEP_FLASH * len(plan.schedule.steps) + _MOVE_FLASH * len(plan.layout.transfers)
    price = (ram_bytes + tables / _FLASH_OF_RAM) * max(1.0, plan.estimate.unavoidable_ticks) ** _TIME_WEIGHT
    too_large = beyond + max(0, plan.layout.arena_bytes - limit_bytes)
    if limit_bytes < inf and not too_large:
        price = plan.estimate.unavoidable_ticks
    return too_large, stalled_latency, price, plan.schedule.status != "optimal"


def could_win(peak_bytes: float, stack_bytes: int, best: tuple[int, float, int]) -> bool:
    """Return whether better packing could make a plan cheaper than `best`, a `cost_key`.

    It could if its peak and its stack are below the RAM of the best, or if that overflows a memory or stalls.
    """
    beyond, stalled_latency, ram_bytes = best
    least = align_up(int(peak_bytes), ARENA_GRAIN_BYTES) + stack_bytes
    return bool(beyond or stalled_latency) or least < ram_bytes


def worth_placing(task: SearchTask, candidate: Candidate, plans: Sequence[Plan]) -> bool:
    """Return whether a candidate's plan could be the fastest that fits, or the smallest if none fits."""
    fitting = [plan.estimate.ticks for plan in plans if task.fits(plan)]
    if fitting:
        return candidate.level_bytes <= task.ram_limit and candidate.ticks < min(fitting)
    return _worth_packing(task, candidate.level_bytes, plans)


def _worth_packing(task: SearchTask, peak_bytes: float, plans: Sequence[Plan]) -> bool:
    demands = [placing.cost_key(plan, task.board) for plan in plans]
    return not demands or could_win(peak_bytes, task.model.form.stack_bytes, min(demands))


def worth_moving(task: SearchTask, plan: Plan, plans: Sequence[Plan]) -> bool:
    """Return whether a plan could be the best with moves.

    Its peak decides; if the core waits for slow memories, its latency bound decides. If another plan keeps
    the RAM limit, only a faster one with a peak within the limit is worth it.
    """
    fitting = [one.estimate.ticks for one in plans if task.fits(one)]
    if fitting:
        return task.nearly_fits(plan) and plan.estimate.ticks < min(fitting)
    _, latency, _ = min(placing.cost_key(one, task.board) for one in plans)
    if plan.estimate.avoidable_ticks and latency:
        return placing.latency_bound(plan, task.model, task.board) < latency
    return _worth_packing(task, plan.estimate.peak_bytes, plans)
