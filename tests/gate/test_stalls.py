"""Plans whose fast memory is too small: the time that the core waits, and searches, which may not add any."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.extensions.training.recipe import Recipe, Update
from mcudeploy.extensions.training.training_steps import written_step
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from tests.gate.networks import NETWORKS
from tests.networks.onnx_files import save
from tests.networks.trained import Network

BOARD = "mps2-an505"
SECONDS = 1.0
"""Of counted effort: the plans are the same on every machine."""

TOLERATED = 1.02

LATENCIES = {("cells", 12): 16_526_917.0}
"""Modelled cycles of plans, stalls included, by network and KiB of fast memory."""


def best_plan(path: Path, options: Options) -> Plan:
    board = load_board(BOARD)
    model = read_model(path, options, isa=board.isa)
    return find_plans(model, board, options).choices[0]


def latencies(path: Path, kibibytes: int) -> tuple[float, float]:
    """The cycles of the plan of a search, and of the unsplit one."""
    limits = (("sram", 1024 * kibibytes),)
    ways = (Options(time_limit=SECONDS, memory_limits=limits, split=split) for split in (True, False))
    best, unsplit = (best_plan(path, options) for options in ways)
    assert unsplit.estimate.exposed_ticks
    return best.estimate.latency_ticks, unsplit.estimate.latency_ticks


@pytest.mark.parametrize(("name", "kibibytes"), LATENCIES)
def test_no_plan_waits_longer_for_a_slow_memory(name: str, kibibytes: int, tmp_path: Path) -> None:
    best, unsplit = latencies(save(NETWORKS[name](), tmp_path), kibibytes)
    assert best <= TOLERATED * LATENCIES[name, kibibytes]
    assert best <= unsplit


def network() -> onnx.ModelProto:
    """Convolutions on 16 x 16 pixels, and a dense layer."""
    net = Network(1, (3, 16, 16))
    for channels, stride in ((8, 1), (16, 2), (16, 1), (32, 2)):
        net.conv(channels, 3, stride)
        net.activation("Relu")
    net.dense(4)
    return net.model()


def test_no_search_makes_a_training_step_slower(tmp_path: Path) -> None:
    path = save(network(), tmp_path)
    recipe = Recipe(update=Update.parse("full"))
    with written_step(path, Options(), recipe) as step:
        best, unsplit = latencies(step.path, 40)
    assert best <= TOLERATED * unsplit
