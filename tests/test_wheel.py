"""The wheel has everything that a checkout has: `mcudeploy` runs from it alone."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    return next(folder.glob("*.whl"))


def test_the_wheel_ships_templates_firmware_and_boards(wheel: Path) -> None:
    shipped = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        f"mcudeploy/_data/{path.relative_to(ROOT).as_posix()}"
        for folder in ("templates", "firmware", "boards")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert not wanted - shipped
    plugins = {
        f"mcudeploy/{name}.c"
        for name in ("execution/cycles/counts", "execution/cycles/marks", "extensions/bounds/data_flow")
    }
    assert {"mcudeploy/py.typed", *plugins} <= shipped


def test_the_source_archive_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path), "-t"]
    subprocess.run([*build, "sdist"], cwd=ROOT, check=True, capture_output=True, timeout=120)
    archive = next(tmp_path.glob("*.tar.gz"))
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    folder = tmp_path / archive.name.removesuffix(".tar.gz")
    subprocess.run([*build, "wheel"], cwd=folder, check=True, capture_output=True, timeout=120)
    again = next(tmp_path.glob("*.whl"))
    assert zipfile.ZipFile(again).namelist() == zipfile.ZipFile(wheel).namelist()


def test_what_is_installed_without_an_extra_is_light(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        metadata = packed.read(next(it for it in packed.namelist() if it.endswith("METADATA"))).decode()
    required = re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*$", metadata, re.MULTILINE)
    assert {"onnx", "pillow", "tflite"} <= set(required)
    assert not {"numba", "ortools", "scipy", "jax", "mypy", "llvmlite"} & set(required)


def test_the_command_runs_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")

    def mcudeploy(line: str) -> str:
        command = [sys.executable, "-m", "mcudeploy", *line.split()]
        done = subprocess.run(
            command, cwd=tmp_path / "site", check=True, capture_output=True, text=True, timeout=60
        )
        return done.stdout

    assert '"stm32f405"' in mcudeploy("boards --json")
    mcudeploy("boards --new mine --like rp2040 -o mine.toml")
    assert "RP2040 Datasheet" in mcudeploy("boards --explain ./mine.toml")
