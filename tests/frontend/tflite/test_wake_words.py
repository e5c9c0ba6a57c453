"""The wake words of ESPHome, from the package pymicro-wakeword, beside TFLite Micro."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from micro import run_micro
from programs import HOST, QUICK, results

from mcudeploy.boards.board import load_board
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import UsageError
from mcudeploy.verify import micro
from tests import reports

STATES = {"okay_nabu": 3408, "hey_jarvis": 2840, "hey_mycroft": 3632, "alexa": 3024}
"""Bytes of the variables of each file."""
MOST_RAM = 1.30
"""Limit of the arena, in times of these bytes."""


@pytest.fixture(params=STATES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    package = find_spec("pymicro_wakeword")  # only its files are needed, not the libraries that it loads
    if package is None or package.origin is None:
        pytest.skip("pymicro-wakeword is not installed")
    model = Path(package.origin).parent / "models" / f"{request.param}.tflite"
    copy = tmp_path / model.name
    copy.write_bytes(model.read_bytes())
    return copy


def test_a_sequence_has_the_bits_of_tflite_micro(path: Path) -> None:
    """Noise, and values that change slowly as features of speech do."""
    random = np.random.default_rng(0)
    noise = random.integers(-128, 128, (100, 1, 3, 40), np.int8)
    walk = np.cumsum(random.normal(0, 12, noise.shape), axis=0) % 300 - 150
    inputs = np.concatenate([noise, np.clip(walk, -128, 127).astype(np.int8)])
    assert np.array_equal(results(path, inputs), run_micro(path, inputs))


@pytest.mark.parametrize("board", ["microbit", "mps2-an386"])
def test_the_arena_is_little_more_than_the_state(board: str, path: Path) -> None:
    made = api.plan_model(path, load_board(board), QUICK)
    assert made.plan.layout.arena_bytes <= MOST_RAM * STATES[path.stem]
    assert not any(operator.op.kind == "Transpose" for operator in made.plan.graph.operators)


def test_steps_are_verified(path: Path) -> None:
    report = reports.run_model(path, HOST, QUICK, inputs=[], expected=[], steps=20, micro=True)
    assert report["verified"], report["reason"]
    assert report["tflm_runs"] == 20


def test_other_bits_than_those_of_tflite_micro_are_reported(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = micro._run
    monkeypatch.setattr(micro, "_run", lambda *args: [[it + 1 for it in each] for each in run(*args)])
    report = reports.run_model(path, HOST, QUICK, inputs=[], expected=[], steps=2, micro=True)
    assert (
        not report["verified"] and "differs from TensorFlow Lite Micro in 1 of 1 element" in report["reason"]
    )


def test_tflite_micro_runs_tflite_files(tmp_path: Path) -> None:
    other = tmp_path / "model.onnx"
    other.write_bytes(bytes(64))
    with pytest.raises(UsageError, match=r"model\.onnx is none"):
        micro.require_micro(other, QUICK)
