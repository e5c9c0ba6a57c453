"""Requirements and whether they are installed: every failed check names the command that mends it."""

from __future__ import annotations

import importlib.metadata
import re
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import list_boards
from mcudeploy.common import fast
from mcudeploy.common.errors import UsageError
from mcudeploy.common.resources import cache_dir, resource_dir
from mcudeploy.common.system.host_tools import install_command
from mcudeploy.common.system.serial_ports import JOIN_PORTS, in_group_of_ports
from mcudeploy.extension import added, built_in_extensions, disagreement, foreign_candidates
from mcudeploy.toolchain.emulator import QEMU_PACKAGES
from mcudeploy.toolchain.firmware_build import COMPILER_PACKAGES, compiler_names, find_compiler
from mcudeploy.toolchain.flash_tools import TOOLS
from mcudeploy.toolchain.flashing import installed
from mcudeploy.toolchain.ports import list_serial_ports
from mcudeploy.toolchain.tools import run_tool

_TOOL_S = 20.0
_PLATFORMIO = {"platformio": "platformio", "scons": "scons for platformio"}
"""Packages that only firmware for boards needs, by the names of their checks."""
_LIBC = {
    "arm-none-eabi": ("newlib (nano)", "nano.specs", "libnewlib-arm-none-eabi"),
    "riscv64-unknown-elf": ("picolibc", "picolibc.specs", "picolibc-riscv64-unknown-elf"),
}
Use = Literal["always", "hardware", "emulator", "debugging", "speed"]
"""The purpose that a check is needed for."""


@dataclass(frozen=True, slots=True)
class Check:
    """One requirement: whether it is met, the version or path, and its remedy (empty when ok)."""

    name: str
    ok: bool
    found: str
    remedy: str
    use: Use = "always"


def lacking(results: Sequence[Check]) -> list[Check]:
    """Return the failed checks without which no program can run. The checks of hardware and of the emulator
    count only if neither is complete.
    """
    failed = [check for check in results if not check.ok]
    always = [check for check in failed if check.use == "always"]
    ways = [[check for check in failed if check.use == use] for use in ("hardware", "emulator")]
    complete = any(
        not missing and any(check.use == use for check in results)
        for use, missing in zip(("hardware", "emulator"), ways, strict=True)
    )
    return always if complete else [*always, *ways[0], *ways[1]]


def checks(board: Board | None = None) -> list[Check]:
    """Check everything mcudeploy needs: for one board, or for all of them."""
    boards = (board,) if board is not None else list_boards()
    return list(_checks(boards))


def versions() -> list[tuple[str, str]]:
    """Return the installed tools that results depend on, with their versions."""
    packages = ("onnxruntime", "onnx", "numpy", "platformio")
    tools = [*(compiler_names(it)[0] for it in COMPILER_PACKAGES), *QEMU_PACKAGES]
    known = [("Python", _python().found), *((name, _installed(name) or "") for name in packages)]
    known += [(tool, _output([tool, "--version"]) or "") for tool in tools]
    return [(name, version) for name, version in known if version]


def _checks(boards: tuple[Board, ...]) -> Iterator[Check]:
    yield _python()
    requirements = _requirements()
    yield _packages([it for name, it in requirements.items() if name not in _PLATFORMIO])
    yield from _fast()
    yield _cache()
    if any(not it.is_host for it in boards):
        for package, name in _PLATFORMIO.items():
            yield _package(name, package, requirements.get(package, package))
    for toolchain in sorted({it.toolchain for it in boards if not it.facts_only}):
        yield from _toolchain(toolchain)
    emulators = [it.emulator for it in boards if it.emulator is not None]
    for qemu in sorted({it.qemu for it in emulators}):
        emulator = _emulator(qemu, {it.machine for it in emulators if it.qemu == qemu})
        yield replace(emulator, use="emulator")
    if len(boards) == 1:
        for unit in added("unit") if boards[0].npu is not None else ():
            for package, requirement in unit.packages.items():
                yield _package(package, package, requirement)
        yield from _facts_only(boards[0])
        yield from _links(boards[0])
        yield from _framework(boards[0])
    flashed = [it for it in boards if it.flashers and not it.facts_only]
    if flashed:
        yield from _flashers(flashed)
    if any(it.framework is None for it in flashed):
        gdb = _tool("gdb-multiarch", "gdb-multiarch", install_command("gdb-multiarch"))
        yield replace(gdb, use="debugging")
    if flashed:
        yield replace(_serial_ports(), use="hardware")
    yield from _extensions()


