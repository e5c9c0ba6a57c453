"""Ranking of boards for a model by plans that the checker accepts there."""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from models import quantised_convolutions
from rich.console import Console

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import board_file, load_board
from mcudeploy.checker.judge import check
from mcudeploy.cli.fit_command import table
from mcudeploy.cli.main import cli
from mcudeploy.common.errors import FitError
from mcudeploy.costs.estimate import load_costs
from mcudeploy.execution.results import Fitted
from mcudeploy.ir.clock import MODEL_UNIT
from mcudeploy.planner.fit import SEARCH_S, SLOWEST, estimated_latency, rank_boards
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.report.fits import fits
from mcudeploy.tiling.blocks import TiledGraph

STM = load_board("stm32f405")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load_model(quantised_convolutions(tmp_path_factory.mktemp("fit") / "small.onnx"))


def variant(name: str, *rooms: int, **facts: object) -> Board:
    """A board whose memories have room for arenas of these sizes."""
    kept = STM.memories[0].bytes - STM.room(STM.memories[0])
    sizes = (kept + rooms[0], *rooms[1:])
    memories = tuple(
        memory.model_copy(update={"bytes": size}) for memory, size in zip(STM.memories, sizes, strict=False)
    )
    return STM.model_copy(update={"name": name, "memories": memories} | facts)


def test_the_way_is_the_simplest_that_fits_and_what_is_missing_is_counted(model: Model) -> None:
    (unsplit,) = rank_boards(model, [variant("roomy", 10_000)], Options())
    whole = unsplit.chosen.plan.layout.arena_bytes
    boards = [variant("none", 64), variant("streamed", 1200), variant("split", whole - 16), STM]
    ranked = rank_boards(model, boards, Options())
    assert [fit.fits for fit in ranked] == [True, True, True, False]
    by_board = {fit.board.name: fit for fit in ranked}
    assert {name: fit.chosen.name for name, fit in by_board.items()} == {
        "stm32f405": "unsplit",
        "split": "split",
        "streamed": "streamed",
        "none": "slower",
    }
    none = by_board["none"]
    assert none.excess_bytes == none.chosen.plan.layout.arena_bytes - 64 > 0
    assert all(f"{none.excess_bytes:,} too many" in line for line in none.chosen.missing)
    report = {each["board"]: each for each in fits(Fitted(ranked))["boards"]}
    assert report["split"]["ram_free_bytes"] >= 0 > report["none"]["ram_free_bytes"]
    assert report["streamed"]["ways"]["split"] == {
        "arena_bytes": by_board["split"].chosen.plan.layout.arena_bytes,
        "fits": False,
    }


def test_the_slow_down_at_which_it_fits(model: Model) -> None:
    """And the options of `plan` that lead there."""
    (none,) = rank_boards(model, [variant("none", 64)], Options())
    arenas = {way.name: way.plan.layout.arena_bytes for way in none.ways}
    assert arenas["slower"] < arenas["streamed"]
    ranked = rank_boards(model, [variant("small", arenas["slower"]), STM], Options())
    slow = ranked[0].chosen
    assert [fit.board.name for fit in ranked if fit.fits] == ["small", "stm32f405"]
    assert slow.name == "slower" and Options().overhead_limit < slow.overhead <= SLOWEST
    assert slow.options == f"--stream-input --max-overhead {ceil(slow.overhead)}"
    (limited,) = rank_boards(model, [variant("none", 64)], Options(max_overhead=SLOWEST))
    assert [way.name for way in limited.ways] == ["unsplit", "split", "streamed"]


