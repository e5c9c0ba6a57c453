"""What is said of a model that does not fit a board: by which plans, and by which it would."""

from __future__ import annotations

from pathlib import Path

import pytest
from models import quantised_convolutions

from mcudeploy import api
from mcudeploy.boards.board import Board, load_board
from mcudeploy.common.errors import FitError
from mcudeploy.search.planner import Options

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
    plans = api.check_model(model, STM, Options())["plans"]
    sizes = {name: found["arena_bytes"] for name, found in plans.items()}
    assert sizes["unsplit"] > sizes["split"] > sizes["streamed"]
    for room in (sizes["split"], sizes["streamed"], 64):
        found = api.check_model(model, with_room_for(room), Options())
        assert {name: one["fits"] for name, one in found["plans"].items()} == {
            name: size <= room for name, size in sizes.items()
        }
        assert found["fits"] == (room > 64) == (not found["missing"])
        assert found["arena_bytes"] == sizes["unsplit"]


def test_what_does_not_fit_names_the_streamed_input_if_it_helps(model: Path) -> None:
    with pytest.raises(FitError, match=r"With --stream-input the arena needs [\d,]+ bytes, which fits"):
        api.plan_model(model, with_room_for(1200), Options(time_limit=5))
    with pytest.raises(FitError, match="which does not fit either"):
        api.plan_model(model, with_room_for(64), Options(time_limit=5))
    with pytest.raises(FitError) as caught:
        api.plan_model(model, with_room_for(64), Options(time_limit=5, stream_input=True))
    assert "--stream-input" not in str(caught.value)


def test_where_the_weights_are_too_large_nothing_is_said_of_the_arena(model: Path) -> None:
    flash = STM.flash.model_copy(update={"bytes": 100})
    board = with_room_for(64).model_copy(update={"flash": flash})
    with pytest.raises(
        FitError, match=r"^weights need [\d,]+ bytes, the flash of stm32f405 has 100"
    ) as caught:
        api.plan_model(model, board, Options(time_limit=5))
    assert "arena" not in str(caught.value)
    found = api.check_model(model, board, Options())
    assert list(found["plans"]) == ["unsplit"] and not found["fits"]
