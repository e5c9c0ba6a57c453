"""Random rectangles for tests, and the least arena by brute force."""

from __future__ import annotations

import random
from itertools import permutations, product

from hypothesis import settings
from hypothesis import strategies as st

from mcudeploy.interval import Interval
from mcudeploy.layout.greedy import Units, fixed_orders, used_bytes
from mcudeploy.layout.judge import PlacementFaultError, judge
from mcudeploy.layout.problem import Overlap, Problem, Rectangle

QUICK = settings(max_examples=60, deadline=None)


def rectangle(size: int, *lives: tuple[int, int], alignment: int = 1, memory: str = "") -> Rectangle:
    return Rectangle(size, tuple(Interval(*life) for life in lives), alignment, memory)


@st.composite
def rectangles(draw: st.DrawFn, alignment: int = 1) -> Rectangle:
    ends = draw(st.sampled_from([2, 2, 2, 4]))
    at = sorted(draw(st.sets(st.integers(0, 8), min_size=ends, max_size=ends)))
    lives = tuple(Interval(lo, hi) for lo, hi in zip(at[::2], at[1::2], strict=True))
    return Rectangle(draw(st.integers(1, 6)), lives, alignment)


@st.composite
def problems(draw: st.DrawFn, most: int = 5) -> Problem:
    """With stacks, allowed overlaps and fixed offsets, all of them possible together."""
    alignment = draw(st.sampled_from([1, 1, 2]))
    items = draw(st.lists(rectangles(alignment), min_size=2, max_size=most))
    count = len(items)
    stacks = ((0, 1),) if draw(st.booleans()) else ()
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda p: p[0] != p[1])
    window = st.tuples(st.integers(0, 8), st.integers(1, 4)).map(lambda w: Interval(w[0], w[0] + w[1]))
    overlaps = draw(st.lists(st.builds(lambda p, w: Overlap(*p, w), pairs, window), max_size=2))
    fixed = {count - 1: draw(st.integers(0, 4)) * alignment} if count > 2 and draw(st.booleans()) else {}
    return Problem(tuple(items), stacks=stacks, overlaps=tuple(overlaps), fixed=fixed)


def sound(problem: Problem, offsets: tuple[int, ...]) -> bool:
    try:
        judge(problem, offsets)
    except PlacementFaultError:
        return False
    return True


def brute_force(problem: Problem) -> int:
    """The least end over all offsets that could matter."""
    most = used_bytes(problem, fixed_orders(Units.of(problem), 0))
    for limit in range(most):
        room = [range(limit - item.size_bytes + 1) for item in problem.rectangles]
        if any(sound(problem, offsets) for offsets in product(*room)):
            return limit
    return most


def by_permutations(problem: Problem) -> int:
    """The least end of first fit in all orders; one of them is optimal."""
    units = Units.of(problem)
    orders = permutations(range(len(units.parts)))
    return min(used_bytes(problem, units.first_fit(order)) for order in orders)


def puzzle(count: int, seed: int) -> Problem:
    """So many pieces that fill 400 bytes in 60 steps, shuffled."""
    draw = random.Random(seed)
    pieces = cut_up(Interval(0, 60), 400, count, draw)
    draw.shuffle(pieces)
    return Problem(tuple(pieces), {"": 400})


def cut_up(steps: Interval, size: int, pieces: int, draw: random.Random) -> list[Rectangle]:
    """A rectangle cut into `pieces`, each time across or along: they fill `size` bytes without a gap."""
    if pieces == 1:
        return [Rectangle(size, (steps,))]
    one = draw.randrange(1, pieces)
    if size > 1 and (len(steps) == 1 or draw.random() < 0.6):
        at = draw.randrange(1, size)
        halves = [(steps, at), (steps, size - at)]
    elif len(steps) > 1:
        time = draw.randrange(steps.lo + 1, steps.hi)
        halves = [(Interval(steps.lo, time), size), (Interval(time, steps.hi), size)]
    else:
        return [Rectangle(size, (steps,))]
    return [
        item for half, n in zip(halves, (one, pieces - one), strict=True) for item in cut_up(*half, n, draw)
    ]
