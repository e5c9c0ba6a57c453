"""Earlier times of tiles, for commands that need no device."""

from __future__ import annotations

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import ConfigError
from mcudeploy.costs.database import Database, warn_of_database
from mcudeploy.costs.estimate import TimeUnit
from mcudeploy.costs.tiles import KnownSource, nothing_known


def known_times(board: Board, objective: TimeUnit = "instructions") -> KnownSource:
    """Return the tile times in the database that this board's measurer took with the current kernels.

    Empty for a host, whose times depend on the system load. A database that cannot be read causes a warning.
    The digest of the kernels is computed only if the database has times of the board.
    """
    if board.is_host:
        return nothing_known
    try:
        with Database() as database:
            if not database.has_tiles(board.name):
                return nothing_known
            from mcudeploy.device.image import stored_times  # noqa: PLC0415 - toolchains and code generation

            return stored_times(database, board, objective)
    except ConfigError as error:
        warn_of_database("kernels are chosen without earlier measurements", str(error))
        return nothing_known
