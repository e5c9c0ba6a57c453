"""Names of tensors and operators of the graph: C identifiers, unlike the untrusted names of the file."""

from __future__ import annotations

import re

_SHORT_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]{0,30}")
_RESERVED = frozenset((
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
    "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return",
    "short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void",
    "volatile", "while", "bool", "true", "false", "asm", "main", "memory", "arena", "scratch",
))  # fmt: skip


class Names:
    """Creates unique identifiers: lower case, [a-z0-9_], at most 40 characters."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}

    def numbered(self, stem: str) -> str:
        """Return `stem_0`, `stem_1`, ... in the order of the calls."""
        while True:
            count = self._counts.get(stem, 0)
            self._counts[stem] = count + 1
            name = f"{stem}_{count}"
            if name not in self._taken:
                self._taken.add(name)
                return name

    def like(self, wish: str, stem: str) -> str:
        """Return the wish in lower case if it is a short, free identifier, else a numbered name."""
        name = wish.lower()
        if _SHORT_IDENTIFIER.fullmatch(name) is None or name in _RESERVED or name in self._taken:
            return self.numbered(stem)
        self._taken.add(name)
        return name
