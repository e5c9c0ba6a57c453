"""Plans that several cores run together, built and run: verified, as one core does it, and faster."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import UsageError
from mcudeploy.device.target import Target, open_device
from mcudeploy.ir.clock import PATH_UNIT
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.compare import Storage, run_once
from mcudeploy.verify.samples import load_samples
from tests import reports

CASES = [
    ("mps2-an521", 2, False),
    ("mps2-an521", 2, True),
    ("riscv32-virt", 4, False),
    ("riscv32-virt", 8, True),
    ("host", 2, False),
    ("host", 3, True),
]
"""Board, cores, and whether the input is streamed."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quantised_convolutions(tmp_path_factory.mktemp("cores") / "small.onnx")


def options(cores: int, streamed: bool) -> Options:
    return Options(split=False, stream_input=streamed, cores=cores, objective="instructions")


def run(model: Path, board: str, cores: int, streamed: bool) -> dict[str, Any]:
    target = Target(load_board(board), emulate=True)
    return reports.run_model(model, target, options(cores, streamed), inputs=[], expected=[])


@cache
def of_one_core(model: Path, board: str) -> dict[str, Any]:
    return run(model, board, 1, streamed=False)


@pytest.mark.parametrize(("board", "cores", "streamed"), CASES)
def test_cores_run_a_verified_program(model: Path, board: str, cores: int, streamed: bool) -> None:
    report = run(model, board, cores, streamed)
    assert report["verified"] and report["mismatches"] == 0 and report["reason"] is None
    if board == "host":
        assert report["latency"]["unit"] == "us"
        return
    alone = of_one_core(model, board)
    assert report["latency"]["unit"] == PATH_UNIT and alone["latency"]["unit"] == "instructions"
    ratio = report["latency"]["value"] / alone["latency"]["value"]
    # 12 rows of 12 columns go round; a streamed input is fed row by row.
    assert 1 / cores < ratio < (0.6 if cores == 2 else 0.4)


@pytest.mark.parametrize(("board", "cores", "streamed"), CASES)
def test_their_outputs_are_those_of_one_core(model: Path, board: str, cores: int, streamed: bool) -> None:
    target = Target(load_board(board), emulate=True)
    outputs = []
    for wanted in (options(1, streamed=False), options(cores, streamed)):
        deployment = api.plan_model(model, target.board, wanted)
        assert len(deployment.plan.lanes) == (wanted.cores if wanted.cores != 1 else 0)
        sample, storage = load_samples(deployment.model.graph, [], [], 0)[0], Storage.of(deployment.plan)
        with open_device(target, deployment.build(target), deployment.patience_s) as device:
            for _ in range(2):
                run_once(device, storage, sample.stored)
                (io,) = deployment.plan.graph.outputs
                outputs.append(storage.get_tensor(device, io.tensor))
    assert all(np.array_equal(each, outputs[0]) for each in outputs) and outputs[0].any()


def test_a_memory_that_not_all_cores_reach_is_refused(model: Path) -> None:
    limited = replace(options(2, streamed=False), memory_limits=(("cpu0_ram", 32768),))
    with pytest.raises(UsageError, match="cpu0_ram: not all cores reach it"):
        api.plan_model(model, load_board("mps2-an521"), limited)
