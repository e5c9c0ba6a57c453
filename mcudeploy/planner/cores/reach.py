"""The memories that compute units reach in common, and the unit that copies if there is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import FitError


@dataclass(frozen=True, slots=True)
class Meeting:
    """The `units` that access a tensor where it is written, and the `memories` that all of them reach.

    `copiers` maps each other unit that reads the tensor to the unit that copies it.
    """

    units: tuple[str, ...]
    memories: tuple[str, ...]
    copiers: Mapping[str, str]


def meet(board: Board, tensor: str, producer: str, readers: Iterable[str]) -> Meeting:
    """Return how a tensor gets from the unit that writes it to those that read it: in one memory if possible.

    Raises FitError if no unit reaches memories of both sides.
    """
    units, far = [producer], list[str]()
    for unit in dict.fromkeys(readers):
        if unit not in units:
            (units if common(board, [*units, unit]) else far).append(unit)
    copiers = {}
    for unit in far:
        copiers[unit] = _copier(board, tensor, units, unit)
        units = list(dict.fromkeys([*units, copiers[unit]]))
    return Meeting(tuple(units), common(board, units), copiers)


def common(board: Board, units: Iterable[str]) -> tuple[str, ...]:
    """Return the memories that all of these units reach, in the board's order."""
    reached = [board.reach(board.unit(unit)) for unit in units]
    return tuple(memory.name for memory in board.memories if all(memory.name in it for it in reached))


def reach_text(board: Board, units: Iterable[str]) -> str:
    """Describe, for an error, the memories that each of these units reaches."""
    reached = ((unit, board.reach(board.unit(unit))) for unit in units)
    return ", ".join(f"{unit} ({', '.join(memories) or 'nothing'})" for unit, memories in reached)


def is_cached(board: Board, unit: str, memories: Iterable[str]) -> bool:
    """Return whether a unit accesses any of these memories through a cache."""
    return not set(board.unit(unit).cached).isdisjoint(memories)


def _copier(board: Board, tensor: str, units: list[str], reader: str) -> str:
    for copier in dict.fromkeys((*units, reader, *(unit.name for unit in board.units))):
        if common(board, [*units, copier]) and common(board, [copier, reader]):
            return copier
    raise FitError(
        f"{tensor} goes between units that reach no memory in common: {reach_text(board, [*units, reader])}; "
        f"and no unit of {board.name} reaches memories of both, to copy it."
    )
