"""Templates to texts. The only importer of jinja2."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mcudeploy.codegen.ctext import comment_text
from mcudeploy.common.resources import resource_dir


def fill(template: str, **values: object) -> str:
    """Fill a template; a missing value is an error."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(resource_dir("templates")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # In C, every string of a model has passed ctext.
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
    )
    environment.filters["comment"] = comment_text
    return environment
