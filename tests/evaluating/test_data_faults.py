"""Inputs outside of the quantised range and outputs that never change are reported, and good data are not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mcudeploy.cli.main import cli
from mcudeploy.frontend.load import load
from mcudeploy.verify.data_faults import (
    InputFacts,
    InputTally,
    Levels,
    clipping_warnings,
    infinite_warnings,
    levels_of,
    likely_cause,
    one_class,
    unchanged,
)
from tests.networks.evaluated import CLASSES, SIDE, Recogniser, write_recogniser


def test_outputs_without_a_finite_value_are_reported() -> None:
    lost = {"y": np.array([np.inf, np.nan], np.float32)}
    assert infinite_warnings([lost, lost]) == [
        "No output is finite, so the verdict says little: look at the weights of the model"
    ]
    assert not infinite_warnings([lost, {"y": np.array([np.inf, 1], np.float32)}])
    assert not infinite_warnings([{"y": np.zeros(0, np.float32)}]) and not infinite_warnings([])


@pytest.fixture(scope="module")
def recogniser(tmp_path_factory: pytest.TempPathFactory) -> Recogniser:
    return write_recogniser(tmp_path_factory.mktemp("faults"))


def call(command: str, recogniser: Recogniser, *options: str, code: int = 0) -> dict[str, Any]:
    arguments = [
        command,
        str(recogniser.int8),
        "--board",
        "host",
        "--no-split",
        "--quiet",
        "--json",
        *options,
    ]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == code, result.output
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def test_inputs_that_clip_and_outputs_that_never_change(recogniser: Recogniser, tmp_path: Path) -> None:
    np.savez(tmp_path / "bright.npz", x=recogniser.x + 1000, y=recogniser.y)
    report = call("evaluate", recogniser, "--data", str(tmp_path / "bright.npz"))
    assert report["passed"] is None and report["run"]["verified"]
    (facts,) = report["inputs"]
    assert facts["clipped"] == facts["values"] == recogniser.x.size and facts["range"][1] < 100
    clipped, fault = report["warnings"]
    assert clipped.startswith("input 'x': 100.0%") and "the mean is not subtracted" in clipped
    assert f"is computed for 60 of {len(recogniser.y)} samples" in fault
    bright = ["--data", str(tmp_path / "bright.npz")]
    assert call("evaluate", recogniser, *bright, "--min-accuracy", "0")["passed"] is True
    assert call("evaluate", recogniser, *bright, "--min-accuracy", "90", code=11)["passed"] is False
    text = (
        CliRunner()
        .invoke(cli, ["evaluate", str(recogniser.int8), "--board", "host", "--no-split", *bright])
        .stdout
    )
    assert "warning: input 'x'" in text and "\npassed" not in text and "not judged" in text


def test_run_reports_values_that_clip(recogniser: Recogniser, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", recogniser.x[:3, None] + 1000)
    report = call("run", recogniser, "--input", str(tmp_path / "x.npy"))
    assert report["verified"] and report["inputs"][0]["clipped"] == 3 * SIDE * SIDE
    assert report["warnings"][0].startswith("input 'x': 100.0% of 108 values are clipped")


def test_good_data_and_drawn_data_give_no_warning(recogniser: Recogniser, tmp_path: Path) -> None:
    report = call("evaluate", recogniser, "--data", str(recogniser.data))
    assert report["passed"] is True and report["warnings"] == []
    drawn = call("run", recogniser)
    assert drawn["warnings"] == [] and drawn["inputs"] == []
    one = recogniser.y == recogniser.y[0]  # a test set of one class
    np.savez(tmp_path / "one.npz", x=recogniser.x[one], y=recogniser.y[one])
    assert call("evaluate", recogniser, "--data", str(tmp_path / "one.npz"))["warnings"] == []


@pytest.mark.parametrize("float_io", [False, True])
def test_values_clip_from_half_a_step_outside_of_the_range(float_io: bool, recogniser: Recogniser) -> None:
    graph = load(recogniser.int8, float_io)
    (io,) = graph.own_inputs()
    levels = levels_of(graph, io)
    assert levels is not None and levels.most - levels.least == pytest.approx(255 * levels.step)
    tally, real = InputTally(graph), np.zeros((1, 1, SIDE, SIDE))
    real.flat[:4] = levels.most + levels.step * np.array([0, 0.49, 0.51, 9])
    real.flat[4:8] = levels.least - levels.step * np.array([0, 0.49, 0.51, 9])
    tally.add(io, real)
    (facts,) = tally.facts()
    assert (facts.clipped, facts.values) == (4, SIDE * SIDE)
    assert levels_of(load(recogniser.float_model), io) is None


@pytest.mark.parametrize(
    ("data", "levels", "message"),
    [
        ((0, 255), (0, 1), "divide them by 255, as in training"),
        ((0, 254), (-2.1, 2.6), "divide them by 255, then subtract the mean"),
        ((0, 255), (-128, 127), "the mean is not subtracted"),
        ((-32768, 32767), (-1, 1), "3.28e+04 times the largest"),
        ((0, 1), (0, 255), "0.39 % of the model's range"),
        ((0, 255), None, "pixels from 0 to 255"),
    ],
)
def test_the_likely_cause(data: tuple[float, float], levels: Any, message: str) -> None:
    known = None if levels is None else Levels(*levels, (levels[1] - levels[0]) / 255)
    facts = InputFacts("x", 100, *data, 0 if data[1] == 1 else 50, known, reordered=False)
    assert message in likely_cause(facts)
    assert (known is not None and facts.clipped > 0) == bool(clipping_warnings([facts]))


def test_images_with_their_axes_in_the_other_order(recogniser: Recogniser) -> None:
    rows, columns = np.mgrid[:24, :24] / 24
    image = np.stack([rows, 1 - columns, rows * columns], -1)
    graph = load(recogniser.int8)
    (io,) = graph.own_inputs()
    planes = np.moveaxis(image, -1, 0)
    for shape, right, wrong in (((1, 3, 24, 24), planes, image), ((1, 24, 24, 3), image, planes)):
        wide = replace(io, shape=shape)
        for value, expected in ((right, False), (wrong, True)):
            tally = InputTally(replace(graph, inputs=(wide,)))
            tally.add(wide, value.reshape(shape))
            assert tally.facts()[0].reordered == expected


def test_one_class_is_remarkable_if_the_labels_say_so() -> None:
    labels = np.repeat(np.arange(CLASSES), 10)
    logits, shares = np.tile([2.0, 0.3, 0.5], (40, 1)), np.tile([0.2, 0.3, 0.5], (40, 1))
    assert "class 2 is computed for 40 of 40 samples" in str(one_class(np.full(40, 2), labels, logits))
    assert one_class(labels, labels, logits) is None
    assert one_class(np.zeros(40, int), np.zeros(40, int), logits) is None
    unbalanced = np.array([0] * 38 + [1] * 2)
    assert one_class(np.zeros(40, int), unbalanced, logits) is None
    assert one_class(np.zeros(19, int), None, shares[:19]) is None
    assert one_class(np.zeros(20, int), None, shares[:20]) is not None
    assert one_class(np.zeros(20, int), None, logits[:20]) is None


def test_outputs_may_be_equal_if_the_inputs_are() -> None:
    assert unchanged([b"a"] * 3, lambda *_: True) is None
    assert unchanged([b"a", b"b", b"a"], lambda *_: False) is None
    assert unchanged([b"a"], lambda *_: False) is None
    assert "3 of 3 samples" in str(unchanged([b"a"] * 3, lambda *_: False))
