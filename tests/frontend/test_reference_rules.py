"""Forms that ONNX allows and ONNX Runtime refuses: the reference has others, of the same values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from mcudeploy.commands import checking
from mcudeploy.common.errors import ModelError
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.reference import Reference
from tests import reports
from tests.networks.onnx_files import build, node, save

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(1, 6, 7, 9)).astype(np.float32)
BYTES = DRAW.integers(0, 256, (1, 3, 7, 9)).astype(np.uint8)
STEPS = {"kernel_shape": [3, 2], "dilations": [2, 3], "strides": [2, 1]}


def results(model: onnx.ModelProto, folder: Path, x: Any) -> Any:
    return Reference(save(model, folder), ["y"]).run({"x": x})["y"]


@pytest.mark.parametrize(("auto_pad", "pads"), [("SAME_UPPER", [2, 1, 2, 2]), ("SAME_LOWER", [2, 2, 2, 1])])
@pytest.mark.parametrize("op", ["Conv", "ConvInteger", "QLinearConv"])
def test_pads_beside_dilations_are_stated(op: str, auto_pad: str, pads: list[int], tmp_path: Path) -> None:
    given = X if op == "Conv" else BYTES
    kind = np.float32 if op == "Conv" else np.int8
    constants = {"w": DRAW.integers(-9, 9, (4, given.shape[1], 3, 2)).astype(kind)}
    names = "x w"
    if op == "QLinearConv":
        constants |= {"s": np.array(0.1, np.float32), "z": np.array(9, np.uint8), "o": np.array(0, np.int8)}
        names = "x s z w s o s z"
    computed, wanted = (
        results(
            build([node(op, names, "y", **STEPS, **each)], {"x": given}, ["y"], constants), tmp_path, given
        )
        for each in ({"auto_pad": auto_pad}, {"pads": pads})
    )
    assert computed.shape == (1, 4, 4, 9)
    assert np.array_equal(computed, wanted)


@pytest.mark.parametrize("size", [2, 4, 6])
def test_a_normalisation_over_an_even_number_of_channels(size: int, tmp_path: Path) -> None:
    model = build([node("LRN", "x", "y", size=size, alpha=0.3)], {"x": X}, ["y"])
    squares = np.pad(X * X, [(0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)])
    sums = sum(squares[:, at : at + X.shape[1]] for at in range(size))
    assert np.allclose(results(model, tmp_path, X), X / (1 + 0.3 / size * sums) ** 0.75, atol=1e-6)


def test_two_nodes_of_one_name(tmp_path: Path) -> None:
    model = build([node("Relu", "x", "a"), node("Relu", "a", "b"), node("Neg", "b", "y")], {"x": X}, ["y"])
    for each in model.graph.node:
        each.name = "n"
    assert np.array_equal(results(model, tmp_path, X), -np.maximum(X, 0))
    reports.verified(tmp_path / "model.onnx")


def test_check_refuses_what_the_reference_does_not_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, *_: object) -> None:
        raise ModelError(f"ONNX Runtime does not load {path.name}: no kernel")

    path = save(build([node("Relu", "x", "y")], {"x": X}, ["y"]), tmp_path)
    assert reports.check_model(path, None, Options())["supported"]
    monkeypatch.setattr(checking, "Reference", refused)
    with pytest.raises(ModelError, match=r"does not load model\.onnx: no kernel"):
        reports.check_model(path, None, Options())
