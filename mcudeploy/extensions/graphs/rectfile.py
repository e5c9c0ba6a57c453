"""Rectangle files: `id,lower,upper,size` (MiniMalloc's benchmarks), with offsets on output."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcudeploy.common.errors import ConfigError
from mcudeploy.common.files import read_limited, write_file
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.rectangles import Rectangle

_COLUMNS = ("id", "lower", "upper", "size")
_MOST_BYTES = 16 * 2**20
_LARGEST = 1 << 40
"""Larger numbers are not valid bytes or steps, and the search uses 64-bit integers."""


@dataclass(frozen=True, slots=True)
class NamedRectangle:
    """A rectangle and its name in the file."""

    name: str
    rectangle: Rectangle


def read_rectangles(path: Path) -> tuple[NamedRectangle, ...]:
    """Read the rectangles of a file, live in [lower, upper). Raises ConfigError with the first bad line."""
    try:
        text = read_limited(path, _MOST_BYTES).decode("utf-8-sig")
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    header = tuple(cell.strip() for cell in rows[0]) if rows else ()
    if missing := [column for column in _COLUMNS if header.count(column) != 1]:
        raise ConfigError(
            f"{path}: needs each of the columns {','.join(_COLUMNS)} once; see {', '.join(missing)}"
        )
    rectangles: dict[str, NamedRectangle] = {}
    for line, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        where = f"{path}, line {line}"
        if len(row) != len(header):
            raise ConfigError(f"{where} has {len(row)} cells, the header {len(header)}")
        named = _rectangle(dict(zip(header, row, strict=True)), where)
        if named.name in rectangles:
            raise ConfigError(f"{where}: there is an id {named.name} before")
        rectangles[named.name] = named
    return tuple(rectangles.values())


def _rectangle(cells: dict[str, str], where: str) -> NamedRectangle:
    lower, upper, size = (_number(cells[column], column, where) for column in _COLUMNS[1:])
    if upper <= lower:
        raise ConfigError(f"{where}: upper is {upper}, and must be above lower, {lower}")
    if size <= 0:
        raise ConfigError(f"{where}: size is {size}, and must be above 0")
    return NamedRectangle(cells["id"].strip(), Rectangle(size, Interval(lower, upper)))


def _number(text: str, column: str, where: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ConfigError(f"{where}: {column} is {text!r}, which is not a whole number") from None
    if not 0 <= value < _LARGEST:
        raise ConfigError(f"{where}: {column} is {value}, and must be from 0 to below {_LARGEST}")
    return value


def write_offsets(path: Path, rectangles: Sequence[NamedRectangle], offsets: Sequence[int]) -> None:
    """Write the rectangles with a column `offset`, in bytes. Raises OSError if that fails."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*_COLUMNS, "offset"))
    for named, offset in zip(rectangles, offsets, strict=True):
        item = named.rectangle
        writer.writerow((named.name, item.life.lo, item.life.hi, item.size_bytes, offset))
    write_file(path, text.getvalue())
