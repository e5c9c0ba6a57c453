"""Objects of programs, which the tests of a run share: most programs have the same kernels."""

from __future__ import annotations

import hashlib
import json
import os
import re
import runpy
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from mcudeploy.common.system.locks import lock_file
from mcudeploy.toolchain.firmware_build import SANITIZE_FLAGS

QUICK_FLAGS = ("-Og", "-g1")
"""Flags with which GCC compiles sanitized code in a third of the time of -O2 -g;
reports of the sanitizers keep their lines.
"""

_INCLUDE = re.compile(r'^\s*#\s*include\s+"(?:.*/)?([^"/]+)"', re.MULTILINE)
_FOLDERS = ("include", "src", "src/kernels", "src/hal", "src/measurer", "src/generated")

Run = Callable[[Sequence[str], Mapping[str, str] | None, Path], tuple[int, str]]


@dataclass(frozen=True, slots=True)
class SharedObjects:
    """Runs tools as `run` does, but takes the object of a known source from a folder.

    PlatformIO needs two seconds for a program of known objects: for `platformio run` the compiler runs here,
    with the same flags. Programs that it does not build here are left to PlatformIO, and those of
    tests/targets/test_build.py.

    An object is known by the compiler, its flags, the text of the source and that of all project headers that
    it includes. Of the macros of the command line only those count that the text names: the hash of the
    firmware is another for each program, and few sources have it.

    `quick`: host programs under sanitizers are compiled with QUICK_FLAGS.
    """

    folder: Path
    run: Run
    quick: bool = True

    def __call__(
        self, command: Sequence[str], environment: Mapping[str, str] | None, folder: Path
    ) -> tuple[int, str]:
        if "platformio" in command and (folder / "platform/builder/flags.py").exists():
            built = self._program(command[command.index("-e") + 1], folder)
            return (0, "") if built else self.run(command, environment, folder)
        if "-Isrc/kernels" not in command:
            return self.run(command, environment, folder)
        return self._object(command, environment, folder)

    def _object(
        self, command: Sequence[str], environment: Mapping[str, str] | None, folder: Path
    ) -> tuple[int, str]:
        target = folder / command[-1]
        if self.quick and SANITIZE_FLAGS[0] in command:
            command = [*command[:-4], *QUICK_FLAGS, *command[-4:]]
        stored = self.folder / f"{_key(command, folder)}.o"
        with locked(stored):
            if stored.exists():
                for suffix in _suffixes(command):
                    shutil.copyfile(stored.with_suffix(suffix), target.with_suffix(suffix))
                return 0, ""
            status, log = self.run(command, environment, folder)
            if status == 0 and not log:
                for suffix in _suffixes(command):  # the object last: where it is, the others are
                    part = stored.with_suffix(f".{os.getpid()}-{target.stem}{suffix}")
                    shutil.copyfile(target.with_suffix(suffix), part)
                    part.replace(stored.with_suffix(suffix))
            return status, log

    def _program(self, board: str, folder: Path) -> bool:
        """Build a board's firmware.elf where PlatformIO would; False if a tool says anything."""
        build = json.loads((folder / "boards" / f"{board}.json").read_text("utf-8"))["build"]
        flags = _Flags()
        runpy.run_path(str(folder / "platform/builder/flags.py"))["apply"](flags, build)
        defines = [f"-D{name}={value}" for name, value in flags.values["CPPDEFINES"]]
        includes = [f"-I{it}" for it in _FOLDERS]
        compiler = f"{build['mcud']['toolchain']}-gcc"
        c_flags = [*flags.values["CFLAGS"], *flags.values["CCFLAGS"], "-fcallgraph-info=su"]
        at = Path(".pio/build") / board

        def compile_one(source: Path) -> tuple[int, str]:
            target = at / source.with_suffix(".o")
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            kind = (
                c_flags if source.suffix == ".c" else [*flags.values["ASFLAGS"], *flags.values["ASPPFLAGS"]]
            )
            line = [compiler, *kind, *defines, *includes, "-c", str(source), "-o", str(target)]
            return self._object(line, None, folder)

        sources = [it.relative_to(folder) for it in sorted(folder.glob("src/**/*.[cS]"))]
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            if any(status or log for status, log in pool.map(compile_one, sources)):
                return False
        objects = [str(at / it.with_suffix(".o")) for it in sources]
        libraries = [f"-l{it}" for it in flags.values["LIBS"]]
        link = [
            compiler,
            "-o",
            str(at / "firmware.elf"),
            "-T",
            "linker/mcudeploy.ld",
            *flags.values["LINKFLAGS"],
        ]
        link += [*objects, "-Llinker", "-Wl,--start-group", *libraries, "-Wl,--end-group"]
        return self.run(link, None, folder)[0] == 0


@dataclass(frozen=True, slots=True)
class _Flags:
    """Stands for SCons's environment, to which platform/builder/flags.py appends."""

    values: dict[str, list[Any]] = field(default_factory=dict)

    def Append(self, **values: list[Any]) -> None:  # noqa: N802
        self.values.update(values)

    def StringifyMacro(self, text: str) -> str:  # noqa: N802
        return f'"{text}"'


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process and thread at a time make the file; the others wait and find it."""
    with path.with_suffix(".lock").open("w") as file:
        while not lock_file(file.fileno()):
            time.sleep(0.02)
        yield


def _suffixes(command: Sequence[str]) -> tuple[str, ...]:
    """The files beside an object, and the object."""
    calls = "-fcallgraph-info=su" in command
    return (".ci", ".o") if calls else (".o",)


def _key(command: Sequence[str], folder: Path) -> str:
    text = _text(folder / command[command.index("-c") + 1], folder)
    defines = (it.removeprefix("-D").partition("=")[0] for it in command[:-1])
    flags = [
        it for it, name in zip(command, defines, strict=False) if not it.startswith("-D") or name in text
    ]
    return hashlib.sha256("\0".join([*flags, text]).encode()).hexdigest()


def _text(source: Path, folder: Path) -> str:
    """The text of a source, and of all headers of the project with the names that it includes."""
    headers = _headers(folder)
    texts: dict[Path, str] = {}
    pending = [source]
    while pending:
        path = pending.pop()
        if path not in texts:
            texts[path] = path.read_text("utf-8")
            for name in sorted(set(_INCLUDE.findall(texts[path]))):
                pending += headers.get(name, ())
    return "\0".join(texts.values())


@lru_cache(maxsize=4)
def _headers(folder: Path) -> Mapping[str, Sequence[Path]]:
    """The headers of a project, which is complete when its first source is compiled, by name."""
    headers: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*.h")):
        headers.setdefault(path.name, []).append(path)
    return headers
