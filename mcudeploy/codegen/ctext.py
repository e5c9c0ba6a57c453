"""Python values as C99 text. All text from a model passes through here or is a checked identifier."""

from __future__ import annotations

import re

import numpy as np

from mcudeploy.ir.opdef import ConstantArray

_C_TYPES = {
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "float32": "float",
    "float64": "double",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
}
_PER_LINE = dict(int8=16, int16=12, int32=8, float32=6, float64=4, uint8=20, uint16=14, uint32=8)  # noqa: C408


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
    elif array.dtype == np.float64:
        texts = [repr(float(value)) for value in flat]
    elif array.dtype.kind == "u":
        texts = [f"{int(value)}u" for value in flat]
    else:
        texts = [c_int(int(value)) for value in flat]
    width = _PER_LINE[array.dtype.name]
    return [", ".join(texts[i : i + width]) for i in range(0, len(texts), width)]


def comment_text(text: str) -> str:
    """Return text that is safe in a C comment: printable ASCII that neither ends it nor continues a line.

    Slashes stay: asterisks are replaced, so no slash can end the comment.
    """
    return re.sub(r"[^A-Za-z0-9 ._+/-]", "_", text)[:80]
