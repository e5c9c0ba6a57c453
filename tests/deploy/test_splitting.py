"""Results of a search: the packed plans, the ones returned, and those after an interrupt."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from models import quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.effort import Effort
from mcudeploy.common.progress import SilentProgress
from mcudeploy.ir.plan import Rewrites, Schedule, Search
from mcudeploy.planner.files.planfile import plan_text
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.planner.search import placing
from mcudeploy.planner.search.ranking import could_win, front, sort_key

BOARD = load_board("host")


def plan(peak_bytes: int, status: str, ticks: float = 0.0, **arenas: int) -> Any:
    """As much of a plan as matters."""
    layout = SimpleNamespace(arenas=arenas, arena_bytes=sum(arenas.values()), status=status, transfers=())
    estimate = SimpleNamespace(
        peak_bytes=peak_bytes,
        exposed_ticks=0.0,
        avoidable_ticks=0.0,
        ticks=ticks,
        unavoidable_ticks=ticks,
        latency_ticks=ticks,
    )
    schedule = SimpleNamespace(steps=(), status="feasible")
    return SimpleNamespace(layout=layout, estimate=estimate, schedule=schedule, form=Rewrites())


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
    assert could_win(peak_bytes, 0, best) == could


def test_of_slower_plans_with_larger_arenas_none_is_handed_on() -> None:
    sizes = {480: 9.0, 400: 9.5, 560: 9.0, 640: 8.0, 720: 8.5}
    plans = [plan(1, "feasible", ticks, **{BOARD.memories[0].name: arena}) for arena, ticks in sizes.items()]
    assert [one.layout.arena_bytes for one in front(plans, BOARD)] == [400, 480, 640]


def test_of_plans_with_one_arena_the_fastest_and_then_the_smallest_is_taken() -> None:

    def of(ticks: float, steps: int) -> Any:
        made = plan(1, "feasible", ticks, **{BOARD.memories[0].name: 480})
        made.schedule = SimpleNamespace(steps=(None,) * steps, status="feasible")
        return made

    (best,) = front([of(9.0, 4), of(8.0, 5), of(8.0, 4), of(8.5, 4)], BOARD)
    assert (best.estimate.ticks, len(best.schedule.steps)) == (8.0, 4)


def test_a_fused_plan_is_better_if_it_saves_more_than_its_stack() -> None:
    name, fused = BOARD.memories[0].name, Rewrites(fused=(("a", "b"),))

    def chosen(saved_bytes: int) -> Any:
        other = plan(1, "feasible", 8.0, **{name: 10_000 - saved_bytes})
        other.form = fused
        return front([other, plan(1, "feasible", 8.0, **{name: 10_000})], BOARD)[0].form

    assert chosen(fused.stack_bytes - 8) == Rewrites()
    assert chosen(fused.stack_bytes + 8) == fused


def test_ram_is_worth_some_tables_but_a_limit_is_worth_all() -> None:
    def of(arena: int, steps: int) -> Any:
        made = plan(1, "feasible", 8.0, **{BOARD.memories[0].name: arena})
        made.schedule = SimpleNamespace(steps=(None,) * steps, status="feasible")
        return made

    few, many, some = of(10_064, 100), of(10_000, 9_408), of(10_000, 150)
    assert min([few, many], key=lambda one: sort_key(one, BOARD)) is few
    assert min([few, some], key=lambda one: sort_key(one, BOARD)) is some
    assert min([few, many], key=lambda one: sort_key(one, BOARD, 10_060)) is many


def test_a_start_is_among_the_plans(model: Path) -> None:
    first = find_plans(load_model(model), BOARD, Options(max_overhead=50)).choices[0]
    again = find_plans(load_model(model), BOARD, Options(max_overhead=50, time_limit=1e-9), start=first)
    best = again.choices[0]
    assert first.splits and (best.layout, best.schedule.steps) == (first.layout, first.schedule.steps)


def test_a_search_without_time_says_so(model: Path, caplog: pytest.LogCaptureFixture) -> None:
    find_plans(load_model(model), BOARD, Options(time_limit=5))
    assert "ended early" not in caplog.text
    find_plans(load_model(model), BOARD, Options(time_limit=1e-9))
    assert "the search ended early, after" in caplog.text


def test_the_unsplit_order_is_solved_once(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solved: list[Model] = []
    schedule_of = placing.unsplit_schedule

    def solve(model_: Model, effort: Effort) -> Schedule:
        solved.append(model_)
        return schedule_of(model_, effort)

    monkeypatch.setattr(placing, "unsplit_schedule", solve)
    monkeypatch.setattr("mcudeploy.planner.planner.unsplit_schedule", solve)
    find_plans(load_model(model), BOARD, Options(time_limit=1))
    assert len(solved) == 1


def test_no_plan_is_over_the_latency_limit(model: Path) -> None:
    plans = find_plans(load_model(model), BOARD, Options(max_overhead=10))
    assert len(plans.choices) > 1
    assert all(plan.estimate.ticks <= 1.1 * plans.baseline.estimate.ticks for plan in plans.choices)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return quantised_convolutions(tmp_path / "small.onnx")


def test_an_interrupt_keeps_the_best_and_computes_nothing_again(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcudeploy.planner.search.stages.recompute", lambda *_: pytest.fail("recomputed"))

    def interrupt(_: Search, peak_bytes: int, __: float) -> None:
        if peak_bytes < 12 * 12 * 12:
            raise KeyboardInterrupt

    plans = find_plans(load_model(model), BOARD, Options(max_overhead=50), report=interrupt)
    assert plans.choices[0].layout.arena_bytes < plans.baseline.layout.arena_bytes


@pytest.mark.parametrize(
    "stage", ["ordering the best plans", "packing the best plans", "ordering and packing the best plan"]
)
def test_an_interrupt_in_any_stage_keeps_the_plans(
    model: Path, stage: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Interrupting(SilentProgress):
        def stage(self, name: str) -> None:
            if name == stage:
                raise KeyboardInterrupt

    plans = find_plans(load_model(model), BOARD, Options(), progress=Interrupting())
    assert plans.interrupted
    assert "interrupted: the search ends with the best plan so far" in caplog.messages
    assert plans.choices[0].layout.arena_bytes < plans.baseline.layout.arena_bytes


@pytest.mark.parametrize(
    "part", ["search.splitting.squeeze", "search.splitting.split_plans", "planner.cut_bounds"]
)
def test_an_interrupt_between_searches_keeps_the_plans(
    model: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"mcudeploy.planner.{part}", interrupt)
    plans = find_plans(load_model(model), BOARD, Options(max_overhead=50))
    assert plans.interrupted
    assert plans.choices[0].layout.arena_bytes < plans.baseline.layout.arena_bytes


def test_an_arena_that_is_shown_can_be_had(model: Path) -> None:
    shown: list[int] = []
    options = Options(max_overhead=1000)
    plans = find_plans(load_model(model), BOARD, options, report=lambda _, size, __: shown.append(size))
    assert shown == sorted(shown, reverse=True)
    assert plans.choices[0].layout.arena_bytes <= shown[-1] <= plans.baseline.layout.arena_bytes
    assert plans.choices[0].estimate.peak_bytes <= shown[-1]


def test_a_limit_that_is_kept_needs_no_halo_twice(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcudeploy.planner.search.stages.recompute", lambda *_: pytest.fail("recomputed"))
    plans = find_plans(load_model(model), BOARD, Options(ram_limit=1700))
    assert plans.choices[0].layout.arena_bytes <= 1700


def test_a_slow_machine_makes_the_same_plan(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as the clock, a brake, is not reached."""
    first = find_plans(load_model(model), BOARD, Options(max_overhead=50, time_limit=2))
    start = time.process_time()
    slowed = lambda: start + 10 * (time.process_time() - start)  # noqa: E731
    monkeypatch.setattr("mcudeploy.common.effort.process_time", slowed)
    again = find_plans(load_model(model), BOARD, Options(max_overhead=50, time_limit=2))
    texts = [[plan_text(plan, "") for plan in plans.choices] for plans in (first, again)]
    assert texts[0] == texts[1]
