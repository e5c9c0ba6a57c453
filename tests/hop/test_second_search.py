"""The second search of `tune`, after all plans missed the latency limit as measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import tune as tuning
from mcudeploy.common.errors import LatencyError
from mcudeploy.common.progress import SILENT
from mcudeploy.device.fleet import Fleet
from mcudeploy.device.target import Target
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.running import Observation
from mcudeploy.ir.plan import Measurement
from mcudeploy.planner.hop_plans import find_hop_plans
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import Planned, find_plans
from tests.networks.windows import TimeConv, time_network

TARGET = Target(load_board("mps2-an386"))
OPTIONS = Options(hop=2, time_limit=2, max_overhead=40)
LOWER = 1.5
PADDED = (TimeConv(8, kernel=3, stride=2, pads=(1, 1)), TimeConv(8, kernel=3, pads=(1, 1)))


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return time_network(tmp_path / "net.onnx", 20, 6, PADDED, "mean")


class Searches:
    """Stands for the searches of `tune`: by estimates only, and the first chooses the unsplit plan."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plans: list[Planned] = []
        self.limits: list[float] = []
        monkeypatch.setattr(tuning, "plans_by_estimates", self._by_estimates)
        monkeypatch.setattr(tuning, "measured_tiles", self._measured_tiles)
        monkeypatch.setattr(tuning, "find_plans", self._find_plans)
        monkeypatch.setattr(tuning, "_choose", self._choose)
        monkeypatch.setattr(Deployment, "tighter_limit", lambda *_: LOWER)

    def _by_estimates(self, model: Model, *rest: Any, choose_rows: bool) -> Planned:
        find = find_hop_plans if choose_rows else find_plans
        self.plans.append(find(model, *rest[:2]))
        return self.plans[-1]

    def _measured_tiles(self, _: Fleet) -> Any:
        class Measured(SimpleNamespace):
            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None: ...

        return Measured(measured=0, hits=0)

    def _find_plans(self, model: Model, board: Any, options: Options, *_: Any, **__: Any) -> Planned:
        return find_plans(model, board, options)

    def _choose(self, planned: Planned, fleet: Fleet, options: Options, _: object) -> Any:
        self.limits.append(planned.limit(options.max_overhead))
        deployment = Deployment.of(planned, planned.baseline, fleet.first.board, options)
        return tuning.Tuned(deployment, Observation(Measurement(1, "instructions"), [{}], None), None, 1)


def test_it_keeps_the_rows_the_limit_and_the_curve(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It searches for less than the lower limit; plans are judged by that of the first search."""
    searches = Searches(monkeypatch)
    tuned = tuning.tune_model(net, [TARGET], OPTIONS, SILENT)
    first, second = searches.plans
    window = load_model(net, hop=2).window
    assert window is not None and first.baseline.graph.hop is not None
    assert dict(first.baseline.graph.hop.keeping) != window.keeping  # else no choice could differ
    assert second.baseline.graph.hop == first.baseline.graph.hop == tuned.deployment.plan.graph.hop
    ticks = second.baseline.estimate.ticks
    assert all(it.estimate.ticks <= (1 + LOWER / 100) * ticks for it in second.candidates)
    assert first.own_overhead is not None and first.own_overhead != OPTIONS.max_overhead
    assert searches.limits == 2 * [first.own_overhead]
    assert tuned.deployment.planned.hop_curve is first.hop_curve is not None


def test_an_error_names_the_limit_of_the_chosen_rows(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = find_hop_plans(load_model(net, hop=2), TARGET.board, OPTIONS)
    slow = replace(planned.baseline, layout=replace(planned.baseline.layout, arenas={"sram": 8}))
    planned = replace(planned, candidates=(slow,), offers_baseline=False, own_overhead=3.14159)

    def run_all(batch: Any, *_: object) -> list[Observation]:
        ticks = [1100 if deployment.plan is slow else 1000 for deployment in batch]
        return [Observation(Measurement(it, "instructions"), [{}], None) for it in ticks]

    monkeypatch.setattr(tuning, "_run_all", run_all)
    monkeypatch.setattr(tuning, "_require_same", lambda *_: None)
    with pytest.raises(LatencyError, match=r"takes \+10\.00 %.*the limit is 3\.14 %"):
        tuning._choose(planned, Fleet([TARGET]), OPTIONS, SILENT)
