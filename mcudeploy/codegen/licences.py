"""The licence of a library: a line in each file, its text, and the library's origin."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from mcudeploy.codegen.folder import Content
from mcudeploy.codegen.render import render
from mcudeploy.common.resources import resource_dir

CODE_LICENCE = "Apache-2.0"
MODEL_LICENCE = "LicenseRef-Model-Owner"
"""The licence of files with a model's numbers: its owner's terms, which mcudeploy does not know."""
_KEY = "SPDX-License-Identifier"
_MODEL_FILES = ("_weights.c", "_weights.h", "_selftest.c")
_BLOCK, _HASH, _SLASHES, _SEMICOLON, _MARKUP = "/* {} */", "# {}", "// {}", "; {}", "<!-- {} -->"
_COMMENTS = {
    **dict.fromkeys((".c", ".h", ".S", ".ld"), _BLOCK),
    **dict.fromkeys((".cpp", ".ino", ".rs"), _SLASHES),
    **dict.fromkeys((".txt", ".cmake", ".toml", ".yml", ".yaml", ".conf", ".properties", ".py", ""), _HASH),
    ".ini": _SEMICOLON,
    ".md": _MARKUP,
}
_NO_COMMENTS = (".json",)


def licensed(files: Mapping[str, Content]) -> dict[str, Content]:
    """Return the texts with an SPDX line at their beginning, if their format has comments.

    Raises KeyError for an unknown format.
    """
    return {path: _marked(path, content) for path, content in files.items()}


def licence_text() -> str:
    """Return the text of LICENSE: the owners of the parts, then the Apache License."""
    return render("LICENSE.j2") + (resource_dir("templates").parent / "LICENSE").read_text("utf-8")


def licence_of(path: str) -> str:
    """Return the SPDX expression of a file of a library."""
    return MODEL_LICENCE if path.endswith(_MODEL_FILES) else CODE_LICENCE


def _marked(path: str, content: Content) -> Content:
    suffix = PurePosixPath(path).suffix
    if isinstance(content, bytes) or suffix in _NO_COMMENTS or _KEY in content[:200]:
        return content
    return _COMMENTS[suffix].format(f"{_KEY}: {licence_of(path)}") + "\n" + content
