"""Firmware builds: PlatformIO for boards, the C compiler itself for the host. Results are cached."""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache as memoize
from pathlib import Path
from subprocess import TimeoutExpired

from mcudeploy.boards.board import Board
from mcudeploy.boards.platformio import ASK_S, SETTINGS, is_pio, users_environment
from mcudeploy.boards.trust import require_trusted
from mcudeploy.common.errors import BuildError, DeployError, FitError
from mcudeploy.common.programs import find_program, output_of, python_module
from mcudeploy.common.system.host_tools import (
    HOST_CODE_FLAGS,
    HOST_COMPILERS,
    HOST_LINK_FLAGS,
    install_command,
)
from mcudeploy.ir.isa import Isa
from mcudeploy.toolchain import cache, framework
from mcudeploy.toolchain.board_texts import CONSTANTS
from mcudeploy.toolchain.firmware import CALLS_NAME, Firmware, Sizes, constant_bytes, load, measure, save
from mcudeploy.toolchain.project import Project, SoftEngine, assemble
from mcudeploy.toolchain.tools import ending, run_tool

HOST_FLAGS = (
    *("-std=c99", "-O2", "-g", *HOST_CODE_FLAGS, "-ffp-contract=off"),
    *("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wcast-align=strict", "-Wredundant-decls"),
)
_HOST_DATA_BYTES = 4096
"""Data of a frame on this computer: verification reads and writes all tensors of a model, through a pipe."""
SANITIZE_FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
COMPILER_PACKAGES = {
    "arm-none-eabi": "gcc-arm-none-eabi libnewlib-arm-none-eabi",
    "riscv64-unknown-elf": "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf",
    "host": "gcc",
}
_LOG = logging.getLogger(__name__)
_UNREACHABLE = "HTTPClientError"
"""PlatformIO's word for a registry that does not answer."""
_TIMEOUT_S = 900
_VERSION_S = 20.0
_OVERFLOW = re.compile(r"region [`'](\w+)' overflowed by (\d+) bytes")
_COMPLAINT = re.compile(
    r"^.*(?:\berror: |undefined reference|multiple definition|cannot find -l|memory exhausted|out of memory|"
    r"annot allocate memory).*$",
    re.M,
)
_STATUS = re.compile(r"^\*\*\* \[.*?([^/\]]*)\] Error (-?\d+)$", re.M)
"""SCons's message for a failed compiler: the object file, and the exit status."""


def build_firmware(
    board: Board,
    files: Mapping[str, str],
    kernels: Sequence[str],
    *,
    emulate: bool,
    sanitize: bool = False,
    measurer: bool = True,
    engine: SoftEngine | None = None,
    port_baud: int | None = None,
) -> Firmware:
    """Compile and link generated C `files` (by name) with the board's HAL, the kernels and the measurer.

    `emulate` builds for the board's emulator instead of the hardware. `sanitize` (host only) adds address and
    undefined-behaviour checks. Without `measurer`, `files` contain a main(). Transfers are done by the driver
    of the board's links, by an `engine` in software, or else by the core. `port_baud` is the rate of the
    lines to other boards of a chain.

    Raises FitError if a memory of the board is too small, and BuildError if a tool is missing or fails.
    Raises UsageError if the board has no such form, and ConfigError if it is not trusted.
    """
    require_trusted(board)
    sanitize = sanitize and board.is_host
    project = assemble(
        board,
        files,
        kernels,
        emulate=emulate,
        measurer=measurer,
        engine=engine,
        port_baud=port_baud,
        salt=compiler_facts(board, sanitize),
    )
    compiler = _compiler(board.toolchain)
    entry = cache.lookup(project.name)
    firmware = load(entry, board, project.firmware_hash, project.emulated) if entry else None
    if firmware is None:
        if board.isa is Isa.RVV:
            _require_vectors(board, compiler)
        entry = _build(project, compiler, sanitize)
        firmware = load(entry, board, project.firmware_hash, project.emulated)
    if firmware is None:
        raise BuildError(f"the build in {entry} is damaged: remove that folder and try again")
    return firmware


def firmware_hash(board: Board, files: Mapping[str, str], kernels: Sequence[str], *, emulate: bool) -> int:
    """Return the hash that `build_firmware` would give; build nothing. Raises the same errors."""
    return assemble(board, files, kernels, emulate=emulate, salt=compiler_facts(board)).firmware_hash


def compiler_facts(board: Board, sanitize: bool = False) -> str:
    """Return what a firmware depends on beside its sources: the compiler, its flags, and the framework."""
    compiler = _version(_compiler(board.toolchain))
    flags = f"{' '.join(HOST_FLAGS)} {_HOST_DATA_BYTES}" if board.is_host else ""
    salt = f"{compiler} {sanitize} {flags}"
    if board.framework is not None:
        salt += f" {board.framework.platform} {board.framework.version}"
    return salt


