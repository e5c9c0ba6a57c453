"""The real measurer as a process of this machine, with the program of program.c in it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bad_line import HASH

from mcudeploy.codegen.bench import bench_sources
from mcudeploy.codegen.kernelfiles import source_index
from mcudeploy.common.resources import resource_dir
from mcudeploy.toolchain.firmware_build import HOST_FLAGS, SANITIZE_FLAGS

FLAGS = (*HOST_FLAGS, *SANITIZE_FLAGS, "-Werror", "-no-pie", "-Wl,--wrap=hal_ticks")


def build_program(folder: Path) -> Path:
    """The host firmware with program.c, under address and undefined-behaviour sanitizers."""
    firmware = resource_dir("firmware")
    (folder / "mcud_config.h").write_text(bench_sources(["none"], 8)["mcud_config.h"])
    sources = [
        *sorted((firmware / "measurer").glob("*.c")),
        firmware / "hal" / "host" / "host.c",
        source_index()["mcud_tape.c"].path,
        Path(__file__).parent / "program.c",
    ]
    includes = [f"-I{path}" for path in (folder, firmware / "include", firmware / "measurer")]
    defines = [f"-DMCUD_FIRMWARE_HASH={HASH:#x}u", '-DMCUD_BOARD_NAME="host"']
    path = folder / "program"
    subprocess.run(["gcc", *FLAGS, *defines, *includes, *map(str, sources), "-o", str(path)], check=True)
    return path
