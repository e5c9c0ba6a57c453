"""Text of messages: numbers with words that agree with them, and foreign text on one line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

_UNSAFE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufffe\uffff]"
)
"""Characters that steer a terminal, that XML does not allow, or that reverse the order of letters."""
_Value = TypeVar("_Value", bound=Hashable)


def count_text(number: int, noun: str) -> str:
    """Return a number and its noun, with an s unless the number is one: 1 step, 2,000 steps."""
    return f"{number:,} {agree(number, noun, noun + 's')}"


def agree(number: int, one: str, many: str) -> str:
    """Return the form of a word that agrees with a number."""
    return one if number == 1 else many


def first_repeated(values: Iterable[_Value]) -> _Value | None:
    """Return the first value, such as a name, that a later one equals."""
    return next((it for it, count in Counter(values).items() if count > 1), None)


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or the name of its class."""
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def described(error: Exception) -> str:
    """Return an error's class and the first line of its message; of a ValueError the line alone."""
    return first_line(error) if type(error) is ValueError else f"{type(error).__name__}: {first_line(error)}"


def plain(text: object) -> str:
    """Return text on one line, with escapes for characters that steer a terminal or are not XML."""
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode(), str(text))


def printable(text: str) -> str:
    """Make a name of a model printable: no control characters, at most 80 characters."""
    clean = "".join(letter if letter.isprintable() else "?" for letter in text)
    return clean if len(clean) <= 80 else f"{clean[:77]}..."


_SHORT_NAME = 28
"""The most characters of a name in a table."""


def short_name(names: Sequence[str]) -> str:
    """Return a text of nodes for a table: the end of the first name, and the number of other names."""
    if not names:
        return ""
    name = names[0].rpartition(";")[2]  # TensorFlow's converter joins the names of operators that it fuses
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    return (name if len(name) <= _SHORT_NAME else f"..{name[2 - _SHORT_NAME :]}") + more