def write_project(project: Project, folder: Path) -> None:
    """Write the project's files; a user can then call `pio run -e <board>` there."""
    for name, text in project.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def _build(project: Project, compiler: str, sanitize: bool) -> Path:
    damaged = cache.exists(project.name)
    with cache.build_folder() as folder:
        sources, ready = folder / "project", folder / "ready"
        write_project(project, sources)
        ready.mkdir()
        if project.board.is_host:
            sizes = _build_host(project, sources, ready, compiler, sanitize)
        elif project.board.framework is not None:
            sizes = _build_framework(project, sources, ready)
        else:
            sizes = _build_board(project, sources, ready)
        save(ready, sizes)
        return cache.store(ready, project.name, replace=damaged)


def _build_board(project: Project, sources: Path, ready: Path) -> Sizes:
    name = project.board.name
    # A private core folder: builds neither wait for each other nor meet other uses of PlatformIO.
    environment = platformio_environment(sources.parent / "core")
    jobs = str(os.cpu_count() or 1)
    command = [*python_module("platformio"), "run", "-d", str(sources), "-e", name, "-j", jobs]
    status, log = run_logged(command, environment, sources)
    elf = sources / ".pio" / "build" / name / "firmware.elf"
    if status != 0 or not elf.is_file():
        raise explain(project, log)
    shutil.copyfile(elf, ready / "firmware.elf")
    calls = sorted(elf.parent.rglob("*.ci"))
    text = "".join(it.read_text("utf-8") for it in calls)
    (ready / CALLS_NAME).write_text(text, encoding="utf-8", newline="\n")
    return measure(elf)


def _build_framework(project: Project, sources: Path, ready: Path) -> Sizes:
    chosen = project.board.framework
    assert chosen is not None
    is_absent = is_pio(project.board.name) and not chosen.version
    if is_absent and not _registry_answers(chosen.platform):
        raise _without_registry(project.board)
    command = framework.run_command(sources, "-j", str(os.cpu_count() or 1))
    status, log = run_logged(command, users_environment(), sources)
    if status != 0 and _UNREACHABLE in log:
        raise _without_registry(project.board)
    if status != 0:
        raise explain(project, log)
    return framework.keep(sources, ready, log, project.board)


def _registry_answers(platform: str) -> bool:
    """Whether PlatformIO's registry knows a platform; PlatformIO itself waits a minute for it."""
    _LOG.warning("asking PlatformIO's registry for %s, for %g s at most", platform, ASK_S)
    command = [*python_module("platformio"), "pkg", "show", platform]
    try:
        return output_of(command, ASK_S, users_environment()) != b""
    except (OSError, TimeoutExpired):
        return False


def _without_registry(board: Board) -> BuildError:
    """Return the error for a platform that is not installed and cannot be fetched."""
    assert board.framework is not None
    platform = board.framework.platform
    return BuildError(
        f"the firmware for {board.name} needs PlatformIO's platform {platform} and its packages, and the "
        f"registry did not answer. Where there is a network, `pio pkg install -g -p {platform}` installs the "
        "platform; `mcudeploy build` with --library-only or --for needs none."
    )


def _build_host(project: Project, sources: Path, ready: Path, compiler: str, sanitize: bool) -> Sizes:
    flags = [*HOST_FLAGS, *(SANITIZE_FLAGS if sanitize else ())]
    defines = [
        f"-DMCUD_DATA_BYTES={_HOST_DATA_BYTES}",
        f"-DMCUD_EMULATED={int(project.emulated)}",
        f"-DMCUD_FIRMWARE_HASH={project.firmware_hash:#010x}u",
        f'-DMCUD_BOARD_NAME="{project.board.name}"',
        *(f"-D{name}={value}" for name, value in project.defines.items()),
    ]
    folders = [f"-I{it}" for it in ("include", "src/generated", "src/kernels", "src/hal", "src/measurer")]
    objects = [f"{name[:-2]}.o" for name in sorted(project.files) if name.endswith(".c")]

    def compile_one(target: str) -> tuple[int, str]:
        source = f"{target[:-2]}.c"
        return run_logged([compiler, *flags, *defines, *folders, "-c", source, "-o", target], None, sources)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = list(pool.map(compile_one, objects))
    log = "".join(text for _, text in results)
    if any(status for status, _ in results):
        raise explain(project, log)
    elf = ready / "firmware.elf"
    link = [compiler, *flags, *HOST_LINK_FLAGS, *objects, "-lm", "-pthread", "-o", str(elf)]
    status, text = run_logged(link, None, sources)
    if status:
        raise explain(project, log + text)
    sizes = measure(elf)
    generated = sources / "src/generated"
    weights = constant_bytes(generated.glob("weights.o"))
    tables = constant_bytes(generated.glob("model.o"))
    return replace(
        sizes, code_bytes=sizes.code_bytes - weights - tables, weights_bytes=weights, tables_bytes=tables
    )


