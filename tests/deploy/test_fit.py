"""The error for a model that does not fit a board: by which plans, and by which it would."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from models import fully_connected, quantised_convolutions

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import FitError
from mcudeploy.planner.plan_options import Options
from tests import reports

STM = load_board("stm32f405")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return quantised_convolutions(tmp_path / "small.onnx")


def with_room_for(arena_bytes: int) -> Board:
    """A board with one memory that has room for such an arena."""
    memory = STM.memories[0]
    kept = memory.bytes - STM.room(memory)
    return STM.model_copy(update={"memories": (memory.model_copy(update={"bytes": kept + arena_bytes}),)})


def test_check_judges_split_and_streamed_plans_too(model: Path) -> None:
    plans = reports.check_model(model, STM, Options())["plans"]
    sizes = {name: plan["arena_bytes"] for name, plan in plans.items()}
    assert sizes["unsplit"] > sizes["split"] > sizes["streamed"]
    for room in (sizes["split"], sizes["streamed"], 64):
        plan = reports.check_model(model, with_room_for(room), Options())
        assert {name: one["fits"] for name, one in plan["plans"].items()} == {
            name: size <= room for name, size in sizes.items()
        }
        assert plan["fits"] == (room > 64) == (not plan["missing"])
        assert plan["arena_bytes"] == sizes["unsplit"]


def proposals(model: Path, board: Board, options: Options) -> dict[str, str]:
    """Proposals for a model that does not fit."""
    with pytest.raises(FitError) as caught:
        api.plan_model(model, board, options)
    told = {each.option: each.says for each in caught.value.proposals}
    assert all(f"  {option}: {says}" in str(caught.value) for option, says in told.items())
    return told


def test_what_does_not_fit_names_what_would(model: Path) -> None:
    proposed = proposals(model, with_room_for(1200), Options(time_limit=0.5))
    assert re.fullmatch(r"an arena of [\d,]+ bytes, [+-][\d.]+ % of .* latency", proposed["--stream-input"])
    board = next(option for option in proposed if option.startswith("--board"))
    assert board == "--board stm32f100"  # the least RAM of all
    streamed = api.plan_model(model, with_room_for(1200), Options(time_limit=0.5, stream_input=True))
    assert streamed.plan.layout.arena_bytes <= 1200
    assert list(proposals(model, with_room_for(64), Options(time_limit=0.5))) == [board]
    given = Options(time_limit=0.5, stream_input=True)
    assert "--stream-input" not in proposals(model, with_room_for(64), given)


def test_cuts_overhead_and_wider_limits_are_proposed_where_they_work(model: Path) -> None:
    whole = api.plan_model(model, STM, Options(split=False)).plan.layout.arena_bytes
    unsplit = Options(split=False, ram_limit=whole - 16)
    assert set(proposals(model, STM, unsplit)) == {"--split", f"--ram-limit {whole}"}
    least = api.plan_model(model, STM, Options(max_overhead=100, time_limit=0.5)).plan.layout.arena_bytes
    hurried = Options(max_overhead=0, ram_limit=least, time_limit=0.5)
    overhead = next(it for it in proposals(model, STM, hurried) if it.startswith("--max-overhead"))
    more = replace(hurried, max_overhead=float(overhead.split()[1]))
    assert api.plan_model(model, STM, more).plan.layout.arena_bytes <= least
    narrow = Options(split=False, memory_limits=(("sram", 512), ("ccm", 0)))
    assert f"--memory sram={whole} --memory ccm=0" in proposals(model, STM, narrow)


def test_a_float_model_is_proposed_as_int8(tmp_path: Path) -> None:
    path = fully_connected(tmp_path / "dense.onnx", (64, 256, 8), quantised=False)  # 73,728 B of weights
    quantized = {}
    for size in (60_000, 50_000):  # the latter has no room for code beside the weights in int8
        flash = STM.flash.model_copy(update={"bytes": size})
        proposed = proposals(path, STM.model_copy(update={"flash": flash}), Options(time_limit=0.5))
        quantized[size] = {option: text for option, text in proposed.items() if "quantize" in option}
        assert [option for option in proposed if option.startswith("--board")] == ["--board stm32f100"]
    ((command, text),) = quantized[60_000].items()
    assert command.startswith("mcudeploy quantize ") and "of weights" in text
    assert not quantized[50_000]


def test_where_the_weights_are_too_large_nothing_is_said_of_the_arena(model: Path) -> None:
    flash = STM.flash.model_copy(update={"bytes": 100})
    board = with_room_for(64).model_copy(update={"flash": flash})
    with pytest.raises(
        FitError, match=r"^weights need [\d,]+ bytes, the flash of stm32f405 has 100"
    ) as caught:
        api.plan_model(model, board, Options(time_limit=0.5))
    assert "arena" not in str(caught.value).splitlines()[0]
    report = reports.check_model(model, board, Options())
    assert list(report["plans"]) == ["unsplit"] and not report["fits"]
