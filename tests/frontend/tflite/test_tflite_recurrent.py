"""LSTM of .tflite files beside LiteRT, over several inferences: its state is kept between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from against_litert import rounding
from flat_files import FlatFile
from flat_recurrent import lstm

from mcudeploy.boards.board import load_board
from mcudeploy.common.errors import ModelError
from mcudeploy.device.target import Target
from mcudeploy.frontend import load
from mcudeploy.planner.plan_options import Options
from tests import reports


@pytest.mark.parametrize("options", [{}, {"clip": 0.3}, {"by_time": True}, {"int8": True}], ids=str)
def test_inferences_go_on_from_each_other_as_in_litert(options: dict[str, Any], tmp_path: Path) -> None:
    file = FlatFile()
    path = file.save(tmp_path, *lstm(file, **options))
    found = rounding(path, 8)
    assert found.outputs.worst <= (1 if "int8" in options else 1e-6 * found.outputs.range)
    assert found.outputs.range > 0


def test_a_program_of_an_lstm_is_verified_and_keeps_its_state(tmp_path: Path) -> None:
    file = FlatFile()
    path = file.save(tmp_path, *lstm(file, int8=True, clip=0.5))
    for stateful in (False, True):
        options = Options(time_limit=1, stateful=stateful)
        report = reports.run_model(path, Target(load_board("host")), options, inputs=[], expected=[])
        assert report["verified"], report["reason"]
        assert report["state_bytes"] == 2 * 4 * 6


@pytest.mark.parametrize(
    ("position", "words"),
    [(1, "coupled"), (9, "peepholes"), (16, "a projection"), (20, "layer normalisation"), (18, "variable")],
)
def test_what_is_not_supported(position: int, words: str, tmp_path: Path) -> None:
    file = FlatFile()
    inputs, outputs = lstm(file)
    read = list(file.operators[0][1])
    read[position] = -1 if position == 1 else file.add(1, 6)
    file.operators[0] = (file.operators[0][0], read, *file.operators[0][2:])
    with pytest.raises(ModelError) as refused:
        load(file.save(tmp_path, inputs, outputs))
    assert words in refused.value.problems[0].reason
