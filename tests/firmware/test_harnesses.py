"""The harnesses of the device's parsers: fuzzed for a moment, and proved by CBMC where it is installed.

For longer, by coverage: build them with `clang -fsanitize=fuzzer,address,undefined`, without main.c.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mcudeploy.codegen.bench import bench_sources
from mcudeploy.common.resources import resource_dir
from mcudeploy.toolchain.firmware_build import HOST_FLAGS, SANITIZE_FLAGS
from tests.weekly import sample

FOLDER = Path(__file__).parent / "harness"
FIRMWARE = resource_dir("firmware")
SECONDS = 1
SOURCES = {
    "frame_harness.c": ("measurer/frame.c",),
    "command_harness.c": ("measurer/frame.c", "measurer/command.c", "kernels/tape/mcud_tape.c"),
    "rows_harness.c": ("kernels/tape/mcud_tape.c",),
    "parameters_harness.c": (
        "measurer/frame.c",
        "measurer/parameter_requests.c",
        "parameters/mcud_parameter_table.c",
    ),
}
DEFINES = {"parameters_harness.c": ["-DMCUD_PARAMETERS=1"]}
HEADERS = ("include", "measurer", "parameters")
PROVED = {"rows_harness.c": 14}
"""CBMC's proofs, with the bound of their loops. The CRC of a whole frame is beyond it."""


def sources(name: str) -> list[str]:
    line = ["line.c"] if "measurer/frame.c" in SOURCES[name] else []
    own = [FOLDER / each for each in (name, "draw.c", *line)]
    return [str(path) for path in (*own, *(FIRMWARE / each for each in SOURCES[name]))]


def includes(folder: Path) -> list[str]:
    (folder / "mcud_config.h").write_text(bench_sources(["none"], 8)["mcud_config.h"])
    return [f"-I{path}" for path in (folder, FOLDER, *(FIRMWARE / each for each in HEADERS))]


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("data_bytes", sample([128, 246, 1000], 1))
def test_random_input(name: str, data_bytes: int, tmp_path: Path) -> None:
    program = tmp_path / "harness"
    flags = [*HOST_FLAGS, *SANITIZE_FLAGS, "-no-pie", "-Werror", f"-DMCUD_DATA_BYTES={data_bytes}"]
    flags += DEFINES.get(name, [])
    command = ["gcc", *flags, *includes(tmp_path), *sources(name), str(FOLDER / "main.c"), "-o", str(program)]
    subprocess.run(command, check=True)
    result = subprocess.run([program, str(SECONDS), "1"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 1000


def test_no_single_failure_of_a_callback_loses_saved_values(tmp_path: Path) -> None:
    program = tmp_path / "saves"
    table = FIRMWARE / "parameters/mcud_parameter_table.c"
    files = [FOLDER.parent / "saves.c", table, f"-I{table.parent}", "-o", program]
    subprocess.run(["gcc", *HOST_FLAGS, *SANITIZE_FLAGS, "-no-pie", "-Werror", *files], check=True)
    result = subprocess.run([program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert int(result.stdout) > 800


@pytest.mark.skipif(shutil.which("cbmc") is None, reason="CBMC is not installed")
@pytest.mark.parametrize("name", PROVED)
def test_proof(name: str, tmp_path: Path) -> None:
    checks = ["--bounds-check", "--pointer-check", "--unwinding-assertions", "--unwind", str(PROVED[name])]
    command = ["cbmc", "-DCBMC", *checks, *includes(tmp_path), *sources(name)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-3000:]
