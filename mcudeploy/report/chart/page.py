"""A drawing as a page: the SVG below a table of facts, in one file without links."""

from __future__ import annotations

from mcudeploy.report.chart.drawing import Drawing
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
