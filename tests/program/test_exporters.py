"""Libraries for build systems: each one's example builds without a warning, and finds the same bits."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from export_stubs import ARDUINO, CC, CUBE, IDF, VECTORS, ZEPHYR, write_tree
from models import fully_connected, quantised_convolutions
from onnxruntime import InferenceSession

from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.build_command import build as command
from mcudeploy.codegen.exporters import KINDS, Kind, export_files
from mcudeploy.codegen.folder import write_folder
from mcudeploy.codegen.render import LibraryModel
from mcudeploy.commands import build as building
from mcudeploy.common.errors import UsageError
from mcudeploy.common.progress import SILENT
from mcudeploy.execution.parts import BuildRequest
from mcudeploy.planner.plan_options import Options

BOARD = load_board("mps2-an386")
SIZES = (8, 6, 1)
PACKER = """
import sys
from platformio.__main__ import main
from platformio.package.manifest.schema import ManifestSchema
known = {"licenses": [{"licenseId": "Apache-2.0"}]}  # in the place of a download
ManifestSchema.load_spdx_licenses = staticmethod(lambda: known)
sys.exit(main())
"""
WARNINGS = "-Wall -Wextra -Wconversion -Wredundant-decls -Werror"


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> list[LibraryModel]:
    """An int8 model whose input arrives by rows, and one of floats with one output value."""
    folder = tmp_path_factory.mktemp("models")
    int8 = quantised_convolutions(folder / "rows.onnx")
    floats = fully_connected(folder / "dense.onnx", SIZES, quantised=False)
    models = []
    for path, streamed in ((int8, True), (floats, False)):
        options = Options(time_limit=0.5, stream_input=streamed)
        built = building.built_model(
            path, BuildRequest([path], BOARD, options, folder, library_only=True), SILENT
        )
        deployment = built.deployment
        models.append(LibraryModel(deployment.program, deployment.plan, deployment.source, built.selftest))
    return models


def exported(kind: Kind, members: list[LibraryModel], folder: Path) -> Path:
    write_folder(folder / "library", export_files(kind, members, "pair", BOARD))
    return folder / "library"


def run(*words: str | Path, folder: Path, **variables: str) -> str:
    """Return a tool's output; a warning is an error."""
    done = subprocess.run(
        [*map(str, words)],
        cwd=folder,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert "warning" not in done.stdout.lower(), done.stdout
    return done.stdout


def cmake(source: Path, folder: Path, *options: str, **variables: str) -> Path:
    """Build a CMake project with warnings as errors."""
    usual = [f"-DCMAKE_C_FLAGS={WARNINGS}", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_COMPILER_WORKS=1"]
    run("cmake", "-S", source, "-B", folder / "build", *usual, *options, folder=folder, **variables)
    run("cmake", "--build", folder / "build", folder=folder)
    return folder / "build"


def passed(text: str) -> None:
    assert re.findall(r"(\w+): self-test (\w+), (\d+) outputs differ", text) == [
        ("rows", "passed", "0"),
        ("dense", "passed", "0"),
    ], text


def test_cmake_here_and_installed(members: list[LibraryModel], tmp_path: Path) -> None:
    library = exported("cmake", members, tmp_path)
    build = cmake(library / "examples" / "selftest", tmp_path)
    text = run(build / "selftest", folder=tmp_path)
    passed(text)
    session = InferenceSession(fully_connected(tmp_path / "dense.onnx", SIZES, quantised=False))
    (value,) = np.ravel(session.run(None, {"x": np.zeros((1, SIZES[0]), np.float32)}))
    assert f"\ndense: the output is {int(1000 * value)} thousandths\n" in text and int(1000 * value)
    run("cmake", "--install", build, "--prefix", tmp_path / "there", folder=tmp_path)
    names = {path.name for path in (tmp_path / "there").rglob("*") if path.is_file()}
    assert {"libpair.a", "rows.h", "dense_selftest.h", "pairConfig.cmake"} <= names


def test_cmake_on_an_emulated_cortex_m4(members: list[LibraryModel], tmp_path: Path) -> None:
    library = exported("cmake", members, tmp_path)
    write_tree(tmp_path, {"vectors.c": VECTORS})
    run("arm-none-eabi-gcc", *BOARD.cpu_flags, "-c", "vectors.c", folder=tmp_path)
    linked = "-Wl,--section-start=.vectors=0,-u,vectors"
    build = cmake(
        library / "examples" / "selftest",
        tmp_path,
        f"-DCMAKE_TOOLCHAIN_FILE={library / 'cmake' / 'mps2-an386.cmake'}",
        f"-DCMAKE_EXE_LINKER_FLAGS=--specs=rdimon.specs {tmp_path}/vectors.o {linked}",
    )
    semihosting = ["-semihosting-config", "enable=on,target=native"]
    silent = ["-display", "none", "-monitor", "none", "-serial", "none"]
    machine = ["qemu-system-arm", "-M", BOARD.name, *silent, *semihosting]
    passed(run(*machine, "-kernel", build / "selftest", folder=tmp_path))


def test_zephyr(members: list[LibraryModel], tmp_path: Path) -> None:
    library = exported("zephyr", members, tmp_path)
    stub = {
        "zephyr/ZephyrConfig.cmake": ZEPHYR,
        "zephyr/include/zephyr/kernel.h": "",
        "zephyr/include/zephyr/sys/printk.h": "#include <stdio.h>\n#define printk printf\n",
    }
    write_tree(tmp_path, stub)
    build = cmake(
        library / "samples" / "selftest", tmp_path, f"-DZephyr_DIR={tmp_path / 'zephyr'}", "-Wno-dev"
    )
    passed(run(build / "app", folder=tmp_path))
    configured = (library / "samples" / "selftest" / "prj.conf").read_text().splitlines()[1:]
    assert (
        f"config {configured[0].removeprefix('CONFIG_').removesuffix('=y')}\n"
        in (library / "zephyr" / "Kconfig").read_text()
    )


def test_esp_idf(members: list[LibraryModel], tmp_path: Path) -> None:
    library = exported("esp-idf", members, tmp_path)
    write_tree(tmp_path, {"idf/tools/cmake/project.cmake": IDF})
    build = cmake(library / "examples" / "selftest", tmp_path, IDF_PATH=str(tmp_path / "idf"))
    passed(run(build / "app", folder=tmp_path))


def test_stm32cube(members: list[LibraryModel], tmp_path: Path) -> None:
    exported("stm32cube", members, tmp_path)
    write_tree(tmp_path, {"CMakeLists.txt": CUBE.replace("NAME", "pair")})
    passed(run(cmake(tmp_path, tmp_path) / "app", folder=tmp_path))


def test_arduino(members: list[LibraryModel], tmp_path: Path) -> None:
    """The rules of arduino-lint: names, version, category, and where an example lies."""
    library = exported("arduino", members, tmp_path)
    known = dict(
        line.split("=", 1)
        for line in (library / "library.properties").read_text().splitlines()
        if line and not line.startswith("#")
    )
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,62}", known["name"])
    assert not known["name"].lower().startswith("arduino")
    assert re.fullmatch(r"\d+\.\d+\.\d+", known["version"]) and known["architectures"] == "*"
    assert known["category"] == "Data Processing" and known["url"].startswith("https://")
    for name in ("author", "maintainer", "sentence", "paragraph"):
        assert known[name].strip()
    assert all((library / "src" / header).is_file() for header in known["includes"].split(","))
    assert all(line.count("\t") == 1 for line in (library / "keywords.txt").read_text().splitlines()[1:])
    (sketch,) = library.rglob("*.ino")
    assert sketch.parent.parent == library / "examples" and sketch.stem == sketch.parent.name
    write_tree(tmp_path, {"Arduino.h": ARDUINO})
    flags = [*WARNINGS.split(), "-Isrc", "-I.."]
    run("gcc", *flags, "-std=gnu11", "-c", *sorted((library / "src").glob("*.c")), folder=library)
    sketched = ["-x", "c++", "-include", "Arduino.h", sketch, "-x", "none"]
    run("g++", *flags, *sketched, *sorted(library.glob("*.o")), "-o", "program", folder=library)
    passed(run(library / "program", folder=library))


def test_platformio(members: list[LibraryModel], tmp_path: Path) -> None:
    library = exported("platformio", members, tmp_path)
    pack = [sys.executable, "-c", PACKER, "pkg", "pack", library, "-o", tmp_path / "pair.tar.gz"]
    run(*pack, folder=tmp_path, PLATFORMIO_CORE_DIR=str(tmp_path / "core"))
    described = json.loads((library / "library.json").read_text())
    (example,) = described["examples"]
    assert all((library / example["base"] / file).is_file() for file in example["files"])
    sources = [
        *sorted((library / described["build"]["srcDir"]).glob("*.c")),
        library / example["base"] / "src/main.c",
    ]
    flags = [
        *WARNINGS.split(),
        *described["build"]["flags"],
        "-Isrc",
        f"-I{described['build']['includeDir']}",
    ]
    run("gcc", *flags, *sources, "-lm", "-o", "program", folder=library)
    passed(run(library / "program", folder=library))


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_rust(members: list[LibraryModel], tmp_path: Path) -> None:
    library = exported("rust", members, tmp_path)
    manifest = '[package]\nname = "cc"\nversion = "1.99.0"\nedition = "2021"\n'
    vendored = {"cc/Cargo.toml": manifest, "cc/src/lib.rs": CC, "cc/.cargo-checksum.json": '{"files": {}}'}
    write_tree(tmp_path / "vendor", vendored)
    source = (
        f'[source.crates-io]\nreplace-with = "here"\n[source.here]\ndirectory = "{tmp_path / "vendor"}"\n'
    )
    write_tree(library, {".cargo/config.toml": source})
    words = ["cargo", "run", "--offline", "--quiet", "--example", "selftest"]
    passed(run(*words, folder=library, RUSTFLAGS="-Dwarnings"))


def test_every_kind_is_a_choice() -> None:
    (option,) = [each for each in command.params if each.name == "kind"]
    choices: Any = option.type
    assert tuple(choices.choices) == KINDS


def test_programs_of_several_cores_are_refused(members: list[LibraryModel]) -> None:
    program = replace(members[0].program, kernels=["on_unit"])
    with pytest.raises(UsageError, match="for rust are programs of one core"):
        export_files("rust", [replace(members[0], program=program)], "pair", BOARD)
