"""The tables of a tokenizer in C: `mcud_tokenizer` of firmware/text/mcud_tokenizer.h."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.codegen.ctext import c_elements, c_type
from mcudeploy.codegen.render import render
from mcudeploy.extensions.text.tokenizer_file import Merge, Tokenizer, WordSplit

_BLOCK = 32
"""Records of one block; the start of a record is a 16-bit offset from the start of its block."""
_SPECIAL = 2**31
_NONE = "MCUD_NO_TOKEN"


def render_tokenizer(tokenizer: Tokenizer, name: str) -> str:
    """Return the C file that defines `const mcud_tokenizer name`."""
    arrays = _arrays(tokenizer)
    return render(
        "tokenizer.c.j2",
        name=name,
        arrays=[(key, c_type(value), value.size, c_elements(value)) for key, value in arrays.items()],
        fields=_fields(tokenizer, arrays),
    )


def tokenizer_bytes(tokenizer: Tokenizer) -> int:
    """Return the bytes of the tables in flash, without the record that points to them."""
    return sum(it.nbytes for it in _arrays(tokenizer).values())


def _arrays(tokenizer: Tokenizer) -> dict[str, NDArray[Any]]:
    """The tables, without those that are empty."""
    width = _merge_bytes(tokenizer)
    records = [_record(tokenizer, number, width) for number in range(len(tokenizer.pieces))]
    starts = np.cumsum([0, *map(len, records)])
    blocks = starts[::_BLOCK]
    ordered = np.array(sorted(tokenizer.word_ids, key=lambda it: tokenizer.pieces[it]), np.uint32)
    scores = np.array(tokenizer.scores, np.float64)
    scores = np.concatenate([scores, np.zeros(len(records) - len(scores))]) if scores.size else scores
    exact = np.array_equal(scores.astype(np.float32).astype(np.float64), scores)
    added = [
        it | (_SPECIAL if it in tokenizer.special else 0) for it in (*tokenizer.verbatim, *tokenizer.added)
    ]
    arrays = {
        "records": np.frombuffer(b"".join(records), np.uint8),
        "block_starts": blocks.astype(np.uint32),
        "starts": (starts - np.repeat(blocks, _BLOCK)[: len(starts)]).astype(np.uint16),
        "sorted": (ordered & 0xFFFF).astype(np.uint16),
        "sorted_high": (ordered >> 16).astype(np.uint8)[: len(ordered) if len(records) > 2**16 else 0],
        "scores32" if exact else "scores64": scores.astype(np.float32) if exact else scores,
        "added": np.array(added, np.uint32),
        "before": np.array(tokenizer.before, np.uint32),
        "ends": np.array(tokenizer.ends, np.uint32),
    }
    if tokenizer.words.split is WordSplit.GPT2:
        arrays["classes"] = _classes()
    return {name: value for name, value in arrays.items() if value.size}


def _fields(tokenizer: Tokenizer, arrays: dict[str, NDArray[Any]]) -> dict[str, str]:
    words, unknown, first_byte = tokenizer.words, tokenizer.unknown, tokenizer.first_byte
    numbers = {
        "count": f"{len(tokenizer.pieces)}u",
        "sorted_count": f"{len(tokenizer.word_ids)}u",
        "unknown_score": repr(tokenizer.unknown_score),
        "unknown": _NONE if unknown is None else f"{unknown}u",
        "first_byte": _NONE if first_byte is None else f"{first_byte}u",
        "added_verbatim": str(len(tokenizer.verbatim)),
        "added_count": str(len(tokenizer.verbatim) + len(tokenizer.added)),
        "before_count": str(len(tokenizer.before)),
        "end_count": str(len(tokenizer.ends)),
        "prefix": f"MCUD_PREFIX_{words.prefix.name}",
        "split": f"MCUD_SPLIT_{words.split.name}",
        "merge_bytes": str(_merge_bytes(tokenizer)),
        "of_bytes": str(words.of_bytes).lower(),
        "fuses_unknown": str(tokenizer.fuses_unknown).lower(),
        "whole_words": str(tokenizer.whole_words).lower(),
    }
    return {**{name: name for name in arrays}, **numbers}


def _merge_bytes(tokenizer: Tokenizer) -> int:
    """The bytes of a merge: without its rank if ranks ascend with resulting ids, as trainers write them."""
    ranks = [it.rank for _, merges in sorted(tokenizer.merges.items()) for it in merges]
    return 1 if all(one < other for one, other in pairwise(ranks)) else 4


def _record(tokenizer: Tokenizer, number: int, width: int) -> bytes:
    """The length of a piece, its bytes, and its merges."""
    piece, merges = tokenizer.pieces[number], tokenizer.merges.get(number, ())
    return bytes([len(piece)]) + piece + b"".join(_merge(it, width) for it in merges)


def _merge(merge: Merge, width: int) -> bytes:
    return bytes([merge.left]) + (merge.rank.to_bytes(3, "little") if width == 4 else b"")


@cache
def _classes() -> NDArray[np.uint8]:
    """Stretches of others (0), letters (1) and numbers (2) from U+0080 on, as `class_of` reads them."""
    kinds = {"L": 1, "N": 2}
    classes = (kinds.get(unicodedata.category(chr(code))[0], 0) for code in range(0x80, 0x110000))
    stretches = [(len(list(group)), kind) for kind, group in groupby(classes)]
    return np.array(
        [it for length, kind in (*stretches[:-1], (0, 0)) for it in _varint(3 * length + kind)], np.uint8
    )


def _varint(value: int) -> Iterator[int]:
    while value >= 128:
        yield value & 127 | 128
        value >>= 7
    yield value
