"""Offsets in one memory for a plan: first fit and, if that exceeds the live bytes, compaction."""

from __future__ import annotations

from dataclasses import dataclass

from mcudeploy.common.effort import Effort
from mcudeploy.costs.tiles import BlockTimes, CopyCost
from mcudeploy.ir.rectangles import PlacementProblem
from mcudeploy.planner.place.compaction import Pinned, relocate
from mcudeploy.planner.place.greedy import Clusters, fixed_orders, used_bytes
from mcudeploy.planner.place.placement_problem import align_up, lower_bound

ARENA_GRAIN_BYTES = 8
"""An arena's size is a multiple of this, like that of the C array."""

SAVED_BYTES = 4
"""The minimum RAM that a move saves, on average over a plan.

A move takes some 34 bytes of flash; microcontrollers have about eight times as much flash as RAM.
"""

_SIZES, _SIZE_SHARE = 4, 0.5
"""The number of arena sizes tried below the result of first fit, and each one's share of the effort left."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The cost of moves, the effort of their search beyond its first tries, and step times.

    Step times matter if blocks may leave a memory.
    """

    price: CopyCost
    effort: Effort
    costs: BlockTimes | None = None


@dataclass(frozen=True, slots=True)
class Packed:
    """Offsets at birth by rectangle, moves (step before which, rectangle, offset), and arena sizes in bytes.

    The sizes are the one used, and a lower bound over all offsets and moves.
    """

    offsets: tuple[int, ...]
    moves: tuple[tuple[int, int, int], ...]
    used_bytes: int
    bound_bytes: int


def pack(
    problem: PlacementProblem, pinned: Pinned, budget: Budget | None, capacity: int | None = None
) -> Packed:
    """Return the offsets and moves of the smallest arena found.

    Moves are made if each saves `SAVED_BYTES` on average, or if the arena exceeds the capacity (bytes)
    without them. `pinned` rectangles move only before the given steps. Without a budget nothing moves.
    """
    bound = align_up(lower_bound(problem), ARENA_GRAIN_BYTES)
    offsets = fixed_orders(Clusters.of(problem), bound)
    used = align_up(used_bytes(problem, offsets), ARENA_GRAIN_BYTES)
    fixed = Packed(offsets, (), used, bound)
    if budget is None or used <= bound:
        return fixed
    sizes = dict.fromkeys(
        align_up(bound + (used - bound) * part // _SIZES, ARENA_GRAIN_BYTES) for part in range(_SIZES)
    )
    for size in sizes:
        relocated = relocate(problem, size, pinned, budget.price, budget.effort.part(_SIZE_SHARE))
        if relocated is None:
            continue
        ends = [offset + problem.rectangles[index].size_bytes for _, index, offset in relocated.moves]
        needed = align_up(max([used_bytes(problem, relocated.offsets), *ends]), ARENA_GRAIN_BYTES)
        needs_moves = capacity is not None and needed <= capacity < used
        if needs_moves or used - needed >= SAVED_BYTES * len(relocated.moves):
            return Packed(relocated.offsets, relocated.moves, needed, bound)
    return fixed
