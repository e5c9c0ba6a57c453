"""`boards` and `doctor`: what can be deployed to, and what is missing for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from mcudeploy.cli import tables
from mcudeploy.cli.devices import board_option
from mcudeploy.cli.options import output_options
from mcudeploy.cli.output import Output

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board


@click.command()
@output_options
def boards(output: Output) -> None:
    """List the boards."""
    from mcudeploy.boards.board import list_boards

    report = {
        "boards": [
            {
                "name": board.name,
                "title": board.title,
                "family": board.family,
                "core": board.core,
                "flash_bytes": board.flash_bytes,
                "flash_read_rate": board.flash.read_rate,
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
                "hardware": board.openocd is not None,
                "emulator": board.emulator.machine if board.emulator else None,
            }
            for board in list_boards()
        ]
    }
    output.result(report, tables.boards)


@click.command()
@board_option(required=False)
@click.option(
    "--prepare",
    is_flag=True,
    help="Compile the search for this machine now, which takes up to a minute; else the first plan does.",
)
@output_options
def doctor(board: Board | None, prepare: bool, output: Output) -> None:
    """Look for toolchains, PlatformIO, QEMU and ports; name the command that installs what is missing."""
    from mcudeploy.targets import checks

    if prepare:
        from mcudeploy.search.prepare import compile_loops

        with output.progress():
            compile_loops()
    found = checks(board)
    report = {
        "checks": [
            {"name": check.name, "ok": check.ok, "found": check.found, "remedy": check.remedy}
            for check in found
        ]
    }
    output.result(report, tables.checks)


COMMANDS = (boards, doctor)
