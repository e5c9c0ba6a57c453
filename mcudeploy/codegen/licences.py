"""The licence of a library: a line in each file, its text, and the library's origin."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from mcudeploy.codegen.folder import Content
from mcudeploy.codegen.render import render
from mcudeploy.common.resources import resource_dir

CODE_LICENCE = "Apache-2.0"
MODEL_LICENCE = "LicenseRef-Model-Owner"
"""The licence of files with a model's numbers: its owner's terms, which mcudeploy does not know."""
EXTENSION_LICENCE = "LicenseRef-Extension-Owner"
"""The licence of files of an extension that state none."""
_KEY = "SPDX-License-Identifier"
_STATED = re.compile(rf"{_KEY}: ([\w .+()-]+?)\s*(?:\*/|$)", re.MULTILINE | re.ASCII)
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


def licence_text(of_extensions: Sequence[str] = ()) -> str:
    """Return the text of LICENSE: the owners of the parts, then the Apache License.

    `of_extensions`: the paths of the files that extensions add.
    """
    return render("LICENSE.j2", of_extensions=of_extensions) + (
        resource_dir("templates").parent / "LICENSE"
    ).read_text("utf-8")


def foreign_text(text: str) -> str:
    """Return the text of a C file of an extension, which states the licence of its owner."""
    return text if _STATED.search(text) else f"/* {_KEY}: {EXTENSION_LICENCE} */\n{text}"


def licence_of(path: str, content: Content = "") -> str:
    """Return the SPDX expression of a file of a library: the one that it states, or that of its kind."""
    stated = _STATED.search(content) if isinstance(content, str) and path.endswith((".c", ".h")) else None
    return stated[1] if stated else MODEL_LICENCE if path.endswith(_MODEL_FILES) else CODE_LICENCE


def _marked(path: str, content: Content) -> Content:
    suffix = PurePosixPath(path).suffix
    if isinstance(content, bytes) or suffix in _NO_COMMENTS or _STATED.search(content):
        return content
    return _COMMENTS[suffix].format(f"{_KEY}: {licence_of(path)}") + "\n" + content
