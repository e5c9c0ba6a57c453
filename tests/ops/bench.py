"""The bench firmware for the host: every kernel of firmware/kernels, under address and UB sanitizers.

Each source is compiled separately and cached by a hash of its dependencies. A kernel that does not compile
fails only the tests that need it, with the compiler's message.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mcudeploy.codegen.bench import bench_sources
from mcudeploy.codegen.kernelfiles import kernel_paths, printed_sources, source_folders, source_index
from mcudeploy.common.extension_code import kernels_in
from mcudeploy.common.resources import resource_dir
from mcudeploy.device.session import Session
from mcudeploy.device.tile import KernelTable
from mcudeploy.device.transport import ProcessTransport
from mcudeploy.toolchain.firmware_build import HOST_FLAGS, SANITIZE_FLAGS
from tests.shared_objects import QUICK_FLAGS, locked

_FLAGS = (*HOST_FLAGS, *QUICK_FLAGS, "-Werror")
_DEFINES = ("-DMCUD_DATA_BYTES=32768", '-DMCUD_BOARD_NAME="host"', "-DMCUD_FIRMWARE_HASH=0x12345678")
_ASAN = "detect_leaks=0"


@dataclass(frozen=True, slots=True)
class BenchFirmware:
    """An executable, its kernels in the order of its table, and why some kernels are not in it."""

    path: Path
    kernels: tuple[str, ...]
    broken: dict[str, str]


@dataclass(frozen=True, slots=True)
class Compiler:
    """Compiles single sources against the headers of the firmware, and caches the objects."""

    folder: Path
    base: tuple[str, ...]
    common: str
    kernels: list[Path]
    """The files of all kernels of the project."""

    @classmethod
    def of(cls, flags: Sequence[str], config: str, kernels: Path | None = None) -> Compiler:
        """With these flags; `config` is the text of mcud_config.h, `kernels` a folder of further headers."""
        firmware = resource_dir("firmware")
        folder = Path(tempfile.gettempdir()) / f"mcudeploy-bench-{os.getuid()}"
        folder.mkdir(exist_ok=True)
        printed = folder / f"printed-{_digest([source.text for source in printed_sources()])}"
        printed.mkdir(exist_ok=True)
        own_kernels = kernel_paths(printed)
        includes = [*source_folders(), printed, firmware / "measurer", *([kernels] if kernels else [])]
        headers = sorted(header for include in includes for header in include.glob("*.h"))
        common = _digest([*flags, *_FLAGS, *_DEFINES, config, *(header.read_text() for header in headers)])
        generated = folder / f"include-{_digest([config])}"
        generated.mkdir(exist_ok=True)
        _replace(generated / "mcud_config.h", config)
        base = ("gcc", *flags, *_FLAGS, *_DEFINES, *(f"-I{path}" for path in (generated, *includes)))
        return cls(folder, base, common, own_kernels)

    def compiled(self, source: Path, text: str) -> Path | str:
        """The object of a source with this text, or the compiler's complaint."""
        wanted = self.folder / f"{source.stem}-{_digest([self.common, text])}.o"
        if wanted.exists():
            return wanted
        with locked(wanted):
            if wanted.exists():
                return wanted
            part = wanted.with_suffix(f".{os.getpid()}")
            command = [*self.base, "-x", "c", "-c", str(source), "-o", str(part)]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode:
                return result.stderr
            part.replace(wanted)
            return wanted

    def all_compiled(self, sources: Mapping[Path, str]) -> dict[Path, Path | str]:
        """Objects of several sources and their texts."""
        with ThreadPoolExecutor(2) as pool:
            return dict(zip(sources, pool.map(self.compiled, sources, sources.values()), strict=True))


def build_bench(
    arena_bytes: int = 1 << 24, flags: Sequence[str] = SANITIZE_FLAGS, kernels: Path | None = None
) -> BenchFirmware:
    """Build the bench, or take it from the cache; `kernels` is a folder of other kernels than the
    project's.
    """
    firmware = resource_dir("firmware")
    compiler = Compiler.of(flags, bench_sources(["none"], arena_bytes)["mcud_config.h"], kernels)
    sources = sorted(kernels.glob("*.c")) if kernels else compiler.kernels
    kernel_files = {path: path.read_text() for path in sources}
    fixed_files = [
        *sorted((firmware / "measurer").glob("*.c")),
        *(firmware / "hal" / name for name in ("host/host.c", "host/threads.c", "one_unit.c")),
        *sorted((firmware / "hal" / "ethos_u").glob("ethos_u_[!d]*.c")),  # the model, not the driver
    ]
    if kernels is not None:
        fixed_files.append(source_index()["mcud_tape.c"].path)
    objects = compiler.all_compiled(kernel_files)
    fixed = compiler.all_compiled({path: path.read_text() for path in fixed_files})
    broken, names = {}, []
    for path, object_file in objects.items():
        own_kernels = kernels_in(kernel_files[path])
        if isinstance(object_file, str):
            broken.update(dict.fromkeys(own_kernels or (path.stem,), object_file))
        else:
            names += own_kernels
    text = bench_sources(names, arena_bytes)["deployed.c"]
    deployed = compiler.folder / f"deployed-{_digest([text])}.c"
    _replace(deployed, text)
    linked = [
        *(object_file for object_file in objects.values() if isinstance(object_file, Path)),
        *fixed.values(),
    ]
    linked.append(compiler.compiled(deployed, text))
    for object_file in linked:
        if isinstance(object_file, str):
            raise RuntimeError(f"the measurer does not compile:\n{object_file}")
    path = compiler.folder / f"bench-{_digest([str(object_file) for object_file in linked])}"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}")
        subprocess.run(["gcc", *flags, "-no-pie", *map(str, linked), "-lm", "-o", str(part)], check=True)
        part.replace(path)
    return BenchFirmware(path, tuple(sorted(names)), broken)


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _replace(path: Path, text: str) -> None:
    """Write a file so that another process never sees half of it."""
    part = path.with_suffix(f".{os.getpid()}.new")
    part.write_text(text)
    part.replace(path)


class Machine:
    """The bench process; a new one is started if the last one has ended (a sanitizer's report)."""

    def __init__(self, firmware: BenchFirmware) -> None:
        self.firmware = firmware
        self._session: Session | None = None
        self._kernels: KernelTable | None = None
        atexit.register(self.stop)

    @property
    def session(self) -> Session:
        if self._session is None:
            self._session = Session(ProcessTransport([self.firmware.path], {"ASAN_OPTIONS": _ASAN}))
        return self._session

    def kernels(self, needed: str) -> KernelTable:
        if needed not in self.firmware.kernels:
            why = self.firmware.broken.get(needed, f"no void mcud_{needed}(const mcud_op *, ...) anywhere")
            raise AssertionError(f"kernel {needed} is not in the bench firmware: {why}")
        if self._kernels is None:
            self._kernels = KernelTable.of(self.session, self.firmware.kernels)
        return self._kernels

    def stop(self) -> None:
        if self._session is not None:
            self._session.close()
        self._session = self._kernels = None


@cache
def machine() -> Machine:
    """The bench process of this test process."""
    return Machine(build_bench())
