"""Parameters are counted once, as in the file, whatever the front end does with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from models import quantised_convolutions
from onnx import helper

from mcudeploy.frontend.parameters import parameter_count
from mcudeploy.planner.plan_options import Options
from tests import reports
from tests.networks.onnx_files import build, save


def saved(
    folder: Path, nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], shape: list[int]
) -> Path:
    """A model from x to y, both of this shape."""
    kind = np.float32, shape
    return save(build(nodes, {"x": kind}, {"y": kind}, constants), folder)


def test_shared_weights_count_once_and_shapes_not_at_all(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("MatMul", ["a", "w"], ["b"]),
        helper.make_node("Reshape", ["b", "shape"], ["y"]),
    ]
    constants = {"w": np.ones((5, 5), np.float32), "shape": np.array([1, 5])}
    constants["unread"] = np.ones(9, np.float32)
    path = saved(tmp_path, nodes, constants, [1, 5])
    assert parameter_count(path) == 25
    assert reports.check_model(path, None, Options())["parameters"] == 25


def test_stacked_weights_count_once_however_long_the_sequence_is(tmp_path: Path) -> None:
    constants = {"w": np.ones((1, 12, 4), np.float32), "r": np.ones((1, 12, 3), np.float32)}
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r"], ["h"], hidden_size=3),
        helper.make_node("Reshape", ["h", "shape"], ["flat"]),
        helper.make_node("Gemm", ["flat", "v"], ["z"]),
        helper.make_node("Reshape", ["z", "whole"], ["y"]),
    ]
    constants |= {"shape": np.array([7, 3]), "v": np.ones((3, 4), np.float32), "whole": np.array([7, 1, 4])}
    path = saved(tmp_path, nodes, constants, [7, 1, 4])
    assert reports.check_model(path, None, Options())["parameters"] == 12 * 4 + 12 * 3 + 12


def test_scales_and_zero_points_are_not_parameters(tmp_path: Path) -> None:
    """Weights of int8 and biases of int32: 3 to 8 channels by 3x3, 8 to 4 channels by 1x1."""
    path = quantised_convolutions(tmp_path / "q.onnx")
    assert parameter_count(path) == 8 * 3 * 3 * 3 + 8 + 4 * 8 + 4
