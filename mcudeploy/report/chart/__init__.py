"""Pictures of a plan: the content of each arena, step by step."""

from __future__ import annotations

from pathlib import Path

from mcudeploy.common.errors import UsageError
from mcudeploy.common.files import write_file
from mcudeploy.report.chart.drawing import Drawing, draw
from mcudeploy.report.chart.page import html_page
from mcudeploy.report.chart.svg import svg_picture

_FORMATS = {".svg": svg_picture, ".html": html_page}


def save(drawing: Drawing, path: Path) -> None:
    """Write a picture in the format of the file's ending. Raises UsageError, or OSError."""
    if path.suffix.lower() not in _FORMATS:
        raise UsageError(f"a chart is written as .svg or .html, not as {path.name}")
    write_file(path, _FORMATS[path.suffix.lower()](drawing))


__all__ = ["Drawing", "draw", "html_page", "save", "svg_picture"]
