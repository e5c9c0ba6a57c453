"""Plans and generated C of many commands as hashes: two versions of mcudeploy that plan alike print the same.

    python benchmarks/same_plans.py MODELS > before.txt
    python benchmarks/same_plans.py MODELS --against before.txt

MODELS is a folder with the models of the cases, by their paths below it; cases whose files are missing are an
error. Each case is a command line of mcudeploy, so the comparison outlives changes of the Python code.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

SECONDS = 2
"""The time limit of each search, which is counted work: the plan is the same on every machine."""

CUT = (
    "mlperf_tiny/kws01_int8", "mlperf_tiny/ic01_int8", "mlperf_tiny/vww01_int8", "mlperf_tiny/ad01_fp32",
    "mcu/mbv2_w035_96_int8io", "mcu/resnet8_32_fp32", "mcu/person_detect_int8", "mcu/mbv3s_w05_96_int8",
    "irregular/densenet_k8_32_int8", "irregular/unet_bilinear_64_fp32", "irregular/randwire_ws16_32_int8",
    "seq/encoder_d64_l2_int8",
)  # fmt: skip
"""Models that are planned whole and streamed, under two limits of latency."""


@dataclass(frozen=True, slots=True)
class Case:
    """A command, its file below MODELS, and its options. `library`: whether its C is hashed as well."""

    command: str
    file: str
    options: tuple[str, ...]
    library: bool = True

    @property
    def name(self) -> str:
        return " ".join((self.command, self.file, *self.options))


def _plan(model: str, *options: str) -> Case:
    file = model if model.endswith(".tflite") else f"{model}/model.onnx"
    return Case("plan", file, options)


def cases() -> Iterator[Case]:
    """Every case, in the order in which it is printed."""
    for model in CUT:
        for stream in ((), ("--stream-input",)):
            for overhead in ("1", "10"):
                yield _plan(model, "--board", "mps2-an386", "--max-overhead", overhead, *stream)
    vww, ic, kws = "mlperf_tiny/vww01_int8", "mlperf_tiny/ic01_int8", "mlperf_tiny/kws01_int8"
    an386 = ("--board", "mps2-an386")
    for model, fast in ((vww, "20000"), (ic, "9000"), (kws, "3000"), ("mcu/mbv2_w035_96_int8io", "30000")):
        yield _plan(model, *an386, "--memory", f"sram={fast}")
    yield _plan(ic, "--board", "mps2-an505", "--memory", "sram=9000")
    yield _plan("seq/gpt_d64_l2_t32_fp32", *an386, "--memory", "sram=20000")
    yield _plan(kws, "--board", "mps2-an521", "--parallel", "2")
    yield _plan(vww, "--board", "riscv32-virt", "--parallel", "4")
    yield _plan(vww, *an386, "--no-split", "--placement", "tags")
    yield _plan(ic, *an386, "--no-split")
    yield _plan(vww, *an386, "--ram-limit", "40k", "--objective", "cycles")
    yield _plan(kws, "--board", "mps3-an547")
    yield _plan(ic, "--board", "microbit", "--keep-constant-channels")
    for model in ("seq/lstm_kws_fp32", "seq/gru_kws_fp32", "seq/mnist_lstm_fp32"):
        yield _plan(model, *an386, "--stateful")
    for name in ("ad01_int8", "kws01_int8", "micro_speech_int8", "mnist_lstm_fp32", "keyword_scrambled_int8"):
        yield _plan(f"tflite/{name}.tflite", *an386)
    for graph in ("resnet8_b8", "vggish_32_b1"):
        yield Case("schedule", f"training/{graph}.json.gz", (), library=False)
        yield Case("schedule", f"training/{graph}.json.gz", ("--memory", "50%", "--link", "4"), library=False)
    yield Case("schedule", "training/resnet8_b1.json.gz", ("--memory", "40%", "--recompute"), library=False)
    for rectangles in ("A", "D", "G", "K"):
        yield Case("place", f"allocation/{rectangles}.1048576.csv", ("--capacity", "1048576"), library=False)


def _run(arguments: list[str], environment: dict[str, str]) -> str:
    command = [sys.executable, "-m", "mcudeploy", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"exit {done.returncode}: {done.stderr.strip().splitlines()[-1]}"


def digest(case: Case, models: Path, environment: dict[str, str]) -> str:
    """Return the line of a case: hashes of its plan or answer, and of its generated files; or its error."""
    model = models / case.file
    if not model.is_file():
        raise SystemExit(f"{model}: no such file")
    with TemporaryDirectory() as folder:
        answer, library = Path(folder, "answer"), Path(folder, "library")
        limit = ["--time-limit", str(SECONDS), "-q"]
        fault = _run([case.command, str(model), *case.options, *limit, "-o", str(answer)], environment)
        if fault:
            return f"{case.name}: {fault}"
        words = [hashlib.sha256(_comparable(answer.read_text("utf-8")).encode()).hexdigest()[:16]]
        if case.library:
            fault = _run(_build(case, model, answer, library), environment)
            if fault:
                return f"{case.name}: {words[0]}, {fault}"
            words.append(_folder_hash(library))
        return f"{case.name}: {' '.join(words)}"


def _comparable(text: str) -> str:
    """The text without a version number."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError:
        return text
    if isinstance(content, dict):
        content.pop("version", None)
    return json.dumps(content, sort_keys=True)


def _build(case: Case, model: Path, plan: Path, library: Path) -> list[str]:
    """The command that writes the library of a plan."""
    taken = {"--board", "--parallel", "--objective"}
    words = iter(case.options)
    options = [part for word in words if word in taken for part in (word, next(words))]
    options += [word for word in case.options if word in {"--keep-constant-channels", "--stateful"}]
    verify = ["--no-verify", "--library-only", "-q"]
    return ["build", str(model), *options, "--plan", str(plan), *verify, "-o", str(library)]


def _folder_hash(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    texts = [f"{path.relative_to(folder)}\n".encode() + path.read_bytes() for path in files]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]


def main() -> None:
    """Print a line for each case, or the lines that differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", type=Path)
    parser.add_argument("--against", type=Path, help="a file that this script printed before")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="cases whose line has this text")
    arguments = parser.parse_args()
    chosen = [case for case in cases() if arguments.only in case.name]
    before = set(arguments.against.read_text("utf-8").splitlines()) if arguments.against else set()
    differ = 0
    with TemporaryDirectory() as cache, ThreadPoolExecutor(arguments.jobs) as pool:
        # A cache without measurements: known times would change the plan.
        environment = os.environ | {"MCUDEPLOY_CACHE_DIR": cache}
        for line in pool.map(lambda case: digest(case, arguments.models, environment), chosen):
            differ += line not in before
            if line not in before:
                print(line, flush=True)
    if arguments.against:
        print(f"{len(chosen)} cases, {differ} differ")
        sys.exit(differ != 0)


if __name__ == "__main__":
    main()
