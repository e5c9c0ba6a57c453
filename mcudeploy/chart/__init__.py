"""Pictures of a plan: what lies where in each arena, step by step."""

from __future__ import annotations

from pathlib import Path

from mcudeploy.chart.drawing import Drawing, draw
from mcudeploy.chart.page import html_page
from mcudeploy.chart.svg import svg_picture
from mcudeploy.errors import UsageError
from mcudeploy.files import write_file

_FORMATS = {".svg": svg_picture, ".html": html_page}


def require_format(path: Path) -> None:
    """Raises UsageError for a file name that says neither SVG nor HTML."""
    if path.suffix.lower() not in _FORMATS:
        raise UsageError(f"a chart is written as .svg or .html, not as {path.name}")


def save(drawing: Drawing, path: Path) -> None:
    """Writes a picture in the format of the file's ending. Raises UsageError, or OSError."""
    require_format(path)
    write_file(path, _FORMATS[path.suffix.lower()](drawing))


__all__ = ["Drawing", "draw", "html_page", "require_format", "save", "svg_picture"]
