"""Pictures of a plan: the content of each arena, step by step."""

from __future__ import annotations

from pathlib import Path

from mcudeploy.common.errors import UsageError
from mcudeploy.common.files import write_file
from mcudeploy.report.chart.drawing import Drawing, draw
from mcudeploy.report.chart.svg import safe, svg_picture

_STYLE = """\
:root { color-scheme: light dark; }
body { margin: 1.5rem auto; max-width: 100rem; padding: 0 1rem; background: #fff; color: #1f2328;
  font: 15px/1.45 system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif; }
table { border-collapse: collapse; margin: 0 0 1rem 4rem; }
th { text-align: left; font-weight: 400; color: #59636e; padding: 0.1rem 1.5rem 0.1rem 0; }
td { font-variant-numeric: tabular-nums; }
svg { width: 100%; height: auto; }
@media (prefers-color-scheme: dark) {
  body { background: #0d1117; color: #e6edf3; } th { color: #9198a1; }
}"""


def html_page(drawing: Drawing) -> str:
    """Return the drawing as an HTML document."""
    rows = (f"<tr><th>{safe(name)}</th><td>{safe(value)}</td></tr>" for name, value in drawing.facts)
    parts = (
        "<!DOCTYPE html>",
        '<html lang="en">',
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        '<meta name="generator" content="mcudeploy">',
        f"<title>{safe(drawing.model)} on {safe(drawing.board)}</title>",
        f"<style>\n{_STYLE}\n</style></head>",
        "<body>",
        "<table>",
        *rows,
        "</table>",
        svg_picture(drawing).rstrip(),
        "</body></html>",
        "",
    )
    return "\n".join(parts)


_FORMATS = {".svg": svg_picture, ".html": html_page}


def save(drawing: Drawing, path: Path) -> None:
    """Write a picture in the format of the file's ending. Raises UsageError, or OSError."""
    if path.suffix.lower() not in _FORMATS:
        raise UsageError(f"a chart is written as .svg or .html, not as {path.name}")
    write_file(path, _FORMATS[path.suffix.lower()](drawing))


__all__ = ["Drawing", "draw", "html_page", "save", "svg_picture"]
