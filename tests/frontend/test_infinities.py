"""Infinities in masks of attention: results equal ONNX Runtime's, bit for bit if they show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.device.target import Target
from mcudeploy.planner.plan_options import Options
from tests import reports
from tests.networks.onnx_files import build, node, save
from tests.networks.refusals import problems_of

RNG = np.random.default_rng(11)
X = RNG.normal(size=(1, 4, 4)).astype(np.float32)
CAUSAL = np.triu(np.full((4, 4), -np.inf, np.float32), 1)
LEAST = np.float32(np.finfo(np.float32).min)


def verified(model: onnx.ModelProto, folder: Path) -> bool:
    path = save(model, folder)
    report = reports.run_model(path, Target(load_board("host")), Options(split=False), inputs=[], expected=[])
    return bool(report["verified"])


def test_masks_of_minus_infinity(tmp_path: Path) -> None:
    """Added, chosen, and as the least of a maximum."""
    nodes = [
        node("Add", "x mask", "a"),
        node("Where", "lower a least", "b"),
        node("Softmax", "b", "c"),
        node("Where", "lower x minus", "d"),
        node("Max", "d floor", "e"),
        node("Div", "e infinite", "f"),
        node("Add", "c f", "y"),
    ]
    constants = {
        "mask": CAUSAL,
        "lower": np.tril(np.ones((4, 4), np.bool_)),
        "least": LEAST,
        "minus": np.float32(-np.inf),
        "floor": np.where(np.eye(4) > 0, -np.inf, -1).astype(np.float32),
        "infinite": np.full((4, 4), np.inf, np.float32),
    }
    assert verified(build(nodes, {"x": X}, ["y", "d"], constants), tmp_path)


def test_a_row_that_is_masked_whole_is_nan_in_both(tmp_path: Path) -> None:
    mask = CAUSAL.copy()
    mask[1] = -np.inf
    nodes = [node("Add", "x mask", "a"), node("Softmax", "a", "y")]
    assert verified(build(nodes, {"x": X}, ["y"], {"mask": mask}), tmp_path)


@pytest.mark.parametrize(("low", "high"), [(-np.inf, -np.inf), (np.inf, -np.inf)])
def test_clips_to_infinity(low: float, high: float, tmp_path: Path) -> None:
    """Constants of a convolution and of a function of one value."""
    nodes = [
        node("Conv", "x w", "c"),
        node("Clip", "c low high", "y"),
        node("Sigmoid", "x", "s"),
        node("Clip", "s low high", "z"),
    ]
    constants = {"w": np.ones((4, 4, 1), np.float32), "low": np.float32(low), "high": np.float32(high)}
    assert verified(build(nodes, {"x": X}, ["y", "z"], constants), tmp_path)


@pytest.mark.parametrize(
    ("item", "value", "why"),
    [
        (node("Add", "x k", "y"), np.nan, "its constant hold NaN"),
        (node("MatMul", "x k", "y"), np.inf, "its weights hold infinities"),
    ],
)
def test_constants_that_are_refused(item: onnx.NodeProto, value: Any, why: str, tmp_path: Path) -> None:
    constant = np.full((4, 4), value, np.float32)
    assert why in problems_of(save(build([item], {"x": X}, ["y"], {"k": constant}), tmp_path))[0].reason
