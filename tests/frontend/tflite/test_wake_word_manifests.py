"""Manifests of wake words, and what a component of ESPHome cannot be made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from esphome_components import ROWS, build, manifest, wake_word

from mcudeploy.cli.main import cli
from mcudeploy.common.errors import ConfigError, UsageError
from mcudeploy.extensions.audio.wake_word_manifest import front_end, read_manifest


def test_models_of_other_front_ends(tmp_path: Path) -> None:
    for name, step in (("hey", 10), ("ho", 20)):
        manifest(tmp_path, name, feature_step_size=step)
        wake_word(tmp_path, name=name)
    built = build(tmp_path / "hey.tflite", tmp_path / "ho.tflite", "-o", tmp_path / "words")
    text = " ".join(built.output.split())
    assert (
        built.exit_code == UsageError.exit_code and "hey.tflite takes a row of features every 10 ms" in text
    )
    assert "ho.tflite every 20 ms" in text and not (tmp_path / "words").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"type": "audio"}, '"type" is not "micro"'),
        ({"version": 3}, '"version" is 3'),
        ({"version": None}, '"version" is None'),
        ({"probability_cutoff": 1.5}, "micro.probability_cutoff: Input should be less than 1"),
        ({"probability_cutoff": 0}, "greater than 0"),
        ({"probability_cutoff": "0.5"}, "valid number"),
        ({"probability_cutoff": None}, "Field required"),
        ({"sliding_window_size": 0}, "micro.sliding_window_size"),
        ({"sliding_window_size": 256}, "less than or equal to 255"),
        ({"sliding_window_size": True}, "valid integer"),
        ({"feature_step_size": 31}, "less than or equal to 30"),
        ({"feature_step_size": None}, "Field required"),
        ({"wake_word": "a\nb"}, "control characters"),
        ({"model": "a\x1b[2J"}, "control characters"),
        ({"wake_word": ""}, "at least 1 character"),
        ({"wake_word": ["a"]}, "valid string"),
        ({"micro": 4}, "micro: Input should be a valid dictionary"),
    ],
)
def test_malformed_manifests(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        read_manifest(manifest(tmp_path, **changes))
    assert message in str(error.value)


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff", b'"micro"', b"[" * 100_000])
def test_files_that_are_not_manifests(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "hey.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"not JSON|not a manifest|cannot be read"):
        read_manifest(path)


def test_a_manifest_of_version_1(tmp_path: Path) -> None:
    """It calls the window's size otherwise, has 20 ms from row to row, and is for English."""
    old = {"probability_cutoff": 0.5, "sliding_window_average_size": 10}
    word = read_manifest(manifest(tmp_path, version=1, micro=old))
    assert (word.window, word.hop, word.cutoff, word.languages) == (10, 320, 0.5, ("en",))


def test_a_missing_manifest_is_named(tmp_path: Path) -> None:
    built = build(wake_word(tmp_path), "-o", tmp_path / "esphome")
    assert built.exit_code == ConfigError.exit_code and "hey.json" in built.output, built.output
    assert "--manifest" in built.output and not (tmp_path / "esphome").exists()


def test_a_manifest_elsewhere(tmp_path: Path) -> None:
    other = manifest(tmp_path).rename(tmp_path / "other.json")
    built = build(wake_word(tmp_path), "--manifest", other, "-o", tmp_path / "esphome", "--no-verify")
    assert built.exit_code == 0, built.output
    code = (tmp_path / "esphome" / "components" / "hey" / "micro_wake_word.cpp").read_text("utf-8")
    assert "selftest" not in code  # there are no outputs to compare with


@pytest.mark.parametrize(
    ("shape", "kinds"),
    [
        ((1, ROWS, 40), {"outputs": 2}),
        ((1, ROWS, 39), {}),
        ((1, ROWS, 40), {"x": "FLOAT32"}),
        ((1, 40), {"x": "INT16"}),
    ],
)
def test_models_that_are_not_wake_words(
    shape: tuple[int, ...], kinds: dict[str, Any], tmp_path: Path
) -> None:
    word = read_manifest(manifest(tmp_path))
    with pytest.raises(UsageError, match="is not a wake word of ESPHome: it makes"):
        front_end({wake_word(tmp_path, shape=shape, **kinds): word}, tmp_path / "front.tflite")


@pytest.mark.parametrize("words", [["--stream-input"], ["--arena", "init"], ["--arena", "own"]])
def test_options_that_the_component_cannot_have(words: list[str], tmp_path: Path) -> None:
    manifest(tmp_path)
    built = build(wake_word(tmp_path), "-o", tmp_path / "esphome", "--no-verify", *words)
    assert built.exit_code != 0 and "leave out" in built.output, built.output


@pytest.mark.parametrize("option", ["--manifest", "--vad", "--stop"])
def test_wake_words_are_for_esphome(option: str, tmp_path: Path) -> None:
    words = [
        "build",
        wake_word(tmp_path),
        option,
        manifest(tmp_path),
        "--board",
        "host",
        "-o",
        tmp_path / "a",
    ]
    built = CliRunner().invoke(cli, [str(word) for word in words])
    assert built.exit_code == UsageError.exit_code and "--for esphome" in built.output


@pytest.mark.parametrize(
    ("model", "warned"),
    [("../../etc/passwd", True), ("hey.tflite", False), ("v2/hey.tflite", False), (None, False)],
)
def test_a_manifest_of_another_model(model: str | None, warned: bool, tmp_path: Path) -> None:
    manifest(tmp_path, model=model)
    path = wake_word(tmp_path)
    said = build(path, "-o", tmp_path / "esphome", "--name", "class").stderr  # refused before planning
    assert (f"hey.json describes {model}, and {path} is built" in said) == warned
    assert ("warning" in said) == warned


def test_one_manifest_for_several_models(tmp_path: Path) -> None:
    models = [wake_word(tmp_path, name=name) for name in ("hey", "ho")]
    built = build(*models, "--manifest", manifest(tmp_path), "-o", tmp_path / "words")
    assert built.exit_code == UsageError.exit_code and "manifests beside them" in built.output


@pytest.mark.parametrize(
    ("name", "message"),
    [("arena", "a source of the component has the name"), ("front_end", "two models would")],
)
def test_names_that_a_model_cannot_have(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcudeploy.commands.build.plan_model", None)
    manifest(tmp_path, name)
    built = build(wake_word(tmp_path, name=name), "-o", tmp_path / "esphome", "--name", "hey")
    assert built.exit_code == UsageError.exit_code and message in " ".join(built.output.split())


@pytest.mark.parametrize("name", ["class", "microphone", "mic", "wifi", "light"])
def test_names_that_the_component_cannot_have(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcudeploy.commands.build.plan_model", None)  # they are refused before planning
    manifest(tmp_path)
    built = build(wake_word(tmp_path), "-o", tmp_path / "esphome", "--name", name, "--no-verify")
    assert built.exit_code == 2
    assert f"cannot be called {name}" in built.output.replace("\n", " ")