def _extensions() -> Iterator[Check]:
    """Check that what extensions add can be imported; those that come with mcudeploy are listed only."""
    for own in built_in_extensions():
        yield Check(f"extension {own.name}", True, f"built-in: {', '.join(own.additions)}", "")
    for origin, it in foreign_candidates():
        if isinstance(it, UsageError):
            yield Check(f"extension {origin}", False, str(it), f"correct or uninstall {origin}")
        elif fault := it.fault():
            yield Check(f"extension {it.name}", False, str(fault), f"correct {it.home}")
        else:
            yield Check(f"extension {it.name}", True, f"{origin}: {', '.join(it.additions)}", "")
    if fault := disagreement():
        yield Check("extensions together", False, str(fault), "use one of them")


def _flashers(boards: list[Board]) -> Iterator[Check]:
    """Check that one of the flashers of each board is installed."""
    for flashers in dict.fromkeys(it.flashers for it in boards):
        names_installed = [it.tool for it in flashers if installed(it)]
        names = " or ".join(it.tool for it in flashers)
        for_boards = ", ".join(it.name for it in boards if it.flashers == flashers)
        remedy = "" if names_installed else TOOLS[flashers[0].tool].install
        state = ", ".join(names_installed) or f"none of {names}"
        yield Check(f"flasher of {for_boards}", bool(names_installed), state, remedy, "hardware")


def _facts_only(board: Board) -> Iterator[Check]:
    """Check a board that programs are built for but cannot run on."""
    if board.facts_only:
        state = "nothing can be run: its file has facts of the chip only"
        yield Check("firmware", False, state, f"mcudeploy build MODEL --board {board.name}", "hardware")


def _links(board: Board) -> Iterator[Check]:
    for link in board.links:
        driver = link.source or "the application brings the driver"
        yield Check(f"transfers by {link.engine}", True, f"{', '.join(link.memories)} ({driver})", "")


def _framework(board: Board) -> Iterator[Check]:
    if board.framework is not None:
        name, version = board.framework.platform, board.framework.version
        remedy = "" if version else f"{sys.executable} -m platformio pkg install -g -p {name}"
        yield Check(f"platform {name}", bool(version), version or "not installed", remedy)


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    ok = sys.version_info >= (3, 11)
    return Check("python", ok, version, "" if ok else install_command("python3.11 python3.11-venv"))


def _requirements() -> dict[str, str]:
    """Return the declared requirements of mcudeploy, by package: installed, or in a checkout."""
    try:
        stated = importlib.metadata.requires("mcudeploy") or []
    except importlib.metadata.PackageNotFoundError:
        file = resource_dir("boards").parent / "pyproject.toml"
        text = file.read_text(encoding="utf-8") if file.is_file() else "project.dependencies = []"
        stated = tomllib.loads(text)["project"]["dependencies"]
    return {re.split(r"[^\w.-]", it, maxsplit=1)[0]: it for it in stated if ";" not in it}


def _packages(requirements: list[str]) -> Check:
    missing = [it for it in requirements if not _satisfied(it)]
    if not missing:
        return Check("python packages", True, f"all {len(requirements)}", "")
    return Check("python packages", False, f"missing: {', '.join(missing)}", _pip(*missing))


