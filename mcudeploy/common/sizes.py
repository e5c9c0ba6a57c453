"""Values of options, from text: sizes in bytes, limits, shapes, ranges."""

from __future__ import annotations

import math
import re

_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}

_ALIGNMENTS = ("1", "2", "4", "8", "16", "32", "64")


def parse_size(text: str | int) -> int:
    """Return the bytes of a size such as `49152`, `96k`, `64KiB` or `1M` (of 1024). Raises ValueError."""
    match = re.fullmatch(r"\s*([0-9]{1,15})\s*(?:([kmg])(?:i?b)?|b)?\s*", str(text), re.IGNORECASE | re.ASCII)
    if match is None and re.fullmatch(r"\s*[0-9]{16,}\s*[kmgib]*\s*", str(text), re.IGNORECASE | re.ASCII):
        raise ValueError(f"{str(text)!r} is too large: a size has at most 15 digits")
    size = int(match[1]) * _UNITS[(match[2] or "").lower()] if match else 0
    if size == 0:
        raise ValueError(
            f"{str(text)!r} is not a size: a whole number above 0, alone (bytes) or with k, M or G (of 1024)"
        )
    return size


def parse_count(text: str) -> int:
    """Return a whole number above 0. Raises ValueError."""
    if not re.fullmatch("[0-9]{1,9}", text, re.ASCII) or not int(text):
        raise ValueError(f"{text!r} is not a whole number from 1 to 999999999")
    return int(text)


def parse_cores(value: object) -> int:
    """Return a number of cores, or 0 for `auto`. Raises ValueError."""
    text = str(value)
    if text == "auto":
        return 0
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()) or not 0 < int(text) < 2**31:
        raise ValueError(f"{text!r} is neither a number of cores nor auto")
    return int(text)


def parse_alignment(value: object) -> int:
    """Return a power of two of at most 64. Raises ValueError."""
    text = str(value)
    if text not in _ALIGNMENTS:
        raise ValueError(f"{text!r} is not an alignment: {', '.join(_ALIGNMENTS)}")
    return int(text)


def parse_limit(text: str) -> tuple[str, int]:
    """Return name and bytes of a memory limit such as `sram=64k`; the size may be 0. Raises ValueError."""
    name, equals, size = text.partition("=")
    if not (name.strip() and equals):
        raise ValueError(f"{text!r} is not a limit for a memory: NAME=SIZE, such as sram=64k or psram=0")
    try:
        return name.strip(), 0 if size.strip() == "0" else parse_size(size)
    except ValueError as error:
        raise ValueError(f"{error}; 0 keeps {name.strip()} free of arenas") from error


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Return an input and its shape, such as `input=1,3,96,96`. Raises ValueError."""
    name, _, sizes = text.rpartition("=")
    parts = [part.strip() for part in sizes.split(",")]
    if not (name and all(re.fullmatch("[1-9][0-9]{0,8}", part) for part in parts)):
        raise ValueError(f"{text!r} is not a shape: NAME=SIZE,SIZE,..., such as input=1,3,96,96")
    return name, tuple(map(int, parts))


def parse_constant(text: str) -> tuple[str, float]:
    """Return an input and its value, such as `sr=16000`. Raises ValueError."""
    name, _, number = text.rpartition("=")
    try:
        value = float(number) if name else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not a constant: INPUT=NUMBER, such as sr=16000")
    return name, value


def parse_state(text: str) -> tuple[str, str]:
    """Return the input and the output of a state such as `stateN=state`. Raises ValueError."""
    output, _, name = text.partition("=")
    if not (output and name):
        raise ValueError(f"{text!r} is not a state: OUTPUT=INPUT, such as stateN=state")
    return name, output


def parse_range(text: str) -> tuple[float, float]:
    """Return two different numbers such as `-1..1`. Raises ValueError."""
    low, dots, high = text.partition("..")
    try:
        ends = parse_numbers(low) + parse_numbers(high) if dots else ()
    except ValueError:
        ends = ()
    if len(ends) != 2 or ends[0] == ends[1]:
        raise ValueError(f"{text!r} is not a range: LOW..HIGH, such as 0..1 or -1..1")
    return ends[0], ends[1]


def parse_numbers(text: str) -> tuple[float, ...]:
    """Return finite numbers separated by commas, such as `0.485,0.456,0.406`. Raises ValueError."""
    try:
        numbers = tuple(map(float, text.split(",")))
    except ValueError:
        numbers = ()
    if not numbers or not all(map(math.isfinite, numbers)):
        raise ValueError(f"{text!r} is not a list of numbers, such as 0.485,0.456,0.406")
    return numbers


def parse_percent(text: str) -> float:
    """Return a share above 0 such as `12.5%`, in percent. Raises ValueError."""
    try:
        number = float(text.strip().removesuffix("%")) if text.strip().endswith("%") else math.nan
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ValueError(f"{text!r} is not a percentage above 0, such as 25%")
    return number
