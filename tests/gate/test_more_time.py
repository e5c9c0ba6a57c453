"""More time never gives a worse plan: a shorter run is the beginning of a longer one."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common import effort
from mcudeploy.planner import planner
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.planner import Options, find_plans
from tests.gate.networks import Net
from tests.gate.table import BOARD
from tests.networks.onnx_files import save

ROUND_ENDS_S = (0.02, 0.1, 0.3)


@pytest.fixture
def branched(tmp_path: Path) -> Path:
    """Two cells of four branches each, on 16 x 16 pixels."""
    net = Net((3, 16, 16))
    value = net.conv(net.image, 8, 3)
    for channels in (8, 16):
        branches = [
            net.conv(value, channels, 3),
            net.conv(value, channels),
            net.pool(value, stride=1, kernel=3),
        ]
        branches.append(net.conv(branches[1], channels, 3))
        value = net.conv(net.concat(*branches), channels, 3, 2)
    return save(net.finish(net.dense(value, 4)), tmp_path)


@pytest.fixture
def bottlenecks(tmp_path: Path) -> Path:
    """Three bottlenecks on 16 x 16 pixels."""
    net = Net((3, 16, 16))
    value = net.conv(net.image, 8, 3)
    for _ in range(3):
        value = net.conv(net.conv(net.conv(value, 48), 48, 3, deep=True), 8)
    return save(net.finish(net.dense(value, 4)), tmp_path)


def test_more_time_never_needs_more_memory_with_fused_chains(
    bottlenecks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = (0.02, 0.3, 1.0)
    for module in (effort, planner):
        monkeypatch.setattr(module, "ROUND_ENDS_S", ends)
    model, board = load_model(bottlenecks), load_board(BOARD)
    limits = [Options(time_limit=seconds, max_overhead=200) for seconds in ends]
    plans = [find_plans(model, board, limit).choices[0] for limit in limits]
    arenas = [plan.layout.arena_bytes for plan in plans]
    assert arenas == sorted(arenas, reverse=True)
    assert not plans[0].form.fused and plans[-1].form.fused


def test_more_time_never_needs_more_memory(branched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (effort, planner):
        monkeypatch.setattr(module, "ROUND_ENDS_S", ROUND_ENDS_S)
    model, board = load_model(branched), load_board(BOARD)
    planned = [find_plans(model, board, Options(time_limit=seconds)) for seconds in (*ROUND_ENDS_S, 0.4)]
    arenas = [plans.choices[0].layout.arena_bytes for plans in planned]
    candidates = [plans.search.candidates for plans in planned]
    assert arenas == sorted(arenas, reverse=True) and arenas[-1] < arenas[0]
    assert candidates == sorted(candidates) and candidates[0] < candidates[-2] == candidates[-1]
