"""What the values of options may be: sizes, limits for memories, files to write, finite numbers."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import rich_click as click

from mcudeploy.config import parse_limit, parse_size


class Size(click.ParamType[int]):
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


class NewFile(click.Path):
    """A file to write, in a folder that is there: known before a long search, not after it."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path; a usage error where no file can be written."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if path.is_dir():
            self.fail(f"{path} is a folder.", param, ctx)
        if not (os.access(path, os.W_OK) or os.access(path.parent, os.W_OK | os.X_OK)):
            self.fail(f"{path.parent} is no folder that files can be written to.", param, ctx)
        return path


class Finite(click.FloatRange):
    """A number in a range; NaN and infinity are none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; a usage error for anything else."""
        number = float(super().convert(value, param, ctx))
        return (
            number if math.isfinite(number) else self.fail(f"{value!r} is not a finite number.", param, ctx)
        )
