"""Units beside the core: the note of a functional model in programs, and what their boards refuse."""

from __future__ import annotations

import logging
from functools import cache

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import ConfigError

_LOG = logging.getLogger(__name__)


def tell_model(board: Board) -> None:
    """Say once that the programs of a board contain a functional model of its unit, if they do."""
    if board.npu is not None and board.npu.base is None:
        _tell(board.name, board.npu.kind)


@cache
def _tell(board_name: str, kind: str) -> None:
    """Say once that a program contains a functional model of a unit."""
    _LOG.warning(
        "note: the program for %s contains a functional model of the %s: code, static RAM and stack "
        "include it",
        board_name,
        kind,
    )


def require_no_unit(board: Board, what: str, way_out: str = "leave it out") -> None:
    """Raise ConfigError if a board has a unit: counts or times of the core do not contain its time."""
    if board.npu is not None:
        raise ConfigError(
            f"{what} counts or times what the core executes; the time of the {board.npu.kind} of "
            f"{board.name} is estimated: {way_out}"
        )
