"""Damaged command streams and weights end with a code in the functional model of an Ethos-U, in bounds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from vela_streams import INCLUDE, compiled, model_sources

from tests.weekly import examples

sys.path.append(str(Path(__file__).resolve().parents[1] / "frontend" / "tflite"))

from flat_cases import CASES, network
from flat_files import FlatFile

STEPS = 200_000


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("hostile") / "hostile"
    checked = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-DMCUD_NPU_STEPS={STEPS}"]
    sources = [Path(__file__).with_name("hostile.c"), *model_sources()]
    subprocess.run(["gcc", "-std=c99", "-O1", *checked, INCLUDE, *sources, "-o", path], check=True)
    return path


def _codes(program: Path, *arguments: object) -> list[int]:
    command = [program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return [int(it) for it in done.stdout.split()]


def test_random_commands(program: Path) -> None:
    codes = _codes(program, 1, examples(20_000, 1_000_000))
    assert all(codes[:5]) and not any(codes[7:])


@pytest.mark.parametrize("name", ["network", "UNIDIRECTIONAL_SEQUENCE_LSTM-int8"])
def test_damaged_streams(name: str, program: Path, tmp_path: Path) -> None:
    """Flipped bits, missing ends, and random bytes as weights, of what Vela has written."""
    f = FlatFile()
    model = f.save(tmp_path, *(network if name == "network" else CASES[name].make)(f))
    (stream,) = compiled([("ethos-u55-128", model)], tmp_path)
    files = {"words": stream.words, "constants": stream.constants}
    for file, data in files.items():
        data.tofile(tmp_path / file)
    arena = int(stream.file["scratch_size"])
    paths = (tmp_path / it for it in files)
    codes = _codes(program, 2, examples(400, 20_000), *paths, arena)
    assert all(codes[it] for it in (0, 1, 3, 4)) and not any(codes[7:])
