"""The options --chain, --link and --frames of `run`: a chain of boards."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import rich_click as click
from click import get_current_context

from mcudeploy.cli.devices import applies, checked_target, trusted, with_patience
from mcudeploy.cli.options import Command, is_typed
from mcudeploy.cli.output import deprecated
from mcudeploy.common.errors import UsageError

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board
    from mcudeploy.device.target import Target

_MOST_CHAINED = 16


def chain_options(command: Command) -> Command:
    """Add --chain, --link and --frames; a chain of boards runs instead of `command`."""

    @click.option("--boards", hidden=True)
    @click.option(
        "--chain",
        "chained",
        metavar="NAME,NAME,...",
        help="Boards in a row, joined by serial lines: each computes a part of every frame. Real boards need "
        "--port PORT,PORT,...",
    )
    @click.option(
        "--link",
        metavar="uart:RATE",
        default="uart:2M",
        show_default=True,
        help="Rate of the lines between the boards, in bits a second.",
    )
    @click.option(
        "--frames",
        metavar="N",
        type=click.IntRange(1, 100_000),
        default=10,
        show_default=True,
        help="Number of frames that go through the boards; several are under way at a time.",
    )
    @functools.wraps(command)
    def packed(
        *args: Any, boards: str | None, chained: str | None, link: str, frames: int, **rest: Any
    ) -> None:
        names = _renamed(boards, chained)
        if not _is_chain(names, rest["board"]):
            command(*args, **rest)
            return
        from mcudeploy.extensions.several_boards.chain_command import run_on_chain
        from mcudeploy.extensions.several_boards.link import parse_link
        from mcudeploy.extensions.several_boards.run import ChainRequest

        ports, flasher, emulate = (rest.pop(name) for name in ("port", "flasher", "emulate"))
        del rest["board"], rest["probe"]
        targets = _chained(str(names), ports, flasher, emulate)
        run_on_chain(*args, chain=ChainRequest(targets, parse_link(link), frames), **rest)

    return packed


def _renamed(boards: str | None, chained: str | None) -> str | None:
    """Return the names in --chain, or in --boards, its old name."""
    if is_typed("boards") and is_typed("chained"):
        raise UsageError("--boards is the old name of --chain: give --chain alone")
    if boards is None or is_typed("chained") or (chained is not None and not is_typed("boards")):
        return chained
    deprecated("run --boards", "run --chain")
    return boards


def _is_chain(names: str | None, board: Board | None) -> bool:
    """Whether the user names several boards; the command line takes precedence over `mcudeploy.toml`.

    Raises UsageError without a board, and if options of one board and of several are mixed.
    """
    typed = {name for name in ("board", "boards", "chained", "link", "frames") if is_typed(name)}
    if names is None and board is None:
        raise UsageError("name a board with --board, or several in a row with --chain")
    if "board" in typed and typed & {"boards", "chained"}:
        raise UsageError("--board and --chain exclude each other")
    several = names is not None and "board" not in typed
    if not several and typed & {"link", "frames"}:
        name = min(typed & {"link", "frames"})
        raise UsageError(f"--{name} is for a chain of boards: name them with --chain")
    if several and is_typed("probe"):
        raise UsageError("--probe is for one board: the ports of a chain choose its probes")
    return several


def _chained(names: str, ports: str | None, flasher: str | None, emulate: bool) -> tuple[Target, ...]:
    """The boards of a chain: all emulated, all host processes, or all real with a port each."""
    from mcudeploy.boards.catalogue import load_board
    from mcudeploy.device.target import Target

    known = [name.strip() for name in names.split(",")]
    if not 2 <= len(known) <= _MOST_CHAINED or not all(known):
        raise UsageError(f"--chain names 2 to {_MOST_CHAINED} boards, separated by commas")
    boards = [with_patience(load_board(name)) for name in known]
    for board in boards:
        trusted(get_current_context(), board)
        if not board.has_ports:
            raise UsageError(f"{board.name} has no lines to other boards: its board file names no [[port]]")
    real = [board for board in boards if not (emulate or board.is_host or board.emulated_only)]
    if not real:
        if ports is not None:
            applies("port", boards[0], emulate)
        return tuple(Target(board, None, emulate) for board in boards)
    if len(real) < len(boards):
        raise UsageError(f"{real[0].name} is real and cannot be wired to emulated boards: add --emulate")
    port_names = [port.strip() for port in ports.split(",")] if ports else []
    if not all(port_names) or len(port_names) != len(boards) or len(set(port_names)) < len(port_names):
        raise UsageError(f"{len(boards)} real boards need --port with as many ports, or --emulate")
    pairs = zip(boards, port_names, strict=True)
    return tuple(checked_target(board, False, port, None, flasher) for board, port in pairs)


OPTIONS = {"run": (chain_options,)}
