"""Boards by name: those of mcudeploy, of files, and of PlatformIO."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from mcudeploy.boards.board import Board, board_of, read_board
from mcudeploy.boards.pioshipped import pio_boards, question_of, without_signs
from mcudeploy.boards.platformio import PREFIX, is_pio, pio_facts
from mcudeploy.common.errors import BoardNotFoundError, UsageError
from mcudeploy.common.resources import resource_dir

_shipped = cache(read_board)
_LIBRARY_ONLY = ", library only"


@cache
def list_boards() -> tuple[Board, ...]:
    """Return all shipped boards, by name."""
    return tuple(map(_shipped, sorted(resource_dir("boards").glob("*.toml"))))


@cache
def catalogue() -> tuple[Board, ...]:
    """Return the boards to buy: shipped ones that exist as hardware, and the `pio_boards`."""
    own = (board for board in list_boards() if not (board.is_host or board.emulated_only))
    return (*own, *(load_board(f"{PREFIX}{name}") for name in pio_boards()))


def every_board() -> tuple[Board, ...]:
    """Return the boards of `catalogue`, and those that exist in an emulator or on this computer only."""
    others = (board for board in list_boards() if board not in catalogue())
    return (*catalogue(), *others)


def board_file(name: str) -> Path:
    """Return the TOML file of a board: a shipped one by its name, or the file at the path `name`."""
    if is_pio(name):
        raise UsageError(f"{name} has no board file: its facts are those of PlatformIO's manifest.")
    if is_path(name):
        if not os.path.lexists(name):
            raise BoardNotFoundError(f"no board file {name}: `mcudeploy boards --new NAME` writes one.")
        return Path(name)
    return resource_dir("boards") / f"{load_board(name).name}.toml"


def measured_file(board: Board) -> Path:
    """Return the file of factors that were measured on a shipped board; it need not exist."""
    return resource_dir("boards") / "measured" / f"{board.name.replace(':', '_')}.json"


def is_path(name: str) -> bool:
    """Whether the name of a board is the path of a file: it has a slash or ends in `.toml`."""
    if is_pio(name):
        return False
    return "/" in name or os.sep in name or name.endswith(".toml")


def load_board(name: str) -> Board:
    """Return the board of that name, alias or file, the default board of a family, or one of PlatformIO.

    PlatformIO's are `pio:<id>` or `pio:<id>:<framework>`. Names in the brackets of a title count, too; case
    and signs do not. Raises BoardNotFoundError for unknown names, and for a name of several boards.
    """
    if is_pio(name):
        return board_of(pio_facts(name), f"{name} cannot be a board of mcudeploy")
    if is_path(name):
        return read_board(board_file(name))
    path = resource_dir("boards") / f"{name}.toml"
    return _shipped(path) if path.is_file() else _select(name, list_boards())


def family(name: str) -> tuple[Board, ...]:
    """Return the board of this name, or the default board of this family and its others with firmware."""
    chosen = load_board(name)
    if chosen.name == name or is_path(name):
        return (chosen,)
    others = (it for it in list_boards() if it.family == name and it.name != chosen.name)
    return (chosen, *(it for it in others if not it.facts_only))


def _select(name: str, boards: Iterable[Board]) -> Board:
    known = tuple(boards)
    for board in known:
        if board.family == name and board.family_default:
            return board
    plain = without_signs(name)
    alike = [it for it in known if plain in map(without_signs, (it.name, *it.aliases))]
    if not alike:
        if same := [key for key in pio_boards() if without_signs(key) == plain]:
            return load_board(f"{PREFIX}{same[0]}")
        alike = [it for it in known if plain in map(without_signs, it.names_in_title)]
    if len(alike) == 1:
        return alike[0]
    if alike:
        listed = "".join(f"\n  {it.name}: {it.title}{_LIBRARY_ONLY * it.facts_only}" for it in alike)
        raise BoardNotFoundError(f"{name!r} may be one of {len(alike)} boards; name one:{listed}")
    question = question_of(name, tuple(board.name for board in known))
    way_out = "`mcudeploy boards` lists all; a file is named by its path, a board of PlatformIO as pio:<id>."
    raise BoardNotFoundError(f"no board {name!r}. {question}".rstrip() + f"\n{way_out}")
