"""Static analysis of all C: kernels, tape, HAL, measurer and the generated programs of tests/golden.

    python benchmarks/analyse.py [gcc] [cppcheck] [misra] [clang-tidy]
    python benchmarks/analyse.py quick [--only FILE]

gcc is -fanalyzer of the compilers of seven boards, the others analyse the code as for the host; `quick` is
gcc on kernels and generated programs as for the host. Findings are compared with firmware/deviations.txt,
which states the reason for each accepted one. Prints the others, and entries without a finding; exit 1 if
any.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.bench import all_kernels, bench_sources
from mcudeploy.codegen.kernelfiles import OF_THE_TAPE, ON_UNIT, RUN_CORES, kernel_paths, source_folders
from mcudeploy.common.resources import resource_dir
from mcudeploy.extensions.dossier.static_analysis import accepted
from mcudeploy.toolchain.firmware_build import write_project
from mcudeploy.toolchain.project import SoftEngine, assemble

ROOT = Path(__file__).resolve().parents[1]
BOARDS = ("host", "stm32f405", "mps2-an521", "microbit", "mps3-an547", "riscv32-virt", "riscv32-virt-v")
"""Boards that together cover every family of HAL, and every kind of kernel code that depends on the core."""
GOLDEN = ROOT / "tests/golden"
CHECKS = "-*,bugprone-*,cert-*,clang-analyzer-*,misc-*,performance-*,portability-*"
FINDING = re.compile(
    r"^(.*?):\d+(?::\d+)?: (?:warning|error|style|performance|portability): .*\[([\w.,-]+)\]$", re.M
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A C file, and its compiler command."""

    file: Path
    compiler: tuple[str, ...]


def units(folder: Path) -> list[Unit]:
    """Return all C files with their compilers; those of boards are written below `folder`."""
    listed = []
    for name in BOARDS:
        board = load_board(name)
        without = {*(() if board.unit_hal else [ON_UNIT]), *(() if board.core_hal else [RUN_CORES])}
        kernels = sorted({*all_kernels(), *OF_THE_TAPE} - without)
        engine: SoftEngine | None = "half" if board.is_host else None
        sources = bench_sources(kernels, 1024, fuses_products=board.fuses_products)
        project = assemble(board, sources, kernels, emulate=not board.is_host, engine=engine)
        write_project(project, folder / name)
        tool = "gcc" if board.is_host else f"{board.toolchain}-gcc"
        libc = ("--specs=picolibc.specs",) if board.toolchain.startswith("riscv") else ()
        defines = ("-DMCUD_EMULATED=0", "-DMCUD_FIRMWARE_HASH=1u", f'-DMCUD_BOARD_NAME="{name}"')
        parts = ("include", "src/generated", "src/kernels", "src/hal", "src/measurer")
        includes = (f"-I{folder / name / part}" for part in parts)
        defines += tuple(f"-D{macro}={value}" for macro, value in project.defines.items())
        compiler = (tool, *board.cpu_flags, *libc, "-std=c99", *defines, *includes)
        listed += [Unit(file, compiler) for file in sorted((folder / name / "src").rglob("*.c"))]
    return listed + generated_units(folder)


def generated_units(folder: Path) -> list[Unit]:
    """Return the generated programs, as for the host; they are written below `folder`."""
    for path in sorted(GOLDEN.iterdir()):
        whole = GOLDEN / "residual_8_rows" if path.suffix == ".diff" else path
        target = folder / path.stem
        shutil.copytree(whole, target)
        if path.suffix == ".diff":
            command = ["git", "apply", "-p0", "--whitespace=nowarn", str(path)]
            subprocess.run(command, cwd=target, env=os.environ | {"GIT_DIR": os.devnull}, check=True)
    headers = [f"-I{it}" for it in source_folders()]
    return [
        Unit(file, ("gcc", "-std=c99", f"-I{folder / path.stem}", *headers))
        for path in sorted(GOLDEN.iterdir())
        for file in sorted((folder / path.stem).glob("*.c"))
    ]


