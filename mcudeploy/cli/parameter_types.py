"""What the values of options may be: sizes, limits for memories, files to write, finite numbers."""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path
from typing import Any

import rich_click as click

from mcudeploy.cli.config import parse_cores, parse_limit, parse_shape, parse_size
from mcudeploy.common.formats import way_in


class SizeType(click.ParamType[int]):
    """A number of bytes: 49152, 96k, 64KiB, 1M."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes from text; a usage error for anything else."""
        try:
            return parse_size(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Limit(click.ParamType[tuple[str, int]]):
    """A memory and the bytes that an arena may take there: sram=64k, psram=0."""

    name = "limit"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Name and bytes from text; a usage error for anything else."""
        try:
            return value if isinstance(value, tuple) else parse_limit(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Cores(click.ParamType[int]):
    """A number of cores; 0 for `auto`."""

    name = "cores"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Raises BadParameter for what is neither a number above 0 nor `auto`."""
        try:
            return parse_cores(value)
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


class Percent(click.ParamType[float]):
    """A share above 0: 25%, 12.5%."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number before the sign; a usage error for anything else."""
        text = str(value).strip()
        try:
            number = float(text.removesuffix("%")) if text.endswith("%") else math.nan
        except ValueError:
            number = math.nan
        if not 0 < number < math.inf:
            self.fail(f"{value!r} is not a percentage above 0, such as 25%.", param, ctx)
        return number


class InputFile(click.Path):
    """A file to read; with `pipes` it may also come through one: it is read only once."""

    def __init__(self, *, pipes: bool = False) -> None:
        super().__init__(exists=True, dir_okay=False)
        self._pipes = pipes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path; a usage error for a device, a socket, or a file that is not there."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or (self._pipes and stat.S_ISFIFO(mode))):
            self.fail(f"{path} is not a file.", param, ctx)
        return path


class InputModel(InputFile):
    """A model file."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path; a usage error with the way in for a folder of another format."""
        path = Path(os.fsdecode(value))
        if path.is_dir():
            self.fail(f"{path} is a folder, not a model file{way_in(path)}", param, ctx)
        return super().convert(value, param, ctx)


class InputData(InputFile):
    """A file or a folder to read."""

    def __init__(self) -> None:
        click.Path.__init__(self, exists=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path; a usage error for a device, a socket, a pipe, or what is not there."""
        path = Path(os.fsdecode(click.Path.convert(self, value, param, ctx)))
        return path if path.is_dir() or path.is_file() else self.fail(f"{path} is no file.", param, ctx)


class InputShape(click.ParamType[tuple[str, tuple[int, ...]]]):
    """An input and its shape: input=1,3,96,96."""

    name = "shape"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[int, ...]]:
        """Name and sizes from text; a usage error for anything else."""
        if isinstance(value, tuple):
            return value
        try:
            return parse_shape(str(value))
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


class NewFile(click.Path):
    """A file to write, in a folder that is there: known before a long search, not after it."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path; a usage error where no file can be written."""
        if "\0" in str(value):
            self.fail("a path has no NUL characters.", param, ctx)
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if path.is_dir():
            self.fail(f"{path} is a folder.", param, ctx)
        if path.exists() and not path.is_file():  # a device or a pipe
            return path
        folder = Path(os.path.realpath(path)).parent
        if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
            self.fail(f"{folder} is no folder that files can be written to.", param, ctx)
        return path


class NewFolder(click.Path):
    """A folder to write files to, which can be made: known before a long search, not after it."""

    def __init__(self) -> None:
        super().__init__(file_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path; a usage error where there is no folder and none can be made."""
        if not str(value) or "\0" in str(value):
            self.fail(f"{str(value)!r} names no folder.", param, ctx)
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        there = next(it for it in (path, *path.absolute().parents) if it.exists())
        if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
            self.fail(f"{there} is no folder that files can be written to.", param, ctx)
        return path


class Finite(click.FloatRange):
    """A number in a range; NaN and infinity are none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; a usage error for anything else."""
        number = float(super().convert(value, param, ctx))
        return (
            number if math.isfinite(number) else self.fail(f"{value!r} is not a finite number.", param, ctx)
        )
