"""`plan --curve`: a plan for each of several latency limits."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.common.errors import FitError
from mcudeploy.extensions.curve import curve_option
from mcudeploy.planner.plan_options import Options


def test_every_point_is_smaller_and_slower_than_the_one_before(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curve_option, "LIMITS", (0.0, 30.0, 30.01, 100.0))
    options = Options(time_limit=0.5, stream_input=True)
    points = curve_option.curve_points(model, load_board("mps2-an386"), options)
    arenas = [it.plan.layout.arena_bytes for it in points.values() if it is not None]
    assert len(arenas) >= 2 and arenas == sorted(set(arenas), reverse=True)


def test_a_model_that_fits_at_no_limit_is_an_error(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve_option, "LIMITS", (0.0, 10.0))
    board, options = load_board("mps2-an386"), Options(time_limit=0.2, ram_limit=16)
    with pytest.raises(FitError):
        curve_option.curve_points(model, board, options)


def test_its_commands_plan_the_points(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["plan", str(model), "--board", "mps2-an386", "--time-limit", "0.2", "--curve", "--json"]
    monkeypatch.setattr("sys.argv", ["mcudeploy", *words])
    result = CliRunner().invoke(cli, words)
    report = json.loads(result.stdout)
    (first, *_) = report["curve"]
    assert 0 < report["cut_bounds"]["any_bytes"] <= report["curve"][-1]["arena_bytes"]
    command = shlex.split(first["command"])
    assert command[:2] == ["mcudeploy", "plan"] and command[-2:] == ["--max-overhead", "0"]
    assert "--curve" not in command and first["arena_bytes"] > 0


def test_its_table_ends_with_the_lower_bound(model: Path) -> None:
    words = ["plan", str(model), "--board", "mps2-an386", "--time-limit", "0.2", "--curve"]
    assert "lower bound over all cuts: " in CliRunner().invoke(cli, words).stdout


def test_a_plan_shows_the_lower_bound_over_all_cuts(model: Path) -> None:
    words = ["plan", str(model), "--board", "mps2-an386", "--time-limit", "0.2"]
    shown = CliRunner().invoke(cli, words).stdout
    report = json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)
    assert f"over all cuts    {report['cut_bounds']['any_bytes']:,} B" in shown


def test_it_is_for_one_board_and_no_file(model: Path) -> None:
    for more in ("--explain", "-o plan.json"):
        result = CliRunner().invoke(cli, shlex.split(f"plan {model} --board mps2-an386 --curve {more}"))
        assert result.exit_code != 0 and "--curve" in str(result.exception) + result.output
