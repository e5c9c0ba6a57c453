"""Clang compiles every kernel for every core, without a warning, and what it compiles computes the same.

The self-test of a library compares with what the same program gave on the host, under GCC.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from models import small_network

from mcudeploy import building
from mcudeploy.boards.board import load_board
from mcudeploy.common.resources import resource_dir
from mcudeploy.program.bench import bench_sources
from mcudeploy.program.kernelfiles import kernel_files
from mcudeploy.search.planner import Options

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
NEWLIB = ("-isystem", "/usr/lib/arm-none-eabi/include")
PICOLIBC = ("-isystem", "/usr/lib/picolibc/riscv64-unknown-elf/include")

pytestmark = pytest.mark.skipif(shutil.which("clang") is None, reason="Clang is not installed")


@dataclass(frozen=True, slots=True)
class Core:
    """How Clang compiles for a core, how GCC links for it, and what runs it."""

    triple: str
    flags: tuple[str, ...]
    board: str
    machine: str

    @property
    def clang(self) -> tuple[str, ...]:
        headers = PICOLIBC if self.triple.startswith("riscv") else NEWLIB
        return ("clang", f"--target={self.triple}", *self.flags, *headers)


CORES = {
    "cortex-m0": Core(
        "thumbv6m-none-eabi", ("-mcpu=cortex-m0", "-mthumb", "-mfloat-abi=soft"), "mps2-an385", "mps2-an385"
    ),
    "cortex-m3": Core(
        "thumbv7m-none-eabi", ("-mcpu=cortex-m3", "-mthumb", "-mfloat-abi=soft"), "mps2-an385", "mps2-an385"
    ),
    "cortex-m4": Core(
        "thumbv7em-none-eabi",
        ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"),
        "mps2-an386",
        "mps2-an386",
    ),
    "cortex-m33": Core(
        "thumbv8m.main-none-eabi",
        ("-mcpu=cortex-m33", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-sp-d16"),
        "mps2-an505",
        "mps2-an505",
    ),
    "cortex-m55": Core(
        "thumbv8.1m.main-none-eabi",
        ("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"),
        "mps3-an547",
        "mps3-an547",
    ),
    "rv32": Core("riscv32-unknown-elf", ("-march=rv32imfc", "-mabi=ilp32f"), "riscv32-virt", "virt"),
}
