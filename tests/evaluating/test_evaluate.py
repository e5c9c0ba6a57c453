"""`evaluate`: accuracy equal to ONNX Runtime's, limits, boards that die, and the page."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from click.testing import CliRunner

from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.device.target import Target
from mcudeploy.extensions.evaluation.dataset import DataRequest
from mcudeploy.extensions.evaluation.evaluate import EvaluateRequest, evaluate_model
from mcudeploy.extensions.evaluation.evaluation_report import evaluation_object
from mcudeploy.planner.plan_options import Options
from tests.networks.evaluated import SIDE, Recogniser, coarse, write_recogniser


@pytest.fixture(scope="module")
def recogniser(tmp_path_factory: pytest.TempPathFactory) -> Recogniser:
    return write_recogniser(tmp_path_factory.mktemp("models"))


def run(recogniser: Recogniser, *options: str, model: Path | None = None, code: int = 0) -> dict[str, Any]:
    arguments = ["evaluate", str(model or recogniser.int8), "--board", "host", "--data", str(recogniser.data)]
    result = CliRunner().invoke(cli, [*arguments, "--time-limit", "0.3", "--json", "--quiet", *options])
    assert result.exit_code == code, result.output
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def test_the_accuracy_is_that_of_onnx_runtime(recogniser: Recogniser) -> None:
    report = run(recogniser, "--float", str(recogniser.float_model), "--top", "2")
    unfused = onnxruntime.SessionOptions()  # fused operators may round ties of the last bit otherwise
    unfused.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    for which, path in (("device", recogniser.int8), ("float", recogniser.float_model)):
        session = onnxruntime.InferenceSession(path, unfused)
        scores = np.array([session.run(None, {"x": image[None]})[0][0] for image in recogniser.x])
        model = next(it for it in report["models"] if it["model"] == which)
        assert model["accuracy"] == np.mean(scores.argmax(1) == recogniser.y)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :2]
        assert model["top_k"] == np.mean((best == recogniser.y[:, None]).any(1))
        assert np.trace(model["confusion"]) == model["accuracy"] * len(recogniser.y)
    assert 0.5 < report["models"][0]["accuracy"] < 1
    wrong = {int(it["name"].removeprefix("sample ")) for it in report["worst"]}
    assert len(wrong) == round((1 - report["models"][0]["accuracy"]) * len(recogniser.y))
    assert report["passed"] and report["run"]["verified"]


def test_a_drop_names_the_layer(recogniser: Recogniser) -> None:
    path = coarse(recogniser)
    report = run(recogniser, "--float", str(recogniser.float_model), "--max-drop", "3", model=path, code=11)
    assert not report["passed"] and report["layers"][0]["node"] == "dense"
    assert "points less than the float model" in report["failures"][0] and "dense" in report["failures"][0]
    lost = next(it for it in report["agreement"] if it["models"] == ["float", "device"])
    assert lost["lost"] - lost["gained"] == round(0.01 * len(recogniser.y) * 100 * _drop(report))
    assert run(recogniser, "--min-accuracy", "99.9", code=11)["failures"][0].startswith("the device reaches")


def _drop(report: dict[str, Any]) -> float:
    accuracy = {it["model"]: it["accuracy"] for it in report["models"]}
    return float(accuracy["float"] - accuracy["device"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-drop", "1"], "--max-drop needs the float model"),
        (["--output-name", "nothing"], "the model has the outputs s"),
        (["--labels", "LABELS"], "1 label for 60 samples"),
        (["--classes", "LABELS"], "there are 1 names of classes"),
    ],
)
def test_wrong_options_are_errors(
    options: list[str], message: str, recogniser: Recogniser, tmp_path: Path
) -> None:
    (tmp_path / "y.txt").write_text("0\n")
    words = [str(tmp_path / "y.txt") if it == "LABELS" else it for it in options]
    report = run(recogniser, *words, code=2)
    assert message in report["error"]["message"]


def test_the_page_escapes_names(recogniser: Recogniser, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("<script>alert(1)</script>\n&\n\"'\nd\n")
    page = tmp_path / "page.html"
    run(recogniser, "--classes", str(tmp_path / "names.txt"), "--report", str(page))
    text = page.read_text()
    assert "<script>alert" not in text and "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert text.count('<img src="data:image/png;base64,') > 3
    assert "default-src &#39;none&#39;" in text


def _emulators() -> list[int]:
    """Process ids of the emulators that this process has started."""
    numbers = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, fields = path.read_text().rpartition(")")
        except OSError:  # it has just ended
            continue
        state, parent = fields.split()[:2]
        if "(qemu-system" in name and int(parent) == os.getpid() and state != "Z":
            numbers.append(int(path.parent.name))
    return numbers


def _kill_an_emulator() -> None:
    """End one of two emulators that run at the same time, some time after they began."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        running = _emulators()
        time.sleep(0.2)
        if len(running) >= 2 and running == _emulators():  # none of them ends an earlier run
            os.kill(running[0], signal.SIGKILL)
            return


def test_boards_share_the_samples_and_a_dead_one_loses_none(
    recogniser: Recogniser, caplog: pytest.LogCaptureFixture
) -> None:
    targets = [Target(load_board("mps2-an386"))] * 2
    data = recogniser.folder / "many.npz"
    np.savez(data, x=np.tile(recogniser.x, (10, 1, 1, 1)), y=np.tile(recogniser.y, 10))
    killer = threading.Thread(target=_kill_an_emulator)
    killer.start()
    result = evaluate_model(
        recogniser.int8, targets, Options(time_limit=0.3), EvaluateRequest(DataRequest(data))
    )
    killer.join()
    report = evaluation_object(result)
    assert "a board is out, 1 board left" in caplog.text
    assert report["samples"] == 600 and report["models"][0] == {**report["models"][1], "model": "device"}


def test_outputs_of_all_runs_are_saved(recogniser: Recogniser, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", recogniser.x[:3].reshape(3, 1, 1, SIDE, SIDE))
    line = ["run", str(recogniser.int8), "--board", "host", "--input", str(tmp_path / "x.npy"), "--quiet"]
    saved = tmp_path / "outputs.npz"
    result = CliRunner().invoke(cli, [*line, "--time-limit", "0.3", "--save-outputs", str(saved)])
    assert result.exit_code == 0, result.output
    session = onnxruntime.InferenceSession(recogniser.int8)
    with np.load(saved) as outputs:
        for number, image in enumerate(recogniser.x[:3]):
            assert np.array_equal(outputs["s"][number], session.run(None, {"x": image[None]})[0])