def _fast() -> Iterator[Check]:
    """Yield checks of the packages without which searches take longer or prove less, with the cost."""
    for name, cost in fast.COSTS.items():
        missing = name in fast.lacking()
        state = f"not installed: {cost}" if missing else _installed(name) or "installed"
        yield Check(name, not missing, state, _pip(name) if missing else "", "speed")


def _package(name: str, package: str, requirement: str) -> Check:
    ok = _satisfied(requirement)
    return Check(name, ok, _installed(package) or "not installed", "" if ok else _pip(requirement))


def _satisfied(requirement: str) -> bool:
    """Whether the package of `name>=1.2,<2` is installed in a version within these bounds."""
    name, *bounds = re.split(r"(?=[<>])|,", requirement)
    installed_version = _installed(name.strip())
    if installed_version is None:
        return False
    version = _release(installed_version)
    return all(
        version >= _release(bound) if bound.startswith(">=") else version < _release(bound)
        for bound in filter(None, bounds)
    )


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _cache() -> Check:
    folder = cache_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return Check("build cache", True, str(folder), "")
    except OSError as error:
        remedy = "export MCUDEPLOY_CACHE_DIR=/a/folder/that/can/be/written"
        return Check("build cache", False, f"{folder}: {error.strerror}", remedy)


def _toolchain(toolchain: str) -> Iterator[Check]:
    if toolchain == "platformio":  # PlatformIO brings its compilers
        return
    packages = COMPILER_PACKAGES[toolchain].split()
    first = compiler_names(toolchain)[0]
    compiler = find_compiler(toolchain) or first
    if toolchain == "host":
        yield _tool("C compiler", compiler, install_command(f"{packages[0]} libc6-dev"))
        return
    yield _tool(first, compiler, install_command(packages[0]))
    name, specs, package = _LIBC[toolchain]
    # GCC prints the bare name back for a file it cannot find.
    path = _output([compiler, f"-print-file-name={specs}"]) or specs
    ok = Path(path).is_absolute() and Path(path).exists()
    yield Check(name, ok, path if ok else "not installed", "" if ok else install_command(package))


def _emulator(qemu: str, machines: set[str]) -> Check:
    remedy = install_command(QEMU_PACKAGES[qemu])
    check = _tool(qemu, qemu, remedy)
    if not check.ok:
        return check
    known = {line.split(" ", 1)[0] for line in (_output([qemu, "-M", "help"], whole=True) or "").splitlines()}
    missing = sorted(machines - known)
    if missing:
        state = f"{check.found}, without machine {', '.join(missing)}"
        return Check(qemu, False, state, f"{remedy}  # 7.2 or newer")
    return check


def _serial_ports() -> Check:
    name = "serial port permission"
    ports = [it for it in list_serial_ports() if it.usb_id]
    closed = [it.name for it in ports if not it.allowed]
    member, remedy = in_group_of_ports(), f"{JOIN_PORTS}  # then log in again"
    if closed:
        return Check(name, False, f"no access to {', '.join(closed)}", remedy)
    if not ports and not member:
        return Check(name, False, "no port attached; you are not in the group dialout", remedy)
    return Check(name, True, ", ".join(it.name for it in ports) or "no port attached", "")


def _tool(name: str, program: str, remedy: str) -> Check:
    version = _output([program, "--version"])
    return Check(name, version is not None, version or "not installed", "" if version is not None else remedy)


def _output(command: list[str], *, whole: bool = False) -> str | None:
    """Return a tool's output, or its first line; None if it does not run."""
    try:
        ended = run_tool(command, _TOOL_S)
    except OSError:
        return None
    text = ended.output.strip()
    if ended.status != 0:
        return None
    if whole:
        return text
    lines = text.splitlines()
    return next((line for line in lines if ": warning: " not in line), text.partition("\n")[0])


def _installed(package: str) -> str | None:
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
    return version if re.match(r"\d", version) else None


def _pip(*requirements: str) -> str:
    return shlex.join((sys.executable, "-m", "pip", "install", *requirements))
