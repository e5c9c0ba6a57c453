"""Fully connected models end to end: wide vectors never exist whole, and no bit of an output changes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from models import fully_connected

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.progress import SILENT
from mcudeploy.device.target import Target
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.running import run_on
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.verify.samples import load_samples
from tests import reports

HOST = Target(load_board("host"))
ROOMY = Options(max_overhead=60)
"""A host has the costs of another core, by which rows slow small dense layers by up to a half."""
WIDE = (64, 1024, 64)
SEVERAL = (32, 512, 24, 384, 16)
NEIGHBOURS = (64, 192, 256, 16)
"""The hidden vectors are both wide: only one of two neighbours can come in rows."""


@pytest.mark.parametrize(
    ("sizes", "values", "sums", "quantised"),
    [
        (WIDE, 64 + 64 + 128, 64, True),
        (WIDE, 64 + 64 + 128, 64, False),
        (SEVERAL, 32 + 24 + 128, 24, True),
        (NEIGHBOURS, 192 + 16 + 64, 16, False),
    ],
)
def test_split_outputs_are_the_unsplit_ones(
    sizes: tuple[int, ...], values: int, sums: int, quantised: bool, tmp_path: Path
) -> None:
    """Needed: `values` (read, written, some of the vector), and `sums` of 4 bytes."""
    path = fully_connected(tmp_path / "dense.onnx", sizes, quantised=quantised)
    size = 1 if quantised else 4
    planned = find_plans(load_model(path), HOST.board, ROOMY)
    best = planned.choices[0]
    assert planned.baseline.layout.arena_bytes == size * max(map(sum, pairwise(sizes)))
    assert best.layout.arena_bytes <= size * values + 4 * sums
    assert best.estimate.ticks <= 1.6 * planned.baseline.estimate.ticks
    outputs = []
    for plan in (planned.baseline, best):
        deployment = Deployment.of(planned, plan, HOST.board, ROOMY)
        samples = load_samples(deployment.model.graph, [], [], 0)
        _, observed = run_on(deployment, HOST, samples, SILENT)
        outputs.append(observed.outputs[0][plan.graph.outputs[0].tensor])
    assert outputs[0].tobytes() == outputs[1].tobytes() and np.unique(outputs[0]).size > 8


def test_a_fed_vector_comes_in_rows(tmp_path: Path) -> None:
    path = fully_connected(tmp_path / "digits.onnx", (784, 32, 10), quantised=True)
    report = reports.run_model(path, HOST, replace(ROOMY, stream_input=True), inputs=[], expected=[])
    assert report["verified"] and report["unsplit_arena_bytes"] == 784 + 32
    assert report["arena_bytes"] <= 128 + 32 + 64
    assert report["splits"][0]["operators"][0] == "feed_x"


@pytest.mark.usefixtures("small_bench")
def test_measured_within_the_limit_and_bit_identical_on_a_board(tmp_path: Path) -> None:
    path = fully_connected(tmp_path / "dense.onnx", WIDE, quantised=True)
    target = Target(load_board("stm32f405"), emulate=True)
    _, report = reports.tune_model(path, [target], Options(time_limit=0.5, max_overhead=40))
    assert report["arena_bytes"] <= 512 < report["unsplit_arena_bytes"] == 1088
    assert report["overhead_percent"] <= 40
