"""Board files as people write them: a copy under another name, and the comment on each fact."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from mcudeploy.boards.board import Board, board_at, read_board
from mcudeploy.boards.catalogue import board_file
from mcudeploy.boards.fact_types import BoardName
from mcudeploy.common.errors import ConfigError, UsageError

_NAME = re.compile(r"^name\s*=.*$", re.MULTILINE)
_UNIQUE = re.compile(r"^(family_default|aliases)\s*=.*\n", re.MULTILINE)
"""Lines with keys whose values only one board may have."""
_OURS = "mcudeploy"
_OWN_KEYS = {
    *("name", "title", "family", "family_default", "toolchain", "cpu_flags", "stack_bytes", "usb_ids", "hal"),
    "aliases",
    *("source", "alignment", "arena_limit", "emulated_origin", "baud", "most_baud", "pins", "patience"),
}
_OWN_TABLES = ("emulator", "timer.emulated", "flasher", "registry", "framework")
"""Keys that no data sheet states: names, how firmware is built and loaded, reserved memory."""
_CHOSEN_TABLES = ("uart", "port", "timer")
"""Tables that select, of several parts of a chip, the ones that the firmware uses."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One key of a board file: its value as written, and the comment at it or at its table."""

    key: str
    value: str
    comment: str

    def origin(self, source: str) -> str:
        """Return the source of the fact: its comment, or else mcudeploy, or the source of the board."""
        if self.comment:
            return self.comment
        if self.key.rpartition(".")[2] in _OWN_KEYS or self._is_in(_OWN_TABLES):
            return _OURS
        return f"{_OURS} chose it; {source}" if self._is_in(_CHOSEN_TABLES) else source

    def _is_in(self, tables: tuple[str, ...]) -> bool:
        return self.key.startswith(tuple(f"{table}." for table in tables))


@dataclass(frozen=True, slots=True)
class Explained:
    """A board, its file, the comment on top of it, and all facts in it."""

    board: Board
    path: Path
    comment: str
    facts: tuple[Fact, ...]


def copied(name: str, like: str, destination: Path) -> str:
    """Return the text of a board file copied from another board, for a file at `destination`.

    Raises UsageError for an invalid name, ConfigError if the other file has its own sources that are not
    beside the new one.
    """
    try:
        TypeAdapter(BoardName).validate_python(name)
    except ValidationError as error:
        raise UsageError(f"--new {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None
    source = board_file(like)
    text = _UNIQUE.sub("", _text(source))
    text = _NAME.sub(lambda _: f'name = "{name}"', text, count=1)
    like = read_board(source).name
    text = f"# Copied from {like}: correct every fact that differs, and state its source.\n\n{text}"
    if board_at(tomllib.loads(text), destination).name != name:
        raise ConfigError(f"{source}: its name is not on a separate line")
    return text


def explain(name: str) -> Explained:
    """Return the source of each fact about a board, by the comments in its file."""
    path = board_file(name)
    lines = _text(path).splitlines()
    first = next((index for index, line in enumerate(lines) if line and not line.startswith("#")), 0)
    top = " ".join(line.lstrip("# ") for line in lines[:first] if line)
    return Explained(read_board(path), path, top, tuple(_facts(lines[first:])))


def _text(path: Path) -> str:
    read_board(path)  # raises if the file is not a board file
    return path.read_text("utf-8-sig")


def _facts(lines: list[str]) -> Iterator[Fact]:
    table, table_comment, comment, pending = "", "", "", ""
    for line in lines:
        text = line.strip()
        if pending:
            text = f"{pending}\n{line}"
        elif not text:
            comment = ""
            continue
        elif text.startswith("#"):
            comment = f"{comment} {text.lstrip('# ')}".strip()
            continue
        elif text.startswith("["):
            table = text.partition("#")[0].strip().strip("[]").strip() + "."
            table_comment, comment = comment, ""
            continue
        stated = _statement(text)
        pending = "" if stated else text
        if stated:
            key, value, trailing = stated
            if key in ("name", "engine", "tool") and table:
                table = f"{table.split('.')[0]}.{value.strip(chr(34))}."
            yield Fact(table + key, " ".join(value.split()), trailing or comment or table_comment)
            comment = ""


def _statement(text: str) -> tuple[str, str, str] | None:
    """Return key, value and trailing comment of a statement; None if further lines belong to it."""
    ends = [index for index, character in enumerate(text) if character == "#"]
    for end in (*ends, len(text)):
        try:
            tomllib.loads(text[:end])
        except tomllib.TOMLDecodeError:
            continue
        key, _, value = text[:end].partition("=")
        return key.strip(), value.strip(), text[end:].lstrip("# ")
    return None
