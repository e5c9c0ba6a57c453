"""The C name of a model, which its files and functions bear."""

from __future__ import annotations

import re

from mcudeploy.codegen.kernelfiles import source_index
from mcudeploy.common.errors import UsageError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)
_RECORD = re.compile(r"(t|s|p|in|op|on)[0-9]*(_.*)?")
"""Prefixes of generated records, each followed by the name of a tensor or an operator."""
_C_KEYWORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile
    while
"""
_SYSTEM_HEADERS = """
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg
    stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype
    alloca byteswap elf endian error fcntl features getopt libgen machine malloc memory newlib poll pthread
    reent regex sched search semaphore spawn strings syslog termios unistd values
"""
_CMAKE_TARGETS = "all clean help install package test"
"""Targets that CMake's generators reserve."""


def c_identifier(text: str) -> str:
    """Return a lower-case C identifier derived from any text."""
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:40].rstrip("_")
    if not name or not name[0].isalpha():
        name = f"model_{name}".rstrip("_")
    return name


def model_name(wish: str | None, stem: str) -> str:
    """Return the C name of a model and its files: the user's name, or one derived from the file's name.

    Raises UsageError if the user's name is not an identifier, or is taken; a file's name then gets a prefix.
    """
    if wish is None:
        identifier = c_identifier(stem)
        return f"model_{identifier}" if _why_taken(identifier) else identifier
    if not _NAME.fullmatch(wish):
        raise UsageError(
            f"--name {wish!r} is not a name in C: a letter from A to Z, then letters, digits, _ and -"
        )
    identifier = c_identifier(wish)
    if identifier != wish.lower().replace("-", "_"):
        limit = "longer than 40 characters" if len(wish) > 40 else "not a plain name"
        raise UsageError(f"--name {wish!r} is {limit}. Choose another, such as {identifier}")
    reason = _why_taken(identifier)
    if reason:
        raise UsageError(
            f"--name {wish!r}: {identifier} is {reason}. Choose another, such as model_{identifier}"
        )
    return identifier


def _why_taken(name: str) -> str:
    """Return why the files and functions of a model cannot have this name, empty if they can."""
    if name in _C_KEYWORDS.split():
        return "a keyword of C"
    if name in _SYSTEM_HEADERS.split():
        return f"the C library's header {name}.h"
    if name in _CMAKE_TARGETS.split():
        return "a target that CMake reserves"
    if _RECORD.fullmatch(name):
        return "a prefix of records"
    if name.startswith("mcud") or f"{name}.c" in source_index() or f"{name}.h" in source_index():
        return "a file or a prefix of the runtime"
    return ""
