"""Firmware that PlatformIO builds with a framework: its project, the kept files, its sizes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import BuildError, FitError
from mcudeploy.common.programs import python_module
from mcudeploy.toolchain.firmware import Sizes, constant_bytes, measure

ENVIRONMENT = "firmware"
PROJECT = "project"
"""The folder beside firmware.elf from which PlatformIO uploads."""
BAUD = 115200
_FLAGS = ("-O2", "-ffp-contract=off")
_FOLDERS = ("kernels", "hal", "measurer", "generated")
_ABOVE_BYTES = 1024
"""Bytes of Zephyr's main stack above the measurer: its thread's data."""
_RENAMED = ("timer_init",)
"""Functions of the HAL that a core replaces."""
_BUILD = Path(".pio", "build", ENVIRONMENT)
_OBJECTS = {".o", ".a", ".d"}
_USED = re.compile(r"^(RAM|Flash):.*\(used (\d+) bytes from \d+ bytes\)", re.M)


def header_facts(board: Board) -> list[tuple[str, str]]:
    """Return the macros of mcud_board.h beside the timer's."""
    return [("MCUD_UART_BAUD", f"{BAUD}u"), ("MCUD_STACK_BYTES", f"{board.stack_bytes}u")]


def has_entry(board: Board) -> bool:
    """Whether the framework calls another entry than main()."""
    return board.framework is not None and board.framework.name != "zephyr"


def project_files(board: Board, firmware_hash: int, defines: Mapping[str, int]) -> dict[str, str]:
    """Return the build files for PlatformIO and the framework; `defines`: macros beside the board's.

    ESP-IDF and Zephyr take flags from CMake files only.
    """
    framework = board.framework
    assert framework is not None
    macros = {
        "MCUD_EMULATED": "0",
        "MCUD_FIRMWARE_HASH": f"{firmware_hash:#010x}u",
        "MCUD_BOARD_NAME": f'\\"{board.name}\\"',
        **{name: str(value) for name, value in defines.items()},
        **{name: f"mcud_{name}" for name in _RENAMED},
    }
    definitions = [f"{name}={value}" for name, value in macros.items()]
    lines = [
        f"; pio run -e {ENVIRONMENT}: the measurer for {board.name}",
        f"[env:{ENVIRONMENT}]",
        f"platform = {framework.platform}",
        f"board = {framework.board}",
        f"framework = {framework.name}",
        f"monitor_speed = {BAUD}",
    ]
    if framework.name == "espidf":
        return {"platformio.ini": _text(lines), **_espidf(definitions)}
    if framework.name == "zephyr":
        return {"platformio.ini": _text(lines), **_zephyr(definitions, board.stack_bytes)}
    flags = [*_FLAGS, *(f"-Isrc/{it}" for it in _FOLDERS), *(f"-D{it}" for it in definitions)]
    return {"platformio.ini": _text([*lines, "build_src_flags =", *(f"  {flag}" for flag in flags)])}


def _espidf(definitions: Sequence[str]) -> dict[str, str]:
    top = ["cmake_minimum_required(VERSION 3.16)", "include($ENV{IDF_PATH}/tools/cmake/project.cmake)"]
    component = [
        # the drivers are separate components from 5.3 on, the only ones in 6
        'if("${IDF_VERSION_MAJOR}.${IDF_VERSION_MINOR}" VERSION_LESS "5.3")',
        "  set(uart driver)",
        "else()",
        "  set(uart esp_driver_uart)",
        "endif()",
        "file(GLOB_RECURSE sources ${CMAKE_CURRENT_SOURCE_DIR}/*.c)",
        f"idf_component_register(SRCS ${{sources}} INCLUDE_DIRS ../include {' '.join(_FOLDERS)} "
        "REQUIRES ${uart})",
        *_compile_commands("${COMPONENT_LIB}", definitions),
    ]
    return {
        "CMakeLists.txt": _text([*top, f"project({ENVIRONMENT})"]),
        "src/CMakeLists.txt": _text(component),
    }


def _zephyr(definitions: Sequence[str], stack_bytes: int) -> dict[str, str]:
    folders = " ".join(f"../src/{it}" for it in _FOLDERS)
    build = [
        "cmake_minimum_required(VERSION 3.20.0)",
        "find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})",
        f"project({ENVIRONMENT})",
        "file(GLOB_RECURSE sources ${CMAKE_CURRENT_SOURCE_DIR}/../src/*.c)",
        "target_sources(app PRIVATE ${sources})",
        f"target_include_directories(app PRIVATE ../include {folders})",
        *_compile_commands("app", definitions),
    ]
    off = ("CONSOLE", "UART_CONSOLE", "PRINTK", "BOOT_BANNER", "LOG")  # the line is the measurer's
    settings = [
        *("CONFIG_SERIAL=y", "CONFIG_UART_INTERRUPT_DRIVEN=y", "CONFIG_REBOOT=y"),
        f"CONFIG_MAIN_STACK_SIZE={stack_bytes + _ABOVE_BYTES}",
        *(f"CONFIG_{name}=n" for name in off),
    ]
    return {"zephyr/CMakeLists.txt": _text(build), "zephyr/prj.conf": _text(settings)}


def _compile_commands(target: str, definitions: Sequence[str]) -> list[str]:
    """Return CMake's commands with our flags for our sources."""
    quoted = " ".join(f'"{it}"' for it in definitions)
    return [
        f"target_compile_options({target} PRIVATE {' '.join(_FLAGS)})",
        f"target_compile_definitions({target} PRIVATE {quoted})",
    ]


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


def run_command(folder: Path, *options: str) -> list[str]:
    """Return PlatformIO's command line for a project."""
    return [*python_module("platformio"), "run", "-d", str(folder), "-e", ENVIRONMENT, *options]


def keep(sources: Path, ready: Path, log: str, board: Board) -> Sizes:
    """Copy the files that an upload needs from a finished build into `ready`; return the sizes.

    Raises BuildError if there is no program, FitError if its RAM leaves no room for the stack.
    """
    elf = next(iter(sorted((sources / _BUILD).glob("*.elf"))), None)
    if elf is None:
        raise BuildError(f"PlatformIO made no ELF file for {board.name}")
    sizes = _sizes(elf, log)
    short = sizes.static_ram_bytes + board.stack_bytes - board.ram_bytes
    if short > 0:
        raise FitError(
            f"the firmware does not fit {board.name}: its RAM ({board.ram_bytes} B) is {short} B too small "
            f"for {sizes.static_ram_bytes} B and a stack of {board.stack_bytes} B. `--memory sram=SIZE` "
            "limits the arena."
        )
    shutil.copyfile(elf, ready / "firmware.elf")
    shutil.copytree(sources, ready / PROJECT, ignore=_objects)
    return sizes


def _objects(_: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if Path(name).suffix in _OBJECTS]


def _sizes(elf: Path, log: str) -> Sizes:
    """Return the sizes that PlatformIO states, since it knows its platforms' sections, or else the file's."""
    sizes = measure(elf)
    used = {name: int(count) for name, count in _USED.findall(log)}
    generated = elf.parent / "src" / "generated"
    weights = constant_bytes(generated.glob("weights.*o"))
    tables = constant_bytes(generated.glob("model.*o"))
    flash = used.get("Flash", sizes.flash_bytes)
    data = sizes.data_bytes
    return Sizes(
        flash,
        flash - weights - tables - data,
        weights,
        tables,
        data,
        used.get("RAM", sizes.static_ram_bytes) - data,
    )
