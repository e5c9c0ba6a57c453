"""The smallest tokenizer.json: a token for each byte, and one that ends a text; written without a package."""

from __future__ import annotations

import json
from pathlib import Path

from mcudeploy.extensions.text.tokenizer_file import ALPHABET

END, TOKENS = 256, 257


def save_byte_tokenizer(path: Path) -> Path:
    """Write it; the id of a byte is its value."""
    added = {"id": END, "content": "</s>", "special": True, "normalized": False}
    content = {
        "added_tokens": [added],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "model": {"type": "BPE", "vocab": ALPHABET, "merges": []},
    }
    path.write_text(json.dumps(content), "utf-8")
    return path
