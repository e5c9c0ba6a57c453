"""HTML pages from templates: every value except `Markup` is escaped, and no page loads anything."""

from __future__ import annotations

import base64
import hashlib
import json

from markupsafe import Markup

from mcudeploy.codegen.render import render
from mcudeploy.common.resources import resource_dir


def render_page(name: str, **values: object) -> str:
    """Return the page of `<name>.html.j2`, with report.css and report.js in it.

    Its policy allows only that script, pictures in the page itself, and nothing from elsewhere.
    """
    folder = resource_dir("templates")
    style, script = ((folder / f"report.{kind}").read_text("utf-8") for kind in ("css", "js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    known = {"style": Markup(style), "script": Markup(script), "policy": policy}
    return render(f"{name}.html.j2", **known, **values)


def trusted(text: str) -> Markup:
    """Mark text as HTML; text from a model in it is already escaped."""
    return Markup(text)


def as_data(value: object) -> Markup:
    """Return JSON that is safe in a script element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
