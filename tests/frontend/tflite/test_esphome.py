"""Wake words as components of ESPHome: the C of the detector, and the C++ and Python around it."""

from __future__ import annotations

import ast
import asyncio
import runpy
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock, call, patch

import numpy as np
import pytest
import yaml
from esphome_components import HOSTILE, ROWS, build, manifest, wake_word
from esphome_stubs import HEADERS, MAIN
from programs import results
from speech import speech_like

from mcudeploy.extensions.audio.wake_word import PAUSE_ROWS, detector_files
from mcudeploy.extensions.audio.wake_word_manifest import front_end, read_manifest

HOP = 160
SANITIZERS = "-fsanitize=address,undefined"
C_WARNINGS = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", SANITIZERS]
CPP_WARNINGS = ["-std=gnu++20", "-Wall", "-Wextra", "-Werror", SANITIZERS]


@dataclass
class Reference:
    """The rules of ESPHome's micro_wake_word, row of features by row: its classes StreamingModel and
    WakeWordModel.
    """

    cutoff: int
    window: int
    ignored: int = -PAUSE_ROWS
    unprocessed: bool = False
    last: int = 0
    blocked: int = 0
    recent: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.recent = [0] * self.window

    def row(self, probability: int | None, *, voice: bool = True) -> bool:
        """Whether a row, which may bring a new probability, leads to a detection.

        Without a voice it does not, and the next probability may.
        """
        if probability is not None:
            self.last = (self.last + 1) % self.window
            self.recent[self.last] = probability
            self.unprocessed = True
        if self.recent[self.last] < self.cutoff:
            self.ignored = min(self.ignored + 1, 0)
        if not self.unprocessed or self.ignored < 0:
            return False
        self.unprocessed = False
        detected = sum(self.recent) > self.cutoff * self.window
        self.blocked += detected and not voice
        if detected and voice:
            self.recent = [0] * self.window
            self.ignored = -PAUSE_ROWS
        return detected and voice

    def run(self, probability: int, rows: int) -> bool:
        """Whether one of the rows of a run leads to a detection; the last one brings the probability."""
        detected = [self.row(probability if at == rows - 1 else None) for at in range(rows)]
        return any(detected)


