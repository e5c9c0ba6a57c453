"""The search for the rows to keep, together with the plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import FitError
from mcudeploy.planner import hop_plans
from mcudeploy.planner.hop_plans import find_hop_plans
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import Planned, find_plans
from mcudeploy.planner.search import splitting
from mcudeploy.report import as_json
from tests.networks.windows import TimeConv, time_network

BOARD = load_board("mps2-an386")
PADDED = (TimeConv(8, kernel=3, stride=2, pads=(1, 1)), TimeConv(8, kernel=3, pads=(1, 1)))


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return time_network(tmp_path / "net.onnx", 20, 6, PADDED, "mean")


class Searches:
    """Records the results of the searches for each choice of rows, and interrupts the search `last`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, last: int | None = None) -> None:
        self.results: list[Planned] = []
        self._last = last
        monkeypatch.setattr(hop_plans, "find_plans", self._find_plans)
        monkeypatch.setattr(
            "mcudeploy.planner.search.splitting.run_stages", self._finish(splitting.run_stages)
        )

    def _find_plans(self, *arguments: Any, **options: Any) -> Planned:
        self.results.append(find_plans(*arguments, **options))
        return self.results[-1]

    def _finish(self, finish: Any) -> Any:
        def finishing(*arguments: Any) -> None:
            if len(self.results) + 1 == self._last:
                raise KeyboardInterrupt
            finish(*arguments)

        return finishing


@pytest.mark.parametrize("last", [1, 2])
def test_an_interrupt_ends_all_searches(last: int, net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searches = Searches(monkeypatch, last)
    planned = find_hop_plans(load_model(net, hop=2), BOARD, Options(hop=2, time_limit=0.5))
    assert [it.interrupted for it in searches.results] == [False] * (last - 1) + [True]
    assert planned.interrupted and planned.choices
    assert planned.hop_curve is not None and len(planned.hop_curve.points) == last


def test_the_curve_has_the_deployed_plan(net: Path) -> None:
    """Also a plan that the last search, or times of a device, took in place of the curve's."""
    deployment = api.plan_model(net, BOARD, Options(hop=2, time_limit=0.5, max_overhead=40))
    plan = replace(deployment.plan, layout=replace(deployment.plan.layout, arenas={"sram": 8}))
    report = as_json(replace(deployment, plan=plan))
    curve = report["window"]["curve"]
    (chosen,) = (it for it in curve if it["keeping"] == report["window"]["keeping"])
    assert chosen["arena_bytes"] == report["arena_bytes"] == 8
    assert chosen["state_bytes"] == report["state_bytes"] and chosen["macs"] == report["macs"]
    assert all(it["arena_bytes"] > 8 for it in curve if it is not chosen)


def test_proposals_may_keep_fewer_rows(tmp_path: Path) -> None:
    """The rows of the input alone need less RAM than all rows, by more than the grain of proposals."""
    path = time_network(tmp_path / "net.onnx", 40, 6, 4 * (TimeConv(8, pads=(1, 1)),), "mean")
    options, model = Options(hop=2, time_limit=2, ram_limit=64), load_model(path, hop=2)
    with pytest.raises(FitError) as error:
        api.plan_model(path, BOARD, options)
    (proposal,) = error.value.proposals
    limit = int(proposal.option.removeprefix("--ram-limit "))
    everything = find_plans(model, BOARD, replace(options, ram_limit=None))
    assert limit < everything.choices[0].layout.arena_bytes
    assert api.plan_model(path, BOARD, replace(options, ram_limit=limit)).plan.layout.arena_bytes <= limit
