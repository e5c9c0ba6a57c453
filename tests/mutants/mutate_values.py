"""Mutations of bytes, and of values as JSON and TOML have them, drawn from a random source."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

INTEGERS = (
    0, 1, -1, 2, 3, 4, 5, 7, 8, 16, 127, 128, -128, 255, 256, 4096, 65535, 65536,
    2**31 - 1, 2**31, -(2**31), 2**32 - 1, 2**32, 2**53, 2**62, 2**63 - 1, -(2**63), 2**64, 10**30,
)  # fmt: skip
FLOATS = (0.0, -0.0, -1.0, 0.5, 1e-45, 1e-30, 3.4e38, 1e300, float("inf"), float("-inf"), float("nan"))
TEXTS = ("", " ", "x", "../../etc/passwd", "*/ x();", "%s%n", "\x00", "\x1b[31m", "é\u202e", "a" * 3000)


def mutated_bytes(content: bytes, source: random.Random) -> bytes:
    """Flips bits, overwrites, inserts, removes, repeats or swaps pieces, or cuts the end off."""
    out = bytearray(content)
    for _ in range(source.choice((1, 1, 2, 4, 16))):
        start = source.randrange(len(out) + 1)
        piece = slice(start, start + source.choice((1, 1, 2, 4, 8, 64, 512)))
        match source.randrange(8):
            case 0 | 1 if start < len(out):
                out[start] ^= 1 << source.randrange(8)
            case 2 if start < len(out):
                out[start] = source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))
            case 3:
                out[start:start] = source.randbytes(len(range(start, piece.stop)))
            case 4:
                del out[piece]
            case 5:
                out[start:start] = out[piece]
            case 6:
                other = source.randrange(len(out) + 1)
                out[start:start] = out[other : other + piece.stop - start]
            case 7 if source.random() < 0.3:
                del out[start:]
    return bytes(out)


def mutated_words(content: bytes, source: random.Random) -> bytes:
    """Overwrite whole 32-bit words, in which a FlatBuffer has its offsets, lengths, shapes and scales."""
    out = bytearray(content)
    for _ in range(source.choice((1, 1, 2, 4))):
        at = 4 * source.randrange(len(out) // 4)
        word = int.from_bytes(out[at : at + 4], "little")
        near = word + source.choice((-4, -1, 1, 4))
        value = source.choice((near, near, source.choice(INTEGERS), source.randrange(2 * len(out))))
        out[at : at + 4] = (value % 2**32).to_bytes(4, "little")
    return bytes(out)


def mutated_value(root: Any, source: random.Random) -> Any:
    """A copy of a tree of dicts, lists and scalars with one to four places changed."""
    tree = copy.deepcopy(root)
    for _ in range(source.choice((1, 1, 1, 2, 4))):
        tree = _changed(tree, source)
    return tree


def _changed(tree: Any, source: random.Random) -> Any:
    if not isinstance(tree, dict | list) or not tree:
        return _other(tree, source)
    places = list(_places(tree))
    table, key = source.choice(places)
    match source.randrange(8):
        case 0:
            del table[key]
        case 1:
            other, place = source.choice(places)
            table[key], other[place] = other[place], table[key]
        case 2:
            other, place = source.choice(places)
            table[key] = copy.deepcopy(other[place])
        case 3 if isinstance(table, list):
            table.insert(key, copy.deepcopy(source.choice(table)))
        case 4 if isinstance(table, dict):
            table[source.choice((*TEXTS, *table))] = copy.deepcopy(table[key])
        case 5 if isinstance(table, list):
            source.shuffle(table)
        case _:
            table[key] = _other(table[key], source)
    return tree


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every container in the tree with each of its keys."""
    places, waiting = [], [tree]
    while waiting:
        table = waiting.pop()
        keys = list(table) if isinstance(table, dict) else range(len(table))
        places += [(table, key) for key in keys]
        waiting += [table[key] for key in keys if isinstance(table[key], dict | list)]
    return places


def _other(value: Any, source: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    same_kind = source.random() < 0.7
    if isinstance(value, int) and same_kind:
        return source.choice((value + 1, value - 1, value * 2, -value, source.choice(INTEGERS)))
    if isinstance(value, float) and same_kind:
        return source.choice((value * 2, -value, source.choice(FLOATS)))
    if isinstance(value, str) and same_kind:
        return source.choice((value + "x", value[:-1], value.upper(), source.choice(TEXTS)))
    return copy.deepcopy(
        source.choice(
            (None, True, [], {}, [[]], source.choice(INTEGERS), source.choice(FLOATS), source.choice(TEXTS))
        )
    )


def toml_text(table: dict[str, Any]) -> str:
    """A table as TOML; values that TOML lacks (null) become an empty string."""
    return "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in table.items())


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps("" if value is None else value).replace("\x7f", "\\u007f")
