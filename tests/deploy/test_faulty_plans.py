"""Plans that the checker refuses: none of models that once had some, and a way out where one comes up."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from models import quantised_convolutions

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.checker.judge import PlanFaultError
from mcudeploy.commands import commands as api
from mcudeploy.device.target import Target
from mcudeploy.ir.plan import Plan
from mcudeploy.planner import planner
from mcudeploy.planner.plan_options import Options
from tests import reports

HOST = load_board("host")
REGRESSIONS = Path(__file__).resolve().parents[1] / "regressions"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ["view_of_input", "view_of_input2"])
def test_an_input_that_is_cut_and_looked_at_through_a_view(
    name: str, streamed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    model = REGRESSIONS / f"fail_planfault_{name}.onnx"
    options = Options(max_overhead=400, time_limit=0.5, stream_input=streamed)
    report = reports.run_model(model, Target(HOST), options, inputs=[], expected=[])
    assert report["verified"]
    assert "defect" not in caplog.text


def refuse(monkeypatch: pytest.MonkeyPatch, *, unsplit: bool) -> None:
    def check(plan: Plan, *_: object) -> None:
        if plan.splits or unsplit:
            raise PlanFaultError("step 1 (conv_0, block 0) needs what is overwritten")

    monkeypatch.setattr(planner, "check_plan", check)


@pytest.mark.parametrize("board", [HOST, load_board("stm32f405")])
def test_a_plan_that_the_checker_refuses_is_passed_over_and_told_of(
    board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = quantised_convolutions(tmp_path / "small.onnx")
    refuse(monkeypatch, unsplit=False)
    with caplog.at_level(logging.WARNING):
        deployment = api.plan_model(model, board, Options(time_limit=0.5, max_overhead=50))
    assert deployment.plan is deployment.planned.baseline
    assert "warning: defect: " in caplog.text and "needs what is overwritten" in caplog.text
    assert "report this with the model, the command line, and mcudeploy" in caplog.text


def test_an_unsplit_plan_that_the_checker_refuses_is_not_a_fault_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = quantised_convolutions(tmp_path / "small.onnx")
    refuse(monkeypatch, unsplit=True)
    with pytest.raises(PlanFaultError, match=r"^defect: .* report this with") as caught:
        api.plan_model(model, HOST, Options(split=False))
    assert caught.value.exit_code == 1


def test_control_c_after_the_search_loses_no_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = quantised_convolutions(tmp_path / "small.onnx")
    calls = []

    def check(*_: object) -> None:
        calls.append(True)
        if len(calls) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(planner, "check_plan", check)
    deployment = api.plan_model(model, HOST, Options(time_limit=0.5, max_overhead=50))
    assert deployment.plan.splits and len(calls) > 2
