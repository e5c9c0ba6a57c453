"""Random networks of all supported operators: gradients in float64, and kernels."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_gradients import SLOPE_TOLERANCE, drawn, step_of, worst_slope
from test_pool_gradients import largest_error

from mcudeploy.extensions.training.recipe import Recipe, Update
from mcudeploy.extensions.training.step import training_step
from mcudeploy.frontend.load import load
from tests.networks.onnx_files import save
from tests.networks.trained import branching_network
from tests.weekly import sample


@pytest.mark.parametrize("seed", sample(range(30), 5))
def test_gradients_are_slopes_of_the_loss(seed: int, tmp_path: Path) -> None:
    step = step_of(save(branching_network(seed), tmp_path), "cross-entropy", "bias" if seed % 3 else "full")
    assert worst_slope(step, drawn(step, "cross-entropy", seed)) < SLOPE_TOLERANCE


@pytest.mark.parametrize("seed", sample(range(0, 30, 5), 1))
def test_gradients_by_recomputed_tensors(seed: int, tmp_path: Path) -> None:
    """The backward part reads no tensor of the forward part, but computes it again."""
    graph = load(save(branching_network(seed), tmp_path), keep_constant=True)
    step = training_step(graph, Recipe("cross-entropy", Update("full"), 1.0), frozenset())
    assert worst_slope(step, drawn(step, "cross-entropy", seed)) < SLOPE_TOLERANCE


@pytest.mark.parametrize("seed", range(4))
def test_gradients_of_the_kernels(seed: int, tmp_path: Path) -> None:
    assert largest_error(branching_network(seed), tmp_path) <= 1e-5
