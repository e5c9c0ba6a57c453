"""Python values as C99 text. All text from a model passes through here or is a checked identifier."""

from __future__ import annotations

import re

import numpy as np

from mcudeploy.codegen.kernelfiles import source_index
from mcudeploy.common.errors import UsageError
from mcudeploy.ir.opdef import ConstantArray

_C_TYPES = {
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "float32": "float",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
}
_PER_LINE = {"int8": 16, "int16": 12, "int32": 8, "float32": 6, "uint16": 14, "uint32": 8}
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


def c_type(array: ConstantArray) -> str:
    """Return the element type of a constant array."""
    return _C_TYPES[array.dtype.name]


def c_int(value: int) -> str:
    """Return a literal of type int; the least int32 needs an expression."""
    return "-2147483647 - 1" if value == -(2**31) else str(value)


def c_float(value: float) -> str:
    """Return the shortest text that converts back to this float32: a literal, or a macro for infinity.

    Raises ValueError for NaN.
    """
    single = np.float32(value)
    if np.isnan(single):
        raise ValueError(f"{value} has no literal in C")
    if np.isinf(single):
        return "INFINITY" if single > 0 else "-INFINITY"
    text = np.format_float_positional(single, unique=True, trim="0")
    if len(text) > 16:
        text = np.format_float_scientific(single, unique=True, trim="0")
    return f"{text}f"


def c_elements(array: ConstantArray) -> list[str]:
    """Return the elements of an array, a few to a line, without the final comma."""
    flat = array.ravel()
    if array.dtype == np.float32:
        texts = [c_float(float(value)) for value in flat]
    elif array.dtype.kind == "u":
        texts = [f"{int(value)}u" for value in flat]
    else:
        texts = [c_int(int(value)) for value in flat]
    width = _PER_LINE[array.dtype.name]
    return [", ".join(texts[i : i + width]) for i in range(0, len(texts), width)]


def c_identifier(text: str) -> str:
    """Return a lower-case C identifier derived from any text."""
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:40].rstrip("_")
    if not name or not name[0].isalpha():
        name = f"model_{name}".rstrip("_")
    return name


def model_name(given: str | None, stem: str) -> str:
    """Return the C name of a model and its files: the user's name, or one derived from the file's name.

    Raises UsageError if the user's name is no identifier or is taken; a file's name then gets a prefix.
    """
    if given is None:
        made = c_identifier(stem)
        return f"model_{made}" if _taken(made) else made
    if not _NAME.fullmatch(given):
        raise UsageError(
            f"--name {given!r} is no name in C: a letter from A to Z, then letters, digits, _ and -"
        )
    made = c_identifier(given)
    if made != given.lower().replace("-", "_"):
        limit = "longer than 40 characters" if len(given) > 40 else "no plain name"
        raise UsageError(f"--name {given!r} is {limit}. Choose another, such as {made}")
    reason = _taken(made)
    if reason:
        raise UsageError(f"--name {given!r}: {made} is {reason}. Choose another, such as model_{made}")
    return made


def _taken(name: str) -> str:
    """Return why the files and functions of a model cannot have this name, empty if they can."""
    if name in _C_KEYWORDS.split():
        return "a keyword of C"
    if name in _SYSTEM_HEADERS.split():
        return f"the C library's header {name}.h"
    if name in _CMAKE_TARGETS.split():
        return "a target that CMake reserves"
    if _RECORD.fullmatch(name):
        return "a prefix of records"
    if name.startswith("mcud") or name in {path.stem for path in source_index().values()}:
        return "a file or a prefix of the runtime"
    return ""


def comment_text(text: str) -> str:
    """Return text that is safe in a C comment: printable ASCII that neither ends it nor continues a line.

    A slash stays: without an asterisk, which never does, it ends nothing.
    """
    return re.sub(r"[^A-Za-z0-9 ._+/-]", "_", text)[:80]
