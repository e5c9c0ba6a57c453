"""The size of the tape is known before anything is compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.device.target import Target
from mcudeploy.execution.deployment import Deployment
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.report import as_json

MODEL = Path(__file__).resolve().parents[2] / "examples" / "vww" / "model.onnx"


@pytest.mark.parametrize("options", [Options(split=False), Options(time_limit=0.5, stream_input=True)])
@pytest.mark.parametrize("board", ["host", "mps2-an386"])
def test_it_is_what_the_elf_has(board: str, options: Options) -> None:
    target = Target(load_board(board), emulate=True)
    planned = find_plans(load_model(MODEL), target.board, options)
    deployment = Deployment.of(planned, planned.choices[0], target.board, options)
    built = deployment.build(target).sizes.tables_bytes
    padding = built - as_json(deployment)["tables_bytes"]
    # The linker may put two bytes after each of the two tables of 16-bit numbers.
    assert padding == 0 if board == "host" else padding in (0, 2, 4)
