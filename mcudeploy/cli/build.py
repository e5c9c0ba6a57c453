"""`build` and `flash`: the C library and firmware of a model, and how it gets onto a board."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from mcudeploy.cli import tables
from mcudeploy.cli.options import (
    board_option,
    device_options,
    model_argument,
    output_options,
    planning_options,
)
from mcudeploy.cli.output import Output

if TYPE_CHECKING:
    from mcudeploy.board import Board
    from mcudeploy.device import Target
    from mcudeploy.planner import Options


@click.command()
@model_argument
@board_option(required=True)
@click.option(
    "-o",
    "--output",
    "directory",
    metavar="DIR",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the C library and the firmware; made if it is not there.",
)
@click.option(
    "--name", help="What the model's functions and files are called in C; the file's name by default."
)
@planning_options
@output_options
def build(
    *, model: Path, board: Board, directory: Path, name: str | None, options: Options, output: Output
) -> None:
    """Write a self-contained C library of the model, and the firmware that runs it."""
    from mcudeploy import deploy

    with output.progress() as progress:
        progress.stage(f"building {model.name} for {board.name}")
        report = deploy.build_model(model, board, replace(options, name=name), directory)
    output.result(report, tables.build)


@click.command()
@device_options
@click.argument("model", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@planning_options
@click.option("--dry-run", is_flag=True, help="Build, then print the command that would write the board.")
@output_options
def flash(*, model: Path | None, target: Target, options: Options, dry_run: bool, output: Output) -> None:
    """Build the measurer, or the firmware of MODEL, and write it to the board."""
    from mcudeploy import deploy

    with output.progress() as progress:
        progress.stage(f"flashing {target.board.name}")
        report = deploy.flash_board(model, target, options, dry_run)
    output.result(report, tables.flash)


COMMANDS = (build, flash)
