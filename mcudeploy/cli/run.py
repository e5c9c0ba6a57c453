"""`measure` and `run`: a model on a device, timed operator by operator, and verified."""

from __future__ import annotations

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
    sample_options,
)
from mcudeploy.cli.output import Output
from mcudeploy.errors import OutputsDifferError

if TYPE_CHECKING:
    from mcudeploy.board import Board
    from mcudeploy.deploy import Options


@click.command()
@model_argument
@board_option(required=True)
@planning_options
@device_options
@output_options
def measure(
    *,
    model: Path,
    board: Board,
    options: Options,
    port: str | None,
    emulate: bool,
    output: Output,
) -> None:
    """Time every operator of a model on the device."""
    from mcudeploy import deploy

    with output.progress() as progress:
        report = deploy.measure_model(model, board, options, port, emulate, progress=progress)
    output.result(report, tables.measure)


@click.command()
@model_argument
@board_option(required=True)
@sample_options
@planning_options
@device_options
@output_options
@click.pass_context
def run(
    context: click.Context,
    *,
    model: Path,
    board: Board,
    inputs: tuple[Path, ...],
    expected: tuple[Path, ...],
    options: Options,
    port: str | None,
    emulate: bool,
    output: Output,
) -> None:
    """Build a model, flash it, run it on the device, and verify its outputs."""
    from mcudeploy import deploy

    with output.progress() as progress:
        report = deploy.run_model(
            model,
            board,
            options,
            port,
            emulate,
            inputs=list(inputs),
            expected=list(expected),
            progress=progress,
        )
    output.result(report, tables.run)
    if not report["verified"]:
        context.exit(OutputsDifferError.exit_code)


COMMANDS = (measure, run)
