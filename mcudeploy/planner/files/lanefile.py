"""The core tapes in a plan file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Lane, Sync, WorkSlice

Offset = Annotated[int, Field(ge=0, lt=2**32)]
Rows = Annotated[int, Field(ge=1, lt=2**32)]


class FileModel(BaseModel):
    """An object of a plan file with exactly these keys and types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SliceModel(FileModel):
    """A slice of an entry of the tape: rows from and to; columns from and to of a single row."""

    entry: Offset
    rows: tuple[Offset, Offset]
    columns: tuple[Offset, Rows] | None = None


class WaitModel(FileModel):
    """A wait before an entry of the tape, until a core has completed a number of slices."""

    entry: Offset
    core: Offset
    parts: Rows


def _kind(entry: object) -> str:
    """Return the kind of an entry of a tape, by its keys."""
    is_wait = "parts" in entry if isinstance(entry, dict) else isinstance(entry, WaitModel)
    return "wait" if is_wait else "part"


EntryModel = Annotated[
    Annotated[SliceModel, Tag("part")] | Annotated[WaitModel, Tag("wait")], Discriminator(_kind)
]


def lane_entry(entry: WorkSlice | Sync) -> SliceModel | WaitModel:
    """Convert an entry of a core's tape to its form in a plan file."""
    if isinstance(entry, Sync):
        return WaitModel(entry=entry.entry, core=entry.core, parts=entry.parts)
    columns = None if entry.columns is None else (entry.columns.lo, entry.columns.hi)
    return SliceModel(entry=entry.entry, rows=(entry.rows.lo, entry.rows.hi), columns=columns)


def lane_of(entries: Sequence[SliceModel | WaitModel]) -> Lane:
    """Return the tape of a core. Raises ValueError for rows or columns that end before they begin."""
    return tuple(
        Sync(each.entry, each.core, each.parts)
        if isinstance(each, WaitModel)
        else WorkSlice(
            each.entry, Interval(*each.rows), None if each.columns is None else Interval(*each.columns)
        )
        for each in entries
    )
