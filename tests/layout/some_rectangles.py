"""Random rectangles for tests, and the smallest arena by brute force."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import permutations

from hypothesis import settings
from hypothesis import strategies as st

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.rectangles import PlacementProblem, Rectangle
from mcudeploy.planner.place.greedy import Clusters, used_bytes

QUICK = settings(max_examples=60, deadline=None)


def rectangle(size: int, life: tuple[int, int], alignment: int = 1) -> Rectangle:
    return Rectangle(size, Interval(*life), alignment)


@st.composite
def rectangles(draw: st.DrawFn, alignment: int = 1) -> Rectangle:
    lo, hi = sorted(draw(st.sets(st.integers(0, 8), min_size=2, max_size=2)))
    return rectangle(draw(st.integers(1, 6)), (lo, hi), alignment)


@st.composite
def problems(draw: st.DrawFn, most: int = 5) -> PlacementProblem:
    """Rectangles of one alignment, some with a stack, or with a rematerialised block."""
    alignment = draw(st.sampled_from([1, 1, 2]))
    items = draw(st.lists(rectangles(alignment), min_size=2, max_size=most))
    kind, (first, second, *_) = draw(st.sampled_from(["", "stack", "in_turn"])), items
    if kind == "in_turn" and first.life.hi <= second.life.lo:
        items[1] = replace(second, size_bytes=first.size_bytes)
        return PlacementProblem(tuple(items), in_turn=((0, 1),))
    return PlacementProblem(tuple(items), stacks=((0, 1),) if kind == "stack" else ())


def by_permutations(problem: PlacementProblem) -> int:
    """The smallest end of first fit over all orders; one of them is optimal."""
    bundles = Clusters.of(problem)
    orders = permutations(range(len(bundles.parts)))
    return min(used_bytes(problem, bundles.first_fit(order)) for order in orders)


def puzzle(count: int, seed: int) -> PlacementProblem:
    """Pieces that fill 400 bytes in 60 steps, shuffled."""
    draw = random.Random(seed)
    pieces = cut_up(Interval(0, 60), 400, count, draw)
    draw.shuffle(pieces)
    return PlacementProblem(tuple(pieces))


def cut_up(steps: Interval, size: int, pieces: int, draw: random.Random) -> list[Rectangle]:
    """A rectangle cut into `pieces`, each time along one axis: they fill `size` bytes without a gap."""
    if pieces == 1:
        return [Rectangle(size, steps)]
    one = draw.randrange(1, pieces)
    if size > 1 and (len(steps) == 1 or draw.random() < 0.6):
        at = draw.randrange(1, size)
        halves = [(steps, at), (steps, size - at)]
    elif len(steps) > 1:
        time = draw.randrange(steps.lo + 1, steps.hi)
        halves = [(Interval(steps.lo, time), size), (Interval(time, steps.hi), size)]
    else:
        return [Rectangle(size, steps)]
    return [
        item for half, n in zip(halves, (one, pieces - one), strict=True) for item in cut_up(*half, n, draw)
    ]
