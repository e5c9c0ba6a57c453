"""The measurer for ESP-IDF and Zephyr: compiled against declarations of what it uses of them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.toolchain.project import assemble
from tests.targets.board_line import CONFIG

STUBS = Path(__file__).parent / "frameworks"
WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Wredundant-decls -Werror -Wmissing-prototypes"
RV32 = "riscv64-unknown-elf-gcc --specs=picolibc.specs -march=rv32imac -mabi=ilp32"
M4 = "arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb"
BUILDS = {
    "esp32-c3-devkitm-1": ("espidf", {"mcu": "esp32c3"}, RV32),
    "nucleo_f446re": ("zephyr", {"mcu": "stm32f446ret6", "cpu": "cortex-m4"}, M4),
    "hifive1-revb": ("zephyr", {"mcu": "fe310", "march": "rv32imac"}, RV32),
}


@pytest.fixture
def board(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    """The board of that id, by a manifest that has its framework alone."""
    framework, build, _ = BUILDS[request.param]
    folder = tmp_path / "platforms" / "some" / "boards"
    folder.mkdir(parents=True)
    (folder.parent / "platform.json").write_text('{"name": "some", "version": "1.0"}')
    manifest = {
        "frameworks": [framework],
        "build": build | {"f_cpu": "16000000L"},
        "upload": {"maximum_ram_size": 131072, "maximum_size": 524288},
    }
    (folder / f"{request.param}.json").write_text(json.dumps(manifest))
    monkeypatch.setenv("PLATFORMIO_PLATFORMS_DIR", str(folder.parents[1]))
    return load_board(f"pio:{request.param}:{framework}")


def commands(files: dict[str, str], framework: str) -> tuple[list[str], list[str], list[str]]:
    """(options, definitions, folders) as CMake's files of the project name them."""
    text = files["src/CMakeLists.txt" if framework == "espidf" else "zephyr/CMakeLists.txt"]
    options = re.findall(r"target_compile_options\(\S+ PRIVATE (.*)\)", text)[0].split()
    definitions = shlex.split(re.findall(r"target_compile_definitions\(\S+ PRIVATE (.*)\)", text)[0])
    folders = re.findall(
        r"(?:INCLUDE_DIRS|target_include_directories\(app PRIVATE) ([^)]*?)(?: REQUIRES|\))", text
    )
    root = "src" if framework == "espidf" else "zephyr"
    return options, definitions, [f"{root}/{it}" for it in folders[0].split()]


@pytest.mark.parametrize("board", BUILDS, indirect=True)
def test_the_project_compiles(board: Board, tmp_path: Path) -> None:
    assert board.framework is not None
    framework = board.framework.name
    project = assemble(board, {"mcud_config.h": CONFIG}, ["copy"], emulate=False)
    root = tmp_path / "project"
    for name, text in project.files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    options, definitions, folders = commands(dict(project.files), framework)
    sources = [name for name in project.files if name.endswith(".c")]
    assert ("src/measurer/main.c" in sources) == (framework == "zephyr")
    assert {"src/measurer/measurer.c", "src/measurer/command.c", f"src/hal/{board.hal[0]}"} <= set(sources)
    compiler = BUILDS[board.framework.board][2].split()
    command = [*compiler, "-std=gnu99", *WARNINGS.split(), *options, *(f"-D{it}" for it in definitions)]
    command += [f"-I{it}" for it in folders] + [f"-isystem{STUBS / framework}", "-c"]
    done = subprocess.run([*command, *sources], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names = subprocess.run(
        [compiler[0].replace("gcc", "nm"), "command.o"], cwd=root, capture_output=True, text=True, check=True
    )
    assert "hal_ticks_hz" in names.stdout
    assert board.name.encode() in (root / "command.o").read_bytes()
    if framework == "espidf":  # its older releases have another name for the counter
        subprocess.run([*command, "-DSTUB_IDF_MAJOR=4", "src/hal/esp/cycles.c"], cwd=root, check=True)


ESP_IDF = """cmake_minimum_required(VERSION 3.16)
function(idf_component_register)
  cmake_parse_arguments(it "" "" "SRCS;INCLUDE_DIRS;REQUIRES" ${ARGN})
  message("requires ${it_REQUIRES}")
endfunction()
foreach(name target_compile_options target_compile_definitions)
  function(${name})
  endfunction()
endforeach()
include(${CMAKE_CURRENT_LIST_DIR}/src/CMakeLists.txt)
"""


@pytest.mark.parametrize("board", ["esp32-c3-devkitm-1"], indirect=True)
@pytest.mark.parametrize(
    ("version", "component"),
    [("4.4", "driver"), ("5.2", "driver"), ("5.3", "esp_driver_uart"), ("5.10", "esp_driver_uart"),
     ("6.0", "esp_driver_uart")],
)  # fmt: skip
def test_esp_idf_is_asked_for_the_component_that_its_version_has(
    board: Board, version: str, component: str, tmp_path: Path
) -> None:
    files = assemble(board, {"mcud_config.h": CONFIG}, ["copy"], emulate=False).files
    (tmp_path / "src").mkdir()
    (tmp_path / "src/CMakeLists.txt").write_text(files["src/CMakeLists.txt"], encoding="utf-8")
    (tmp_path / "idf.cmake").write_text(ESP_IDF, encoding="utf-8")
    major, minor = version.split(".")
    versions = (f"-DIDF_VERSION_MAJOR={major}", f"-DIDF_VERSION_MINOR={minor}")
    command = ["cmake", *versions, "-P", str(tmp_path / "idf.cmake")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.strip() == f"requires {component}"
