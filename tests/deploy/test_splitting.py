"""What is made of what a search finds: what is packed, what is handed on, what an interrupt keeps."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from models import quantised_convolutions

from mcudeploy import placing
from mcudeploy.board import load_board
from mcudeploy.model import load_model
from mcudeploy.plan import Estimate, Layout, Move, Placement, Plan, Schedule, Search
from mcudeploy.planner import Options, find_plans
from mcudeploy.progress import SILENT
from mcudeploy.simulator.cost import MovePrice
from mcudeploy.splitting import Limits, Splitting, could_win

BOARD = load_board("host")


def plan(peak_bytes: int, status: str, ticks: float = 0.0, **arenas: int) -> Any:
    """As much of a plan as matters."""
    layout = SimpleNamespace(arenas=arenas, arena_bytes=sum(arenas.values()), status=status)
    estimate = SimpleNamespace(peak_bytes=peak_bytes, traffic={}, ticks=ticks)
    return SimpleNamespace(layout=layout, estimate=estimate, schedule=SimpleNamespace(steps=()))


@pytest.mark.parametrize(
    ("peak_bytes", "best", "could"),
    [
        (93, (0, 0, 104), True),
        (97, (0, 0, 104), False),
        (93, (0, 0, 96), False),
        (200, (8, 0, 104), True),  # it may be the one that fits
        (200, (0, 2.5, 104), True),  # or all of it may lie where access costs least
    ],
)
def test_a_plan_could_win_by_its_peak_or_where_the_best_has_other_faults(
    peak_bytes: int, best: tuple[int, float, int], could: bool
) -> None:
    assert could_win(peak_bytes, best) == could


def test_what_could_win_is_packed_the_least_peak_first_with_moves_and_then_without() -> None:
    name, packed = BOARD.memories[0].name, []
    sizes = ((900, 1200), (800, 1100), (600, 1000), (700, 1000))
    plans = [plan(peak, "feasible", **{name: arena}) for peak, arena in sizes]

    class Packing(Splitting):
        def __init__(self) -> None:
            self._board, self._progress, self._limits = BOARD, SILENT, Limits(5.0, 60.0, 0)

        def _left(self, part: float) -> float:
            return 1.0

        def _with_moves(self, plan_: Any, _: float) -> Any:
            packed.append((plan_.estimate.peak_bytes, "moves"))
            return plan(700, "optimal", **{name: 700}) if plan_.estimate.peak_bytes == 700 else plan_

        def _packed(self, plan_: Any, *_: float) -> Any:
            packed.append((plan_.estimate.peak_bytes, "fixed"))
            return plan(plan_.estimate.peak_bytes, "feasible", **{name: 690})

    for fixed in (False, True):
        Packing()._pack(plans, fixed=fixed)
    assert packed == [(600, "moves"), (700, "moves"), (600, "fixed")]  # the others have no chance then
    assert [one.layout.arena_bytes for one in plans] == [1200, 1100, 690, 700]


class Packed(Splitting):
    """Nothing but the choice between fixed offsets and moves, which all together take 5 ticks."""

    def __init__(self, most_ticks: float, moves: int) -> None:
        self._board, self._effort, self._price = BOARD, 1.0, MovePrice(5.0 / moves, 0.0, 0.0)
        self._most_ticks, self.moves = most_ticks, moves

    def _cut(self, _: Any) -> Any:
        return SimpleNamespace(block_bytes=lambda *_: 1), SimpleNamespace(work={})


def made_of(arena: int, ticks: float, moves: int = 0) -> Any:
    placement = Placement(BOARD.memories[0].name, 1, (0,))
    every = tuple(Move(1, "t", 0, at + 1) for at in range(moves))
    layout = Layout(
        {"t": placement}, {}, {placement.memory: arena}, "optimal" if moves else "feasible", every
    )
    return Plan(None, "", {}, Schedule((), ""), layout, Estimate(600, 0, 600, {}, ticks))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fixed", "moves", "most_ticks", "arena", "ticks"),
    [
        (1000, 10, 105.0, 600, 105.0),  # the moves' time counts once, and just fits
        (1000, 10, 104.0, 1000, 100.0),  # it does not fit
        (600, 10, 105.0, 600, 100.0),  # nothing needs to move
        (632, 10, 105.0, 632, 100.0),  # 3.2 bytes for each move are too few
    ],
)
def test_fixed_offsets_or_moves(
    fixed: int, moves: int, most_ticks: float, arena: int, ticks: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    splitting = Packed(most_ticks, moves)
    monkeypatch.setattr(placing, "placed", lambda *_, **__: made_of(fixed, 0.0))
    monkeypatch.setattr(
        placing, "with_moves", lambda plan, *_, **__: (made_of(600, 0.0, moves).layout, plan.estimate)
    )
    first = splitting._packed(made_of(1000, 100.0), 1.0, 1.0)
    for plan_ in (first, splitting._packed(first, 1.0, 1.0)):  # packed again, it is the same
        assert (plan_.layout.arena_bytes, plan_.estimate.ticks) == (arena, pytest.approx(ticks))


def test_moves_stay_where_fixed_offsets_are_much_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    splitting = Packed(105.0, 10)
    monkeypatch.setattr(placing, "placed", lambda *_, **__: made_of(1000, 0.0))
    monkeypatch.setattr(placing, "with_moves", lambda plan, *_, **__: (plan.layout, plan.estimate))
    plan_ = made_of(600, 105.0, 10)
    assert splitting._packed(plan_, 1.0, 1.0) is plan_


def test_of_slower_plans_with_larger_arenas_none_is_handed_on() -> None:
    splitting = object.__new__(Splitting)
    splitting._board = BOARD
    sizes = {480: 9.0, 400: 9.5, 560: 9.0, 640: 8.0, 720: 8.5}
    plans = [plan(1, "feasible", ticks, **{BOARD.memories[0].name: arena}) for arena, ticks in sizes.items()]
    assert [one.layout.arena_bytes for one in splitting._front(plans)] == [400, 480, 640]


def test_a_plan_over_the_latency_limit_is_no_yardstick() -> None:
    splitting = object.__new__(Splitting)
    splitting._most_ticks = 10.0
    plans: list[Any] = []
    for ticks in (10.5, 10.0):
        splitting._add(plans, plan(1, "feasible", ticks, ram=8))
    assert [one.estimate.ticks for one in plans] == [10.0]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return quantised_convolutions(tmp_path / "small.onnx")


def test_an_interrupt_keeps_the_best_and_computes_nothing_again(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcudeploy.splitting.recompute", lambda *_: pytest.fail("recomputed"))

    def interrupt(_: Search, peak_bytes: int, __: float) -> None:
        if peak_bytes < 12 * 12 * 12:
            raise KeyboardInterrupt

    found = find_plans(load_model(model), BOARD, Options(), told=interrupt)
    assert found.plans[0].layout.arena_bytes < found.unsplit.layout.arena_bytes


def test_an_interrupt_while_packing_keeps_the_plans(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mcudeploy.splitting.Splitting._pack", interrupt)
    found = find_plans(load_model(model), BOARD, Options())
    assert found.plans[0].layout.arena_bytes < found.unsplit.layout.arena_bytes


def test_an_interrupt_while_ordering_finds_blocks_moved(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mcudeploy.splitting.Splitting._pack", lambda *_, fixed: asked.append(fixed))
    monkeypatch.setattr("mcudeploy.splitting.Splitting._in_better_order", interrupt)
    assert find_plans(load_model(model), BOARD, Options()).plans[0].splits
    assert asked == [False]


def test_a_limit_that_is_kept_needs_no_halo_twice(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcudeploy.splitting.recompute", lambda *_: pytest.fail("recomputed"))
    found = find_plans(load_model(model), BOARD, Options(ram_limit=1700))
    assert found.plans[0].layout.arena_bytes <= 1700
