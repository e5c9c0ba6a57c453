"""Options that name several boards of one kind, which share the measuring."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from mcudeploy.cli.devices import (
    PORTS,
    applies,
    load_attached,
    option_for_board,
    reach_options,
    target_of,
)
from mcudeploy.cli.options import Command, is_typed
from mcudeploy.cli.parameter_types import InputFile
from mcudeploy.common.errors import UsageError
from mcudeploy.common.text import first_repeated

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board
    from mcudeploy.device.target import Target

_MOST_MEASURERS = 64


class _Several(click.Option):
    """An option that may be given several times; `mcudeploy.toml` or a variable sets one value."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Return a tuple of the values given."""
        return super().type_cast_value(ctx, (value,) if isinstance(value, str) else value)


def devices_options(command: Command) -> Command:
    """Add --board, --port (several times), --hardware-map, --probe, --flasher, --emulate and --measurers.

    They are packed as one or more `targets`.
    """

    @option_for_board(True, load_attached)
    @click.option(
        "--port",
        "ports",
        metavar="PORT",
        cls=_Several,
        multiple=True,
        is_eager=True,
        help=f"{PORTS} Detected if not given. Several times for several boards of a kind, which share the "
        "measuring.",
    )
    @click.option(
        "--hardware-map",
        metavar="FILE",
        type=InputFile(),
        help="Take the boards of this kind that a twister hardware map (YAML) lists as connected.",
    )
    @reach_options
    @click.option(
        "--measurers",
        metavar="N",
        type=click.IntRange(1, _MOST_MEASURERS),
        help="Number of boards that measure at the same time: emulators, or boards that --port names.",
    )
    @functools.wraps(command)
    def packed(
        *args: Any,
        board: Board,
        ports: tuple[str, ...],
        hardware_map: Path | None,
        probe: str | None,
        flasher: str | None,
        emulate: bool,
        measurers: int | None,
        **rest: Any,
    ) -> None:
        if ports and not applies("ports", board, emulate):
            ports = ()
        if hardware_map and not applies("hardware_map", board, emulate):
            hardware_map = None
        if board.is_host or board.emulated_only or emulate:
            targets = (target_of(board, None, probe, flasher, emulate),) * (measurers or 1)
        elif hardware_map is not None and not _ports_override_map(ports):
            targets = _targets_of_map(board, hardware_map, probe, flasher, measurers)
        else:
            _require_boards(ports, measurers)
            if probe is not None and len(ports) > 1:
                raise UsageError("--probe is for one board: several --port choose their probes themselves")
            targets = tuple(target_of(board, port, probe, flasher, False) for port in ports or (None,))
        command(*args, targets=targets, **rest)

    return packed


def _ports_override_map(ports: tuple[str, ...]) -> bool:
    """Whether --port is given, and --hardware-map comes from settings only. Both on the command line are an
    error.
    """
    if is_typed("ports") and is_typed("hardware_map"):
        raise UsageError("--port and --hardware-map exclude each other")
    return bool(ports) and not is_typed("hardware_map")


def _targets_of_map(
    board: Board, hardware_map: Path, probe: str | None, flasher: str | None, measurers: int | None
) -> tuple[Target, ...]:
    """Return the first `measurers` boards of this kind in a map, or all of them."""
    from mcudeploy.toolchain.hardware_map import entries_for

    if probe is not None and is_typed("probe"):
        raise UsageError("--probe is for one board: a hardware map names the probes of its boards")
    entries = entries_for(board, hardware_map)
    if measurers is not None and measurers > len(entries) and is_typed("measurers"):
        raise UsageError(f"--measurers {measurers}: {hardware_map} has {len(entries)} of {board.name}")
    return tuple(
        target_of(board, entry.port, entry.probe, flasher or entry.flasher, False)
        for entry in entries[:measurers]
    )


def _require_boards(ports: tuple[str, ...], measurers: int | None) -> None:
    """Fail with a usage error for a repeated port, or if `measurers` is not the number of boards."""
    repeated = first_repeated(ports)
    if repeated is not None:
        raise UsageError(f"--port {repeated} is given twice: one board measures one tile at a time")
    boards = max(1, len(ports))
    if measurers not in (None, boards) and is_typed("measurers"):
        raise UsageError(
            f"--measurers {measurers} needs as many boards: give --port {measurers} times, or --emulate"
        )
