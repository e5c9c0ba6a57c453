"""What must be installed, and whether it is: every check with the command that mends it."""

from __future__ import annotations

import grp
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mcudeploy.board import Board, list_boards
from mcudeploy.targets.build import COMPILER_PACKAGES
from mcudeploy.targets.cache import cache_dir
from mcudeploy.targets.emulator import QEMU_PACKAGES
from mcudeploy.targets.flashing import OPENOCD_REMEDY

PYTHON_PACKAGES = (
    *("onnx", "onnxruntime", "numpy", "jinja2", "pyserial"),
    *("click", "rich", "rich-click", "pydantic", "pyelftools"),
)
_PLATFORMIO = "platformio>=6.1.18,<7"
_SCONS = "scons>=4.11.1,<4.12"
_LIBC = {
    "arm-none-eabi": ("newlib (nano)", "nano.specs", "libnewlib-arm-none-eabi"),
    "riscv64-unknown-elf": ("picolibc", "picolibc.specs", "picolibc-riscv64-unknown-elf"),
}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is needed: whether it is there, what was found, and what mends it (empty when ok)."""

    name: str
    ok: bool
    found: str
    remedy: str


def checks(board: Board | None = None) -> list[Check]:
    """Everything mcudeploy needs: for one board, or for all of them."""
    boards = (board,) if board is not None else list_boards()
    return list(_checks(boards))


def _checks(boards: tuple[Board, ...]) -> Iterator[Check]:
    yield _python()
    yield _packages()
    yield _cache()
    if any(not it.is_host for it in boards):
        yield _distribution("platformio", "platformio", "6.", _PLATFORMIO)
        yield _distribution("scons for platformio", "scons", "4.11.", _SCONS)
    for toolchain in sorted({it.toolchain for it in boards}):
        yield from _toolchain(toolchain)
    emulators = [it.emulator for it in boards if it.emulator is not None]
    for qemu in sorted({it.qemu for it in emulators}):
        yield _emulator(qemu, {it.machine for it in emulators if it.qemu == qemu})
    if any(it.openocd is not None for it in boards):
        yield _tool("openocd", "openocd", OPENOCD_REMEDY)
        yield _tool("gdb-multiarch", "gdb-multiarch", "sudo apt-get install gdb-multiarch")
        yield _serial_ports()


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    ok = sys.version_info >= (3, 11)
    return Check("python", ok, found, "" if ok else "sudo apt-get install python3.11 python3.11-venv")


def _packages() -> Check:
    missing = [name for name in PYTHON_PACKAGES if _installed(name) is None]
    if not missing:
        return Check("python packages", True, f"all {len(PYTHON_PACKAGES)}", "")
    return Check("python packages", False, f"missing: {', '.join(missing)}", _pip(*missing))


def _distribution(name: str, package: str, version: str, requirement: str) -> Check:
    found = _installed(package)
    ok = found is not None and found.startswith(version)
    return Check(name, ok, found or "not installed", "" if ok else _pip(f"'{requirement}'"))


def _cache() -> Check:
    folder = cache_dir()
    existing = next((it for it in (folder, *folder.absolute().parents) if it.exists()), Path("/"))
    ok = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    remedy = "export MCUDEPLOY_CACHE_DIR=/a/folder/that/can/be/written"
    return Check("build cache", ok, str(folder), "" if ok else remedy)


def _toolchain(toolchain: str) -> Iterator[Check]:
    packages = COMPILER_PACKAGES[toolchain].split()
    if toolchain == "host":
        chosen = os.environ.get("CC")
        name = next((it for it in ([chosen] if chosen else ["cc", "gcc", "clang"]) if shutil.which(it)), "cc")
        yield _tool("C compiler", name, f"sudo apt-get install {packages[0]} libc6-dev")
        return
    compiler = f"{toolchain}-gcc"
    yield _tool(compiler, compiler, f"sudo apt-get install {packages[0]}")
    name, specs, package = _LIBC[toolchain]
    # GCC prints the bare name back for a file it cannot find.
    path = _output([compiler, f"-print-file-name={specs}"]) or specs
    ok = Path(path).is_absolute() and Path(path).exists()
    yield Check(name, ok, path if ok else "not installed", "" if ok else f"sudo apt-get install {package}")


def _emulator(qemu: str, machines: set[str]) -> Check:
    remedy = f"sudo apt-get install {QEMU_PACKAGES[qemu]}"
    check = _tool(qemu, qemu, remedy)
    if not check.ok:
        return check
    known = {line.split(" ", 1)[0] for line in (_output([qemu, "-M", "help"], whole=True) or "").splitlines()}
    missing = sorted(machines - known)
    if missing:
        found = f"{check.found}, without machine {', '.join(missing)}"
        return Check(qemu, False, found, f"{remedy}  # 7.2 or newer")
    return check


def _serial_ports() -> Check:
    name = "serial port permission"
    ports = sorted(Path("/dev").glob("ttyACM*")) + sorted(Path("/dev").glob("ttyUSB*"))
    closed = [str(it) for it in ports if not os.access(it, os.R_OK | os.W_OK)]
    member = os.geteuid() == 0 or _in_group("dialout")
    remedy = 'sudo usermod -aG dialout "$USER"  # then log in again'
    if closed:
        return Check(name, False, f"no access to {', '.join(closed)}", remedy)
    if not ports and not member:
        return Check(name, False, "no port attached; you are not in the group dialout", remedy)
    return Check(name, True, ", ".join(map(str, ports)) or "no port attached", "")


def _in_group(name: str) -> bool:
    try:
        return grp.getgrnam(name).gr_gid in os.getgroups()
    except KeyError:
        return False


def _tool(name: str, program: str, remedy: str) -> Check:
    version = _output([program, "--version"])
    return Check(name, version is not None, version or "not installed", "" if version is not None else remedy)


def _output(command: list[str], *, whole: bool = False) -> str | None:
    """A tool's output, or its first line; None when it does not run."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = done.stdout.decode("utf-8", errors="replace").strip()
    if done.returncode:
        return None
    return text if whole else text.partition("\n")[0]


def _installed(package: str) -> str | None:
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
    return version if re.match(r"\d", version) else None


def _pip(*requirements: str) -> str:
    return f"{sys.executable} -m pip install {' '.join(requirements)}"
