"""Rectangle files: `id,lower,upper,size` (MiniMalloc's benchmarks), with `offset` once they are placed.

Two more columns may state constraints: `alignment` of the offset in bytes; rectangles with one `stack` lie in
sequence, as the rows of an image that the application fills.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcudeploy.common.errors import ConfigError
from mcudeploy.common.files import read_limited, write_file
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.rectangles import PlacementProblem, Rectangle

_COLUMNS = ("id", "lower", "upper", "size")
_CONSTRAINTS = ("alignment", "stack")
_MOST_BYTES = 16 * 2**20
_LARGEST = 1 << 40
"""Numbers of bytes and steps are smaller, since the search uses 64-bit integers."""


@dataclass(frozen=True, slots=True)
class NamedRectangle:
    """A rectangle with its name in the file, its stack ("" for none), and its offset, if stated."""

    name: str
    rectangle: Rectangle
    stack: str = ""
    offset: int | None = None


def problem_of(named: Sequence[NamedRectangle]) -> PlacementProblem:
    """Return the placement problem of rectangles. Raises ValueError for a stack with an empty live range."""
    stacks: dict[str, list[int]] = {}
    for at, it in enumerate(named):
        if it.stack:
            stacks.setdefault(it.stack, []).append(at)
    return PlacementProblem(tuple(it.rectangle for it in named), tuple(map(tuple, stacks.values())))


def read_rectangles(path: Path) -> tuple[NamedRectangle, ...]:
    """Read the rectangles of a file, live in [lower, upper). Raises ConfigError with the first bad line."""
    try:
        text = read_limited(path, _MOST_BYTES).decode("utf-8-sig")
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    header = tuple(cell.strip() for cell in rows[0]) if rows else ()
    for column in (*_COLUMNS, *_CONSTRAINTS, "offset"):
        if header.count(column) > 1:
            raise ConfigError(f"{path} has two columns {column}")
        if column in _COLUMNS and column not in header:
            raise ConfigError(f"{path} needs the columns {','.join(_COLUMNS)}: {column} is missing")
    rectangles: dict[str, NamedRectangle] = {}
    for line, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        where = f"{path}, line {line}"
        if len(row) != len(header):
            raise ConfigError(f"{where} has {len(row)} cells, the header {len(header)}")
        named = _rectangle(dict(zip(header, row, strict=True)), where)
        if named.name in rectangles:
            raise ConfigError(f"{where}: an earlier line has the id {named.name}")
        rectangles[named.name] = named
    return tuple(rectangles.values())


def _rectangle(cells: dict[str, str], where: str) -> NamedRectangle:
    lower, upper, size = (_number(cells[column], column, where) for column in _COLUMNS[1:])
    alignment, offset = (
        _number(cells[column], column, where) if cells.get(column, "").strip() else None
        for column in ("alignment", "offset")
    )
    if upper <= lower:
        raise ConfigError(f"{where}: upper is {upper}, and must be above lower, {lower}")
    for column, value in (("size", size), ("alignment", alignment)):
        if value is not None and value <= 0:
            raise ConfigError(f"{where}: {column} is {value}, and must be above 0")
    rectangle = Rectangle(size, Interval(lower, upper), alignment or 1)
    return NamedRectangle(cells["id"].strip(), rectangle, cells.get("stack", "").strip(), offset)


def _number(text: str, column: str, where: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ConfigError(f"{where}: {column} is {text!r}, which is not a whole number") from None
    if not 0 <= value < _LARGEST:
        raise ConfigError(f"{where}: {column} is {value}, and must be from 0 to below {_LARGEST}")
    return value


def write_rectangles(path: Path, rectangles: Sequence[NamedRectangle]) -> None:
    """Write rectangles with their offsets, and a column for each kind of constraint. Raises OSError."""
    cells = [
        {
            "id": named.name,
            "lower": named.rectangle.life.lo,
            "upper": named.rectangle.life.hi,
            "size": named.rectangle.size_bytes,
            "alignment": named.rectangle.alignment,
            "stack": named.stack,
            "offset": named.offset,
        }
        for named in rectangles
    ]
    stated = [
        name for name, usual in (("alignment", 1), ("stack", "")) if any(row[name] != usual for row in cells)
    ]
    columns = [*_COLUMNS, *stated, "offset"]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(cells)
    write_file(path, text.getvalue())
