"""`calibrate`: factors from estimated cycles to those of a chip."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from rich.console import Console

from mcudeploy.cli.devices import device_options
from mcudeploy.cli.options import destination_option, files_option, output_options
from mcudeploy.cli.output import Output, Values, cell
from mcudeploy.cli.table_grids import facts, table_of
from mcudeploy.common.text import plain

if TYPE_CHECKING:
    from mcudeploy.device.target import Target
    from mcudeploy.extensions.calibration.calibrating import Calibrated


@click.command()
@device_options
@destination_option("Write the factors to this file, for boards/measured.", "FILE.json", endings=(".json",))
@files_option
@output_options
def calibrate(*, target: Target, destination: Path | None, output: Output) -> None:
    """Time kernels of five kinds on a board, and correct its estimates by these times from now on."""
    from mcudeploy.extensions.calibration import calibrating
    from mcudeploy.extensions.calibration.factors_file import write_factors

    with output.progress() as progress:
        calibrated = calibrating.calibrate(target, progress)
    if destination is not None:
        write_factors(calibrated.factors, target.board, destination)
    output.result(_report(calibrated, destination), _table)


def _report(calibrated: Calibrated, destination: Path | None) -> dict[str, Any]:
    from mcudeploy.costs.estimate import unit_of_model

    factors, board = calibrated.factors, calibrated.board
    return {
        "board": board.name,
        "core": board.core,
        "clock_hz": board.clock_hz,
        "estimates": unit_of_model(board),
        "kinds": [
            {
                "kind": kind,
                "factor": factors.kinds[kind],
                "tiles": [
                    {
                        "kernel": it.tile.call.cost_name,
                        "shape": list(it.tile.graph.tensors["x0"].shape),
                        "cycles": it.cycles,
                        "estimate": it.tile.estimate,
                        "factor": it.factor,
                    }
                    for it in times
                ],
            }
            for kind, times in calibrated.times.items()
        ],
        "whole": factors.whole,
        "file": None if destination is None else str(destination),
    }


def _table(console: Console, report: Values) -> None:
    table = table_of("kind", "kernel", "input", "cycles>", f"estimated {report['estimates']}>", "factor>")
    for kind in report["kinds"]:
        for tile in kind["tiles"]:
            shape = "x".join(map(str, tile["shape"]))
            figures = f"{tile['cycles']:,}", f"{tile['estimate']:,.0f}", f"{tile['factor']:.2f}"
            table.add_row(*map(cell, ("", tile["kernel"], shape, *figures)))
        table.add_row(*map(cell, (kind["kind"], "", "", "", "", f"{kind['factor']:.2f}")))
    console.print(table)
    board, whole = plain(report["board"]), f"{report['whole']:.2f}, the geometric mean of the kinds"
    used = f"estimates for {board} contain the factors from now on"
    facts(console, [("other kernels", whole), ("kept", used), ("file", plain(report["file"] or ""))])
