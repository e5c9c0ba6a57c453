"""Advice for a board that does not answer, or runs another firmware."""

from __future__ import annotations

from mcudeploy.boards.catalogue import list_boards


def flash_hint(board: str) -> str:
    """Return how to write the measurer to the board of this name, which is "" if it is unknown."""
    return f'Write it with "mcudeploy flash{_option(board)}".'


def silence_hint(board: str) -> str:
    """Return what may silence a board, and what to check; for a board of the user also its facts."""
    command = f'Run "mcudeploy doctor{_option(board)}".'
    if board and not _is_shipped(board):
        return (
            f"is another program holding the port, or no measurer on the board? {command} Where that finds "
            f"nothing, a fact in the file of {board} is wrong: `baud` and the pins of [uart], `clock_hz`, "
            "which the baud rate is derived from, or what `hal` sets up."
        )
    return f"is another program holding the port, or no measurer on the board? {command}"


def _option(board: str) -> str:
    if not board:
        return ""
    return f" --board {board}" if _is_shipped(board) else " --board FILE"


def _is_shipped(board: str) -> bool:
    return any(it.name == board for it in list_boards())
