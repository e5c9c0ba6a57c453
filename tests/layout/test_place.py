"""Placement of small random problems, against brute force and the judge."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcudeploy.interval import Interval
from mcudeploy.layout import canonical, crowd, exact
from mcudeploy.layout.ejection import Ejection
from mcudeploy.layout.greedy import Units, brief_at_the_top, fixed_orders, used_bytes
from mcudeploy.layout.judge import PlacementFaultError, judge
from mcudeploy.layout.place import place
from mcudeploy.layout.problem import Outcome, Overlap, Problem, Rectangle, lower_bound
from mcudeploy.layout.sweep import Sweep
from mcudeploy.layout.within import Within

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


@QUICK
@given(problems(most=3))
def test_constraint_solver_agrees_with_brute_force(problem: Problem) -> None:
    units = Units.of(problem)
    greedy = fixed_orders(units, 0)
    found, bound = exact.least_arena(units, greedy, bound=lower_bound(problem), effort=20, brake=60, seed=0)
    assert found is not None
    judge(problem, found)
    assert used_bytes(problem, found) == bound == brute_force(problem)


def by_permutations(problem: Problem) -> int:
    """The least end of first fit in all orders; one of them is optimal."""
    units = Units.of(problem)
    orders = permutations(range(len(units.parts)))
    return min(used_bytes(problem, units.first_fit(order)) for order in orders)


@QUICK
@given(
    st.lists(rectangles(), min_size=1, max_size=6).map(lambda items: Problem(tuple(items))), st.integers(0, 9)
)
def test_canonical_search_agrees_with_all_orders(problem: Problem, seed: int) -> None:
    least, units = by_permutations(problem), Units.of(problem)
    limits = {"work": 10**9, "deadline": time.process_time() + 60, "seed": seed}
    outcome = canonical.pack(problem, units.neighbours, least, **limits)
    assert outcome.offsets is not None
    judge(replace(problem, capacities={"": least}), outcome.offsets)
    less = canonical.pack(problem, units.neighbours, least - 1, **limits)
    assert (less.offsets, less.proven) == (None, True)


@pytest.mark.parametrize(
    ("capacity", "items"),
    [
        (10, "1 3 4, 3 4 5, 1 5 7, 3 0 2, 4 1 3, 4 4 7, 2 3 5, 3 5 7, 5 2 4, 3 0 2"),
        (13, "5 4 6, 4 5 6, 6 1 5, 3 7 9, 4 5 7, 1 0 1, 3 2 3, 7 8 10, 3 8 10, 3 1 3, 6 6 8, 1 0 4"),
    ],
)
def test_canonical_search_forgets_the_parts_beside_one_that_fails(capacity: int, items: str) -> None:
    """Sizes, births and ends, for which a search that does not restore everything finds no offsets."""
    sizes = [[int(word) for word in item.split()] for item in items.split(",")]
    problem = Problem(tuple(rectangle(size, (lo, hi)) for size, lo, hi in sizes), {"": capacity})
    neighbours = Units.of(problem).neighbours
    deadline = time.process_time() + 60
    outcome = canonical.pack(problem, neighbours, capacity, work=10**6, deadline=deadline, seed=0)
    assert outcome.offsets is not None
    judge(problem, outcome.offsets)


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


def puzzle(count: int, seed: int) -> Problem:
    """So many pieces that fill 400 bytes in 60 steps, shuffled."""
    draw = random.Random(seed)
    pieces = cut_up(Interval(0, 60), 400, count, draw)
    draw.shuffle(pieces)
    return Problem(tuple(pieces), {"": 400})


@pytest.mark.parametrize("seed", range(8))
def test_canonical_search_puts_together_what_was_cut_up(seed: int) -> None:
    problem = puzzle(60, seed)
    neighbours = Units.of(problem).neighbours
    outcome = canonical.pack(problem, neighbours, 400, work=10**8, deadline=time.process_time() + 60, seed=0)
    assert not outcome.proven
    assert outcome.offsets is not None
    judge(problem, outcome.offsets)


@QUICK
@given(st.lists(rectangles(), min_size=1, max_size=6), st.booleans(), st.integers(0, 3))
def test_crowded_steps_first_ends_with_all_steps(items: list[Rectangle], stacked: bool, seed: int) -> None:
    problem = Problem(tuple(items), stacks=((0, 1),) if stacked and len(items) > 1 else ())
    ejection = Ejection.of(Units.of(problem))
    limits = {"seconds": 10.0, "deadline": time.process_time() + 60, "seed": seed}
    least = by_permutations(problem)
    found, _ = crowd.fit(ejection, least, **limits)
    assert found.offsets is not None or problem.stacks  # which hang from the top, for better or worse
    if found.offsets is not None:
        judge(replace(problem, capacities={"": least}), found.offsets)
    less, _ = crowd.fit(ejection, least - 1, **limits)
    assert less.offsets is None and less.proven != bool(problem.stacks)


def test_a_bound_that_no_offsets_reach_is_proven_and_raised() -> None:
    """A network eats its image: rows of 112 bytes, of 56, and scratch. Step 5 is full to the last byte, and
    what dies then leaves a hole between two rows that stay.
    """
    image = (rectangle(42, (0, 1)), rectangle(84, (0, 2)), rectangle(84, (0, 5)), rectangle(84, (0, 8)))
    lives = ((0, 6), (1, 9), (2, 4), (4, 12), (5, 7), (7, 12), (8, 10))
    scratch = (30, 30, 11, 12, 30, 11, 12, 30, 11)
    problem = Problem(
        (
            *image,
            rectangle(300, (0, 12)),
            *(rectangle(112, life) for life in lives),
            rectangle(56, (3, 12)),
            rectangle(56, (6, 12)),
            *(rectangle(size, (step, step + 1)) for step, size in enumerate(scratch)),
        ),
        stacks=((0, 1, 2, 3, 4),),
    )
    placed = place(problem, 4.0)
    assert lower_bound(problem) < placed.used_bytes[""] == placed.lower_bound_bytes[""]
    assert placed.status == "optimal"
    judge(problem, placed.offsets)


def test_what_is_given_may_be_in_the_way_of_a_stack_at_the_top() -> None:
    items = tuple(rectangle(size, (0, 1)) for size in (1, 3, 1, 1, 1))
    problem = Problem(items, stacks=((0, 1),), fixed={4: 3})
    sweep = Sweep.of(Units.of(problem))
    assert sweep is not None
    assert sweep.fit(7, given={0: 3, 1: 4, 4: 3}, work=10**6, seed=0).offsets is None
    placed = place(problem, 0.5)  # nothing pushes away what is fixed
    judge(problem, placed.offsets)
    assert (placed.used_bytes[""], placed.status) == (8, "optimal")


@QUICK
@given(st.lists(rectangles(), min_size=2, max_size=8), st.booleans(), st.integers(0, 40), st.integers(0, 3))
def test_sweeps_keep_the_limit_and_what_is_given(
    items: list[Rectangle], is_given: bool, over: int, seed: int
) -> None:
    problem = Problem(tuple(items), fixed={0: 0} if is_given else {})
    limit = lower_bound(problem) + over
    sweep = Sweep.of(Units.of(problem))
    assert sweep is not None
    swept = sweep.fit(limit, given=problem.fixed, work=10**6, seed=seed)
    if swept.offsets is not None:
        judge(replace(problem, capacities={"": limit}), swept.offsets)
    if sum(item.size_bytes for item in items) <= limit:  # then the lowest gap always has room
        assert swept.offsets is not None


@pytest.mark.parametrize("seed", range(8))
def test_sweeps_put_together_what_was_cut_up(seed: int) -> None:
    problem = puzzle(24, seed)
    sweep = Sweep.of(Units.of(problem))
    assert sweep is not None
    swept = sweep.fit(400, given={}, work=10**7, seed=0)
    assert swept.offsets is not None
    judge(problem, swept.offsets)
    assert sweep.fit(399, given={}, work=10**5, seed=0).offsets is None


def test_scratch_hangs_from_the_top_below_what_lives_of_a_stack() -> None:
    image = rectangle(4, (0, 1)), rectangle(4, (0, 3))
    items = (*image, rectangle(3, (0, 1)), rectangle(3, (1, 2)), rectangle(2, (1, 3)), rectangle(5, (4, 5)))
    problem = Problem(items, stacks=((0, 1),))
    assert brief_at_the_top(problem, 20) == {0: 12, 1: 16, 2: 9, 3: 13, 5: 15}


@QUICK
@given(st.lists(rectangles(4), min_size=1, max_size=6).map(lambda items: Problem(tuple(items))))
def test_aligned_rectangles_are_placed_as_low_as_by_all_orders(problem: Problem) -> None:
    placed = place(problem, 5.0, grain=4)
    judge(problem, placed.offsets)
    assert placed.used_bytes[""] == -(-by_permutations(problem) // 4) * 4
    assert placed.lower_bound_bytes[""] == placed.used_bytes[""]


def test_what_lies_in_the_padding_of_others_does_not_raise_the_bound() -> None:
    small = [rectangle(1, (0, 1), alignment=2) for _ in range(3)]
    items = (rectangle(1, (1, 2), alignment=2), *small, rectangle(2, (0, 1), alignment=2))
    problem = Problem(items, stacks=((0, 1),), fixed={4: 0})
    judge(problem, (2, 3, 2, 4, 0))
    assert lower_bound(problem) == 5


def test_alignments_that_do_not_divide_one_another_need_no_padding() -> None:
    problem = Problem(
        (
            rectangle(1, (0, 1), alignment=2),
            rectangle(1, (0, 1), alignment=3),
            rectangle(1, (0, 1), alignment=2),
        )
    )
    judge(problem, (0, 3, 2))
    assert lower_bound(problem) == 3


@settings(max_examples=200, deadline=None)
@given(problems(most=9), st.sampled_from([1, 8]))
def test_greedy_is_sound_and_never_below_the_bound(problem: Problem, grain: int) -> None:
    placed = place(problem, 0.0, grain=grain)
    judge(problem, placed.offsets)
    assert used_bytes(problem, placed.offsets) >= lower_bound(problem)
    assert placed.used_bytes[""] >= placed.lower_bound_bytes[""]


@QUICK
@given(problems(most=5), problems(most=5))
def test_memories_are_placed_apart(one: Problem, two: Problem) -> None:
    here = tuple(replace(item, memory="sram") for item in one.rectangles)
    there = tuple(replace(item, memory="ccm") for item in two.rectangles)
    placed = place(Problem((*here, *there)), 0.0)
    assert placed.offsets[: len(here)] == place(Problem(one.rectangles), 0.0).offsets
    assert placed.used_bytes["ccm"] == place(Problem(two.rectangles), 0.0).used_bytes[""]


def test_what_lives_twice_leaves_room_in_between() -> None:
    problem = Problem((rectangle(8, (0, 2), (6, 8)), rectangle(8, (2, 6)), rectangle(4, (0, 8))))
    placed = place(problem, 1.0)
    judge(problem, placed.offsets)
    assert (placed.used_bytes[""], placed.status) == (12, "optimal")


def test_what_never_lives_is_in_nobodys_way_but_inside() -> None:
    problem = Problem((rectangle(8, (0, 2)), rectangle(20), rectangle(8, (1, 2))))
    placed = place(problem, 1.0)
    judge(problem, placed.offsets)
    assert (placed.offsets[1], placed.used_bytes[""], placed.status) == (0, 20, "optimal")


def test_a_stack_that_dies_from_its_top_has_a_free_base() -> None:
    rows = tuple(rectangle(4, (0, step + 1)) for step in range(4))
    made = tuple(rectangle(4, (step, 6)) for step in range(4))
    problem = Problem((*rows, *made), stacks=((0, 1, 2, 3),))
    placed = place(problem, 2.0)
    judge(problem, placed.offsets)
    assert (placed.used_bytes[""], placed.status) == (20, "optimal")


def test_a_stack_need_not_hang_from_the_top_of_a_capacity() -> None:
    spans = ((2, 0, 3), (4, 5, 6), (1, 2, 5), (4, 4, 5), (1, 4, 6))
    items = tuple(rectangle(size, (lo, hi)) for size, lo, hi in spans)
    problem = Problem(items, {"": 6}, stacks=((0, 1),))
    placed = place(problem, 2.0)
    judge(problem, placed.offsets)
    assert (placed.used_bytes[""], placed.status) == (6, "optimal")


def at_other_times(problem: Problem, factor: int, shift: int = 0) -> Problem:
    """The problem with all steps multiplied and shifted."""

    def moved(steps: Interval) -> Interval:
        return Interval(steps.lo * factor + shift, steps.hi * factor + shift)

    return replace(
        problem,
        rectangles=tuple(replace(item, lives=tuple(map(moved, item.lives))) for item in problem.rectangles),
        overlaps=tuple(replace(one, steps=moved(one.steps)) for one in problem.overlaps),
    )


@settings(max_examples=30, deadline=None)
@given(problems(most=5))
def test_long_steps_change_nothing(problem: Problem) -> None:
    rare = at_other_times(problem, 20_000)
    placed = place(rare, 0.3)
    judge(rare, placed.offsets)
    assert placed.status == "optimal"
    assert placed.used_bytes == place(problem, 0.3).used_bytes


@pytest.mark.parametrize(("factor", "seed"), [(1 << 34, 0), (1, 1 << 64)])
def test_large_times_and_seeds_are_only_numbers(factor: int, seed: int) -> None:
    problem = at_other_times(replace(puzzle(24, 5), capacities={}), factor)
    placed = place(problem, 4.0, seed=seed)
    assert (placed.used_bytes[""], placed.status) == (400, "optimal")


@settings(max_examples=30, deadline=None)
@given(problems(most=3), problems(most=3), st.integers(4, 12))
def test_to_keep_the_capacity_may_be_enough(one: Problem, two: Problem, capacity: int) -> None:
    one, two = (
        Problem(tuple(replace(item, alignment=1) for item in problem.rectangles), stacks=problem.stacks)
        for problem in (one, two)
    )
    both = (*one.rectangles, *at_other_times(two, 1, 20).rectangles)
    shift = len(one.rectangles)
    stacks = (*one.stacks, *(tuple(index + shift for index in stack) for stack in two.stacks))
    problem, least = Problem(both, {"": capacity}, stacks), max(brute_force(one), brute_force(two))
    placed = place(problem, 5.0, fitting=True)
    judge(replace(problem, capacities={}), placed.offsets)
    assert placed.lower_bound_bytes[""] <= least <= placed.used_bytes[""]
    assert (placed.used_bytes[""] <= capacity) == (least <= capacity)
    assert place(problem, 5.0).used_bytes[""] == least


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What searches other than the canonical one are for, in bytes; each must have time enough."""
    found = []

    def fit(search: Within, start: tuple[int, ...], limit: int, seconds: float) -> Outcome:
        assert search.deadline > time.process_time() + 2 * search.left
        found.append(limit)
        return original(search, start, limit, seconds)

    original = Within.fit
    monkeypatch.setattr(Within, "fit", fit)
    return found


