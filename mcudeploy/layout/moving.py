"""Offsets that change: where no fixed ones fit into an arena, some rectangles move out of the way.

What is alive fits into an arena of the largest live load, though not always without gaps. Rectangles are
placed by birth. One that finds no gap gets room from others: neighbours close ranks, up or down, or one goes
to another gap. That is done between two steps and needs no further memory. The spots and the ways are taken
that cost least as quick ways of placing the next births foretell it (the pilot method of Duin and Voss, 1999,
as in `sweep`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import product

from mcudeploy.layout import effort
from mcudeploy.layout.greedy import Units
from mcudeploy.layout.problem import Problem, align_up, stacks_at_the_top
from mcudeploy.simulator.cost import MovePrice

_TRIES = (
    (16, (1,)), (16, (0, 1)), (32, (1,)), (32, (0, 1)), (32, (1, 3)), (64, (1,)), (64, (2, 5)), (64, (0, 1)),
    (64, (1, 3)), (64, (0, 1, 3, 4)), (64, (0, 1, 2, 3, 4, 5)), (128, (1, 3)), (128, (0, 1, 3, 4)),
)  # fmt: skip
"""How many births ahead a choice is judged by, and by which quick ways (`beam.spots`) together; the cheapest
first. One does best here, another there: the best of all is taken. A beam of several states does no better.
"""

_FIRST_S = 5.0
"""The first tries may take as long; what is not done then is too large."""

_RECORDS = 1000.0
"""What a move counts for beside its ticks: it takes some 34 bytes of flash."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Offsets at birth by rectangle; and moves in order: step before which, rectangle, offset."""

    offsets: tuple[int, ...]
    moves: tuple[tuple[int, int, int], ...]


def fit(
    problem: Problem, limit: int, pinned: Collection[int], price: MovePrice, *, seconds: float
) -> Moved | None:
    """Offsets within `limit` bytes, and the cheapest moves that are found in `seconds` of effort; None where
    there are none.

    The problem has one memory, nothing fixed and no overlaps, and every rectangle one life at most. Those of
    stacks, which lie at the top or at the bottom, and the `pinned` ones do not move.
    """
    used = [index for index, item in enumerate(problem.rectangles) if item.lives]
    if not used:
        return Moved((0,) * len(problem.rectangles), ())
    number = {index: at for at, index in enumerate(used)}
    live = replace(
        problem,
        rectangles=tuple(problem.rectangles[index] for index in used),
        stacks=tuple(tuple(number[index] for index in stack) for stack in problem.stacks),
    )
    stay = [number[index] for index in pinned if index in number]
    found = _searched(live, limit, stay, price, seconds=seconds)
    if found is None:
        return None
    offsets = [0] * len(problem.rectangles)
    for index, offset in zip(used, found.offsets, strict=True):
        offsets[index] = offset
    moves = tuple((step, used[index], offset) for step, index, offset in found.moves)
    return Moved(tuple(offsets), moves)


def _searched(
    problem: Problem, limit: int, pinned: Collection[int], price: MovePrice, *, seconds: float
) -> Moved | None:
    import numpy as np  # noqa: PLC0415 - with the loops below it takes its time

    from mcudeploy.layout import slides  # noqa: PLC0415
    from mcudeploy.layout.sweep import Sweep  # noqa: PLC0415

    sweep = Sweep.of(Units.of(problem))
    starts = _stacks(problem, limit)
    if sweep is None:
        return None
    count = len(problem.rectangles)
    movable = np.ones(count, np.bool_)
    movable[[*(index for stack in problem.stacks for index in stack), *pinned]] = False
    order = np.lexsort((-sweep.size, -sweep.hi, sweep.lo))
    items = (sweep.lo, sweep.hi, sweep.size, sweep.grain, sweep.kind)
    prices = np.array([price.move + _RECORDS, price.piece, price.byte])
    left, best, least, each = seconds * effort.SLID, None, np.inf, 0.0
    first = max(left, _FIRST_S * effort.SLID)
    for number, ((sight, tastes), given) in enumerate(product(_TRIES, starts)):
        if least == 0 or (number >= len(starts) and left < each * sight * len(tastes)):
            break
        base = np.array([given.get(index, -1) for index in range(count)])
        cost, work, offsets, moves = slides.go_on(
            items, movable, sweep.meets, order[base[order] < 0], base, limit, prices, sight, np.array(tastes),
            first if best is None else left,
        )  # fmt: skip
        left, each = left - work, max(each, work / (sight * len(tastes)))
        if cost < least:
            best, least = Moved(tuple(offsets.tolist()), tuple(map(tuple, moves.tolist()))), cost
    return best


def _stacks(problem: Problem, limit: int) -> list[dict[int, int]]:
    """Offsets of stacked rectangles, at the top and at the bottom: which is better hangs on the end from
    which they die. One empty table where there are none.
    """
    if not problem.stacks:
        return [{}]
    rectangles = problem.rectangles
    bottom = sum(
        align_up(sum(rectangles[index].size_bytes for index in stack), rectangles[stack[0]].alignment)
        for stack in problem.stacks
    )
    starts = [stacks_at_the_top(problem, limit), stacks_at_the_top(problem, bottom)]
    ends = [max(at + rectangles[index].size_bytes for index, at in start.items()) for start in starts]
    return [
        start for start, end in zip(starts, ends, strict=True) if min(start.values()) >= 0 and end <= limit
    ]
