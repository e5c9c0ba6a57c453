"""Options that name a board and how to reach it: hardware by its port, or the emulator."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rich_click as click
from click import get_current_context

from mcudeploy.cli.options import Command, is_typed
from mcudeploy.cli.parameter_types import Finite
from mcudeploy.common.errors import UsageError

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board
    from mcudeploy.device.target import Target


_TRUST = "mcudeploy.trust-board"
"""Key of --trust-board in the context, for --board."""
PORTS = "Serial port of the board, rfc2217://HOST:PORT, socket://HOST:PORT, or labgrid://PLACE."
_PATIENCE = "mcudeploy.patience"
"""Key of --patience in the context, for the board."""


def _keep_patience(context: click.Context, _: click.Parameter, factor: float | None) -> None:
    context.meta[_PATIENCE] = factor


def with_patience(board: Board) -> Board:
    """Return the board with the value of --patience, if there is one."""
    factor = get_current_context().meta.get(_PATIENCE)
    return board if factor is None else board.model_copy(update={"patience": factor})


def board_option(required: bool) -> Callable[[Command], Command]:
    """Add --board as `board: Board`, or None."""
    return option_for_board(required, _load_board)


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
    from mcudeploy.boards.catalogue import load_board

    boards = {board.name: board for board in (load_board(name.strip()) for name in names.split(","))}
    return tuple(boards.values())


def option_for_board(required: bool, load: Callable[..., Board | None]) -> Callable[[Command], Command]:
    """Add --board, read by `load`, and --trust-board."""

    def loaded(context: click.Context, option: click.Parameter, name: str | None) -> Board | None:
        return trusted(context, load(context, option, name))

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


def trusted(context: click.Context, board: Board | None) -> Board | None:
    """Return the board, marked as trusted if the command line says so."""
    from mcudeploy.boards.trust import trust

    if board is not None and context.meta.get(_TRUST):
        trust(board)
    return board


def _board_names(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    from mcudeploy.boards.catalogue import list_boards

    names = {name for board in list_boards() for name in (board.name, board.family)}
    before, comma, last = begun.rpartition(",")  # several may be given
    return sorted(before + comma + name for name in names if name.startswith(last))


def _load_board(_: click.Context, __: click.Parameter, name: str | None) -> Board | None:
    from mcudeploy.boards.catalogue import load_board

    return None if name is None else load_board(name)


def load_attached(context: click.Context, _: click.Parameter, name: str | None) -> Board | None:
    """Return the board of this name; for the name of a family, its attached board, or else its default."""
    from mcudeploy.boards.catalogue import family, is_path
    from mcudeploy.toolchain.attached import attached_board

    if name is None:
        return None
    boards = family(name)
    given = context.params
    is_family = boards[0].family == name != boards[0].name
    if given["emulate"]:
        return with_patience(_emulated(boards[0], quiet=bool(given.get("quiet"))))
    if not is_family or is_path(name):
        return with_patience(boards[0])
    ports = given.get("ports") or filter(None, [given.get("port")])
    board, known_by = attached_board(name, tuple(ports), given.get("probe"))
    if known_by and not given.get("quiet"):
        click.echo(f"{name} is {board.name}: {known_by}", err=True)
    return with_patience(board)


def _emulated(board: Board, *, quiet: bool) -> Board:
    """Return the emulated board that runs a board's code, and say so; the board itself if there is none."""
    from mcudeploy.boards.emulated import emulated_twin

    emulated = emulated_twin(board)
    if emulated is None:
        return board
    if not quiet:
        text = "which has other memories and another clock"
        click.echo(f"{board.name} has no emulator: its code runs on {emulated.name}, {text}", err=True)
    return emulated


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
    return _device_options(command, required=True)


def optional_device_options(command: Command) -> Command:
    """Add the options of `device_options`; `target` is None without --board."""
    return _device_options(command, required=False)


def _device_options(command: Command, *, required: bool) -> Command:
    @option_for_board(required, load_attached)
    @_port_option
    @reach_options
    @functools.wraps(command)
    def packed(
        *args: Any,
        board: Board | None,
        port: str | None,
        probe: str | None,
        flasher: str | None,
        emulate: bool,
        **rest: Any,
    ) -> None:
        target = None if board is None else target_of(board, port, probe, flasher, emulate)
        command(*args, target=target, **rest)

    return packed


def target_of(
    board: Board, port: str | None, probe: str | None, flasher: str | None, emulate: bool
) -> Target:
    """Return a board with those of its port, probe and flasher that `applies` says it has a use for."""
    given = {"port": port, "probe": probe, "flasher": flasher}
    used = {name: it for name, it in given.items() if it is not None and applies(name, board, emulate)}
    return checked_target(board, emulate, used.get("port"), used.get("probe"), used.get("flasher"))


def checked_target(
    board: Board, emulate: bool, port: str | None, probe: str | None, flasher: str | None
) -> Target:
    """Return a board with its connection; fail with a usage error for an invalid probe or flasher."""
    from mcudeploy.device.target import Target
    from mcudeploy.toolchain.flashing import choose_flasher
    from mcudeploy.toolchain.ports import SAFE_SERIAL

    target = Target(board, _port(port), emulate, flasher=flasher, probe=probe)
    if probe is not None and not SAFE_SERIAL.fullmatch(probe):
        raise UsageError(f"--probe {probe!r} is not a serial number of a probe")
    if flasher is not None:
        choose_flasher(board, flasher, needed=False)
    return target


def port_of(port: str) -> str:
    """Return the port of a device that runs its program, as `_port` does; fail for a port of unknown kind."""
    from mcudeploy.device.target import require_kind

    require_kind(port)
    return str(_port(port))


def _port(port: str | None) -> str | None:
    """Return the port; a labgrid place is acquired for its port, and released when the command ends."""
    from mcudeploy.device.labgrid import PREFIX, acquired

    if port is None or not port.startswith(PREFIX):
        return port
    return get_current_context().with_resource(acquired(port.removeprefix(PREFIX)))


def applies(name: str, board: Board, emulate: bool) -> bool:
    """Whether the option `name`, which says how to reach hardware, has an effect: not under emulation.

    Fails with a usage error if it has none but stands on the command line. In `mcudeploy.toml` or a variable
    it waits for the next run on hardware.
    """
    if not (emulate or board.is_host or board.emulated_only):
        return True
    if not is_typed(name):
        return False
    where = "is this machine" if board.is_host else "runs in the emulator"
    option = name.removesuffix("s").replace("_", "-")
    raise UsageError(f"--{option} names a real board's {option}; {board.name} {where}")