def compiled(folder: Path, files: dict[str, str], *flags: str) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    sources = [name for name in files if name.endswith(".c")]
    done = subprocess.run(
        ["gcc", *C_WARNINGS, *flags, *sources, "-o", "program"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return folder / "program"


DRIVER = """
#include "mcud_detector.h"
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words)
{
    (void)count;
    uint8_t probabilities[255];
    mcud_detector detector = {.probabilities = probabilities,
                              .cutoff = (uint8_t)atoi(words[1]),
                              .window = (uint8_t)atoi(words[2]),
                              .rows = (uint8_t)atoi(words[3]),
                              .pause = (uint8_t)atoi(words[4])};
    mcud_detector_reset(&detector);
    for (int byte = getchar(); byte != EOF; byte = getchar()) {
        putchar(mcud_detector_add(&detector, (uint8_t)byte) ? '1' : '0');
    }
    return 0;
}
"""


def detections(program: Path, probabilities: np.ndarray, *numbers: int) -> list[bool]:
    words = [str(number) for number in numbers]
    given = probabilities.astype(np.uint8).tobytes()
    done = subprocess.run([program, *words], input=given, capture_output=True, check=True, timeout=60)
    return [digit == ord("1") for digit in done.stdout]


@pytest.mark.parametrize(("window", "rows"), [(1, 1), (5, 3), (4, 2), (255, 1), (10, 5)])
def test_the_detector_follows_the_rules_of_esphome(window: int, rows: int, tmp_path: Path) -> None:
    program = compiled(tmp_path, {**detector_files(), "driver.c": DRIVER})
    random = np.random.default_rng(window)
    for cutoff in (0, 1, 100, 217, 255):
        walk = np.cumsum(random.normal(0, 30, 3000))
        probabilities = np.clip(np.abs(walk) % 400 - 60, 0, 255).astype(int)
        reference = Reference(cutoff, window)
        wanted = [reference.run(int(it), rows) for it in probabilities]
        assert detections(program, probabilities, cutoff, window, rows, PAUSE_ROWS) == wanted
        if cutoff == 100:
            assert 0 < sum(wanted) < len(wanted) // 10


@pytest.fixture(scope="module")
def component(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A component; its model and manifest are in the folder of `esphome`."""
    folder = tmp_path_factory.mktemp("component")
    manifest(folder)
    built = build(wake_word(folder), "-o", folder / "esphome")
    assert built.exit_code == 0, built.output
    return folder / "esphome" / "components" / "hey"


ROWS_OF = {"hey": 3, "ho": 2, "halt": 3, "voice": 1}
"""Rows of each model of a component with several: two words, a stop word and a voice activity detector."""


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several")
    for seed, (name, rows) in enumerate(ROWS_OF.items(), 1):
        manifest(folder, name, wake_word=f"{name}!", trained_languages=["en", "de"])
        wake_word(folder, seed, (1, rows, 40), name)
    hey, ho, halt, voice = (folder / f"{name}.tflite" for name in ROWS_OF)
    built = build(hey, ho, "--stop", halt, "--vad", voice, "-o", folder / "micro_wake_word", "--no-verify")
    assert built.exit_code == 0, built.output
    return folder / "micro_wake_word" / "components" / "micro_wake_word"


def compiled_component(component: Path, folder: Path, *flags: str) -> Path:
    """The component with stubs of ESPHome, all headers in one C++ file as in ESPHome's own program."""
    everything = "".join(f'#include "{path.name}"\n' for path in sorted(component.glob("*.h")))
    for name, text in {**HEADERS, "main.cpp": everything + MAIN.replace("NAME", component.name)}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    places = [f"-I{component}", f"-I{folder}", *flags]
    for compiler, options, sources in (
        ("gcc", C_WARNINGS, sorted(component.glob("*.c"))),
        ("g++", CPP_WARNINGS, [component / "micro_wake_word.cpp", folder / "main.cpp"]),
    ):
        subprocess.run(
            [compiler, *options, *places, "-c", *map(str, sources)], cwd=folder, check=True, timeout=120
        )
    objects = sorted(map(str, folder.glob("*.o")))
    subprocess.run(["g++", *CPP_WARNINGS, *objects, "-o", "component"], cwd=folder, check=True, timeout=120)
    return folder / "component"


@pytest.fixture(scope="module")
def program(component: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled_component(component, tmp_path_factory.mktemp("program"), "-DWORDS=1")


@pytest.fixture(scope="module")
def program_of_several(several: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled_component(several, tmp_path_factory.mktemp("program"), "-DWORDS=3", "-DVAD")


def lines_of(program: Path, sound: np.ndarray, *words: object) -> list[str]:
    command = [program, *map(str, words)]
    done = subprocess.run(command, input=sound.tobytes(), capture_output=True, check=True, timeout=60)
    return done.stdout.decode().splitlines()


def heard(lines: list[str]) -> dict[str, list[int]]:
    """The samples after which each word was heard."""
    words: dict[str, list[int]] = {}
    for samples, word in (line.split(" ", 1) for line in lines if line[0].isdigit()):
        words.setdefault(word, []).append(int(samples))
    return words


def require_rows(samples: list[int], rows: list[int]) -> None:
    """Words are heard in the chunks that end these rows."""
    assert len(samples) == len(rows)
    for at, row in zip(samples, rows, strict=True):
        assert 0 <= at - row * HOP < 1024


def features_of(folder: Path, sound: np.ndarray) -> np.ndarray:
    """The rows of features [rows, 40]."""
    models = {path: read_manifest(path.with_suffix(".json")) for path in folder.glob("*.tflite")}
    front = front_end(models, folder / "front.bin.tflite")
    try:
        return results(front, sound.reshape(-1, 1, HOP)).reshape(-1, 40)
    finally:
        front.unlink()


def probabilities(
    model: Path, features: np.ndarray, rows: int, first: int = 1, end: int = 0
) -> dict[int, int]:
    """The probability by the number of the row that ends a run, for a model enabled from row `first` on."""
    ends = [at for at in range(rows, (end or len(features) + 1), rows) if at >= first]
    given = np.array([features[at - rows : at] for at in ends])[:, np.newaxis]
    outputs = results(model, given).reshape(-1).astype(int) + 128
    return dict(zip(ends, map(int, outputs), strict=True))


@dataclass
class Spoken:
    """The rules for one word of several; `spans`: of rows in which it is enabled, first and end."""

    model: Path
    rows: int
    spans: list[tuple[int, int]]
    found: list[int] = field(default_factory=list)
    blocked: int = 0

    def hear(self, features: np.ndarray, voices: list[bool], cutoff: int, window: int) -> None:
        for first, end in self.spans:
            reference = Reference(cutoff, window)
            known = probabilities(self.model, features, self.rows, first, end)
            for at in range(first, end):
                if reference.row(known.get(at), voice=voices[at]):
                    self.found.append(at)
            self.blocked += reference.blocked


def test_a_component_hears_what_esphome_would(component: Path, program: Path) -> None:
    """Samples in chunks of any size; detections in the rows that the rules say, of the model's outputs."""
    sound, given = speech_like(12.0), component.parents[2]
    features = features_of(given, sound)
    voices = [True] * (len(features) + 1)
    for cutoff, window in ((int(0.6 * 255), 4), (40, 2)):
        word = Spoken(given / "hey.tflite", ROWS, [(1, len(voices))])
        word.hear(features, voices, cutoff, window)
        require_rows(heard(lines_of(program, sound, cutoff, window, 0, 0)).get("word 0", []), word.found)
        assert word.found or cutoff > 40


def voices_of(model: Path, features: np.ndarray, cutoff: int) -> list[bool]:
    """Whether there is a voice in each row, counted from 1: the mean of 3 probabilities is above it."""
    recent, voices = [0] * 3, [False]
    for probability in probabilities(model, features, 1).values():
        recent = [*recent[1:], probability]
        voices.append(sum(recent) > 3 * cutoff)
    return voices


def test_several_words_share_a_front_end(several: Path, program_of_several: Path) -> None:
    """Each word is heard where it would be alone, while it is enabled, and where there is a voice."""
    sound, given = speech_like(16.0, seed=2), several.parents[2]
    features = features_of(given, sound)
    events = ["0+1", "50003+2", "90001-0", "130000+0", "200000-1"]
    for least in (0, 100):
        lines = lines_of(program_of_several, sound, 40, 2, 0, least, *events)
        rows = {}
        for line in (it for it in lines if it.startswith("switched")):
            _, sign, at, enabled = line.split()
            assert enabled == ("1" if sign[0] == "+" else "0")
            rows[sign] = int(at) // HOP + 1
        last = len(features) + 1
        spans = {
            "hey": [(1, rows["-0"]), (rows["+0"], last)],
            "ho": [(1, rows["-1"])],
            "halt": [(rows["+2"], last)],
        }
        voices = voices_of(given / "voice.tflite", features, least)
        assert any(voices)
        for number, (name, of) in enumerate(spans.items()):
            word = Spoken(given / f"{name}.tflite", ROWS_OF[name], of)
            word.hear(features, voices, 40, 2)
            require_rows(heard(lines).get(f"word {number}", []), word.found)
            assert word.found or least, name
            refused = any(f"predicts 'word {number}', but VAD" in line for line in lines)
            assert refused == (word.blocked > 0)
        assert any("but VAD model" in line for line in lines) or not least


def test_words_are_listed_and_choices_are_kept(program_of_several: Path) -> None:
    """As ESPHome's own component does: internal words are neither listed nor kept."""
    lines = lines_of(program_of_several, speech_like(0.5), 40, 2, 0, 0, "0+1", "100-0", "100+2")
    assert [it for it in lines if it.startswith("listed")] == [
        f"listed id{at} 'word {at}' en" for at in (0, 1)
    ]
    kept = [it for it in lines if it.startswith("after")]
    assert kept == [f"after a restart id{at} {on}" for at, on in enumerate((0, 1, 0))]
    assert any(it.startswith("C   Arenas: ") for it in lines)


def test_two_components_in_one_program(component: Path, tmp_path: Path) -> None:
    """Kernels and models of one file name have other names in C, and both headers fit into one file;
    `program` has the warnings.
    """
    other = tmp_path / "other"
    word, said = wake_word(tmp_path, seed=2), component.parents[2] / "hey.json"
    built = build(word, "--name", "ho", "--manifest", said, "-o", other, "--no-verify")
    assert built.exit_code == 0, built.output
    folder = tmp_path / "build"
    for name, text in HEADERS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    parts = [component, other / "components" / "ho"]
    headers = [path for part in parts for path in sorted(part.glob("*.h"))]
    main = "".join(f'#include "{path}"\n' for path in headers)
    main += "esphome::hey::MicroWakeWord one;\nesphome::ho::MicroWakeWord two;\n"
    main += "int main() { return one.is_running() || two.is_running(); }\n"
    (folder / "main.cpp").write_text(main, "utf-8")
    for part in parts:
        objects = folder / part.name
        objects.mkdir()
        sources = ["gcc", "-std=c99", "-c", *part.glob("*.c")]
        subprocess.run(sources, cwd=objects, check=True, timeout=120)
    sources = [folder / "main.cpp", *(part / "micro_wake_word.cpp" for part in parts), *folder.glob("*/*.o")]
    command = ["g++", "-std=gnu++20", f"-I{folder}", *sources, "-o", folder / "both"]
    subprocess.run(command, check=True, timeout=120)
    subprocess.run([folder / "both"], check=True, timeout=60)


def test_a_component_stops_after_a_detection(program: Path) -> None:
    lines = lines_of(program, speech_like(12.0), 40, 2, 1, 0)
    assert len(heard(lines)["word 0"]) == 1 and "D Detected 'word 0'" in lines


def words_of(component: Path) -> dict[str, list[Any]]:
    """The words that the Python of a component knows, by model."""
    tree = ast.parse((component / "__init__.py").read_text("utf-8"))
    values = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    words = values["WORDS"]
    assert isinstance(words, ast.Dict)
    constants = {
        ast.literal_eval(key): value for key, value in zip(words.keys, words.values, strict=True) if key
    }
    if "VAD" in values:
        constants["VAD"] = values["VAD"]
    return {
        name: [ast.literal_eval(it) for it in call.args]
        for name, call in constants.items()
        if isinstance(call, ast.Call)
    }


def test_text_of_the_manifest_is_data(component: Path) -> None:
    assert words_of(component) == {"hey": [HOSTILE, [], 0.6, 4, False]}
    example = yaml.safe_load((component.parent.parent / "example.yaml").read_text("utf-8"))
    assert example["hey"]["microphone"] == example["microphone"][0]["id"]
    assert example["hey"]["models"] == [{"model": "hey", "id": "hey_word"}] and "switch" not in example
    assert example["esphome"]["on_boot"]["then"] == [{"hey.start": None}]


def test_the_yaml_and_the_readme_of_several_words(several: Path) -> None:
    facts = [["en", "de"], 0.6, 4]
    assert words_of(several) == {
        "hey": ["hey!", *facts, False],
        "ho": ["ho!", *facts, False],
        "halt": ["halt!", *facts, True],
        "VAD": ["voice!", *facts],
    }
    example = yaml.safe_load((several.parent.parent / "example.yaml").read_text("utf-8"))
    models = example["micro_wake_word"]["models"]
    assert [it["model"] for it in models] == ["hey", "ho", "halt"] and example["micro_wake_word"][
        "vad"
    ] is None
    assert [it["turn_on_action"] for it in example["switch"]] == [
        [{"micro_wake_word.enable_model": it["id"]}] for it in models
    ]
    readme = (several.parent.parent / "README.md").read_text("utf-8")
    assert "together take" in readme and "`micro_wake_word_front_end` | the front end | | 1120 B" in readme


@pytest.mark.parametrize(
    ("name", "option", "message"),
    [
        ("esp32c3", {"variant": "esp32c3"}, "on esp32c3 with"),
        ("pio:esp32-s3-devkitc-1", {"board": "esp32-s3-devkitc-1"}, "on pio:esp32-s3-devkitc-1 with"),
        ("rp2040", {"variant": "esp32s3"}, "planned for rp2040, for which"),
    ],
)
def test_the_example_is_for_the_board(
    name: str, option: dict[str, str], message: str, tmp_path: Path
) -> None:
    manifest(tmp_path)
    fast = "--no-verify", "--time-limit", 0.2
    built = build(wake_word(tmp_path), "-o", tmp_path / "esphome", *fast, "--board", name)
    assert built.exit_code == 0, built.output
    text = (tmp_path / "esphome" / "example.yaml").read_text("utf-8")
    assert yaml.safe_load(text)["esp32"] == {**option, "framework": {"type": "esp-idf"}} and message in text


class InvalidError(Exception):
    """The error of esphome.config_validation."""


def esphome_modules() -> dict[str, Any]:
    """Modules of ESPHome that accept all calls."""
    top = MagicMock()
    top.const = SimpleNamespace(
        CONF_ID="id", CONF_INTERNAL="internal", CONF_MICROPHONE="mic", CONF_MODEL="model"
    )
    top.config_validation.Invalid = InvalidError
    top.codegen.register_component = top.automation.build_automation = AsyncMock()
    top.components.microphone.microphone_source_to_code = AsyncMock()
    names = ("automation", "codegen", "components", "config_validation", "const")
    return {"esphome": top} | {f"esphome.{name}": getattr(top, name) for name in names}


def test_the_code_that_a_configuration_becomes(several: Path, component: Path) -> None:
    modules = esphome_modules()
    cg = modules["esphome.codegen"]
    with patch.dict(sys.modules, modules):
        module = runpy.run_path(str(several / "__init__.py"))
        alone = runpy.run_path(str(component / "__init__.py"))
    models = [
        {"id": "a", "model": "halt"},
        {"id": "b", "model": "hey", "probability_cutoff": 0.9, "sliding_window_size": 7, "internal": True},
    ]
    config = {"id": "own", "mic": {}, "stop_after_detection": True, "on_wake_word_detected": [1]}
    asyncio.run(module["to_code"](config | {"models": models, "vad": {"probability_cutoff": 0.5}}))
    assert cg.new_Pvariable.call_args_list == [
        call("own"),
        call("a", "a", 2, 153, 4, "halt!", True, True),
        call("b", "b", 0, 229, 7, "hey!", False, True),
    ]
    cg.new_Pvariable.return_value.add_vad_model.assert_called_once_with(3, 127, 4)
    cg.add_define.assert_called_once_with("USE_MICRO_WAKE_WORD")  # voice_assistant reads its header
    asyncio.run(alone["to_code"](config | {"models": [{"id": "c", "model": "hey"}]}))
    cg.add_define.assert_called_once()
    assert module["each_once"](models) == models
    with pytest.raises(InvalidError, match="listed once"):
        module["each_once"]([models[0], models[0]])
