"""The sketch of examples/wake_word, with stubs of three Arduino cores, on sound."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from arduino_stubs import ARDUINO, CORES, MAIN
from click.testing import CliRunner
from esphome_components import ROWS, manifest, wake_word
from programs import results
from speech import speech_like
from test_esphome import C_WARNINGS, CPP_WARNINGS, HOP, Reference

from mcudeploy.cli.main import cli
from mcudeploy.extensions.audio.joining import joined_file
from mcudeploy.extensions.audio.wake_word import detector_files
from mcudeploy.extensions.audio.wake_word_manifest import front_end, read_manifest
from tests.weekly import sample

SKETCH = Path(__file__).resolve().parents[3] / "examples" / "wake_word"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model after its front end."""
    folder = tmp_path_factory.mktemp("model")
    word = wake_word(folder)
    front = front_end({word: read_manifest(manifest(folder))}, folder / "front.tflite")
    path = folder / "joined.tflite"
    path.write_bytes(joined_file(front, word))
    return path


@pytest.fixture(scope="module")
def library(model: Path) -> Path:
    folder = model.parent / "library"
    words = ["build", model, "--name", "okay_nabu", "--board", "host", "--for", "platformio", "-o", folder]
    built = CliRunner().invoke(cli, [str(word) for word in words])
    assert built.exit_code == 0, built.output
    return folder


@pytest.mark.parametrize("core", sample(CORES, 1))
def test_a_sketch_hears_what_its_rules_say(core: str, library: Path, model: Path, tmp_path: Path) -> None:
    files = {"Arduino.h": ARDUINO, **CORES[core], "main.cpp": MAIN, **detector_files()}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    sketch = (SKETCH / "src" / "main.cpp").read_text("utf-8")
    numbers = [int(re.search(rf"{name} = (\d+)", sketch)[1]) for name in ("CUTOFF", "WINDOW", "HOP")]  # type: ignore[index]
    assert numbers == [int(0.85 * 255), 5, HOP]
    (tmp_path / "sketch.cpp").write_text(sketch.replace("CUTOFF = 216", "CUTOFF = 40"), "utf-8")
    c_sources = [*sorted((library / "src").glob("*.c")), tmp_path / "mcud_detector.c"]
    cpp_sources = [
        tmp_path / "sketch.cpp",
        tmp_path / "main.cpp",
        *sorted((SKETCH / "src").glob("micro*.cpp")),
    ]
    places = [f"-I{library / part}" for part in ("src", "include")] + [f"-I{tmp_path}", f"-I{SKETCH / 'src'}"]
    for compiler, flags, sources in (("gcc", C_WARNINGS, c_sources), ("g++", CPP_WARNINGS, cpp_sources)):
        words = [compiler, *flags, *places, f"-D{core}", "-c", *map(str, sources)]
        subprocess.run(words, cwd=tmp_path, check=True, timeout=120)
    objects = sorted(map(str, tmp_path.glob("*.o")))
    subprocess.run(["g++", *CPP_WARNINGS, *objects, "-o", "sketch"], cwd=tmp_path, check=True, timeout=120)
    sound = speech_like(12.0)
    done = subprocess.run(
        [tmp_path / "sketch"], input=sound.tobytes(), capture_output=True, check=True, timeout=60
    )
    outputs = results(model, sound.reshape(-1, ROWS, HOP)).reshape(-1).astype(int) + 128
    reference = Reference(40, 5)
    wanted = sum(reference.run(int(it), ROWS) for it in outputs)
    assert done.stdout.decode().splitlines() == ["listening", *["heard: okay nabu"] * wanted] and wanted > 1


def test_boards_of_the_project_are_known() -> None:
    text = (SKETCH / "platformio.ini").read_text("utf-8")
    assert re.findall(r"^\[env:(\w+)\]", text, re.M) == ["esp32s3", "pico", "nano33ble"]
