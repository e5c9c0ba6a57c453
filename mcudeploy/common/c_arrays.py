"""Models as C arrays: a model.cc, a header, or what xxd -i writes."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

from mcudeploy.common.errors import SHOWN_PATHS, ModelError
from mcudeploy.common.files import read_limited
from mcudeploy.common.text import count_text, printable

_ENDINGS = frozenset({".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".inc", ".ino"})
_MOST_BYTES = 64 * 2**20
_HEAD_BYTES = 4096
_CHARACTER = r"'(?:[^'\\\n]|\\[^\n][0-9a-fA-F]*)'"
_STRING = r'"(?:[^"\\\n]|\\.)*+"'
_TEXT = re.compile(rf"{_STRING}|{_CHARACTER}", re.DOTALL)
_COMMENT = re.compile(rf"{_STRING}|{_CHARACTER}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_DIRECTIVE = re.compile(r"\s*#\s*(if|el|endif)\w*(.*)")
_ELSE = {"0": "", "1": "never", "never": "never"}
"""The condition of a branch after one with the condition 0, 1 or never."""
_ARRAY = re.compile(
    rf"""\{{((?:[^{{}};"']++|{_STRING}|{_CHARACTER}|["'])*+)(\}}?)|=\s*((?:{_STRING}\s*)++)""", re.DOTALL
)
"""An initializer in braces, up to what none contains; or a string."""
_ELEMENT = re.compile(rf"""((?:[^,"']++|{_STRING}|{_CHARACTER}|["'])*+)(?:,|\Z)""", re.DOTALL)
_CAST = re.compile(r"(?:static_cast<[\w\s:]+>|\(\s*[A-Za-z_][\w\s:]*\)|[(\s])*")
_NUMBER = re.compile(r"([+-]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)[uUlL]*")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]+)|([0-7]{1,3})|(.))", re.DOTALL)
_ESCAPED = {**dict(zip("abtnvfr", map(chr, range(7, 14)), strict=True)), "\n": ""}
_NAME = re.compile(r"(\w+)\s*(?:\[[^\]]*\][^={]*)?=?\s*\Z")
_BEFORE = 200
"""Characters before an array in which its name is looked for."""
_TFLITE, _ONNX = b"TFL3", b"\x08"
"""The identifier of TFLite, at byte 4, and the first byte of an ONNX file."""
_LEAST, _MOST_ARRAYS = 32, 1000
"""Bytes of the smallest array that counts, and the number of arrays that are read."""


@dataclass(frozen=True, slots=True)
class _Array:
    """An array and its bytes, up to the first wrong element. `wrong`: the fault of that; "" if none is."""

    name: str
    content: bytes
    wrong: str = ""
    at: int = 0
    """The position of the wrong element in the text."""

    @property
    def ending(self) -> str:
        """The ending of a model's file; "" if the array is not a model."""
        if self.content[4:8] == _TFLITE:
            return ".tflite"
        return ".onnx" if self.content.startswith(_ONNX) and not self.wrong else ""


def model_file(path: Path) -> Path:
    """Return the path of a model. For a C file it is a temporary one with its array; errors name the C file.

    Raises ModelError for a C file in which no array is a model, several arrays are, or the model is damaged.
    """
    text, is_c = _text_of(path), path.suffix.lower() in _ENDINGS
    if is_c and text is not None and not text.strip():
        raise ModelError(f"{path} is empty")
    plain = "" if text is None else _without_dead_lines(_COMMENT.sub(_without_comment, text))
    arrays = [each for each in _arrays(plain) if is_c or each.ending]
    if not arrays and not is_c:
        return path
    models = [each for each in arrays if each.ending]
    wrong = next((each for each in models or arrays if each.wrong), None)
    why = "" if wrong is None else f"on line {1 + plain.count(chr(10), 0, wrong.at)}: {wrong.wrong}"
    if models and why:
        raise ModelError(f"{path} is damaged {why}. Write the file again, such as with xxd -i")
    if not models:
        sizes = ", ".join(f"{printable(it.name)} ({len(it.content):,} B)" for it in arrays if not it.wrong)
        others = [f"Its arrays are {sizes[:400]}"] if sizes else []
        others += [f"One is damaged, or not of bytes, {why}"] if why else []
        raise ModelError(
            f"{path}: no array of this C file is a model of TFLite, which has TFL3 at byte 4, or of ONNX. "
            f"{'. '.join(others) or f'It has no array of {_LEAST} bytes or more outside comments and #if 0'}"
        )
    if len({each.content for each in models}) > 1:
        names = ", ".join(printable(each.name) for each in models)
        raise ModelError(f"{path}: the arrays {names} are models: leave one of them in the file")
    model = models[0]
    _require_length(path, model, plain)
    folder = tempfile.mkdtemp(prefix="mcudeploy-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    result = Path(folder, path.name.split(".")[0] + model.ending)
    result.write_bytes(model.content)
    SHOWN_PATHS[str(result)] = f"{path} (array {printable(model.name)})"
    return result


def _require_length(path: Path, model: _Array, plain: str) -> None:
    """Raise ModelError if the constant of an array's length, as xxd -i writes it, states another one."""
    key = f"{model.name}_len"  # it comes first, since the search for a text is fast
    stated = re.search(rf"{key}(?<!\w{key})\s*=\s*(\w+)\s*;", plain)
    name, length = printable(model.name), len(model.content)
    if stated is None:
        return
    try:
        is_right = _integer(stated[1]) == length
    except ValueError:  # it is computed
        return
    if not is_right:
        raise ModelError(
            f"{path}: the array {name} has {length:,} bytes, and {name}_len is {printable(stated[1])}: "
            "restore the array, or correct the constant"
        )


def _text_of(path: Path) -> str | None:
    """Return the text of a regular file that is not large; None for other files."""
    with suppress(OSError, ValueError):
        if not path.is_file():
            return None
        with path.open("rb") as stream:
            if b"\0" in stream.read(_HEAD_BYTES):
                return None
        return read_limited(path, _MOST_BYTES).decode("utf-8", "surrogateescape")
    return None


def _without_comment(match: re.Match[str]) -> str:
    """Return a comment's line breaks alone; strings and characters as they are."""
    return match[0] if match[0][0] in "\"'" else " " + "\n" * match[0].count("\n")


def _without_dead_lines(plain: str) -> str:
    """Return a text with empty lines for those that #if 0 or the #else of #if 1 exclude."""
    conditions: list[str] = []
    lines = plain.split("\n")
    for number, line in enumerate(lines):
        if directive := _DIRECTIVE.match(line):
            if directive[1] == "if":
                conditions.append(directive[2].strip())
            elif conditions:
                condition = conditions.pop()
                conditions += [_ELSE.get(condition, "")] if directive[1] == "el" else []
        elif "0" in conditions or "never" in conditions:
            lines[number] = ""
    return "\n".join(lines)


def _arrays(plain: str) -> list[_Array]:
    """Return the arrays of bytes, and those that have something else and might be damaged."""
    matches = (match for match in _ARRAY.finditer(plain) if len(match[1] or match[3] or "") >= _LEAST)
    return [each for match in islice(matches, _MOST_ARRAYS) if (each := _array(match, plain)) is not None]


def _array(match: re.Match[str], plain: str) -> _Array | None:
    """Return the array of an initializer; None if it is short, or is not one of bytes."""
    before = plain[max(0, match.start() - _BEFORE) : match.start()]
    named = _NAME.search(before)
    name = named[1] if named else f"at character {match.start()}"
    string, closed = match[3], bool(match[2] or match[3])
    elements = [string] if string else _elements(match[1].rstrip())
    content, number = _read(elements)
    if number == len(elements) and closed:
        return _Array(name, content) if len(content) >= _LEAST else None
    if not string and (len(elements) < _LEAST or not before.rstrip().endswith("=")):
        return None
    element = [*elements, ""][number]
    text = printable(element.strip())
    why = f"{text}, not a number from -128 to 255, a character or a string" if text else "missing"
    wrong = f"element {number} of the array {printable(name)} is {why}"
    if not closed and number >= len(elements) - 1:
        wrong = f"the array {printable(name)} has no closing brace after {count_text(number, 'element')}"
    start = match.start(3 if string else 1) + sum(len(each) + 1 for each in elements[:number])
    start -= number == len(elements)  # no comma follows the last one
    return _Array(name, content, wrong, start + len(element) - len(element.lstrip()))


def _read(elements: Sequence[str]) -> tuple[bytes, int]:
    """Return the bytes of the elements before the first wrong one, and the number of these elements."""
    content = bytearray()
    for number, element in enumerate(elements):
        try:
            content += _bytes_of(element)
        except ValueError:
            return bytes(content), number
    return bytes(content), len(elements)


def _elements(body: str) -> list[str]:
    """Return the texts between the commas of an initializer; the last comma may end it."""
    elements = _ELEMENT.findall(body) if '"' in body or "'" in body else body.split(",")
    return elements if elements[-1].strip() else elements[:-1]


@lru_cache(maxsize=4096)
def _bytes_of(element: str) -> bytes:
    """Return the byte of a number from -128 to 255 or of a character in C, or the bytes of strings.

    Raises ValueError for another text.
    """
    cast = _CAST.match(element)
    plain = element[cast.end() if cast else 0 :].rstrip("\t\r\n )")
    texts = _TEXT.findall(plain)
    if texts and not _TEXT.sub("", plain).strip():
        return b"".join(map(_unescaped, texts))
    value = _integer(plain.replace("'", ""))
    return bytes([value + 256 if -128 <= value < 0 else value])


def _integer(text: str) -> int:
    """Return the value of a number in C. Raises ValueError for another text."""
    number = _NUMBER.fullmatch(text)
    if number is None:
        raise ValueError(text)
    digits = number[2]
    value = int(digits, 8 if digits.startswith("0") and digits.isdigit() else 0)
    return -value if number[1] == "-" else value


def _unescaped(text: str) -> bytes:
    """Return the bytes of a character or a string in quotes. Raises ValueError for an escape above 255."""
    inner = text[1:-1].encode("utf-8", "surrogateescape").decode("latin-1")
    return _ESCAPE.sub(_escaped, inner).encode("latin-1")


def _escaped(match: re.Match[str]) -> str:
    """Return the character that an escape means; one above 255 for a number that is too large."""
    if match[3]:
        return _ESCAPED.get(match[3], match[3])
    return chr(min(int(match[1], 16) if match[1] else int(match[2], 8), 256))
