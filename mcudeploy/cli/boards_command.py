"""`boards`, `devices` and `doctor`: supported boards, attached devices and missing tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from mcudeploy.cli import boardtables
from mcudeploy.cli.devices import board_option
from mcudeploy.cli.options import destination_option, extension_options, files_option, output_options
from mcudeploy.cli.output import Output
from mcudeploy.common.errors import UsageError

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board


@click.command()
@click.option("--explain", metavar="NAME", help="Show the facts in a board's file, and their sources.")
@click.option("--new", metavar="NAME", help="Write a board file for your own board; with --like and -o.")
@click.option("--like", metavar="NAME", help="Board to copy the facts from: the most similar one.")
@destination_option("File of the new board.", "FILE.toml")
@click.option("--all", "emulated", is_flag=True, help="List also boards that exist in an emulator only.")
@files_option
@output_options
def boards(
    *,
    explain: str | None,
    new: str | None,
    like: str | None,
    destination: Path | None,
    emulated: bool,
    output: Output,
) -> None:
    """List the boards, explain one, or write the file of a new one."""
    if (new, like, destination) != (None, None, None):
        if new is None or like is None or destination is None or explain is not None:
            raise UsageError("a new board takes all of --new NAME --like NAME -o FILE.toml, and nothing else")
        output.result(_new(new, like, destination), boardtables.new)
    elif explain is not None:
        output.result(_explained(explain), boardtables.explained)
    else:
        output.result(_listed(emulated), boardtables.boards)


def _new(name: str, like: str, destination: Path) -> dict[str, Any]:
    from mcudeploy.boards.explained import copied
    from mcudeploy.common.files import write_file

    write_file(destination, copied(name, like, destination))
    return {"board": name, "like": like, "file": str(destination)}


def _explained(name: str) -> dict[str, Any]:
    from mcudeploy.boards.explained import explain

    explained = explain(name)
    return {
        "board": explained.board.name,
        "file": str(explained.path),
        "comment": explained.comment,
        "source": explained.board.source,
        "facts": [
            {
                "fact": it.key,
                "value": it.value,
                "comment": it.comment,
                "origin": it.origin(explained.board.source),
            }
            for it in explained.facts
        ],
    }


def _listed(emulated: bool) -> dict[str, Any]:
    from mcudeploy.boards.catalogue import catalogue, every_board, measured_file

    return {
        "boards": [
            {
                "name": board.name,
                "title": board.title,
                "aliases": board.aliases,
                "family": board.family,
                "core": board.core,
                "flash_bytes": board.flash_bytes,
                "flash_read_cost": board.flash.read_cost,
                "ram_bytes": board.ram_bytes,
                "memories": {memory.name: memory.bytes for memory in board.memories},
                "memory_costs": {memory.name: memory.cost for memory in board.memories},
                "memory_rates": {
                    memory.name: {"read": memory.read_rate, "write": memory.write_rate}
                    for memory in board.memories
                },
                "links": [link.model_dump() for link in board.links],
                "cores": board.cores,
                "units": {unit.name: board.reach(unit) for unit in board.units},
                "facts_only": board.facts_only,
                "source": board.source,
                "hardware": bool(board.flashers) and not board.facts_only,
                "flashers": [flasher.tool for flasher in board.flashers],
                "emulator": board.emulator.machine if board.emulator else None,
                "radio": board.radio,
                "calibrated": measured_file(board).is_file(),
            }
            for board in (every_board() if emulated else catalogue())
        ]
    }


@click.command()
@click.option(
    "--hardware-map",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the boards with a serial port into a twister hardware map (YAML), or update one.",
)
@output_options
def devices(hardware_map: Path | None, output: Output) -> None:
    """List probes, boot loaders and serial ports, and the boards that they may be."""
    from dataclasses import asdict

    from mcudeploy.toolchain.attached import list_devices

    attached = list_devices()
    if hardware_map is not None:
        from mcudeploy.toolchain.hardware_map import write_map

        write_map(hardware_map, attached)
    output.result({"devices": [asdict(device) for device in attached]}, boardtables.devices)


@click.command()
@board_option(required=False)
@extension_options
@click.option(
    "--prepare",
    is_flag=True,
    help="Compile the search by numba now, not at the first plan; it takes up to a minute.",
)
@output_options
@click.pass_context
def doctor(context: click.Context, board: Board | None, prepare: bool, output: Output) -> None:
    """Look for toolchains, PlatformIO, QEMU and ports; name the command that installs what is missing.

    With --board, exit code 1 means that the board can run neither on hardware nor emulated.
    """
    from mcudeploy.common.fast import lacking as lacking_packages
    from mcudeploy.toolchain import checks, lacking

    if prepare and "numba" not in lacking_packages():
        from mcudeploy.planner.prepare import compile_loops

        with output.progress():
            compile_loops()
    results = checks(board)
    report = {
        "checks": [
            {"name": check.name, "ok": check.ok, "found": check.found, "remedy": check.remedy}
            for check in results
        ]
    }
    missing = [] if board is None else [check.name for check in lacking(results)]
    output.result(report | ({} if board is None else {"missing": missing}), boardtables.checks)
    if missing:
        context.exit(1)
