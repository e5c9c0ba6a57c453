"""Compaction: if fixed offsets need more than the peak, blocks move to make room.

The live blocks always fit in total, but free space can be fragmented. Rectangles are placed by birth. If no
gap is large enough, others make room: neighbours close up, downwards or upwards, or one moves to another gap.
This happens between two steps and needs no additional memory. Without fragmentation a simple rule decides.
Near a step with fragmentation, the place or move is chosen after which the next births cost least by the
rules (the pilot method of Duin and Voss, 1999).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mcudeploy.common.effort import Effort
from mcudeploy.costs.tiles import CopyCost
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.rectangles import PlacementProblem
from mcudeploy.planner.place.placement_problem import align_up, stacks_at_the_top

_TRIES = ((16, (1,)), (32, (1, 3)), (64, (1, 3)), (128, (0, 1, 3, 4)))
"""How many births ahead a choice is evaluated, and by which rules (`compaction_loops`), cheapest first.

No combination dominates, so the best result of all counts.
"""

_UNITS = 0.02
"""Effort of one examined rectangle."""

_RECORD = 1000.0
"""The cost of a move in addition to its ticks: some 34 bytes of flash."""


Pinned = Mapping[int, Interval]
"""The rectangles, by index, that may move only before some steps."""

NEVER = Interval(0, 0)


@dataclass(frozen=True, slots=True)
class Relocated:
    """Offsets at birth by rectangle; and moves in order: step before which, rectangle, offset."""

    offsets: tuple[int, ...]
    moves: tuple[tuple[int, int, int], ...]


def relocate(
    problem: PlacementProblem, room: int, pinned: Pinned, price: CopyCost, effort: Effort
) -> Relocated | None:
    """Return offsets within `room` bytes with the cheapest moves found; None if there are none.

    Rectangles of stacks, which lie at the top or at the bottom, and `pinned` ones move only before the given
    steps. A rematerialised block may have another offset.
    """
    import numpy as np  # noqa: PLC0415 - with the loops below it takes its time

    from mcudeploy.common.compiled import vector  # noqa: PLC0415
    from mcudeploy.planner.place import compaction_loops as loops  # noqa: PLC0415

    live = [index for index, item in enumerate(problem.rectangles) if len(item.life)]
    items = [problem.rectangles[index] for index in live]
    number = {index: at for at, index in enumerate(live)}
    birth = np.array([item.life.lo for item in items], np.int64)
    death = np.array([item.life.hi for item in items], np.int64)
    size = np.array([item.size_bytes for item in items], np.int64)
    scene = loops.MoveTable(
        vector(birth),
        vector(death),
        vector(size),
        vector(np.array([item.alignment for item in items], np.int64)),
        vector(np.zeros(len(live), np.int64)),
        vector(np.full(len(live), np.iinfo(np.int64).max)),
        room,
        vector(np.array([price.move + _RECORD, price.piece, price.byte])),
    )
    stay = {**pinned, **dict.fromkeys((index for stack in problem.stacks for index in stack), NEVER)}
    for index, steps in stay.items():
        if index in number:
            scene.free[number[index]], scene.held[number[index]] = steps.lo, steps.hi
    order = np.lexsort((-size, -death, birth))
    best, least = None, np.inf
    for ahead, rules in _TRIES:
        for given in _stacks(problem, room):
            base = np.full(len(live), -1, np.int64)
            base[[number[index] for index in given]] = list(given.values())
            most = int(min(effort.left / _UNITS, 1 << 62))
            if least == 0 or most <= 0:
                break
            pilot = loops.Pilot(ahead, vector(np.array(rules)), most)
            births = vector(order[base[order] < 0])
            cost, done, offsets, moves = loops.relocate(scene, births, vector(base), pilot)
            effort.spend(_UNITS * done)
            if cost < least:
                best, least = (offsets, moves), cost
    if best is None:
        return None
    offsets_of = [0] * len(problem.rectangles)
    for index, offset in zip(live, best[0], strict=True):
        offsets_of[index] = int(offset)
    step, at, to = (list(map(int, best[1][column::3])) for column in range(3))
    moved = zip(step, (live[number] for number in at), to, strict=True)
    return Relocated(tuple(offsets_of), tuple(moved))


def _stacks(problem: PlacementProblem, room: int) -> Iterator[dict[int, int]]:
    """Yield offsets of stacked rectangles, at the top and at the bottom; one empty table without stacks.

    Which is better depends on the end from which the rows die.
    """
    if not problem.stacks:
        yield {}
        return
    rectangles = problem.rectangles
    bottom = sum(
        align_up(sum(rectangles[index].size_bytes for index in stack), rectangles[stack[0]].alignment)
        for stack in problem.stacks
    )
    for top in (room, bottom):
        start = stacks_at_the_top(problem, top)
        end = max(at + rectangles[index].size_bytes for index, at in start.items())
        if min(start.values()) >= 0 and end <= room:
            yield start
