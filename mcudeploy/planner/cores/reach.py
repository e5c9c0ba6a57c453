"""Where compute units meet: the memories that they reach in common, and who copies where there is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import FitError


@dataclass(frozen=True, slots=True)
class Meeting:
    """Units that use a tensor where it is made, all reaching `memories`, and who copies it for the others."""

    units: tuple[str, ...]
    memories: tuple[str, ...]
    copiers: Mapping[str, str]


def meet(board: Board, tensor: str, maker: str, readers: Iterable[str]) -> Meeting:
    """How a tensor comes from the unit that makes it to those that read it: in one memory if that is
    possible.

    Raises FitError for a reader where no unit reaches memories of both sides.
    """
    units, far = [maker], list[str]()
    for unit in dict.fromkeys(readers):
        if unit not in units:
            (units if common(board, [*units, unit]) else far).append(unit)
    copiers = {}
    for unit in far:
        copiers[unit] = _copier(board, tensor, units, unit)
        units = list(dict.fromkeys([*units, copiers[unit]]))
    return Meeting(tuple(units), common(board, units), copiers)


def common(board: Board, units: Iterable[str]) -> tuple[str, ...]:
    """The memories that all of these units reach, in the board's order."""
    reached = [board.reach(board.unit(unit)) for unit in units]
    return tuple(memory.name for memory in board.memories if all(memory.name in it for it in reached))


def reach_text(board: Board, units: Iterable[str]) -> str:
    """What each of these units reaches, for an error."""
    reached = ((unit, board.reach(board.unit(unit))) for unit in units)
    return ", ".join(f"{unit} ({', '.join(memories) or 'nothing'})" for unit, memories in reached)


def is_cached(board: Board, unit: str, memories: Iterable[str]) -> bool:
    """Whether a unit sees any of these memories through a cache."""
    return not set(board.unit(unit).cached).isdisjoint(memories)


def _copier(board: Board, tensor: str, units: list[str], reader: str) -> str:
    for copier in dict.fromkeys((*units, reader, *(unit.name for unit in board.units))):
        if common(board, [*units, copier]) and common(board, [copier, reader]):
            return copier
    raise FitError(
        f"{tensor} goes between units that reach no memory in common: {reach_text(board, [*units, reader])}; "
        f"and no unit of {board.name} reaches memories of both, to copy it."
    )
