"""Plans that an earlier search found are taken again, as long as everything that decides them is the same."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from models import quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import FitError
from mcudeploy.planner import planner
from mcudeploy.planner.files.plan_cache import PlanCache
from mcudeploy.planner.files.planfile import plan_text
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import Planned, find_or_recall

OPTIONS = Options(time_limit=0.3)
BOARD = load_board("stm32f405")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path / "cache"))
    return load_model(quantised_convolutions(tmp_path / "m.onnx"))


def recalled(model: Model, options: Options, monkeypatch: pytest.MonkeyPatch) -> Planned | None:
    """The plans of an earlier search, None if a search begins."""

    def searched(*_: object, **__: object) -> Planned:
        raise LookupError

    with monkeypatch.context() as patched:
        patched.setattr(planner, "find_plans", searched)
        try:
            return find_or_recall(model, BOARD, options)
        except LookupError:
            return None


def test_the_plans_and_their_figures_are_those_of_the_search(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = find_or_recall(model, BOARD, OPTIONS)
    again = recalled(model, OPTIONS, monkeypatch)
    assert again is not None and len(plans.choices) > 1
    for one, other in zip(plans.choices, again.choices, strict=True):
        assert plan_text(one, "") == plan_text(other, "")
        assert one.estimate == other.estimate and one.layout.status == other.layout.status
        assert one.schedule == other.schedule
        calls, others = (it.model_of(plan).calls for it, plan in ((plans, one), (again, other)))
        assert {name: it.variant for name, it in calls.items()} == {
            name: it.variant for name, it in others.items()
        }
    for name in ("search", "points", "costs_of", "objective", "limits", "offers_baseline", "interrupted"):
        assert getattr(plans, name) == getattr(again, name)


@pytest.mark.parametrize("change", [{"max_overhead": 7.0}, {"time_limit": 0.4}, {"split": False}])
def test_another_choice_is_another_search(
    change: dict[str, float], model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_or_recall(model, BOARD, OPTIONS)
    assert recalled(model, replace(OPTIONS, **change), monkeypatch) is None  # type: ignore[arg-type]
    assert recalled(model, replace(OPTIONS, name="other", resume=True), monkeypatch) is not None


def test_all_cores_of_another_host_are_another_search(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    host, options = load_board("host"), replace(OPTIONS, cores=0)
    for count in (2, 1):
        monkeypatch.setattr("os.cpu_count", lambda count=count: count)
        for _ in range(2):
            planned = find_or_recall(model, host, options)
            assert all(max(1, len(plan.lanes)) == count for plan in planned.choices)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *product(["0.json", "search.json"], ["", "{}", "cut", "pipe"]),
        ("0.json", "moved"),
        ("search.json", "no plans"),
    ],
)
def test_a_damaged_entry_is_searched_again(
    name: str, damage: str, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_or_recall(model, BOARD, OPTIONS)
    path = PlanCache.of(model, BOARD, OPTIONS).folder / name
    content = json.loads(path.read_text())
    if damage == "moved":  # a plan that the checker refuses
        blocks = next(it for it in content["blocks"].values() if it[0])
        blocks[0][0][3] += 8
    if damage == "no plans":
        content["plans"] = []
    texts = {"": "", "{}": "{}", "cut": json.dumps(content)[:-9]}
    if damage == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        path.write_text(texts.get(damage, json.dumps(content)))
    assert recalled(model, OPTIONS, monkeypatch) is None
    again = find_or_recall(model, BOARD, OPTIONS)
    assert again.choices and recalled(model, OPTIONS, monkeypatch) is not None


def test_a_cache_that_cannot_be_written_is_not_an_error(model: Model, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    assert find_or_recall(model, BOARD, OPTIONS).choices


def test_a_model_that_does_not_fit_is_searched_each_time(model: Model) -> None:
    for _ in range(2):
        with pytest.raises(FitError):
            find_or_recall(model, BOARD, replace(OPTIONS, ram_limit=64))
