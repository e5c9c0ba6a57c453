"""Python values as C99 text. Whatever comes from a model passes through here or is a checked identifier."""

from __future__ import annotations

import re

import numpy as np

from mcudeploy.ops.opdef import ConstantArray

_C_TYPES = {
    "int8": "int8_t",
    "int32": "int32_t",
    "float32": "float",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
}
_PER_LINE = {"int8": 20, "int32": 8, "float32": 6, "uint16": 14, "uint32": 8}


def c_type(array: ConstantArray) -> str:
    """The element type of a constant array."""
    return _C_TYPES[array.dtype.name]


def c_int(value: int) -> str:
    """A literal of type int; the least int32 has no literal of its own."""
    return "-2147483647 - 1" if value == -(2**31) else str(value)


def c_float(value: float) -> str:
    """The shortest literal that gives this float32 back. Raises ValueError for infinities and NaN."""
    single = np.float32(value)
    if not np.isfinite(single):
        raise ValueError(f"{value} has no literal in C")
    text = np.format_float_positional(single, unique=True, trim="0")
    if len(text) > 16:
        text = np.format_float_scientific(single, unique=True, trim="0")
    return f"{text}f"


def c_elements(array: ConstantArray) -> list[str]:
    """The elements of an array, a few to a line, without the final comma."""
    flat = array.ravel()
    if array.dtype == np.float32:
        texts = [c_float(float(value)) for value in flat]
    elif array.dtype.kind == "u":
        texts = [f"{int(value)}u" for value in flat]
    else:
        texts = [c_int(int(value)) for value in flat]
    width = _PER_LINE[array.dtype.name]
    return [", ".join(texts[i : i + width]) for i in range(0, len(texts), width)]


def c_identifier(text: str, fallback: str = "model") -> str:
    """A lower-case C identifier made of any text."""
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:40].rstrip("_")
    if not name or not name[0].isalpha():
        name = f"{fallback}_{name}".rstrip("_")
    return name


def comment_text(text: str) -> str:
    """Text that is safe inside a C comment: printable ASCII that ends no comment and continues no line."""
    return re.sub(r"[^A-Za-z0-9 ._+-]", "_", text)[:80]
