"""Sizes in bytes as people write them."""

from __future__ import annotations

import re

_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


def parse_size(text: str | int) -> int:
    """Return the bytes of a size such as `49152`, `96k`, `64KiB` or `1M` (of 1024). Raises ValueError."""
    match = re.fullmatch(r"\s*([0-9]{1,15})\s*(?:([kmg])(?:i?b)?|b)?\s*", str(text), re.IGNORECASE | re.ASCII)
    size = int(match[1]) * _UNITS[(match[2] or "").lower()] if match else 0
    if size == 0:
        raise ValueError(
            f"{str(text)!r} is not a size: a whole number above 0, alone (bytes) or with k, M or G (of 1024)"
        )
    return size
