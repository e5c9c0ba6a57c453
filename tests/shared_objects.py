"""Objects of programs for the host, which the tests of a run share: most have the same kernels."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_INCLUDE = re.compile(r'^\s*#\s*include\s+"(?:.*/)?([^"/]+)"', re.MULTILINE)

Run = Callable[[Sequence[str], Mapping[str, str] | None, Path], tuple[int, str]]


@dataclass(frozen=True, slots=True)
class SharedObjects:
    """Runs tools as `run` does, but takes the object of a known source from a folder.

    An object is known by the compiler, its flags, the text of the source and that of all project headers that
    it includes. Of the macros of the command line only those count that the text names: the hash of the
    firmware is another for each program, and few sources have it.
    """

    folder: Path
    run: Run

    def __call__(
        self, command: Sequence[str], environment: Mapping[str, str] | None, folder: Path
    ) -> tuple[int, str]:
        if "-Isrc/kernels" not in command:
            return self.run(command, environment, folder)
        target = folder / command[-1]
        stored = self.folder / f"{_key(command, folder)}.o"
        if stored.exists():
            shutil.copyfile(stored, target)
            return 0, ""
        status, log = self.run(command, environment, folder)
        if status == 0 and not log:
            part = stored.with_suffix(f".{os.getpid()}-{target.stem}")
            shutil.copyfile(target, part)
            part.replace(stored)
        return status, log


def _key(command: Sequence[str], folder: Path) -> str:
    text = _text(folder / command[command.index("-c") + 1], folder)
    defines = (it.removeprefix("-D").partition("=")[0] for it in command)
    flags = [it for it, name in zip(command, defines, strict=True) if not it.startswith("-D") or name in text]
    return hashlib.sha256("\0".join([*flags, text]).encode()).hexdigest()


def _text(source: Path, folder: Path) -> str:
    """The text of a source, and of all headers of the project with the names that it includes."""
    headers = sorted(folder.rglob("*.h"))
    texts: dict[Path, str] = {}
    pending = [source]
    while pending:
        path = pending.pop()
        if path not in texts:
            texts[path] = path.read_text("utf-8")
            names = set(_INCLUDE.findall(texts[path]))
            pending += (it for it in headers if it.name in names)
    return "\0".join(texts.values())
