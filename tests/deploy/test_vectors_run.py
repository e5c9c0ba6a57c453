"""Models on a RISC-V core with vectors: verified, with the same bits, in a third of the instructions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from models import fully_connected, quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.device.target import Target
from mcudeploy.planner.plan_options import Options
from tests import reports
from tests.weekly import sample


def run(model: Path, board: str, options: Options) -> dict[str, Any]:
    target = Target(load_board(board), emulate=True)
    return reports.run_model(model, target, options, inputs=[], expected=[])


@pytest.mark.parametrize("kind", ["convolutions", "dense"])
@pytest.mark.parametrize("cores", sample([4, 1], 1))
def test_vectors_take_a_third_of_the_instructions(kind: str, cores: int, tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    if kind == "convolutions":
        quantised_convolutions(model)
    else:
        fully_connected(model, (150, 90, 40), quantised=True)
    options = Options(split=False, cores=cores, objective="instructions")
    plain, vectors = (run(model, board, options) for board in ("riscv32-virt", "riscv32-virt-v"))
    assert vectors["verified"] and vectors["outputs"] == plain["outputs"]
    assert any(it["kernel"].endswith("_rvv") for it in vectors["operators"])
    assert vectors["latency"]["value"] < 0.35 * plain["latency"]["value"]
