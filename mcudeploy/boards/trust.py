"""Trust in board files: for each, the user allows once the programs and the C that it names.

A hash of all of these identifies what was allowed.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.boards.flashers import Command, Flasher, OpenOcd
from mcudeploy.boards.platformio import is_pio
from mcudeploy.common.errors import ConfigError
from mcudeploy.common.files import read_limited
from mcudeploy.common.trusted import TrustList

_TRUSTED = TrustList("boards")
_MOST_BYTES = 2**26
_SCRIPTS = re.compile(
    r"((^| )(-f (interface|target|board)/[A-Za-z0-9_/-]+\.cfg"
    r"|-c ((adapter speed|transport select|reset_config) [A-Za-z0-9_ ]+|set [A-Z_]+ [A-Za-z0-9_]+)))*"
)
"""OpenOCD arguments that name its own scripts and settings. Others are Tcl, which can run programs."""


def trust(board: Board) -> None:
    """Allow the programs and C of a board file, until any of them changes. Raises ConfigError."""
    if own_programs(board):
        _TRUSTED.add(_digest(board), board.name)


def require_trusted(board: Board) -> None:
    """Raise ConfigError for a board that names its own programs or C and was not allowed yet."""
    named = own_programs(board)
    if named and _digest(board) not in _TRUSTED:
        raise ConfigError(
            f"the file of board {board.name} names what mcudeploy would build or run: {', '.join(named)}. "
            "Read it; --trust-board allows it once, until any of it changes."
        )


def own_programs(board: Board) -> tuple[str, ...]:
    """Return what a board names beside facts, as texts: C sources, command lines, a framework.

    Empty for shipped boards, and for those of PlatformIO, whose facts mcudeploy states itself.
    """
    if is_pio(board.name):
        return ()
    framework = [f"framework {board.framework.platform}"] if board.framework is not None else []
    return (*map(str, _sources(board)), *_lines(board.flashers), *framework)


def _sources(board: Board) -> list[Path]:
    """Return the sources beside the board file."""
    drivers = (board.timer.emulated, board.timer.hardware, *board.links)
    single = [it.source for it in drivers if it is not None and it.source is not None]
    every = (*board.hal, *board.unit_hal, *board.core_hal, *board.port_hal, *single)
    return [Path(it) for it in dict.fromkeys(every) if Path(it).is_absolute()]


def _lines(flashers: Iterable[Flasher]) -> Iterator[str]:
    for flasher in flashers:
        if isinstance(flasher, Command):
            yield shlex.join(flasher.line)
        elif isinstance(flasher, OpenOcd) and not _SCRIPTS.fullmatch(" ".join(flasher.args)):
            yield f"openocd {shlex.join(flasher.args)}"


def _digest(board: Board) -> str:
    """Return the SHA-256 of all that a board names, and of sources, headers beside them, scripts."""
    headers = [header for source in _sources(board) for header in source.parent.glob("*.h")]
    words = [Path(word) for it in board.flashers if isinstance(it, Command) for word in it.line]
    scripts = [path for path in words if path.is_absolute() and path.is_file()]
    try:
        files = {
            str(path): hashlib.sha256(read_limited(path, _MOST_BYTES)).hexdigest()
            for path in (*_sources(board), *headers, *scripts)
        }
    except OSError as error:
        raise ConfigError(f"board {board.name}: {error.filename} cannot be read: {error.strerror}") from error
    named = {"board": board.name, "named": own_programs(board), "files": files}
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()