def platformio_environment(core: Path) -> dict[str, str]:
    """Return this process's environment with only our PlatformIO settings, which never use the net."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PLATFORMIO_", "SCONS"))
    }
    return {**environment, "PLATFORMIO_CORE_DIR": str(core), **SETTINGS}


def run_logged(
    command: Sequence[str], environment: Mapping[str, str] | None, folder: Path
) -> tuple[int, str]:
    """Run a tool to its end; return exit status and output. Our interrupt ends it and its children."""
    ended = run_tool(command, _TIMEOUT_S, environment, folder)
    if ended.status is None:
        raise BuildError(f"{command[0]} did not finish within {_TIMEOUT_S} s")
    if ended.status < 0:  # a killed tool prints no reason
        return ended.status, f"{ended.output}error: {command[0]} {ending(ended.status)}\n"
    return ended.status, ended.output


def explain(project: Project, log: str) -> DeployError:
    """Return the error of a failed build: the memory that is too small, or the tool's first complaints."""
    board = project.board
    overflows = _OVERFLOW.findall(log)
    if overflows:
        # The linker repeats a region for every section that no longer fits: the last figure is the total.
        missing = {"flash" if name == CONSTANTS else name: int(count) for name, count in overflows}
        sizes = {"flash": board.flash_bytes} | {it.name: it.bytes for it in board.memories}
        stated = {name: f" ({sizes[name]} B)" if name in sizes else "" for name in missing}
        parts = (f"{name}{stated[name]} is {count} B too small" for name, count in missing.items())
        return FitError(
            f"the firmware does not fit {board.name}: {'; '.join(parts)} "
            f"(at least {board.stack_bytes} B of {board.memories[0].name} are kept for the stack)."
        )
    if board.is_host and "cannot find -lasan" in log:
        return BuildError(
            "this C compiler has no address sanitizer: install its library (libasan), or name another "
            "compiler by the variable CC; on Windows that is Clang of llvm-mingw."
        )
    path = cache.keep_log(project.name, log)
    lines = _COMPLAINT.findall(log)[:5] or _killed(log) or log.strip().splitlines()[-8:]
    excerpt = "\n".join(lines)
    return BuildError(f"the firmware for {board.name} does not build:\n{excerpt}\nlog: {path}")


def _killed(log: str) -> list[str]:
    """Return a line for each compiler that a signal ended, of those that SCons reports."""
    ended = ((name, int(status)) for name, status in _STATUS.findall(log))
    return [f"{name}: the compiler {ending(status)}" for name, status in ended if status < 0 or status > 128]


def compiler_names(toolchain: str) -> tuple[str, ...]:
    """Return the usable C compilers, best first; for the host $CC if it is set."""
    if toolchain != "host":
        return (f"{toolchain}-gcc",)
    chosen = os.environ.get("CC")
    return (chosen,) if chosen else HOST_COMPILERS


def find_compiler(toolchain: str) -> str | None:
    """Return the path of the C compiler; None if there is none on this computer."""
    return next((path for name in compiler_names(toolchain) if (path := find_program(name))), None)


def _compiler(toolchain: str) -> str:
    if toolchain == "platformio":  # which brings its own; the board names its version
        return ""
    path = find_compiler(toolchain)
    if path is None:
        names = " or ".join(compiler_names(toolchain))
        remedy = install_command(COMPILER_PACKAGES[toolchain])
        raise BuildError(f"no C compiler {names} on this computer. Install one: {remedy}")
    if toolchain == "host" and _is_microsofts(path):
        raise BuildError(
            f"{path} is the compiler of MSVC, or uses its libraries, which lack C99 and threads of POSIX. "
            "Put GCC of MinGW-w64 or Clang of llvm-mingw on PATH, or name one by the variable CC: "
            f"{install_command(COMPILER_PACKAGES['host'])}"
        )
    return path


def _is_microsofts(compiler: str) -> bool:
    """Whether a C compiler is cl, has its command line, or builds for its run-time library."""
    return Path(compiler).stem.lower() in ("cl", "clang-cl") or "msvc" in _machine(compiler)


def _require_vectors(board: Board, compiler: str) -> None:
    """Raise BuildError if the compiler or its assembler does not know RISC-V's vectors."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "vectors.c"
        source.write_bytes(b'__asm__("vsetvli t0, a0, e8, m1, ta, ma");\n')
        command = [compiler, *board.cpu_flags, "-c", str(source), "-o", str(source.with_suffix(".o"))]
        status, log = run_logged(command, None, source.parent)
    if status != 0:
        complaints = _COMPLAINT.findall(log)
        raise BuildError(
            f"{board.name} needs a compiler and an assembler for RISC-V's vectors (Zve32x): GCC 12 and "
            f"binutils 2.38, or later. {Path(compiler).name} here is {_version(compiler)}"
            + (f"; it says: {complaints[0]}" if complaints else "")
        )


def compiler_version(board: Board) -> str:
    """Return the first line of the version of a board's compiler, "" if that is not on this computer."""
    return _version(find_compiler(board.toolchain) or "")


@memoize
def _machine(compiler: str) -> str:
    """Return the machine that GCC or Clang builds for, such as x86_64-w64-mingw32."""
    return run_tool([compiler, "-dumpmachine"], _VERSION_S).output.strip()


@memoize
def _version(compiler: str) -> str:
    if not compiler:
        return ""
    return run_tool([compiler, "--version"], _VERSION_S).output.partition("\n")[0]
