"""Fixed offsets of small random problems, against all orders and the checker."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcudeploy.checker.offsets import check_offsets
from mcudeploy.checker.owners import PlanFaultError
from mcudeploy.common.effort import Effort, endless
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.rectangles import PlacementProblem, Rectangle
from mcudeploy.planner.place import canonical, greedy_loops
from mcudeploy.planner.place.greedy import Clusters, fixed_orders, short_lived_at_the_top, used_bytes
from mcudeploy.planner.place.place import place
from mcudeploy.planner.place.placement_problem import PlacementOutcome, lower_bound
from tests.layout.some_rectangles import QUICK, by_permutations, problems, puzzle, rectangle, rectangles

FREE = 1 << 30
"""A capacity that no placement exceeds."""


def test_scratch_hangs_from_the_top_below_what_lives_of_a_stack() -> None:
    image = rectangle(4, (0, 1)), rectangle(4, (0, 3))
    items = (*image, rectangle(3, (0, 1)), rectangle(3, (1, 2)), rectangle(2, (1, 3)), rectangle(5, (4, 5)))
    problem = PlacementProblem(items, stacks=((0, 1),))
    assert short_lived_at_the_top(problem, 20) == {0: 12, 1: 16, 2: 9, 3: 13, 5: 15}


@QUICK
@given(st.lists(rectangles(), min_size=1, max_size=6).map(lambda items: PlacementProblem(tuple(items))))
def test_rectangles_are_placed_as_low_as_by_all_orders(problem: PlacementProblem) -> None:
    placed = place(problem, FREE, Effort.of(5.0))
    check_offsets(problem, placed.offsets)
    assert placed.used_bytes == by_permutations(problem) == placed.lower_bound_bytes


def test_what_lies_in_the_padding_of_others_does_not_raise_the_bound() -> None:
    stack = rectangle(1, (0, 1), alignment=2), rectangle(1, (0, 1), alignment=2)
    problem = PlacementProblem((*stack, rectangle(1, (0, 1), alignment=2)), stacks=((0, 1),))
    check_offsets(problem, (2, 3, 0))
    assert lower_bound(problem) == 3


def test_alignments_that_do_not_divide_one_another_need_no_padding() -> None:
    problem = PlacementProblem(tuple(rectangle(1, (0, 1), alignment=alignment) for alignment in (2, 3, 2)))
    check_offsets(problem, (0, 3, 2))
    assert lower_bound(problem) == 3


@settings(max_examples=200, deadline=None)
@given(problems(most=9))
def test_first_fit_is_sound_and_never_below_the_bound(problem: PlacementProblem) -> None:
    offsets = fixed_orders(Clusters.of(problem), 0)
    check_offsets(problem, offsets)
    assert used_bytes(problem, offsets) >= lower_bound(problem)
    clusters = Clusters.of(problem)
    others = (used_bytes(problem, clusters.first_fit(order)) for order in clusters.orders())
    assert used_bytes(problem, offsets) <= min(others)


@QUICK
@given(problems(most=9))
def test_first_fit_is_the_same_before_it_is_compiled(problem: PlacementProblem) -> None:
    clusters = Clusters.of(problem)
    for order in clusters.orders():
        offsets = np.full(len(problem.rectangles), -1, np.int64)
        greedy_loops.first_fit(np.array(order, np.int64), clusters._arrays, offsets)
        assert clusters.first_fit(order) == tuple(offsets.tolist())


def test_a_recomputed_block_has_one_offset_by_first_fit() -> None:
    lives = rectangle(8, (0, 2)), rectangle(8, (6, 8))
    problem = PlacementProblem((*lives, rectangle(8, (2, 6)), rectangle(4, (0, 8))), in_turn=((0, 1),))
    offsets = fixed_orders(Clusters.of(problem), 0)
    check_offsets(problem, offsets)
    assert (offsets[0], used_bytes(problem, offsets)) == (offsets[1], 12)


def test_short_lives_of_one_block_hang_from_the_top_together() -> None:
    items = rectangle(3, (0, 1)), rectangle(3, (2, 3)), rectangle(4, (2, 3)), rectangle(2, (0, 3))
    problem = PlacementProblem(items, in_turn=((0, 1),))
    assert short_lived_at_the_top(problem, 20) == {0: 17, 1: 17, 2: 13}


def test_a_part_of_a_problem_keeps_what_binds_it() -> None:
    items = tuple(rectangle(size, (at, at + 1)) for at, size in enumerate((1, 2, 3, 4, 5)))
    problem = PlacementProblem(items, stacks=((0, 1),), in_turn=((2, 4),))
    assert problem.part([1, 0, 3]) == PlacementProblem((items[1], items[0], items[3]), stacks=((1, 0),))
    assert problem.part([2, 3, 4]) == PlacementProblem(items[2:], in_turn=((0, 2),))


@pytest.mark.parametrize(
    ("stacks", "in_turn", "message"),
    [
        (((0, 1), (1, 2)), (), "in two constraints"),
        (((0, 1),), ((1, 2),), "in two constraints"),
        ((), ((2, 1),), "recomputed while it is live"),
        (((0, 3),), (), "never lives"),
        (((),), (), "empty"),
    ],
)
def test_rectangles_are_bound_once(
    stacks: tuple[tuple[int, ...], ...], in_turn: tuple[tuple[int, ...], ...], message: str
) -> None:
    items = rectangle(1, (0, 2)), rectangle(1, (1, 3)), rectangle(1, (3, 4)), rectangle(1, (0, 0))
    with pytest.raises(ValueError, match=message):
        PlacementProblem(items, stacks, in_turn)


def test_what_never_lives_is_in_nobodys_way() -> None:
    problem = PlacementProblem((rectangle(8, (0, 2)), rectangle(20, (0, 0)), rectangle(8, (1, 2))))
    placed = place(problem, FREE, Effort.of(1.0))
    assert (placed.offsets[1], placed.used_bytes, placed.status) == (0, 16, "optimal")


def test_a_stack_that_dies_from_its_top_has_a_free_base() -> None:
    rows = tuple(rectangle(4, (0, step + 1)) for step in range(4))
    rectangles = tuple(rectangle(4, (step, 6)) for step in range(4))
    problem = PlacementProblem((*rows, *rectangles), stacks=((0, 1, 2, 3),))
    placed = place(problem, FREE, Effort.of(2.0))
    check_offsets(problem, placed.offsets)
    assert (placed.used_bytes, placed.status) == (20, "optimal")


def at_other_times(problem: PlacementProblem, factor: int) -> PlacementProblem:
    """The problem with all steps multiplied."""
    return replace(
        problem,
        rectangles=tuple(
            replace(item, life=Interval(item.life.lo * factor, item.life.hi * factor))
            for item in problem.rectangles
        ),
    )


@settings(max_examples=30, deadline=None)
@given(problems(most=5).filter(lambda it: not any(one.size_bytes % one.alignment for one in it.rectangles)))
def test_long_steps_change_nothing(problem: PlacementProblem) -> None:
    placed = place(at_other_times(problem, 20_000), FREE, Effort.of(0.3))
    same = place(problem, FREE, Effort.of(0.3))
    assert (placed.used_bytes, placed.lower_bound_bytes) == (same.used_bytes, same.lower_bound_bytes)


@pytest.mark.parametrize(("factor", "seed"), [(1 << 34, 0), (1, 1 << 64)])
def test_large_times_and_seeds_are_only_numbers(factor: int, seed: int) -> None:
    placed = place(at_other_times(puzzle(24, 5), factor), FREE, Effort.of(4.0), seed=seed)
    assert (placed.used_bytes, placed.status) == (400, "optimal")


def test_the_capacity_is_aimed_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def search(*arguments: object, **limits: object) -> PlacementOutcome:
        sizes.append(arguments[2])
        return pack(*arguments, **limits)

    pack = canonical.pack
    monkeypatch.setattr(canonical, "pack", search)
    problem = puzzle(60, 3)
    assert place(problem, 420, Effort.of(0.0)).used_bytes > 420
    assert place(problem, 420, Effort.of(1.0)).used_bytes <= 420
    assert sizes[0] == 420 and min(sizes) < 420


TWO = PlacementProblem((rectangle(8, (0, 4)), rectangle(8, (3, 6)), rectangle(4, (0, 6), alignment=4)))


@pytest.mark.parametrize(
    ("stacks", "offsets", "message"),
    [
        ((), (0, 4, 16), "share bytes at step 3"),
        ((), (0, 8, 18), "not aligned to 4"),
        ((), (0, 28, 16), "leaves its 32 bytes"),
        ((), (-1, 8, 16), "leaves its 32 bytes"),
        ((), (0, 8), "2 offsets for 3"),
        (((0, 1),), (0, 12, 20), "does not touch 0"),
    ],
)
def test_the_judge_finds_faults(
    stacks: tuple[tuple[int, ...], ...], offsets: tuple[int, ...], message: str
) -> None:
    check_offsets(TWO, (0, 8, 16), 32)
    with pytest.raises(PlanFaultError, match=message):
        check_offsets(replace(TWO, stacks=stacks), offsets, 32)


def test_it_ends_within_the_capacity_or_goes_on_to_the_fewest_bytes() -> None:
    problem = puzzle(60, 5)
    greedy = place(problem, 400, Effort(0.0)).used_bytes
    assert place(problem, greedy, Effort.of(5.0), fewest=False).used_bytes == greedy > 400
    assert 400 <= place(problem, greedy - 1, Effort.of(5.0), fewest=False).used_bytes < greedy
    assert place(problem, greedy, Effort.of(5.0)).used_bytes == 400


def test_an_interrupt_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = puzzle(60, 5)
    best = place(problem, 400, Effort.of(5.0))
    assert place(problem, 400, Effort.of(0.0)).used_bytes > best.used_bytes == 400
    answers = iter([PlacementOutcome(None), PlacementOutcome(best.offsets)])

    def search(*_: object, **__: object) -> PlacementOutcome:
        for answer in answers:
            return answer
        raise KeyboardInterrupt

    monkeypatch.setattr(canonical, "pack", search)
    monkeypatch.setattr(
        "mcudeploy.planner.place.place.lower_bound", lambda _: 1
    )  # so that there is more to search
    assert place(problem, 410, Effort.of(5.0)).used_bytes == best.used_bytes
    with pytest.raises(KeyboardInterrupt):
        place(problem, 410, Effort.of(5.0))


@QUICK
@given(
    st.lists(st.sampled_from([1, 1, 2, 4]).flatmap(rectangles), max_size=5),
    rectangles(),
    st.integers(0, 9),
)
def test_canonical_search_agrees_with_all_orders(
    items: list[Rectangle], unaligned: Rectangle, seed: int
) -> None:
    problem = PlacementProblem((*items, unaligned))
    least, units = by_permutations(problem), Clusters.of(problem)
    limits = {"work": 10**9, "seed": seed}
    outcome = canonical.pack(problem, units.neighbours, least, endless(), **limits)
    assert outcome.offsets is not None
    check_offsets(problem, outcome.offsets, least)
    less = canonical.pack(problem, units.neighbours, least - 1, endless(), **limits)
    assert (less.offsets, less.proven) == (None, True)


@pytest.mark.parametrize(
    ("capacity", "items"),
    [
        (10, "1 3 4, 3 4 5, 1 5 7, 3 0 2, 4 1 3, 4 4 7, 2 3 5, 3 5 7, 5 2 4, 3 0 2"),
        (13, "5 4 6, 4 5 6, 6 1 5, 3 7 9, 4 5 7, 1 0 1, 3 2 3, 7 8 10, 3 8 10, 3 1 3, 6 6 8, 1 0 4"),
    ],
)
def test_canonical_search_forgets_the_parts_beside_one_that_fails(capacity: int, items: str) -> None:
    """Sizes, births and ends for which a search that does not restore its state finds no offsets."""
    sizes = [[int(word) for word in item.split()] for item in items.split(",")]
    problem = PlacementProblem(tuple(rectangle(size, (lo, hi)) for size, lo, hi in sizes))
    neighbours = Clusters.of(problem).neighbours
    outcome = canonical.pack(problem, neighbours, capacity, endless(), work=10**6, seed=0)
    assert outcome.offsets is not None
    check_offsets(problem, outcome.offsets, capacity)


@pytest.mark.parametrize("seed", range(8))
def test_canonical_search_puts_together_what_was_cut_up(seed: int) -> None:
    problem = puzzle(60, seed)
    neighbours = Clusters.of(problem).neighbours
    outcome = canonical.pack(problem, neighbours, 400, endless(), work=10**8, seed=0)
    assert not outcome.proven
    assert outcome.offsets is not None
    check_offsets(problem, outcome.offsets, 400)
