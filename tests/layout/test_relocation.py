"""Moving offsets, checked by bytes that record their owners."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from some_rectangles import QUICK, by_permutations, cut_up, problems, rectangle

from mcudeploy.common.effort import Effort
from mcudeploy.costs.tiles import CopyCost
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.rectangles import PlacementProblem, Rectangle
from mcudeploy.planner.place import arena
from mcudeploy.planner.place.compaction import NEVER, Relocated, relocate
from mcudeploy.planner.place.greedy import used_bytes
from mcudeploy.planner.place.placement_problem import align_up, lower_bound

PRICE = CopyCost(move=30.0, piece=60.0, byte=0.4)


def relocation_of(
    problem: PlacementProblem, limit: int, pinned: Collection[int] = (), *, work: int = 1_000_000
) -> Relocated | None:
    """Return offsets and moves that the byte check accepts."""
    relocated = relocate(problem, limit, dict.fromkeys(pinned, NEVER), PRICE, Effort(work / 50))
    if relocated is not None:
        judge_moves(problem, limit, relocated, pinned)
    return relocated


def judge_moves(problem: PlacementProblem, limit: int, relocated: Relocated, pinned: Collection[int]) -> None:
    """Run all steps: every byte of a live rectangle must be its own, despite all moves."""
    owners: list[int | None] = [None] * limit
    now = dict(enumerate(relocated.offsets))
    stay = {index for stack in problem.stacks for index in stack} | set(pinned)
    for stack in problem.stacks:
        ends = [now[index] + problem.rectangles[index].size_bytes for index in stack]
        assert [now[index] for index in stack[1:]] == ends[:-1]

    def put(index: int) -> None:
        item, at = problem.rectangles[index], now[index]
        assert at >= 0 and at + item.size_bytes <= limit
        assert at % item.alignment == 0 or index in stay
        owners[at : at + item.size_bytes] = [index] * item.size_bytes

    def whole(index: int) -> bool:
        at = now[index]
        return set(owners[at : at + problem.rectangles[index].size_bytes]) == {index}

    lives = {index: item.life for index, item in enumerate(problem.rectangles) if len(item.life)}
    assert [step for step, _, _ in relocated.moves] == sorted(step for step, _, _ in relocated.moves)
    for step in range(max(life.hi for life in lives.values())):
        before = [index for index, life in lives.items() if life.lo < step < life.hi]
        for _, index, offset in (move for move in relocated.moves if move[0] == step):
            assert index in before and index not in stay and whole(index)
            now[index] = offset
            put(index)
            assert all(map(whole, before))
        for index, life in lives.items():
            if life.lo == step:
                put(index)
        assert all(whole(index) for index, life in lives.items() if step in range(life.lo, life.hi))


@st.composite
def once_alive(draw: st.DrawFn) -> PlacementProblem:
    """Rectangles of one life, some of them in a stack that is live from the start."""
    alignment = draw(st.sampled_from([1, 2]))
    ends = st.sets(st.integers(0, 9), min_size=2, max_size=2).map(sorted)
    size = st.integers(1, 6).map(lambda size: size * alignment)
    items = [
        rectangle(draw(size), (lo, hi), alignment=alignment)
        for lo, hi in draw(st.lists(ends, min_size=2, max_size=12))
    ]
    if draw(st.booleans()):
        first = [rectangle(2 * alignment, (0, hi), alignment=alignment) for hi in (2, 5)]
        return PlacementProblem((*first, *items), stacks=((0, 1),))
    return PlacementProblem(tuple(items))


@QUICK
@given(once_alive())
def test_what_is_alive_fits_into_an_arena_of_its_size(problem: PlacementProblem) -> None:
    stacked = bool(problem.stacks)
    relocated = relocation_of(problem, lower_bound(problem))
    assert relocated is not None or stacked  # rectangles in a stack may be in the way


@QUICK
@given(once_alive())
def test_with_room_for_all_nothing_moves(problem: PlacementProblem) -> None:
    limit = sum(item.size_bytes for item in problem.rectangles)
    relocated = relocation_of(problem, align_up(limit, 2))
    assert relocated is not None and not relocated.moves


def holes() -> PlacementProblem:
    """Six bytes, full at every step: b and d die, and leave two holes for e."""
    a, b = rectangle(2, (0, 4)), rectangle(1, (0, 2))
    c, d = rectangle(2, (1, 4)), rectangle(1, (1, 2))
    return PlacementProblem((a, b, c, d, rectangle(2, (2, 4))))


def test_no_move_is_made_where_none_is_needed() -> None:
    assert by_permutations(holes()) == lower_bound(holes()) == 6
    relocated = relocation_of(holes(), 6, work=5_000_000)
    assert relocated is not None and relocated.moves == ()


@pytest.fixture
def tight() -> PlacementProblem:
    """Four bytes: 1 to 4 are born in place of 2, 3 together and of 1, 4 together.

    They make room for two bytes by the end of 1, 2 and of 3, 4. On a line one of the four pairs is not
    adjacent.
    """
    pairs = [(2, (0, 2)), (2, (0, 3)), (2, (4, 7)), (2, (5, 7))]
    single = [(1, (3, 4)), (1, (2, 4)), (1, (2, 5)), (1, (3, 5))]
    return PlacementProblem(tuple(rectangle(size, life) for size, life in pairs + single))


def test_a_move_makes_the_difference(tight: PlacementProblem) -> None:
    assert (by_permutations(tight), lower_bound(tight)) == (5, 4)
    relocated = relocation_of(tight, 4, work=5_000_000)
    assert relocated is not None and len(relocated.moves) == 1


def test_nothing_fits_where_everything_is_pinned(tight: PlacementProblem) -> None:
    assert relocation_of(tight, lower_bound(tight), range(len(tight.rectangles))) is None


def test_the_same_moves_are_found_again(tight: PlacementProblem) -> None:
    limit = lower_bound(tight)
    assert relocation_of(tight, limit) == relocation_of(tight, limit)


def cost(problem: PlacementProblem, relocated: Relocated) -> float:
    """Ticks, and the fixed cost of each move."""
    now, total = list(relocated.offsets), 0.0
    for _, index, offset in relocated.moves:
        total += 1000 + PRICE.ticks(problem.rectangles[index].size_bytes, abs(offset - now[index]))
        now[index] = offset
    return total


def crowded(pieces: int) -> PlacementProblem:
    """Pieces of a full arena, without every third one."""
    items = cut_up(Interval(0, 200), 4000, pieces, Random(1))
    return PlacementProblem(tuple(item for item in items if item.size_bytes % 3))


def test_more_effort_makes_moves_no_dearer() -> None:
    problem = crowded(150)
    limit = lower_bound(problem)
    costs = [
        cost(problem, relocated)
        for work in (1_000_000, 10_000_000, 100_000_000)
        if (relocated := relocation_of(problem, limit, work=work))
    ]
    assert len(costs) == 3 and costs == sorted(costs, reverse=True)


def test_what_takes_too_long_is_given_up() -> None:
    problem = crowded(150)
    budget = Effort(10)
    assert relocate(problem, lower_bound(problem), {}, PRICE, budget) is None
    assert 10 <= budget.spent < 100  # the births of one choice


def test_stacks_stay_within_the_limit() -> None:
    rows = tuple(rectangle(9, (0, 2), alignment=4) for _ in range(3))
    problem = PlacementProblem((*rows, rectangle(1, (0, 2))), stacks=((0,), (1,), (2,)))
    assert relocation_of(problem, 32) is None  # three times 12 bytes, less the last three
    assert relocation_of(problem, 40) is not None


def test_many_that_are_alive_need_no_move() -> None:
    rows = tuple(rectangle(1, (0, 3)) for _ in range(4200))
    problem = PlacementProblem(
        (*rows, rectangle(2, (0, 1)), rectangle(2, (1, 2))), stacks=(tuple(range(4200)),)
    )
    relocated = relocation_of(problem, 4202)
    assert relocated is not None and not relocated.moves


def test_few_fail_where_some_stay() -> None:
    """A pinned rectangle may block all others, but rarely does."""
    failed = 0
    for seed in range(60):
        draw = Random(seed)
        rows = [rectangle(4, (0, hi)) for hi in range(2, 8)]
        others = [
            rectangle(draw.randrange(1, 6), (lo, draw.randrange(lo + 1, 10)))
            for lo in (draw.randrange(9) for _ in range(14))
        ]
        problem = PlacementProblem((*rows, *others), stacks=(tuple(range(6)),))
        failed += relocation_of(problem, lower_bound(problem), [7, 8]) is None
    assert failed <= 6


def test_rectangles_that_never_live_take_no_room() -> None:
    idle = Rectangle(8, Interval(3, 3), 4)
    relocated = relocation_of(PlacementProblem((idle, rectangle(3, (0, 2)), idle)), 3)
    assert relocated == Relocated((0, 0, 0), ())
    assert relocate(PlacementProblem((idle,)), 0, {}, PRICE, Effort(1)) == Relocated((0,), ())


@QUICK
@given(problems(8))
def test_an_arena_ends_where_something_lies(problem: PlacementProblem) -> None:
    for given_moves in (None, arena.Budget(PRICE, Effort(20_000))):
        packed = arena.pack(problem, {}, given_moves)
        relocated = Relocated(packed.offsets, packed.moves)
        judge_moves(problem, packed.used_bytes, relocated, ())
        ends = [offset + problem.rectangles[index].size_bytes for _, index, offset in packed.moves]
        assert packed.used_bytes == align_up(max(used_bytes(problem, packed.offsets), *ends, 0), 8)


def test_a_tighter_arena_than_the_size_asked_for(
    monkeypatch: pytest.MonkeyPatch, tight: PlacementProblem
) -> None:
    """Offsets found for four bytes more than are used must not release the bytes above them."""
    monkeypatch.setattr(arena, "ARENA_GRAIN_BYTES", 1)
    monkeypatch.setattr(arena, "relocate", lambda problem, room, *rest: relocate(problem, 4, *rest))
    monkeypatch.setattr(arena, "SAVED_BYTES", 0)
    assert arena.pack(tight, {}, arena.Budget(PRICE, Effort(20_000))).used_bytes == 4


def test_a_recomputed_block_may_have_another_offset() -> None:
    """A block of two bytes is rematerialised in the place of its neighbour, which still exists elsewhere."""
    lives = rectangle(2, (0, 2)), rectangle(2, (5, 6))
    problem = PlacementProblem((*lives, rectangle(1, (1, 4)), rectangle(1, (3, 6))), in_turn=((0, 1),))
    assert (by_permutations(problem), lower_bound(problem)) == (4, 3)
    relocated = relocation_of(problem, 3)
    assert relocated is not None and not relocated.moves
    assert relocated.offsets[0] != relocated.offsets[1]


def test_pack_takes_what_never_lives() -> None:
    idle = Rectangle(8, Interval(3, 3), 4)
    assert arena.pack(PlacementProblem((idle, rectangle(3, (0, 2)))), {}, None).used_bytes == 8
