"""Options that name a board and how to reach it: hardware by its port, or the emulator."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rich_click as click
from click import get_current_context
from click.core import ParameterSource

from mcudeploy.cli.options import Command
from mcudeploy.cli.output import deprecated
from mcudeploy.cli.parameter_types import Finite
from mcudeploy.common.errors import UsageError

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board
    from mcudeploy.device.target import Target


_MOST_CHAINED = 16
_TRUST = "mcudeploy.trust-board"

PORTS = "Serial port of the board, rfc2217://HOST:PORT, socket://HOST:PORT, or labgrid://PLACE."
_PATIENCE = "mcudeploy.patience"
"""Key of --patience in the context, for the board."""


def _keep_patience(context: click.Context, _: click.Parameter, factor: float | None) -> None:
    context.meta[_PATIENCE] = factor


def _patient(board: Board) -> Board:
    """Return the board with the patience that the command line or a setting asks for."""
    factor = get_current_context().meta.get(_PATIENCE)
    return board if factor is None else board.model_copy(update={"patience": factor})


def board_option(required: bool) -> Callable[[Command], Command]:
    """Add --board as `board: Board`, or None."""
    return board_name(required, _load_board)


def boards_option(command: Command) -> Command:
    """Add --board as `boards: tuple[Board, ...]`: one or several."""
    return click.option(
        "--board",
        "boards",
        metavar="NAME[,NAME...]",
        required=True,
        callback=_load_boards,
        shell_complete=_board_names,
        help="Board, board family, file of a board (./mine.toml) or pio:ID of PlatformIO; see `mcudeploy "
        "boards`. Several times to plan for several boards in turn.",
    )(command)


def _load_boards(_: click.Context, __: click.Parameter, names: str) -> tuple[Board, ...]:
    from mcudeploy.boards.board import load_board

    found = {board.name: board for board in (load_board(name.strip()) for name in names.split(","))}
    return tuple(found.values())


def board_name(required: bool, load: Callable[..., Board | None]) -> Callable[[Command], Command]:
    """Add --board, read by `load`, and --trust-board."""

    def loaded(context: click.Context, option: click.Parameter, name: str | None) -> Board | None:
        return _trusted(context, load(context, option, name))

    trust = click.option(
        "--trust-board",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=lambda context, _, wanted: context.meta.update({_TRUST: wanted}),
        help="Allow running the programs and C that the board's file names, until any of it changes.",
    )
    board = click.option(
        "--board",
        metavar="NAME",
        required=required,
        callback=loaded,
        shell_complete=_board_names,
        help="Board, board family, file of a board (./mine.toml) or pio:ID of PlatformIO; see `mcudeploy "
        "boards`.",
    )
    return lambda command: board(trust(command))


def _trusted(context: click.Context, board: Board | None) -> Board | None:
    """Return the board, marked as trusted if the command line says so."""
    from mcudeploy.boards.trust import trust

    if board is not None and context.meta.get(_TRUST):
        trust(board)
    return board


def _board_names(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    from mcudeploy.boards.board import list_boards

    names = {name for board in list_boards() for name in (board.name, board.family)}
    before, comma, last = begun.rpartition(",")  # several may be given
    return sorted(before + comma + name for name in names if name.startswith(last))


def _load_board(_: click.Context, __: click.Parameter, name: str | None) -> Board | None:
    from mcudeploy.boards.board import load_board

    return None if name is None else load_board(name)


def load_attached(context: click.Context, _: click.Parameter, name: str | None) -> Board | None:
    """Return the named board; of a board family, the attached board or else the default."""
    from mcudeploy.boards.board import family, is_path
    from mcudeploy.toolchain.attached import attached_board

    if name is None:
        return None
    boards = family(name)
    given = context.params
    if boards[0].name == name or is_path(name) or given["emulate"]:
        return _patient(boards[0])
    ports = given.get("ports") or filter(None, [given.get("port")])
    board, known_by = attached_board(name, tuple(ports), given.get("probe"))
    if known_by and not given.get("quiet"):
        click.echo(f"{name} is {board.name}: {known_by}", err=True)
    return _patient(board)


_port_option = click.option(
    "--port",
    metavar="PORT",
    is_eager=True,
    help=f"{PORTS} Detected if not given.",
)


def reach_options(command: Command) -> Command:
    """Add --probe, --flasher, --emulate and --patience."""
    for option in (
        click.option(
            "--patience",
            metavar="FACTOR",
            type=Finite(1, 1000),
            is_eager=True,
            expose_value=False,
            callback=_keep_patience,
            help="Multiply all time limits of the board by this factor, for a slow emulator.",
        ),
        click.option(
            "--emulate/--no-emulate",
            default=False,
            is_eager=True,
            help="Run the board's QEMU machine instead of hardware; implied for boards that exist only "
            "there.",
        ),
        click.option(
            "--flasher",
            metavar="NAME",
            help="Tool that writes the board, one of its file; by default the first that is installed.",
        ),
        click.option(
            "--probe",
            metavar="SERIAL",
            is_eager=True,
            help="Serial number of the board's probe, if there are several.",
        ),
    ):
        command = option(command)
    return command


def device_options(command: Command) -> Command:
    """Add --board, --port, --probe, --flasher and --emulate, packed as `target: Target`."""

    @board_name(True, load_attached)
    @_port_option
    @reach_options
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
        command(*args, target=target_of(board, port, probe, flasher, emulate), **rest)

    return packed


def chain_options(command: Command) -> Command:
    """Add --chain, --link and --frames to the options of `device_options`; `target` or `chain` is None."""

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
    @board_name(False, load_attached)
    @_port_option
    @reach_options
    @functools.wraps(command)
    def packed(
        *args: Any,
        boards: str | None,
        chained: str | None,
        link: str,
        frames: int,
        board: Board | None,
        port: str | None,
        probe: str | None,
        flasher: str | None,
        emulate: bool,
        **rest: Any,
    ) -> None:
        from mcudeploy.extensions.several_boards.link import line_of
        from mcudeploy.extensions.several_boards.run import ChainRequest

        names = _renamed(boards, chained)
        if _is_chain(names, board):
            asked = ChainRequest(_chained(str(names), port, flasher, emulate), line_of(link), frames)
            command(*args, target=None, chain=asked, **rest)
        elif board is not None:
            command(*args, target=target_of(board, port, probe, flasher, emulate), chain=None, **rest)

    return packed


def is_typed(name: str) -> bool:
    """Whether the command line has an option; `mcudeploy.toml` and variables have less weight."""
    return get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def _renamed(boards: str | None, chained: str | None) -> str | None:
    """Return the names in --chain, or in --boards, its old name."""
    if is_typed("boards") and is_typed("chained"):
        raise UsageError("--boards is the old name of --chain: give --chain alone")
    if boards is None or is_typed("chained") or (chained is not None and not is_typed("boards")):
        return chained
    deprecated("run --boards", "run --chain")
    return boards


def _is_chain(names: str | None, board: Board | None) -> bool:
    """Whether several boards are asked for; the command line goes before `mcudeploy.toml`.

    Fails with a usage error without a board, or if options of one board and of several are mixed.
    """
    typed = {name for name in ("board", "boards", "chained", "link", "frames") if is_typed(name)}
    if names is None and board is None:
        raise UsageError("name a board with --board, or several in a row with --chain")
    if "board" in typed and typed & {"boards", "chained"}:
        raise UsageError("--board and --chain exclude each other")
    several = names is not None and "board" not in typed
    if not several and typed & {"link", "frames"}:
        name = min(typed & {"link", "frames"})
        raise UsageError(f"--{name} is of a chain of boards: name them with --chain")
    if several and is_typed("probe"):
        raise UsageError("--probe is of one board: the ports of a chain choose its probes")
    return several


def target_of(
    board: Board, port: str | None, probe: str | None, flasher: str | None, emulate: bool
) -> Target:
    """Return the one board that is asked for, at its port if it has one."""
    given = {"port": port, "probe": probe, "flasher": flasher}
    reach = {name: it for name, it in given.items() if it is not None and is_reached(board, emulate, name)}
    return _reached(board, emulate, reach.get("port"), reach.get("probe"), reach.get("flasher"))


def _reached(board: Board, emulate: bool, port: str | None, probe: str | None, flasher: str | None) -> Target:
    """Return a board with its connection; fail with a usage error for an invalid probe or flasher."""
    from mcudeploy.device.target import Target
    from mcudeploy.toolchain.flashing import choose_flasher
    from mcudeploy.toolchain.ports import SERIAL

    target = Target(board, _port(port), emulate, flasher=flasher, probe=probe)
    if probe is not None and not SERIAL.fullmatch(probe):
        raise UsageError(f"--probe {probe!r} is no serial number of a probe")
    if flasher is not None:
        choose_flasher(board, flasher, needed=False)
    return target


def port_of(port: str) -> str:
    """Return the port of a device with its program; that of a labgrid place until the command ends."""
    from mcudeploy.device.target import require_kind

    require_kind(port)
    return str(_port(port))


def _port(port: str | None) -> str | None:
    """Return the port; for a labgrid place, its port until the command ends and releases the place."""
    from mcudeploy.device.labgrid import PREFIX, acquired

    if port is None or not port.startswith(PREFIX):
        return port
    return get_current_context().with_resource(acquired(port.removeprefix(PREFIX)))


def _chained(names: str, ports: str | None, flasher: str | None, emulate: bool) -> tuple[Target, ...]:
    """The boards of a chain: all emulated, all host processes, or all real with a port each."""
    from mcudeploy.boards.board import load_board
    from mcudeploy.device.target import Target

    known = [name.strip() for name in names.split(",")]
    if not 2 <= len(known) <= _MOST_CHAINED or not all(known):
        raise UsageError(f"--chain names 2 to {_MOST_CHAINED} boards, separated by commas")
    boards = [_patient(load_board(name)) for name in known]
    for board in boards:
        _trusted(get_current_context(), board)
        if not board.has_ports:
            raise UsageError(f"{board.name} has no lines to other boards: its board file names no [[port]]")
    real = [board for board in boards if not (emulate or board.is_host or board.emulated_only)]
    if not real:
        if ports is not None:
            is_reached(boards[0], emulate, "port")
        return tuple(Target(board, None, emulate) for board in boards)
    if len(real) < len(boards):
        raise UsageError(f"{real[0].name} is real and cannot be wired to emulated boards: add --emulate")
    given = [port.strip() for port in ports.split(",")] if ports else []
    if not all(given) or len(given) != len(boards) or len(set(given)) < len(given):
        raise UsageError(f"{len(boards)} real boards need --port with as many ports, or --emulate")
    return tuple(
        _reached(board, False, port, None, flasher) for board, port in zip(boards, given, strict=True)
    )


def is_reached(board: Board, emulate: bool, name: str) -> bool:
    """Whether the board is real and an option says how to reach it.

    Fails with a usage error for an option on the command line without effect. An option from `mcudeploy.toml`
    or a variable waits for the next run on hardware.
    """
    if not (emulate or board.is_host or board.emulated_only):
        return True
    if not is_typed(name):
        return False
    where = "is this machine" if board.is_host else "runs in the emulator"
    option = name.removesuffix("s").replace("_", "-")
    raise UsageError(f"--{option} names a real board's {option}; {board.name} {where}")