def kernel_units(folder: Path) -> list[Unit]:
    """Return the kernels, and the model of an Ethos-U, as for the host, with the types of one program."""
    write = folder / "mcud_config.h"
    write.write_text((GOLDEN / "residual_8_rows/mcud_config.h").read_text("utf-8"), "utf-8")
    compiler = ("gcc", "-std=c99", f"-I{folder}", *(f"-I{it}" for it in source_folders()))
    model = sorted((resource_dir("firmware") / "hal" / "ethos_u").glob("ethos_u_[!d]*.c"))  # not its drivers
    return [Unit(file, compiler) for file in (*kernel_paths(folder), *model)]


def commands(tool: str, unit: Unit) -> list[str]:
    """Return a tool's command line for one file. cppcheck and clang-tidy analyse the host's code only."""
    options = [it for it in unit.compiler[1:] if it.startswith(("-I", "-D"))]
    if tool == "gcc":
        return [*unit.compiler, "-O2", "-fanalyzer", "-S", "-o", "/dev/null", str(unit.file)]
    if tool == "clang-tidy":
        return [tool, "--quiet", f"--checks={CHECKS}", str(unit.file), "--", "-std=c99", *options]
    addon = ["--addon=misra"] if tool == "misra" else ["--enable=warning,style,performance,portability"]
    form = ["--template={file}:{line}: {severity}: {message} [{id}]", "--quiet", "--std=c99"]
    hidden = ["--suppress=missingInclude", "--suppress=unusedStructMember"]
    return ["cppcheck", *addon, *form, *hidden, *options, str(unit.file)]


def findings(tool: str, unit: Unit) -> set[tuple[str, str]]:
    """Return (check, file name) of a tool's findings in one file and its includes.

    Raises OSError if the tool is missing, or fails.
    """
    done = subprocess.run(commands(tool, unit), capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    messages = {
        (check.removeprefix("-W"), Path(file).name)
        for file, checks in FINDING.findall(text)
        for check in checks.split(",")
    }
    if done.returncode and not messages:
        raise OSError(f"{tool} fails on {unit.file}: {text.strip()[:500]}")
    return messages


def unexpected(tool: str, work: Iterable[Unit]) -> tuple[list[str], set[tuple[str, str, str]]]:
    """Return a tool's findings without a deviation; and the deviations that it needed."""
    known, used, left = accepted(), set(), set()
    with ThreadPoolExecutor() as pool:
        results = list(pool.map(lambda unit: findings(tool, unit), work))
    for check, file in set().union(*results):
        matching = {key for key in ((tool, check, file), (tool, check, "*")) if key in known}
        used |= matching
        if not matching:
            left.add(f"{tool} {check} {file}")
    return sorted(left), used


def main() -> int:
    """Run the tools; print new findings."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tools = ["gcc", "cppcheck", "misra", "clang-tidy"]
    parser.add_argument("modes", metavar="TOOL", nargs="*", default=tools)
    parser.add_argument("--only", default="", help="part of the name of a file")
    options = parser.parse_args()
    failed = False
    for mode in options.modes:
        tool = "gcc" if mode == "quick" else mode
        with tempfile.TemporaryDirectory() as folder:
            if mode == "quick":
                work = kernel_units(Path(folder)) + generated_units(Path(folder))
            else:
                work = [it for it in units(Path(folder)) if tool == "gcc" or it.compiler[0] == "gcc"]
            work = [it for it in work if options.only in it.file.name]
            left, used = unexpected(tool, work)
        known = [] if mode == "quick" or options.only else accepted()
        stale = [" ".join(key) for key in known if key[0] == tool and key not in used]
        print(f"{tool}: {len(work)} files, {len(used)} deviations, {len(left)} findings", flush=True)
        for line in left:
            print(f"  found: {line}")
        for line in stale:
            print(f"  not found any more: {line}")
        failed |= bool(left or stale)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
