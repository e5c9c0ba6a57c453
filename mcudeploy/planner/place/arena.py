"""Offsets in one memory for a plan: first fit, and where that needs more than is alive, relocation."""

from __future__ import annotations

from dataclasses import dataclass

from mcudeploy.common.effort import Effort
from mcudeploy.cost.tiles import CopyCost, Costs
from mcudeploy.planner.place.compaction import Pinned, relocate
from mcudeploy.planner.place.greedy import Clusters, fixed_orders, used_bytes
from mcudeploy.planner.place.placement_problem import PlacementProblem, align_up, lower_bound

ARENA_GRAIN_BYTES = 8
"""An arena's size is a multiple of this, as the C array that holds it is."""

SAVED_BYTES = 4
"""What a move saves of RAM at least, on the average of a plan: it takes some 34 bytes of flash, of which
microcontrollers have about eight times as much.
"""

_SIZES = 4
"""Arenas are tried at so many sizes between the bound and what first fit needs."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What moves cost, and the effort of the search for them beyond its first tries; and times of steps,
    where blocks may leave a memory.
    """

    price: CopyCost
    effort: Effort
    costs: Costs | None = None


@dataclass(frozen=True, slots=True)
class Packed:
    """Offsets at birth by rectangle, moves (step before which, rectangle, offset), and arena sizes in bytes:
    the one that is used, and one that no offsets and moves go below.
    """

    offsets: tuple[int, ...]
    moves: tuple[tuple[int, int, int], ...]
    used_bytes: int
    bound_bytes: int


def pack(
    problem: PlacementProblem, pinned: Pinned, relocation: Budget | None, capacity: int | None = None
) -> Packed:
    """The smallest arena that is found. Moves are made where each saves `SAVED_BYTES`, on the average, or
    where the arena does not keep the capacity (bytes) without. `pinned` rectangles do not move, but in the
    steps said. Without a relocation nothing does.
    """
    bound = align_up(lower_bound(problem), ARENA_GRAIN_BYTES)
    offsets = fixed_orders(Clusters.of(problem), bound)
    used = align_up(used_bytes(problem, offsets), ARENA_GRAIN_BYTES)
    fixed = Packed(offsets, (), used, bound)
    if relocation is None or used <= bound:
        return fixed
    sizes = dict.fromkeys(
        align_up(bound + (used - bound) * part // _SIZES, ARENA_GRAIN_BYTES) for part in range(_SIZES)
    )
    for size in sizes:
        found = relocate(problem, size, pinned, relocation.price, relocation.effort)
        if found is None:
            continue
        ends = [offset + problem.rectangles[index].size_bytes for _, index, offset in found.moves]
        needed = align_up(max([used_bytes(problem, found.offsets), *ends]), ARENA_GRAIN_BYTES)
        fits_so = capacity is not None and needed <= capacity < used
        if fits_so or used - needed >= SAVED_BYTES * len(found.moves):
            return Packed(found.offsets, found.moves, needed, bound)
    return fixed
