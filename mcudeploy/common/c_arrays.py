"""Models as C arrays: a model.cc, a header, or what xxd -i writes."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path

from mcudeploy.common.errors import ModelError
from mcudeploy.common.files import read_limited
from mcudeploy.common.text import printable

_ENDINGS = frozenset({".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".inc", ".ino"})
_MOST_BYTES = 64 * 2**20
_HEAD_BYTES = 4096
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_ARRAY = re.compile(r"\{([\s0-9a-fA-FxXuUlL,+-]*)\}")
_NUMBER = re.compile(r"([+-]?)(0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]*")
_NAME = re.compile(r"(\w+)\s*(?:\[[^\]]*\][^={]*)?=?\s*\Z")
_BEFORE = 200
"""Characters before an array in which its name is looked for."""
_TFLITE, _ONNX = b"TFL3", b"\x08"
"""The identifier of TFLite, at byte 4, and the first byte of an ONNX file."""
_LEAST, _MOST_ARRAYS = 32, 1000
"""Bytes of the smallest array that counts, and the number of arrays that are read."""


def model_file(path: Path) -> Path:
    """Return the path of a model: of a C file, that of a temporary file with its array.

    Raises ModelError for a C file in which no array is a model, or several arrays are.
    """
    text = _text_of(path)
    arrays = {} if text is None else _arrays(text)
    if not arrays and path.suffix.lower() not in _ENDINGS:
        return path
    models = {name: content for name, content in arrays.items() if _ending_of(content)}
    if not models:
        sizes = ", ".join(f"{printable(name)} ({len(content):,} B)" for name, content in arrays.items())
        others = f"Its arrays are {sizes[:400]}" if sizes else f"It has no array of {_LEAST} bytes or more"
        raise ModelError(
            f"{path}: no array of this C file is a model of TFLite, which has TFL3 at byte 4, or of ONNX. "
            f"{others}"
        )
    contents = set(models.values())
    if len(contents) > 1:
        names = ", ".join(map(printable, models))
        raise ModelError(f"{path}: the arrays {names} are models: leave one of them in the file")
    (content,) = contents
    folder = tempfile.mkdtemp(prefix="mcudeploy-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    result = Path(folder, path.name.split(".")[0] + _ending_of(content))
    result.write_bytes(content)
    return result


def _text_of(path: Path) -> str | None:
    """The text of a regular file that is not large; None for other files."""
    with suppress(OSError, ValueError):
        if not path.is_file():
            return None
        with path.open("rb") as stream:
            if b"\0" in stream.read(_HEAD_BYTES):
                return None
        return read_limited(path, _MOST_BYTES).decode("utf-8", "replace")
    return None


def _arrays(text: str) -> dict[str, bytes]:
    """The arrays of bytes, by name."""
    plain = _COMMENT.sub(" ", text)
    result: dict[str, bytes] = {}
    for match in islice(_ARRAY.finditer(plain), _MOST_ARRAYS):
        content = _bytes_of(match[1])
        if content and len(content) >= _LEAST:
            name = _NAME.search(plain[max(0, match.start() - _BEFORE) : match.start()])
            result[name[1] if name else f"number {len(result)}"] = content
    return result


def _bytes_of(body: str) -> bytes | None:
    """The bytes of an initializer; None if it has something else."""
    try:
        return bytes(map(_byte, body.rstrip().rstrip(",").split(",")))
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def _byte(item: str) -> int:
    """The byte of a number in C, which is negative in a signed array. Raises ValueError for another text."""
    number = _NUMBER.fullmatch(item.strip())
    if number is None:
        raise ValueError(item)
    digits = number[2]
    octal = digits.startswith("0") and digits.isdigit()
    value = int(digits, 8 if octal else 0)
    if number[1] == "-":
        value = -value
    return value + 256 if -128 <= value < 0 else value


def _ending_of(content: bytes) -> str:
    """The ending of a model's file; "" if the content is not a model."""
    if content[4:8] == _TFLITE:
        return ".tflite"
    return ".onnx" if content.startswith(_ONNX) else ""
