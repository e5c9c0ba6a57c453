"""Numbers with nouns and verbs that agree with them, for messages."""

from __future__ import annotations


def count_text(number: int, noun: str) -> str:
    """Return a number and its noun, with an s unless the number is one: 1 step, 2,000 steps."""
    return f"{number:,} {agree(number, noun, noun + 's')}"


def agree(number: int, one: str, many: str) -> str:
    """Return the form of a word that agrees with a number."""
    return one if number == 1 else many
