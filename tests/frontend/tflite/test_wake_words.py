"""The wake words of ESPHome, from the package pymicro-wakeword, beside TFLite Micro."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from micro import run_micro
from programs import HOST, QUICK, results
from speech import speech_like

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import UsageError
from mcudeploy.extensions.audio.file_writer import tflite_file
from mcudeploy.extensions.audio.front_ends import FrontEnd, micro_speech
from mcudeploy.extensions.audio.joining import joined_file
from mcudeploy.verify import micro
from tests import reports
from tests.weekly import sample

STATES = {"okay_nabu": 3408, "hey_jarvis": 2840, "hey_mycroft": 3632, "alexa": 3024}
"""Bytes of the variables of each file."""
MOST_RAM = 1.30
"""Limit of the arena, in times of these bytes."""


@pytest.fixture(params=sample(STATES, 2))
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
    deployment = api.plan_model(path, load_board(board), QUICK)
    assert deployment.plan.layout.arena_bytes <= MOST_RAM * STATES[path.stem]
    assert not any(operator.op.kind == "Transpose" for operator in deployment.plan.graph.operators)


def test_steps_are_verified(path: Path) -> None:
    report = reports.run_model(path, HOST, QUICK, inputs=[], expected=[], steps=20, reference="tflm")
    assert report["verified"], report["reason"]
    assert report["tflm_runs"] == 20


def test_other_bits_than_those_of_tflite_micro_are_reported(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = micro._run
    monkeypatch.setattr(micro, "_run", lambda *args: [[it + 1 for it in each] for each in run(*args)])
    report = reports.run_model(path, HOST, QUICK, inputs=[], expected=[], steps=2, reference="tflm")
    assert (
        not report["verified"] and "differs from TensorFlow Lite Micro in 1 of 1 element" in report["reason"]
    )


def test_tflite_micro_runs_tflite_files(tmp_path: Path) -> None:
    other = tmp_path / "model.onnx"
    other.write_bytes(bytes(64))
    with pytest.raises(UsageError, match=r"model\.onnx is not one"):
        micro.require_micro(other, QUICK)


HOP = 160
"""Samples from one row of features to the next: ESPHome's `feature_step_size` of 10 ms."""


def features_of(sound: np.ndarray) -> np.ndarray:
    """The rows of pymicro-features, which are ESPHome's, as its models take them: int8 [rows, 40]."""
    features = pytest.importorskip("pymicro_features")
    frontend = features.MicroFrontend()
    rows = [frontend.process_samples(hop.tobytes()).features for hop in sound.reshape(-1, HOP)]
    integers = np.round(np.array([row for row in rows if row]) * 25.6).astype(np.int64)
    return np.clip((integers * 256 + 333) // 666 - 128, -128, 127).astype(np.int8)


def after_silence(sound: np.ndarray) -> np.ndarray:
    """The sound after the 20 ms that a window has beside its first hop.

    pymicro-features waits for a whole window; our front end has zeros before the first sample.
    """
    return np.concatenate([np.zeros(2 * HOP, np.int16), sound])


def front_end(folder: Path) -> Path:
    path = folder / "front.tflite"
    path.write_bytes(tflite_file(micro_speech(FrontEnd(hop=HOP), quantized=True, esphome=True)))
    return path


def test_features_are_those_of_esphome(tmp_path: Path) -> None:
    sound = speech_like(3.0)
    rows = results(front_end(tmp_path), sound.reshape(-1, 1, HOP)).reshape(-1, 40)
    assert np.array_equal(rows, features_of(after_silence(sound)))
    assert np.ptp(rows.astype(int)) > 150  # the sound has loud and soft channels


def test_verdicts_on_sound_are_those_of_esphome(path: Path, tmp_path: Path) -> None:
    """pymicro-features and TFLite Micro, step by step of 3 rows, against one program."""
    sound = speech_like(3.0, seed=1)
    features = features_of(after_silence(sound))
    wanted = run_micro(path, features.reshape(-1, 1, 3, 40))
    joined = tmp_path / "joined.tflite"
    joined.write_bytes(joined_file(front_end(tmp_path), path))
    assert np.array_equal(results(joined, sound.reshape(-1, 3, HOP)), wanted)
