"""Types of option values: parsed texts, files to read and to write, finite numbers."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rich_click as click

from mcudeploy.common.formats import conversion_hint


class ParsedText(click.ParamType[Any]):
    """A text that a function parses, such as `parse_size`: its ValueError becomes a usage error."""

    def __init__(self, parse: Callable[[str], Any]) -> None:
        self.name = parse.__name__.strip("_").removeprefix("parse_")
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the parsed value."""
        try:
            return value if isinstance(value, tuple) else self._parse(str(value))
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


class InputFile(click.Path):
    """A file to read. With `pipes` it may be a pipe: it is read only once."""

    def __init__(self, *, pipes: bool = False) -> None:
        super().__init__(exists=True, dir_okay=False)
        self._pipes = pipes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; fail with a usage error for a device, a socket, or a missing file."""
        self.require_reachable(value, param, ctx)
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or (self._pipes and stat.S_ISFIFO(mode))):
            self.fail(f"{path} is not a file.", param, ctx)
        return path

    def require_reachable(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> None:
        """Fail with a usage error for a path in a folder that may not be searched."""
        try:
            Path(os.fsdecode(value)).stat()
        except PermissionError as error:
            self.fail(f"{os.fsdecode(value)} cannot be read: {error.strerror}.", param, ctx)
        except (OSError, ValueError):  # click reports it later
            pass


class InputModel(InputFile):
    """A model file."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; for a C file that of its array. Fail with a usage error for a folder; it says how
        to convert one of a known format.
        """
        from mcudeploy.common.c_arrays import model_file

        self.require_reachable(value, param, ctx)
        path = Path(os.fsdecode(value))
        if path.is_dir():
            self.fail(f"{path} is a folder, not a model file{conversion_hint(path)}", param, ctx)
        return model_file(super().convert(value, param, ctx))


class InputData(InputFile):
    """A file or a folder to read."""

    def __init__(self) -> None:
        click.Path.__init__(self, exists=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; fail with a usage error for a device, a socket, a pipe, or a missing path."""
        path = Path(os.fsdecode(click.Path.convert(self, value, param, ctx)))
        return path if path.is_dir() or path.is_file() else self.fail(f"{path} is not a file.", param, ctx)


class NewFile(click.Path):
    """A file to write, in an existing folder: refused before a long search, not after it."""

    def __init__(self, *endings: str) -> None:
        super().__init__(dir_okay=False, writable=True)
        self._endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; fail with a usage error if no file can be written there."""
        if "\0" in str(value):
            self.fail("a path has no NUL characters.", param, ctx)
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if path.is_dir():
            self.fail(f"{path} is a folder.", param, ctx)
        if self._endings and path.suffix.lower() not in self._endings:
            self.fail(f"it is written as {' or '.join(self._endings)}, not as {path.name}.", param, ctx)
        if path.is_symlink() and not path.exists():
            self.fail(f"{path} is a link to {str(path.readlink())!r}, which does not exist.", param, ctx)
        if path.exists() and not path.is_file():  # a device or a pipe
            return path
        folder = Path(os.path.realpath(path)).parent
        if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
            self.fail(f"{folder} is not a folder that files can be written to.", param, ctx)
        return path


class NewFolder(click.Path):
    """A folder to write files to, created if missing: refused before a long search, not after it."""

    def __init__(self) -> None:
        super().__init__(file_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; fail with a usage error if the folder is missing and cannot be created."""
        if not str(value) or "\0" in str(value):
            self.fail(f"{str(value)!r} names no folder.", param, ctx)
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if path.is_symlink() and not path.exists():
            self.fail(f"{path} is a link to {str(path.readlink())!r}, which does not exist.", param, ctx)
        there = next(it for it in (path, *path.absolute().parents) if it.exists())
        if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
            self.fail(f"{there} is not a folder that files can be written to.", param, ctx)
        return path


class Finite(click.FloatRange):
    """A finite number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; fail with a usage error for NaN, infinity and other text."""
        try:
            number = float(value)
        except (TypeError, ValueError):
            self.fail(f"{value!r} is not a number.", param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return float(super().convert(number, param, ctx))