def test_the_capacity_is_aimed_at_first(limits: list[int]) -> None:
    items = [replace(item, alignment=1 + number % 2) for number, item in enumerate(puzzle(60, 3).rectangles)]
    capacity = 420
    problem = Problem(tuple(items), {"": capacity})
    assert lower_bound(problem) < capacity < place(problem, 0.0).used_bytes[""]
    place(problem, 1.0)
    assert limits[0] == capacity
    assert min(limits) < capacity
    limits.clear()
    assert place(problem, 1.0, fitting=True).used_bytes[""] <= capacity
    assert limits == [capacity]


def test_a_part_is_not_searched_for_less_than_another_has(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[Problem] = []
    of = Within.of
    monkeypatch.setattr(Within, "of", lambda units, *of_it: parts.append(units.problem) or of(units, *of_it))
    three = (
        rectangle(4, (0, 1), alignment=3),
        rectangle(4, (0, 2), alignment=3),
        rectangle(3, (1, 2), alignment=2),
    )
    again = at_other_times(Problem(three), 1, 5).rectangles
    placed = place(Problem((*three, *again)), 1.0)
    assert (placed.used_bytes[""], placed.status) == (10, "optimal")
    assert len(parts) == 1


TWO = Problem((rectangle(8, (0, 4)), rectangle(8, (3, 6)), rectangle(4, (0, 6), alignment=4)), {"": 32})


@pytest.mark.parametrize(
    ("change", "offsets", "message"),
    [
        ({}, (0, 4, 16), "share bytes at step 3"),
        ({"overlaps": (Overlap(0, 1, Interval(2, 3)),)}, (0, 0, 16), "share bytes at step 3"),
        ({}, (0, 8, 18), "not aligned to 4"),
        ({}, (0, 28, 16), "leaves its 32 bytes"),
        ({}, (-1, 8, 16), "leaves its 32 bytes"),
        ({}, (0, 8), "2 offsets for 3"),
        ({"fixed": {0: 8}}, (0, 8, 16), "fixed at 8"),
        ({"stacks": ((0, 1),)}, (0, 12, 20), "apart from 0"),
    ],
)
def test_the_judge_finds_faults(change: dict[str, object], offsets: tuple[int, ...], message: str) -> None:
    judge(TWO, (0, 8, 16))
    with pytest.raises(PlacementFaultError, match=message):
        judge(replace(TWO, **change), offsets)


def test_an_allowed_overlap_is_used() -> None:
    problem = replace(TWO, overlaps=(Overlap(1, 0, Interval(3, 4)),))
    placed = place(problem, 1.0)
    judge(problem, placed.offsets)
    assert (placed.used_bytes[""], placed.status) == (12, "optimal")


def test_impossible_problems_are_refused() -> None:
    with pytest.raises(ValueError, match="two stacks"):
        replace(TWO, stacks=((0, 1), (1, 2)))
    with pytest.raises(ValueError, match="a stack is empty"):
        replace(TWO, stacks=((0, 1), ()))
    with pytest.raises(ValueError, match="below 0"):
        replace(TWO, fixed={0: -8})
    with pytest.raises(ValueError, match="empty"):
        rectangle(4, (2, 2))
    with pytest.raises(ValueError, match="ascending"):
        rectangle(4, (2, 4), (3, 5))
