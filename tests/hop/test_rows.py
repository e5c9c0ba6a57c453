"""The rows that a run computes of a window that moves, and those that it keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import UsageError
from mcudeploy.ir.interval import Interval
from mcudeploy.planner.hop.choices import choices
from mcudeploy.planner.hop.moving_window import MovingWindow
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.plan_options import Options
from tests.networks.windows import CAUSAL, DILATED, TimeConv, time_network

SAME = tuple(TimeConv(4, pads=(1, 1)) for _ in range(3))


def window_of(model: Model) -> MovingWindow:
    assert model.window is not None
    return model.window


def test_rows_near_both_ends_are_computed_again(tmp_path: Path) -> None:
    """Each padded window of three rows adds a row at both ends."""
    model = load_model(time_network(tmp_path / "m.onnx", 30, 2, SAME, "rows"), hop=4)
    window = window_of(model)
    computed = [window.rows[name].computed for name in window.rows if name.startswith("conv")]
    assert computed[::-1] == [
        (Interval(0, 1), Interval(25, 30)),
        (Interval(0, 2), Interval(24, 30)),
        (Interval(0, 3), Interval(23, 30)),
    ]


def test_without_padding_a_run_computes_the_new_rows_and_keeps_a_window(tmp_path: Path) -> None:
    model = load_model(time_network(tmp_path / "m.onnx", 48, 10, CAUSAL), hop=2)
    window = window_of(model)
    assert all(rows.count == 1 for name, rows in window.rows.items() if name.startswith("conv"))
    assert [len(window.rows[name].kept) for name in window.states] == [2, 2, 4]
    assert len(window.rows["x"].kept) == 2


def test_a_dilated_network_needs_a_tenth(tmp_path: Path) -> None:
    path = time_network(tmp_path / "m.onnx", 96, 8, DILATED, "rows")
    whole, model = load_model(path), load_model(path, hop=1)
    assert model.macs * 10 <= whole.macs
    last = load_model(time_network(tmp_path / "last.onnx", 96, 8, DILATED), hop=1)
    assert last.macs * 10 <= whole.macs


@pytest.mark.parametrize(("layers", "hop"), [(CAUSAL, 2), (DILATED, 1)], ids=["causal", "dilated"])
def test_without_padding_ram_is_at_most_that_of_the_streamed_window(
    layers: tuple[TimeConv, ...], hop: int, tmp_path: Path
) -> None:
    path, board = time_network(tmp_path / "m.onnx", 96, 8, layers), load_board("mps2-an386")
    streamed = api.plan_model(path, board, Options(stream_input=True, time_limit=0.5)).plan
    by_rows = api.plan_model(path, board, Options(hop=hop, time_limit=0.5)).plan
    assert by_rows.layout.arena_bytes <= streamed.layout.arena_bytes
    assert 10 * by_rows.estimate.ticks <= streamed.estimate.ticks


def test_constants_of_both_ends_are_stored_once(tmp_path: Path) -> None:
    model = load_model(time_network(tmp_path / "m.onnx", 30, 2, SAME, "mean"), hop=2)
    parts = [it for it in model.graph.operators if it.name in ("conv_0_head", "conv_0_tail")]
    assert len(parts) == 2 and parts[0].constants is parts[1].constants


def test_fewer_kept_rows_are_more_computed_ones(tmp_path: Path) -> None:
    path = time_network(tmp_path / "m.onnx", 30, 2, SAME, "mean")
    model = load_model(path, hop=2)
    names = window_of(model).keeping
    last, none = (model.keeping(it) for it in (dict.fromkeys(names, "last"), {}))
    assert model.macs < last.macs < none.macs == load_model(path).macs
    assert len(model.graph.states) == 4 and len(none.graph.states) == 1


@pytest.mark.parametrize("layers", [3, 20])
def test_choices_lead_from_all_rows_to_the_input(layers: int, tmp_path: Path) -> None:
    """Each keeps fewer bytes than the one before it, for more work."""
    convolutions = [TimeConv(4, pads=(1, 1)) for _ in range(layers)]
    model = load_model(time_network(tmp_path / "m.onnx", 60, 2, convolutions, "mean"), hop=2)
    window = window_of(model)
    keepings = choices(window, 5)
    assert keepings[0] == window.keeping and keepings[-1] == {} and 3 <= len(keepings) <= 5
    models = [model.keeping(keeping) for keeping in keepings]
    sizes = [sum(one.graph.tensors[it.tensor].size_bytes for it in one.graph.states) for one in models]
    assert sizes == sorted(set(sizes), reverse=True)
    macs = [one.macs for one in models]
    assert macs == sorted(set(macs))


@pytest.mark.parametrize(
    ("hop", "text"),
    [
        (0, "at least 1 new row"),
        (49, "has 49 rows, and a hop is smaller than the window"),
        (60, "smaller than the window"),
        (
            3,
            "time_conv_0 (Conv2d) makes a row of every 2 rows of the window.*Hops that work: 2, 4, 6, 8, ...",
        ),
    ],
)
def test_hops_that_cannot_be_are_refused(hop: int, text: str, tmp_path: Path) -> None:
    path = time_network(tmp_path / "m.onnx", 49, 10, CAUSAL)
    with pytest.raises(UsageError, match=text.replace("(", r"\(").replace(")", r"\)")):
        load_model(path, hop=hop)


def test_an_input_without_rows_is_refused(tmp_path: Path) -> None:
    path = time_network(tmp_path / "m.onnx", 1, 10, [TimeConv(4, kernel=1)])
    with pytest.raises(UsageError, match=r"'x' \[1, 10, 1\] by rows, so that no window can move"):
        load_model(path, hop=1)
