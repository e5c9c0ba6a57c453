"""The options that name a board, and how to reach it: hardware by its port, or the emulator."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rich_click as click
from click import get_current_context
from click.core import ParameterSource

from mcudeploy.cli.options import Command
from mcudeploy.common.errors import UsageError

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board
    from mcudeploy.device.target import Target


_MOST_MEASURERS = 64
_MOST_CHAINED = 16

_emulate_option = click.option(
    "--emulate/--no-emulate",
    default=False,
    is_eager=True,
    help="Run the board's QEMU machine instead of hardware; implied for boards that exist only there.",
)


def board_option(required: bool) -> Callable[[Command], Command]:
    """Adds --board as `board: Board`, or None."""
    return _board_name(required, _load_board)


def _board_name(required: bool, load: Callable[..., Board | None]) -> Callable[[Command], Command]:
    return click.option(
        "--board",
        metavar="NAME",
        required=required,
        callback=load,
        help="Board, board family, or file of a board (./mine.toml); see `mcudeploy boards`.",
    )


def _load_board(_: click.Context, __: click.Parameter, name: str | None) -> Board | None:
    from mcudeploy.boards.board import load_board

    return None if name is None else load_board(name)


def _load_attached(context: click.Context, _: click.Parameter, name: str | None) -> Board | None:
    """The board of that name; of a family's boards the attached one, or else the family's default."""
    from mcudeploy.boards.board import family, is_path
    from mcudeploy.targets.attached import attached_board

    if name is None:
        return None
    boards = family(name)
    given = context.params
    if boards[0].name == name or is_path(name) or given["emulate"]:
        return boards[0]
    ports = given.get("ports") or filter(None, [given.get("port")])
    board, known_by = attached_board(name, tuple(ports), given.get("probe"))
    if known_by and not given.get("quiet"):
        click.echo(f"{name} is {board.name}: {known_by}", err=True)
    return board


_port_option = click.option(
    "--port",
    metavar="PORT",
    is_eager=True,
    help="Serial port of the board, or a URL that pyserial knows; found if not given.",
)


_flasher_option = click.option(
    "--flasher",
    metavar="NAME",
    help="Tool that writes the board, one that its file names; the first that is installed, if not given.",
)
_probe_option = click.option(
    "--probe",
    metavar="SERIAL",
    is_eager=True,
    help="Serial number of the board's probe, if there are several.",
)


def device_options(command: Command) -> Command:
    """Adds --board, --port, --probe, --flasher and --emulate, packed as `target: Target`."""

    @_board_name(True, _load_attached)
    @_port_option
    @_probe_option
    @_flasher_option
    @_emulate_option
    @functools.wraps(command)
    def packed(
        *args: Any,
        board: Board,
        port: str | None,
        probe: str | None,
        flasher: str | None,
        emulate: bool,
        **rest: Any,
    ) -> None:
        command(*args, target=_target(board, port, probe, flasher, emulate), **rest)

    return packed


def chain_options(command: Command) -> Command:
    """Adds --boards, --link and --frames to what `device_options` adds; `target` or `chain` is None."""

    @click.option(
        "--boards",
        metavar="NAME,NAME,...",
        help="Boards in a row, joined by serial lines: each computes a part of every frame. Real ones are "
        "named by --port PORT,PORT,...",
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
        help="Frames that go through the boards, several at a time.",
    )
    @_board_name(False, _load_attached)
    @_port_option
    @_probe_option
    @_flasher_option
    @_emulate_option
    @functools.wraps(command)
    def packed(
        *args: Any,
        boards: str | None,
        link: str,
        frames: int,
        board: Board | None,
        port: str | None,
        probe: str | None,
        flasher: str | None,
        emulate: bool,
        **rest: Any,
    ) -> None:
        from mcudeploy.chain.link import line_of
        from mcudeploy.chain.run import Asked

        if _is_chain(boards, board):
            asked = Asked(_chained(str(boards), port, flasher, emulate), line_of(link), frames)
            command(*args, target=None, chain=asked, **rest)
        elif board is not None:
            command(*args, target=_target(board, port, probe, flasher, emulate), chain=None, **rest)

    return packed


def _is_chain(boards: str | None, board: Board | None) -> bool:
    """Whether several boards are asked for; what the command line says goes before `mcudeploy.toml`. A usage
    error where no board is named, or options of one board and of several are mixed.
    """
    source = get_current_context().get_parameter_source
    typed = {
        name for name in ("board", "boards", "link", "frames") if source(name) is ParameterSource.COMMANDLINE
    }
    if boards is None and board is None:
        raise UsageError("name a board with --board, or several in a row with --boards")
    if {"board", "boards"} <= typed:
        raise UsageError("--board and --boards exclude each other")
    several = boards is not None and "board" not in typed
    if not several and typed & {"link", "frames"}:
        name = min(typed & {"link", "frames"})
        raise UsageError(f"--{name} is of a chain of boards: name them with --boards")
    if several and source("probe") is ParameterSource.COMMANDLINE:
        raise UsageError("--probe is of one board: the ports of a chain choose its probes")
    return several


def _target(board: Board, port: str | None, probe: str | None, flasher: str | None, emulate: bool) -> Target:
    """The one board that is asked for, at its port if it has one."""
    given = {"port": port, "probe": probe, "flasher": flasher}
    reach = {name: it for name, it in given.items() if it is not None and _is_reached(board, emulate, name)}
    return _reached(board, emulate, reach.get("port"), reach.get("probe"), reach.get("flasher"))


def _reached(board: Board, emulate: bool, port: str | None, probe: str | None, flasher: str | None) -> Target:
    """A board and how it is reached; a usage error for what is no serial number or no flasher of it."""
    from mcudeploy.device.target import Target
    from mcudeploy.targets.flashing import choose_flasher
    from mcudeploy.targets.ports import SERIAL

    target = Target(board, port, emulate, flasher=flasher, probe=probe)
    if probe is not None and not SERIAL.fullmatch(probe):
        raise UsageError(f"--probe {probe!r} is no serial number of a probe")
    if flasher is not None:
        choose_flasher(board, flasher, needed=False)
    return target


def _chained(names: str, ports: str | None, flasher: str | None, emulate: bool) -> tuple[Target, ...]:
    """The boards of a chain, all emulated or processes here, or all real, each with its port."""
    from mcudeploy.boards.board import load_board
    from mcudeploy.device.target import Target

    known = [name.strip() for name in names.split(",")]
    if not 2 <= len(known) <= _MOST_CHAINED or not all(known):
        raise UsageError(f"--boards names 2 to {_MOST_CHAINED} boards, separated by commas")
    boards = [load_board(name) for name in known]
    for board in boards:
        if not board.has_ports:
            raise UsageError(f"{board.name} has no lines to other boards: its board file names no [[port]]")
    real = [board for board in boards if not (emulate or board.is_host or board.emulated_only)]
    if not real:
        if ports is not None:
            _is_reached(boards[0], emulate, "port")
        return tuple(Target(board, None, emulate) for board in boards)
    if len(real) < len(boards):
        raise UsageError(f"{real[0].name} is real and cannot be wired to emulated boards: add --emulate")
    given = [port.strip() for port in ports.split(",")] if ports else []
    if not all(given) or len(given) != len(boards) or len(set(given)) < len(given):
        raise UsageError(f"{len(boards)} real boards need --port with as many ports, or --emulate")
    return tuple(
        _reached(board, False, port, None, flasher) for board, port in zip(boards, given, strict=True)
    )


class _Several(click.Option):
    """May be given several times; `mcudeploy.toml` or a variable gives one."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """A tuple of what was given."""
        return super().type_cast_value(ctx, (value,) if isinstance(value, str) else value)


def devices_options(command: Command) -> Command:
    """Adds --board, --port (several times), --probe, --flasher, --emulate and --measurers, packed as one or
    more `targets`.
    """

    @_board_name(True, _load_attached)
    @click.option(
        "--port",
        "ports",
        metavar="PORT",
        cls=_Several,
        multiple=True,
        is_eager=True,
        help="Serial port of a board, or a URL that pyserial knows; found if not given. "
        "Several times for several boards of a kind, which share the measuring.",
    )
    @_probe_option
    @_flasher_option
    @_emulate_option
    @click.option(
        "--measurers",
        metavar="N",
        type=click.IntRange(1, _MOST_MEASURERS),
        help="How many boards measure at the same time: emulators, or as many boards as --port names.",
    )
    @functools.wraps(command)
    def packed(
        *args: Any,
        board: Board,
        ports: tuple[str, ...],
        probe: str | None,
        flasher: str | None,
        emulate: bool,
        measurers: int | None,
        **rest: Any,
    ) -> None:
        if ports and not _is_reached(board, emulate, "ports"):
            ports = ()
        if board.is_host or board.emulated_only or emulate:
            targets = (_target(board, None, probe, flasher, emulate),) * (measurers or 1)
        else:
            _require_boards(ports, measurers)
            if probe is not None and len(ports) > 1:
                raise UsageError("--probe is of one board: several --port choose their probes themselves")
            targets = tuple(_target(board, port, probe, flasher, False) for port in ports or (None,))
        command(*args, targets=targets, **rest)

    return packed


def _require_boards(ports: tuple[str, ...], measurers: int | None) -> None:
    """A usage error for a port that is given twice, or for another number of measurers than of boards."""
    twice = next((port for index, port in enumerate(ports) if port in ports[:index]), None)
    if twice is not None:
        raise UsageError(f"--port {twice} is given twice: one board measures one tile at a time")
    boards = max(1, len(ports))
    source = get_current_context().get_parameter_source("measurers")
    if measurers not in (None, boards) and source is ParameterSource.COMMANDLINE:
        raise UsageError(
            f"--measurers {measurers} needs as many boards: give --port {measurers} times, or --emulate"
        )


def _is_reached(board: Board, emulate: bool, name: str) -> bool:
    """Whether the board is real, and an option says how it is reached; a usage error for one on the command
    line that would have no effect.

    One from `mcudeploy.toml` or a variable describes the desk: it waits for the next run on hardware.
    """
    if not (emulate or board.is_host or board.emulated_only):
        return True
    source = get_current_context().get_parameter_source(name)
    if source is not ParameterSource.COMMANDLINE:
        return False
    where = "is this machine" if board.is_host else "runs in the emulator"
    option = name.removesuffix("s")
    raise UsageError(f"--{option} names a real board's {option}; {board.name} {where}")