def test_latency_is_of_the_clock_and_the_slower_chip_of_a_size_comes_first(model: Model) -> None:
    slow = variant("slow", 10_000, clock_hz=STM.clock_hz // 4)
    second, first = rank_boards(model, [variant("fast", 10_000), slow], Options())
    assert (first.board.name, second.board.name) == ("fast", "slow")
    assert first.latency is not None and second.latency is not None
    assert first.latency.unit == MODEL_UNIT and first.latency.costs_of == load_costs("cortex-m4").core
    assert second.latency.ticks == first.latency.ticks
    assert second.latency.clock_hz * 4 == first.latency.clock_hz
    (host,) = rank_boards(model, [load_board("host")], Options())
    assert host.latency is None and host.fits


def test_the_least_ram_comes_first_then_the_least_flash_then_native_boards(model: Model) -> None:
    flash = STM.flash.model_copy(update={"bytes": STM.flash.bytes // 2})
    names = {"pio:a": STM.flash, "b": STM.flash, "c": flash}
    boards = [load_board("esp32s3"), *(variant(name, 9000, flash=it) for name, it in names.items())]
    *ranked, bound = rank_boards(model, boards, Options())
    assert [fit.board.name for fit in ranked] == ["c", "b", "pio:a"]
    assert bound.latency is not None and bound.latency.unit == "instructions"


def test_plans_stand_the_checker_on_every_board_and_in_several_memories(model: Model) -> None:
    boards = [variant("two", 1000, 1500), *map(load_board, ("stm32h743", "mps3-an547", "rp2040", "esp32s3"))]
    ranked = rank_boards(model, boards, Options())
    for fit in ranked:
        way = fit.chosen
        check(way.plan, way.model.work, fit.board)
        assert fit.fits == (not way.missing)
    assert any(len(fit.chosen.plan.layout.arenas) > 1 for fit in ranked if fit.board.name == "two")


def test_where_weights_are_too_large_no_plan_is_searched_for(model: Model) -> None:
    flash = STM.flash.model_copy(update={"bytes": 100})
    (fit,) = rank_boards(model, [variant("small", 10_000, flash=flash)], Options())
    assert [way.name for way in fit.ways] == ["unsplit"]
    assert not fit.fits and fit.excess_bytes == fit.flash_bytes - 100


def test_the_command_fails_where_it_fits_nowhere(model: Model, tmp_path: Path) -> None:
    text = board_file("stm32f100").read_text("utf-8")
    own = tmp_path / "tiny.toml"
    own.write_text(text.replace("0x20000\n", "0x40\n").replace("0x2000\n", "0x500\n"), "utf-8")
    done = CliRunner().invoke(cli, ["fit", str(model.path), "--boards", str(own)])
    assert done.exit_code == FitError.exit_code and " short" in done.stdout
    assert f"given {SEARCH_S:g} s: `mcudeploy plan MODEL --board NAME --time-limit" in done.stdout
    assert CliRunner().invoke(cli, ["fit", str(model.path), "--boards", "host,"]).exit_code == 2


def test_boards_of_a_chip_share_a_row_and_limits_leave_chips_out(model: Model) -> None:
    fit = ["fit", str(model.path), "--boards", "stm32f407-disco,stm32f405,microbit,stm32f411"]
    done = CliRunner().invoke(cli, fit)
    rows = [line.split("  ")[0].strip() for line in done.stdout.splitlines() if "  yes  " in line]
    assert rows == ["microbit", "stm32f411", "stm32f405, stm32f407-disco"]

    def names(*limits: str) -> list[str]:
        report = json.loads(CliRunner().invoke(cli, [*fit, *limits, "--json"]).stdout)
        return [board["board"] for board in report["boards"]]

    assert names("--top", "1") == names("--max-ram", "16k") == ["microbit"]
    assert names("--max-flash", "512k", "--max-ram", "1M") == ["microbit", "stm32f411"]
    (slowest, *_) = json.loads(CliRunner().invoke(cli, [*fit, "--json"]).stdout)["boards"]
    fast = names("--max-latency", str(slowest["latency"]["milliseconds"] * 0.9), "--top", "1")
    assert fast == ["stm32f411"]
    for limits, message in (
        (["--max-ram", "1k"], "within --max-ram: raise it"),
        (["--max-ram", "1k", "--max-flash", "1M"], "within --max-ram and --max-flash: raise one of them"),
        (["--max-latency", "1e-9"], "within --max-latency: raise it"),
    ):
        none = CliRunner().invoke(cli, [*fit, *limits])
        assert none.exit_code == FitError.exit_code and message in " ".join(none.stderr.split())
    wrong = CliRunner().invoke(cli, [*fit, "--top", "x"])
    assert wrong.exit_code == 2 and "'x' is not a whole number" in wrong.stderr


def test_boards_are_refused_before_the_model_is_read(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"nothing")
    fit = ["fit", str(tmp_path / "m.onnx"), "--boards", "microbit"]
    assert CliRunner().invoke(cli, [*fit, "--max-ram", "1k"]).exit_code == FitError.exit_code


def test_what_fits_only_by_cuts_is_said_first(capsys: pytest.CaptureFixture[str], model: Model) -> None:
    whole = rank_boards(model, [STM], Options())[0].chosen.plan.layout.arena_bytes
    ranked = rank_boards(model, [STM, variant("tight", whole - 16)], Options())
    table(Console(), fits(Fitted(ranked)))
    assert capsys.readouterr().out.startswith("1 of 2 fit only with operators cut into rows: tight.\n")


def test_rows_that_nothing_reads_take_no_time(tmp_path: Path) -> None:
    """A stride of 2 with kernels of one pixel reads every other row, so a cut never computes the rest."""
    rows = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> rows (float[1,1,16,16] x) => (float[1,4,8,8] z)
        { y = Conv(x, first)  z = Conv<strides=[2,2]>(y, second) }"""
    )
    for name, shape in (("first", (16, 1, 1, 1)), ("second", (4, 16, 1, 1))):
        weights = np.ones(shape, np.float32)
        rows.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    onnx.save(rows, tmp_path / "rows.onnx")
    planned = find_plans(load_model(tmp_path / "rows.onnx", isa=STM.isa), STM, Options(objective="cycles"))
    plan = planned.candidates[0]
    model = planned.model_of(plan)
    latency = estimated_latency(plan, model, STM)
    assert len(set(plan.schedule.steps)) == 16 < sum(TiledGraph.of(plan).step_counts)
    assert latency is not None and latency.ticks == pytest.approx(plan.estimate.ticks)
    assert latency.ticks < 0.8 * planned.baseline.estimate.ticks
