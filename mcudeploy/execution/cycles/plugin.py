"""Plugins that count inside QEMU, compiled on demand; arguments and results of the plugin counts.c."""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mcudeploy.common.errors import BuildError, ConfigError, ProtocolError
from mcudeploy.common.resources import cache_dir, cache_fault
from mcudeploy.common.system.host_tools import PLUGIN_FLAGS, install_command
from mcudeploy.ir.interval import Interval
from mcudeploy.toolchain.emulator import qemu_version
from mcudeploy.toolchain.firmware_build import COMPILER_PACKAGES, find_compiler, run_logged

Words = np.ndarray[tuple[int], np.dtype[np.uint64]]
Table = np.ndarray[tuple[int, int], np.dtype[np.uint64]]
SOURCE = Path(__file__).with_name("counts.c")
HEADER = Path(__file__).with_name("qemu_api.h")
FLAGS = ("-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra")


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of a stretch of execution.

    By address: the executions of an instruction, and those not followed by the next one in memory. By the
    number of a region: the bytes loaded from it, and stored to it; the last region is all other addresses.
    """

    executed: Counter[int] = field(default_factory=Counter)
    not_followed: Counter[int] = field(default_factory=Counter)
    loaded: Counter[int] = field(default_factory=Counter)
    stored: Counter[int] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        """Add the counts of another stretch of execution."""
        self.executed.update(other.executed)
        self.not_followed.update(other.not_followed)
        self.loaded.update(other.loaded)
        self.stored.update(other.stored)

    @property
    def total(self) -> int:
        """All executed instructions."""
        return self.executed.total()


def plugin_arguments(
    qemu: str, begin: int, end: int, out: Path, regions: Sequence[Interval] = ()
) -> tuple[str, ...]:
    """Return QEMU's arguments: count from each execution of `begin` to the next of `end`, write to `out`.

    With `regions` loads and stores are counted too, each for the first region that contains its address.
    Raises BuildError if the plugin cannot be compiled.
    """
    watched = (f"region={it.lo:#x}-{it.hi:#x}" for it in regions)
    return load_arguments(SOURCE, qemu, out, (f"begin={begin:#x}", f"end={end:#x}", *watched))


def load_arguments(source: Path, qemu: str, out: Path, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return QEMU's arguments that load a plugin, with its `arguments`; it writes to `out`.

    Raises BuildError if its source cannot be compiled.
    """
    # A comma ends a value on QEMU's command line; two stand for one comma.
    plugin = build_plugin(_interface(qemu), source)
    values = (f"file={plugin}", *arguments, f"out={out}")
    return "-plugin", ",".join(value.replace(",", ",,") for value in values)


def require_plugins() -> None:
    """Raise BuildError if no plugin for QEMU can be compiled on this system."""
    if PLUGIN_FLAGS is None:
        raise BuildError(
            "cycles are counted by a plugin of QEMU, and plugins for Windows are linked to QEMU's sources: "
            "run with --objective instructions and without --timing, or on Linux (in WSL)"
        )


def build_plugin(interface: int, source: Path = SOURCE) -> Path:
    """Return a plugin for a version of QEMU's interface, cached or compiled. Raises BuildError."""
    require_plugins()
    compiler = find_compiler("host")
    if compiler is None:
        raise BuildError(
            "counting compiles a plugin for QEMU, and this computer has no C compiler: "
            f"{install_command(COMPILER_PACKAGES['host'])}"
        )
    flags = (*FLAGS, *(PLUGIN_FLAGS or ()), f"-DQEMU_API={interface}")
    text = source.read_bytes() + HEADER.read_bytes() + " ".join((compiler, *flags)).encode()
    key = hashlib.sha256(text).hexdigest()[:20]
    path = cache_dir() / "plugins" / f"{source.stem}-{key}.so"
    if path.is_file():
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="tmp-", dir=path.parent) as folder:
            plugin = Path(folder) / "plugin.so"
            line = [compiler, *flags, "-I", str(HEADER.parent), "-o", str(plugin), str(source)]
            status, log = run_logged(line, None, path.parent)
            if status:
                raise BuildError(f"the plugin for QEMU does not compile:\n{log.strip()}")
            plugin.replace(path)  # whole or not at all, even with concurrent compilers
    except OSError as error:
        raise ConfigError(cache_fault(error, path)) from error
    return path


def read_windows(path: Path, with_one_of: Sequence[int] = ()) -> Iterator[Counts]:
    """Yield the windows that the plugin wrote, in the order of time.

    With addresses, only windows that executed one of them. Raises ProtocolError for a truncated file.
    """
    words = np.fromfile(path, dtype=np.uint64)
    at = 0
    while at < words.size:
        seen, at = _table(words, at, 3)
        memory, at = _table(words, at, 2)
        if with_one_of and not np.isin(seen[:, 0], with_one_of).any():
            continue
        executed, accessed = seen.tolist(), memory.tolist()
        yield Counts(
            Counter({address: count for address, count, _ in executed}),
            Counter({address: left for address, _, left in executed if left}),
            Counter({region: loaded for region, (loaded, _) in enumerate(accessed) if loaded}),
            Counter({region: stored for region, (_, stored) in enumerate(accessed) if stored}),
        )


def _table(words: Words, at: int, width: int) -> tuple[Table, int]:
    """Return rows of `width` words, preceded by their number, and the position after them."""
    rows = int(words[at]) if at < words.size else 1
    table = words[at + 1 : at + 1 + width * rows]
    if table.size != width * rows:
        raise ProtocolError("the counts of the emulator are incomplete: it was stopped early")
    return table.reshape(-1, width), at + 1 + width * rows


def _interface(qemu: str) -> int:
    """Return the version of the plugin interface to request: 2 since QEMU 9.0, before it 1."""
    return 2 if 9 <= qemu_version(qemu) < math.inf else 1
